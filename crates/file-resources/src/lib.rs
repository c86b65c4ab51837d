//! The resources of a file, for build scripts: its version (VS_VERSIONINFO, "Version Information", Microsoft Learn),
//! which Explorer, crash dumps and driver inventories show, and the manifest of a program.
//!
//! [`link`] makes an object file of them, which Microsoft's, LLVM's and GNU's linkers take, so that no resource
//! compiler is necessary. GNU's linker takes the resources of one object file only.

mod object_file;

use std::path::PathBuf;
use std::{env, fs, io};

use object_file::Resource;

/// Resource types RT_VERSION and RT_MANIFEST, the name of their only instances, and English (United States).
const RT_VERSION: u32 = 16;
const RT_MANIFEST: u32 = 24;
const NAME: u32 = 1;
const ENGLISH: u16 = 0x409;

/// Code page of the texts: UTF-16.
const UTF_16: u16 = 1200;

/// What a file is, as dwFileOS, dwFileType and dwFileSubtype of VS_FIXEDFILEINFO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A program.
    Program,
    /// A kernel driver that no other subtype describes.
    Driver,
}

impl Kind {
    /// VFT_APP; VFT_DRV and VFT2_DRV_SYSTEM. Both with VOS_NT_WINDOWS32.
    const fn numbers(self) -> [u32; 3] {
        match self {
            Self::Program => [0x0004_0004, 1, 0],
            Self::Driver => [0x0004_0004, 3, 7],
        }
    }
}

/// Adds the resources of a shipped program to the package whose build script calls it, and sets where its imports are
/// loaded from.
///
/// # Errors
/// The object file cannot be written.
pub fn program(file: &str) -> io::Result<()> {
    if env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|linker| linker == "gnu")
        && env::var_os("CARGO_CFG_WINDOWS").is_some()
    {
        // Makes the build reproducible: no time in the header.
        println!("cargo::rustc-link-arg-bins=-Wl,--no-insert-timestamp");
        // Nothing refers to the load configuration (crates/system/src/windows/libraries.rs).
        println!("cargo::rustc-link-arg-bins=-Wl,--undefined=_load_config_used");
    }
    if env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|linker| linker == "msvc") {
        // Imports are loaded from System32 only: LOAD_LIBRARY_SEARCH_SYSTEM32. The C runtime has the structure for it.
        println!("cargo::rustc-link-arg-bins=/DEPENDENTLOADFLAG:0x800");
    }
    link(Kind::Program, file)
}

/// Adds the resources to the package whose build script calls it, if that is built for Windows.
///
/// # Errors
/// The object file cannot be written.
pub fn link(kind: Kind, file: &str) -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| env::var(name).unwrap_or_default();
    if variable("CARGO_CFG_TARGET_OS") != "windows" {
        return Ok(());
    }
    let object = PathBuf::from(variable("OUT_DIR")).join("resources.o");
    let (version, description) = (variable("CARGO_PKG_VERSION"), variable("CARGO_PKG_DESCRIPTION"));
    let mut resources = vec![Resource { kind: RT_VERSION, bytes: resource(kind, file, &version, &description) }];
    if kind == Kind::Program {
        resources.push(Resource { kind: RT_MANIFEST, bytes: include_bytes!("../program.manifest").to_vec() });
    }
    fs::write(&object, object_file::of(&resources))?;
    let links = if kind == Kind::Program { "bins" } else { "cdylib" };
    println!("cargo::rustc-link-arg-{links}={}", object.display());
    Ok(())
}

/// Returns the version resource.
fn resource(kind: Kind, file: &str, version: &str, description: &str) -> Vec<u8> {
    let mut numbers = version.split(['.', '-', '+']).map(|number| number.parse::<u16>().unwrap_or_default());
    let mut next = || u32::from(numbers.next().unwrap_or_default());
    let high = (next() << 16) | next();
    let low = next() << 16;
    let [system, file_type, subtype] = kind.numbers();
    // VS_FIXEDFILEINFO: signature, version of the structure, versions of the file and of the product, flags, date.
    let fixed = [0xFEEF_04BD, 0x0001_0000, high, low, high, low, 0x3F, 0, system, file_type, subtype, 0, 0];
    let fixed: Vec<u8> = fixed.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    let strings: Vec<u8> = [
        ("CompanyName", "The halprof developers"),
        ("FileDescription", description),
        ("FileVersion", version),
        ("InternalName", file),
        ("LegalCopyright", "The halprof developers. MIT OR Apache-2.0"),
        ("OriginalFilename", file),
        ("ProductName", "halprof"),
        ("ProductVersion", version),
    ]
    .iter()
    .flat_map(|(key, value)| aligned(block(key, &Value::Text(value), &[])))
    .collect();
    let table = block(&format!("{ENGLISH:04x}{UTF_16:04x}"), &Value::None, &strings);
    let languages = [ENGLISH, UTF_16].map(u16::to_le_bytes).concat();
    let translation = block("Translation", &Value::Binary(&languages), &[]);
    let children =
        [aligned(block("StringFileInfo", &Value::None, &table)), block("VarFileInfo", &Value::None, &translation)];
    block("VS_VERSION_INFO", &Value::Binary(&fixed), &children.concat())
}

enum Value<'a> {
    None,
    Text(&'a str),
    Binary(&'a [u8]),
}

/// Returns a block of the resource: its length, the length of the value in its units, whether the value is text, the
/// key, the value and the children. The last two begin at multiples of four bytes.
fn block(key: &str, value: &Value<'_>, children: &[u8]) -> Vec<u8> {
    let (value, units, is_text) = match value {
        Value::None => (Vec::new(), 0, 1),
        Value::Text(text) => (utf_16(text), utf_16(text).len() / 2, 1_u16),
        Value::Binary(bytes) => (bytes.to_vec(), bytes.len(), 0),
    };
    let mut rest = aligned([vec![0; 6], utf_16(key)].concat());
    rest.extend(value);
    if !children.is_empty() {
        rest = aligned(rest);
        rest.extend(children);
    }
    let size = |length: usize| u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes();
    let header = [size(rest.len()), size(units), is_text.to_le_bytes()].concat();
    rest.splice(..header.len(), header);
    rest
}

/// Pads to a multiple of four bytes.
fn aligned(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Returns the text with its terminator.
fn utf_16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}
