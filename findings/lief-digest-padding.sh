#!/usr/bin/env bash
# LIEF 1.0.0 (PyPI) and osslsigncode 2.5 (Debian 12, osslsigncode 2.5-4): the Authenticode digest of an image is another
# one once it is signed.
#
# A good guess: authentihash() of an image is the digest that its signature will have, because Microsoft's "Windows
# Authenticode Portable Executable Signature Format" leaves out of it whatever signing changes: the checksum, the entry
# of the certificate table and the table. Seen: that holds where the size of the file is a multiple of eight. A signer
# pads other files with zeros first, since the table is aligned, and the padding counts; LIEF does not add it. Images of
# lld-link and MSVC have such sizes; those of mingw-w64 with symbols do not. So a list of digests, as a catalog is, that
# LIEF made of the unsigned files does not have the digests of the signed ones.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack binutils-mingw-w64-x86-64=2.40-2+10.4 osslsigncode=2.5-4 libcurl4 libzstd1 zlib1g
cat > code.s <<'TEXT'
    .globl start
    .text
start:
    ret
TEXT
debian x86_64-w64-mingw32-as code.s -o code.o
debian x86_64-w64-mingw32-ld -e start code.o -o with-symbols.exe
debian x86_64-w64-mingw32-ld -s -e start code.o -o stripped.exe
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -subj /CN=finding 2>/dev/null
for file in stripped with-symbols; do
    debian osslsigncode sign -certs certificate.pem -key key.pem -h sha256 -in $file.exe -out $file-signed.exe > said
done
python lief==1.0.0 <<'SCRIPT' | tee seen
import os

import lief

for file in ["stripped", "with-symbols"]:
    digests = []
    for name in [f"{file}.exe", f"{file}-signed.exe"]:
        program = lief.PE.parse(name)
        digests.append(program.authentihash(lief.PE.ALGORITHMS.SHA_256))
    assert program.signatures[0].content_info.digest == digests[1]
    print(file, "size modulo 8:", os.path.getsize(f"{file}.exe") % 8, "same digest:", digests[0] == digests[1])
SCRIPT
diff seen - <<'SEEN'
stripped size modulo 8: 0 same digest: True
with-symbols size modulo 8: 1 same digest: False
SEEN
