# shellcheck shell=bash
# Unpacks LLVM 14.0.6 of Debian 12 in a temporary folder. The functions run its programs.
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack llvm-14=1:14.0.6-12 lld-14=1:14.0.6-12 libllvm14=1:14.0.6-12 \
    libedit2 libbsd0 libmd0 libtinfo6 libxml2 libicu72 liblzma5 libz3-4 libffi8 libpfm4 libzstd1 zlib1g
llvm() { debian "../lib/llvm-14/bin/$1" "${@:2}"; }

# program NAME BEFORE: an image whose function `wanted` has this number of bytes before it, and its PDB.
program() {
    mkdir -p "$1"
    cat > code.s <<TEXT
    .globl start, wanted
    .def start; .scl 2; .type 32; .endef
    .def wanted; .scl 2; .type 32; .endef
    .text
start:
    .zero $2, 0xcc
wanted:
    ret
TEXT
    llvm llvm-mc -triple x86_64-pc-windows-msvc -filetype=obj code.s -o code.obj
    llvm lld-link /nologo /debug /nodefaultlib /subsystem:console /entry:start /pdbaltpath:%_PDB% \
        "/pdb:$1/code.pdb" "/out:$1/code.exe" code.obj
}
