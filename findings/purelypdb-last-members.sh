#!/usr/bin/env bash
# purelypdb 1.0.0 (PyPI): whether the last member of a structure exists depends on the length of its name.
#
# A good guess: a list of fields ends where its record ends, so a structure with a count of two members has two, and
# padding (LF_PAD) stands only where a length is no multiple of four. Seen: without padding behind it, the last member
# is left out. Of struct { int x, y; } it finds x alone, though the structure's record says that there are two; with
# "to", "end" or "last" in place of y both are there. Nothing warns.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
structure() {
    cat <<TEXT
    - Kind: LF_FIELDLIST
      FieldList:
        - { Kind: LF_MEMBER, DataMember: { Attrs: 3, Type: 116, FieldOffset: 0, Name: $2 } }
        - { Kind: LF_MEMBER, DataMember: { Attrs: 3, Type: 116, FieldOffset: 4, Name: $3 } }
    - Kind: LF_STRUCTURE
      Class: { MemberCount: 2, Options: [ None ], FieldList: $1, Name: $2$3, UniqueName: '', DerivationList: 0,
               VTableShape: 0, Size: 8 }
TEXT
}
{
    printf '%s\n' 'MSF: { SuperBlock: {} }' 'PdbStream: { Age: 1, Guid: "{01020304-0506-0708-090A-0B0C0D0E0F10}" }' \
        'DbiStream: { VerHeader: V70, MachineType: Amd64 }' 'TpiStream:' '  Version: VC80' '  Records:'
    structure 4096 x y
    structure 4098 x to
    structure 4100 x end
    structure 4102 x last
    structure 4104 x other
} > types.yaml
llvm llvm-pdbutil yaml2pdb -pdb=types.pdb types.yaml
python purelypdb==1.0.0 <<'SCRIPT' | tee seen
import purelypdb

types = purelypdb.parse("types.pdb").STREAM_TPI.types
for index in sorted(types):
    if types[index].leaf_type == "LF_STRUCTURE":
        members = types[types[index].fieldlist].substructs
        print(types[index].count, "members:", *(f"{one.name} at {one.offset}" for one in members))
SCRIPT
diff seen - <<'SEEN'
2 members: x at 0
2 members: x at 0 to at 4
2 members: x at 0 end at 4
2 members: x at 0 last at 4
2 members: x at 0
SEEN
