#!/usr/bin/env bash
# pdb-addr2line 0.12.1 (a crate): functions that differ in volatile, or in the class of a pointer to a member, have one
# name.
#
# A good guess: the names that it makes of the types in a PDB tell overloads apart, since it writes const, references
# and the ranks of arrays. Seen: volatile is left out, and so is the class of a pointer to a member, of which the type
# has the index: `int A::*` and `int B::*` are both `int::*`. llvm-pdbutil shows both. Profilers that take the names
# from it add up what two functions cost.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
cat > types.yaml <<'TEXT'
MSF: { SuperBlock: {} }
PdbStream: { Age: 1, Guid: '{01020304-0506-0708-090A-0B0C0D0E0F10}', Signature: 1, Version: VC70, Features: [ VC140 ] }
StringTable: [ '' ]
DbiStream: { MachineType: Amd64, Modules: [] }
IpiStream: { Version: VC80, Records: [] }
TpiStream:
  Version: VC80
  Records:
    # 1000 to 1004: const int, volatile int, and pointers to int, const int and volatile int.
    - { Kind: LF_MODIFIER, Modifier: { ModifiedType: 116, Modifiers: [ Const ] } }
    - { Kind: LF_MODIFIER, Modifier: { ModifiedType: 116, Modifiers: [ Volatile ] } }
    - { Kind: LF_POINTER, Pointer: { ReferentType: 116, Attrs: 65548 } }
    - { Kind: LF_POINTER, Pointer: { ReferentType: 4096, Attrs: 65548 } }
    - { Kind: LF_POINTER, Pointer: { ReferentType: 4097, Attrs: 65548 } }
    # 1005 and 1006: classes. 1007 and 1008: pointers to a member of them.
    - Kind: LF_STRUCTURE
      Class: { MemberCount: 0, Options: [ None, ForwardReference, HasUniqueName ], FieldList: 0, Name: A,
               UniqueName: '.?AUA@@', DerivationList: 0, VTableShape: 0, Size: 0 }
    - Kind: LF_STRUCTURE
      Class: { MemberCount: 0, Options: [ None, ForwardReference, HasUniqueName ], FieldList: 0, Name: B,
               UniqueName: '.?AUB@@', DerivationList: 0, VTableShape: 0, Size: 0 }
    - Kind: LF_POINTER
      Pointer: { ReferentType: 116, Attrs: 32844,
                 MemberInfo: { ContainingType: 4101, Representation: SingleInheritanceData } }
    - Kind: LF_POINTER
      Pointer: { ReferentType: 116, Attrs: 32844,
                 MemberInfo: { ContainingType: 4102, Representation: SingleInheritanceData } }
TEXT
for argument in 4098 4099 4100 4103 4104; do
    cat >> types.yaml <<TEXT
    - { Kind: LF_ARGLIST, ArgList: { ArgIndices: [ $argument ] } }
TEXT
done
for list in 4105 4106 4107 4108 4109; do
    cat >> types.yaml <<TEXT
    - Kind: LF_PROCEDURE
      Procedure: { ReturnType: 3, CallConv: NearC, Options: [ None ], ParameterCount: 1, ArgumentList: $list }
TEXT
done
llvm llvm-pdbutil yaml2pdb -pdb=types.pdb types.yaml
crate 'pdb-addr2line = "=0.12.1"'
cat > src/main.rs <<'RUST'
use pdb_addr2line::pdb::{Error, Module, ModuleInfo, PDB, TypeIndex};
use pdb_addr2line::{ModuleProvider, TypeFormatter, TypeFormatterFlags};

struct NoModules;

impl<'s> ModuleProvider<'s> for NoModules {
    fn get_module_info(&self, _: usize, _: &Module<'_>) -> Result<Option<&ModuleInfo<'s>>, Error> {
        Ok(None)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut pdb = PDB::open(std::fs::File::open("types.pdb")?)?;
    let (debug, types, ids) = (pdb.debug_information()?, pdb.type_information()?, pdb.id_information()?);
    let flags = TypeFormatterFlags::default();
    let names = TypeFormatter::new_from_parts(&NoModules, Vec::new(), &debug, &types, &ids, None, flags)?;
    for function in 0x100E..=0x1012 {
        println!("{}", names.format_function("f", 0, TypeIndex(function))?);
    }
    Ok(())
}
RUST
CARGO_TARGET_DIR="$folder/target" cargo run --quiet | tee seen
diff seen - <<'SEEN'
f(int*)
f(int const*)
f(int*)
f(int::*)
f(int::*)
SEEN
