#!/bin/sh
# Compiles the programs of this folder into a folder (this one, if none is given), as NAME.exe.gz and NAME.pdb.gz. They
# need clang and lld of LLVM 19, and Rust's target x86_64-pc-windows-msvc.
set -eu
cd "$(dirname "$0")"
to=$(realpath "${1:-.}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Paths in the PDB and the time in the image do not depend on where and when it is made.
cp ./*.c ./*.cpp ./*.h ./*.rs "$work"
cd "$work"

compile() { # source, options...
    source=$1
    shift
    clang-19 --target=x86_64-pc-windows-msvc -g -gcodeview -fno-rtti -w -ffile-compilation-dir=. \
        -o "${source%.*}.obj" "$@" -c "$source"
}

link() { # name, objects...
    name=$1
    shift
    lld-link-19 /debug /nodefaultlib /entry:entry /subsystem:console /Brepro "/pdbaltpath:$name.pdb" \
        /pdbsourcepath:c:\\programs "/out:$name.exe" "$@"
    for file in "$name.exe" "$name.pdb"; do
        gzip -9nc "$file" >"$to/$file.gz"
    done
}

compile objects.cpp -O1
compile records.c -O1
compile records2.c -O1
link objects objects.obj
link records records.obj records2.obj
compile pointers.cpp -O1
link pointers pointers.obj
compile stack.c -O0
link stack stack.obj
compile stack.c -O0 --target=i686-pc-windows-msvc -o stack32.obj
link stack32 stack32.obj /safeseh:no
rustc --edition 2024 --target x86_64-pc-windows-msvc -C panic=abort -C opt-level=1 -C debuginfo=2 --emit obj \
    --remap-path-prefix "$work=." statics.rs -o statics.obj
link statics statics.obj
