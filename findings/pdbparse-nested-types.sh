#!/usr/bin/env bash
# pdbparse 1.5 (PyPI): whether it reads the types of a PDB depends on the lengths of the names of nested types.
#
# A good guess: it reads a class with a nested type, or lacks nested types altogether. Records of a field list are
# filled up to four bytes with bytes of F1 to F3, and it skips these after members. Seen: after a nested type it does
# not. One byte is ignored; two or three are taken for the next record, which has no known kind, and the whole file is
# refused. The unnamed struct of a C program is enough, which clang writes as a nested type with an empty name. pdb
# 0.8.0 (a crate) and llvm-pdbutil read all of them.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
for name in '' T Te Tex Text; do
    cat > types.yaml <<TEXT
MSF: { SuperBlock: {} }
PdbStream: { Age: 1, Guid: '{01020304-0506-0708-090A-0B0C0D0E0F10}' }
TpiStream:
  Version: VC80
  Records:
    - Kind: LF_FIELDLIST
      FieldList:
        - { Kind: LF_MEMBER, DataMember: { Attrs: 3, Type: 116, FieldOffset: 0, Name: a } }
        - { Kind: LF_NESTTYPE, NestedType: { Type: 116, Name: '$name' } }
TEXT
    llvm llvm-pdbutil yaml2pdb -pdb="types_$name.pdb" types.yaml
done
python pdbparse==1.5 construct==2.9.52 pefile==2024.8.26 <<'SCRIPT' | tee seen
import pdbparse

for name in ["", "T", "Te", "Tex", "Text"]:
    try:
        (fields,) = pdbparse.parse(f"types_{name}.pdb").STREAM_TPI.types.values()
        print(repr(name), *(field.name for field in fields.substructs))
    except KeyError as error:
        print(repr(name), f"KeyError {error.args[0]:X}")
SCRIPT
diff seen - <<'SEEN'
'' KeyError F2F3
'T' KeyError F1F2
'Te' a Te
'Tex' a Tex
'Text' KeyError F2F3
SEEN
