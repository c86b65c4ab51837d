#!/usr/bin/env bash
# binutils 2.40 for mingw-w64 (Debian 12, binutils-mingw-w64-x86-64 2.40-2+10.4): the load configuration of an
# executable stays out of its header.
#
# A good guess: a linker for Windows finds special data by the names of symbols, and enters where they are into the
# data directories of the header. It does so for _tls_used (entry 9), so it does so for _load_config_used (entry a).
# Seen: entry 9 has the address, entry a is empty. Windows reads entry a only, so what the structure asks for, such as
# DependentLoadFlags, is ignored without a word. Link.exe and lld-link enter both.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack binutils-mingw-w64-x86-64=2.40-2+10.4 libzstd1 zlib1g
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
debian x86_64-w64-mingw32-as data.s -o data.o
debian x86_64-w64-mingw32-ld -e start data.o -o data.exe
debian x86_64-w64-mingw32-nm data.exe | awk '$3 ~ /_used$/ {print $3}' | sort > seen
debian x86_64-w64-mingw32-objdump -p data.exe |
    awk '/^Entry [9a] / {print $2, ($3 ~ /^0+$/ ? "empty" : "set"), $5, $6, $7}' >> seen
cat seen
diff seen - <<'SEEN'
_load_config_used
_tls_used
9 set Thread Storage Directory
a empty Load Configuration Directory
SEEN
