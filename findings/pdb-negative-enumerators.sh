#!/usr/bin/env bash
# pdb 0.8.0 (a crate): enumerators of -128 to -1 are those of 128 to 255.
#
# A good guess: a number in a type record has a sign if its kind has one (cvinfo.h: LF_CHAR, LF_SHORT, LF_LONG and
# LF_QUADWORD have), and the crate has a kind of value for each. Seen: LF_CHAR, which compilers write for the small
# negative numbers, becomes an unsigned byte; -129 keeps its sign. An error code of -1 is 255, as a member of the enum
# never is in memory. llvm-pdbutil, and pdb2 0.11.0, which is a copy of the crate under another name, read all of them.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
cat > types.yaml <<'TEXT'
MSF: { SuperBlock: {} }
PdbStream: { Age: 1, Guid: '{01020304-0506-0708-090A-0B0C0D0E0F10}' }
TpiStream:
  Version: VC80
  Records:
    - Kind: LF_FIELDLIST
      FieldList:
TEXT
for value in -1 -5 -128 -129 200; do
    echo "        - { Kind: LF_ENUMERATE, Enumerator: { Attrs: 3, Value: $value, Name: '$value' } }" >> types.yaml
done
llvm llvm-pdbutil yaml2pdb -pdb=types.pdb types.yaml
crate 'pdb = "=0.8.0"' 'pdb2 = "=0.11.0"'
cat > src/main.rs <<'RUST'
macro_rules! show {
    ($crate_name:ident) => {{
        use $crate_name::{FallibleIterator, PDB, TypeData};
        let mut pdb = PDB::open(std::fs::File::open("types.pdb")?)?;
        let types = pdb.type_information()?;
        let mut records = types.iter();
        while let Some(record) = records.next()? {
            let TypeData::FieldList(list) = record.parse()? else { continue };
            for field in list.fields {
                let TypeData::Enumerate(one) = field else { continue };
                println!("{} {} is {:?}", stringify!($crate_name), one.name, one.value);
            }
        }
    }};
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    show!(pdb);
    show!(pdb2);
    Ok(())
}
RUST
{
    llvm llvm-pdbutil dump -types types.pdb | grep -oE 'LF_ENUMERATE .*'
    CARGO_TARGET_DIR="$folder/target" cargo run --quiet
} | tee seen
diff seen - <<'SEEN'
LF_ENUMERATE [-1 = -1]
LF_ENUMERATE [-5 = -5]
LF_ENUMERATE [-128 = -128]
LF_ENUMERATE [-129 = -129]
LF_ENUMERATE [200 = 200]
pdb -1 is U8(255)
pdb -5 is U8(251)
pdb -128 is U8(128)
pdb -129 is I16(-129)
pdb 200 is U16(200)
pdb2 -1 is I8(-1)
pdb2 -5 is I8(-5)
pdb2 -128 is I8(-128)
pdb2 -129 is I16(-129)
pdb2 200 is U16(200)
SEEN
