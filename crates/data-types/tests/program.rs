//! The programs of `programs`, which `programs/make.sh` compiles.

use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use data_types::{DataTypes, Place};
use flate2::read::GzDecoder;
use object::{Object as _, ObjectSection as _};

/// The folder of other builds of the programs, in the environment.
const FOLDER: &str = "HALPROF_DATA_TYPES";

/// An access that a program says about itself.
#[derive(Debug)]
pub struct Known {
    /// Relative to the image.
    pub address: u32,
    pub size: u32,
    pub path: String,
    pub type_name: String,
    /// Structure, member and offset: `Row.lock.owner@8`.
    pub member: String,
}

pub struct Program {
    pub image: Vec<u8>,
    pub pdb: Vec<u8>,
}

fn unpacked(name: &str) -> Vec<u8> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let path = env::var_os(FOLDER).map_or(own, PathBuf::from).join(name);
    let mut bytes = Vec::new();
    GzDecoder::new(File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

impl Program {
    pub fn read(name: &str) -> Self {
        Self { image: unpacked(&format!("{name}.exe.gz")), pdb: unpacked(&format!("{name}.pdb.gz")) }
    }

    pub fn types(&self) -> DataTypes {
        DataTypes::from_bytes(self.pdb.clone()).unwrap()
    }

    /// Returns `size` bytes of the image as it is loaded.
    pub fn bytes(&self, address: u32, size: usize) -> Vec<u8> {
        let file = object::File::parse(&*self.image).unwrap();
        let address = file.relative_address_base() + u64::from(address);
        let section = file.sections().find(|section| {
            (section.address()..section.address() + section.data().unwrap().len() as u64).contains(&address)
        });
        let section = section.unwrap();
        let start = usize::try_from(address - section.address()).unwrap();
        let data = section.data().unwrap();
        data[start..data.len().min(start + size)].to_vec()
    }

    fn text(&self, address: u32) -> String {
        let bytes = self.bytes(address, 256);
        let end = bytes.iter().position(|byte| *byte == 0).unwrap();
        String::from_utf8(bytes[..end].to_vec()).unwrap()
    }

    /// Returns the accesses of the section `.known`: five words each.
    pub fn known(&self) -> Vec<Known> {
        let file = object::File::parse(&*self.image).unwrap();
        let base = file.relative_address_base();
        let data = file.section_by_name(".known").unwrap().data().unwrap();
        let words: Vec<u64> = data.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        // The linker fills the space between two tables with zeros.
        let words: Vec<u64> = words.into_iter().filter(|word| *word != 0).collect();
        let known = words.as_chunks().0.iter().map(|[address, size, path, type_name, member]: &[u64; 5]| {
            let [path, type_name, member] =
                [path, type_name, member].map(|text| self.text(u32::try_from(text - base).unwrap()));
            let address = u32::try_from(address - base).unwrap();
            Known { address, size: u32::try_from(*size).unwrap(), path, type_name, member }
        });
        known.collect()
    }

    /// Returns the code of the image.
    pub fn code(&self) -> (u32, Vec<u8>) {
        let file = object::File::parse(&*self.image).unwrap();
        let section = file.section_by_name(".text").unwrap();
        let address = u32::try_from(section.address() - file.relative_address_base()).unwrap();
        (address, section.data().unwrap().to_vec())
    }
}

/// Returns the structure, member and offset of a place as the programs say it.
pub fn member(place: &Place) -> String {
    place
        .member
        .as_ref()
        .map_or(String::new(), |member| format!("{}.{}@{}", member.structure, member.name.trim_start(), member.offset))
}
