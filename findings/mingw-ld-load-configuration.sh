#!/usr/bin/env bash
# binutils 2.40 for mingw-w64 (Debian 12, binutils-mingw-w64-x86-64 2.40-2+10.4): the load configuration of an
# executable stays out of its header.
#
# A good guess: a linker for Windows finds special data by the names of symbols, and enters where they are into the
# data directories of the header. It does so for _tls_used (entry 9), so it does so for _load_config_used (entry a).
# Seen: entry 9 has the address, entry a is empty. Windows reads entry a only, so what the structure asks for, such as
# DependentLoadFlags, is ignored without a word. Link.exe and lld-link enter both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download --quiet -o APT::Sandbox::User=root binutils-mingw-w64-x86-64=2.40-2+10.4 libzstd1 zlib1g >/dev/null
for package in *.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$folder/usr/lib/x86_64-linux-gnu:$folder/lib/x86_64-linux-gnu"
cat > data.s <<'TEXT'
    .globl start, _tls_used, _load_config_used
    .text
start:
    ret
    .section .rdata,"dr"
    .balign 8
_tls_used:
    .zero 0x28
_load_config_used:
    .long 0x140
    .zero 0x13c
TEXT
usr/bin/x86_64-w64-mingw32-as data.s -o data.o
usr/bin/x86_64-w64-mingw32-ld -e start data.o -o data.exe
usr/bin/x86_64-w64-mingw32-nm data.exe | awk '$3 ~ /_used$/ {print $3}' | sort > seen
usr/bin/x86_64-w64-mingw32-objdump -p data.exe |
    awk '/^Entry [9a] / {print $2, ($3 ~ /^0+$/ ? "empty" : "set"), $5, $6, $7}' >> seen
cat seen
diff seen - <<'SEEN'
_load_config_used
_tls_used
9 set Thread Storage Directory
a empty Load Configuration Directory
SEEN
