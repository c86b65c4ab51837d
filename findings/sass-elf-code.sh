#!/usr/bin/env bash
# sass-embedded 1.93.2 for Windows (npm, sass-embedded-win32-x64; made by Dart): the machine code of the program is in
# an ELF file.
#
# A good guess: a program that is compiled ahead of time for Windows is an image of Windows, so a profiler finds its
# code in a module, and the module's names and unwind information. Seen: dart.exe, an image, is the runtime alone. The
# program is sass.snapshot, an ELF shared object with 8,294 functions, their lines in DWARF and a build ID, which the
# runtime maps by itself. It is no module for Windows: a sample there has an address without a module, although all
# that a tool on Linux needs is in the file.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
npm install --silent --no-fund --no-audit --force --prefix . sass-embedded-win32-x64@1.93.2
unpack binutils-x86-64-linux-gnu=2.40-2 libbinutils=2.40-2 libctf-nobfd0=2.40-2 libctf0=2.40-2
program=node_modules/sass-embedded-win32-x64/dart-sass/src
tool() { debian x86_64-linux-gnu-readelf --wide "$@" $program/sass.snapshot; }
{
    for file in dart.exe sass.snapshot; do echo "$file:$(head -c 4 $program/$file | od -An -tx1)"; done
    tool --file-header | sed -nE 's/^ +(Machine|Type): +/\1: /p'
    tool --sections | sed -nE 's/.* (\.text|\.debug_line) +PROGBITS( +[0-9a-f]+){2} ([0-9a-f]+) .*/\1: 0x\3 bytes/p'
    echo "functions: $(tool --symbols | grep --count ' FUNC ')"
    tool --notes | grep -o 'Build ID: .*'
} | tee seen
diff seen - <<'SEEN'
dart.exe: 4d 5a 78 00
sass.snapshot: 7f 45 4c 46
Type: DYN (Shared object file)
Machine: Advanced Micro Devices X86-64
.text: 0x215980 bytes
.debug_line: 0x04e38a bytes
functions: 8294
Build ID: a09560da64bb730d1ad7c9ed291f4de0
SEEN
