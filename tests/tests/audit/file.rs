//! Reads halprof.sys and its debug information.

use std::collections::BTreeMap;
use std::fs::{self, File};

use object::LittleEndian as LE;
use object::pe::{IMAGE_SCN_MEM_EXECUTE, ImageNtHeaders64};
use object::read::pe::{ImageThunkData, PeFile64};
use object::{Object, ObjectSection, SectionFlags};
use pdb_addr2line::ContextPdbData;
use pdb_addr2line::pdb::PDB;
use tests::{Image, artifacts};

/// Returns the content of halprof.sys.
pub fn bytes() -> Vec<u8> {
    fs::read(artifacts().unwrap().join("halprof.sys")).unwrap()
}

/// An import: the address of its slot, its module and its name.
pub struct Import {
    pub slot: u64,
    pub module: String,
    pub name: String,
}

pub fn imports(file: &PeFile64) -> Vec<Import> {
    let base = file.relative_address_base();
    let table = file.import_table().unwrap().expect("a driver imports something");
    let mut imports = Vec::new();
    let mut descriptors = table.descriptors().unwrap();
    while let Some(descriptor) = descriptors.next().unwrap() {
        let module = String::from_utf8_lossy(table.name(descriptor.name.get(LE)).unwrap()).to_lowercase();
        let mut slot = base + u64::from(descriptor.first_thunk.get(LE));
        let mut thunks = table.thunks(descriptor.original_first_thunk.get(LE)).unwrap();
        while let Some(thunk) = thunks.next::<ImageNtHeaders64>().unwrap() {
            assert!(!thunk.is_ordinal(), "{module}: an import by ordinal");
            let (_, name) = table.hint_name(thunk.address()).unwrap();
            imports.push(Import { slot, module: module.clone(), name: String::from_utf8_lossy(name).into_owned() });
            slot += 8;
        }
    }
    imports
}

/// Returns the code of the file, for a walk through it.
pub fn image<'a>(file: &PeFile64<'a>) -> Image<'a> {
    let sections = file.sections().filter(|section| match section.flags() {
        SectionFlags::Coff { characteristics } => characteristics & IMAGE_SCN_MEM_EXECUTE == IMAGE_SCN_MEM_EXECUTE,
        _ => false,
    });
    let code = sections.map(|section| (section.address(), section.data().unwrap())).collect();
    let imports = imports(file).into_iter().map(|import| (import.slot, import.name)).collect();
    Image { code, imports, ..Image::default() }
}

/// Returns the address at which Windows starts the driver.
pub fn entry(file: &PeFile64) -> u64 {
    file.relative_address_base() + u64::from(file.nt_headers().optional_header.address_of_entry_point.get(LE))
}

/// Returns the names of the exported functions.
pub fn exports(file: &PeFile64) -> Vec<String> {
    let Some(table) = file.export_table().unwrap() else { return Vec::new() };
    let name = |name: Option<&[u8]>| name.map_or("(no name)".into(), String::from_utf8_lossy).into_owned();
    table.exports().unwrap().into_iter().map(|export| name(export.name)).collect()
}

/// Returns the functions in the debug information, by their addresses.
pub fn functions(file: &PeFile64) -> BTreeMap<u64, String> {
    let base = file.relative_address_base();
    let symbols = PDB::open(File::open(artifacts().unwrap().join("halprof.pdb")).unwrap()).unwrap();
    let symbols = ContextPdbData::try_from_pdb(symbols).unwrap();
    let context = symbols.make_context().unwrap();
    let named = context.functions().filter_map(|function| Some((base + u64::from(function.start_rva), function.name?)));
    named.collect()
}
