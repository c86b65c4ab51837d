//! Names of data by PDBs that clang, rustc and lld make anew, compared with the layout that llvm-pdbutil reads: an
//! independent reader of the same types.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use xtask::{files, prerequisites, run, workspace::Workspace};

/// The programs, which `make.sh` compiles.
const PROGRAMS: [&str; 3] = ["objects", "records", "statics"];

const SCRIPT: &str = "crates/data-types/tests/programs/make.sh";

/// Least number of members whose names are compared.
const MEMBERS: usize = 90;

/// Maximum number of structures within each other.
const MAX_DEPTH: usize = 8;

/// Makes the programs, runs the tests with them, and compares every member of their variables.
pub fn run(workspace: &Workspace) -> Result<()> {
    prerequisites::for_profiles(workspace)?;
    let folder = workspace.tools().join("data-types");
    files::remove_folder(&folder)?;
    files::make_folder(&folder)?;
    run::verbose(Command::new(workspace.root().join(SCRIPT)).arg(&folder))?;
    let mut test = workspace.cargo("test");
    run::quiet(test.args(["--locked", "-p", "data-types"]).env("HALPROF_DATA_TYPES", &folder))?;
    let mut compared = 0;
    for name in PROGRAMS {
        let pdb = folder.join(format!("{name}.pdb"));
        run::quiet(Command::new("gunzip").arg(folder.join(format!("{name}.pdb.gz"))))?;
        let members = Layout::read(&pdb)?.members();
        compared += members.values().map(Vec::len).sum::<usize>();
        compare(workspace, &pdb, &members)?;
    }
    ensure!(compared >= MEMBERS, "only {compared} members were compared");
    println!("{compared} members of variables have the names that llvm-pdbutil's layout says");
    Ok(())
}

/// Checks that the data at each address has one of the names that it can have.
fn compare(workspace: &Workspace, pdb: &PathBuf, members: &BTreeMap<u64, Vec<String>>) -> Result<()> {
    let mut names = workspace.cargo("run");
    names.args(["--quiet", "--locked", "-p", "data-types", "--example", "names", "--"]).arg(pdb);
    let found = run::output(names.args(members.keys().map(|address| format!("{address:#x}"))))?;
    for (line, (address, wanted)) in found.lines().zip(members) {
        let name = line.split(' ').nth(1).context("a line without a name")?;
        for wanted in wanted {
            ensure!(has_name(name, wanted), "{}: {address:#x} is {name:?}, and not {wanted:?}", pdb.display());
        }
    }
    ensure!(found.lines().count() == members.len(), "{} addresses have {found:?}", members.len());
    Ok(())
}

/// Returns whether a path, of which `|` separates the members of a union, has the member. What is behind the index of
/// an array is not compared.
fn has_name(path: &str, wanted: &str) -> bool {
    path.split('|').any(|one| {
        let one = one.split(['[', '+']).next().unwrap_or(one);
        wanted.ends_with(one)
    })
}

/// What llvm-pdbutil says of a type.
#[derive(Debug)]
enum Type {
    /// The list of its fields.
    Structure {
        fields: u32,
    },
    /// Name, type and offset of each member; base classes have no name.
    Fields(Vec<(String, u32, u64)>),
    Modifier {
        target: u32,
    },
    BitField {
        position: u64,
    },
    /// An array without a length, behind the structure.
    Endless,
}

/// Types and variables of a PDB.
#[derive(Debug, Default)]
struct Layout {
    types: BTreeMap<u32, Type>,
    /// Declarations, and the types that define them.
    defined: BTreeMap<u32, u32>,
    /// Name, type and address of each variable, relative to the image.
    variables: Vec<(String, u32, u64)>,
}

impl Layout {
    fn read(pdb: &Path) -> Result<Self> {
        let dump = |option: &str| run::output(Command::new("llvm-pdbutil-19").args(["dump", option]).arg(pdb));
        let mut layout = Self::default();
        layout.read_types(&dump("-types")?).context("llvm-pdbutil's types have another form")?;
        let sections = sections(&dump("-section-headers")?);
        layout.read_variables(&dump("-globals")?, &sections).context("llvm-pdbutil's globals have another form")?;
        Ok(layout)
    }

    fn read_types(&mut self, text: &str) -> Option<()> {
        let mut index = 0;
        for line in text.lines().map(str::trim) {
            if let Some((number, rest)) = line.split_once(" | LF_") {
                index = hexadecimal(number)?;
                if rest.starts_with("FIELDLIST") {
                    self.types.insert(index, Type::Fields(Vec::new()));
                }
            } else if let Some(rest) = line.split_once("field list: ").map(|(_, rest)| rest) {
                if let Some(fields) = hexadecimal(rest) {
                    self.types.insert(index, Type::Structure { fields });
                }
            } else if let Some((_, rest)) = line.split_once("forward ref (-> ") {
                self.defined.insert(index, hexadecimal(rest)?);
            } else if let Some((_, rest)) = line.split_once("modifiers = ").and(line.split_once("referent = ")) {
                self.types.insert(index, Type::Modifier { target: hexadecimal(rest)? });
            } else if line.starts_with("size: 0, index type: ") {
                self.types.insert(index, Type::Endless);
            } else if let Some((_, rest)) = line.split_once("bit offset = ") {
                self.types.insert(index, Type::BitField { position: decimal(rest)? });
            } else if let Some(rest) = line.strip_prefix("- LF_MEMBER [name = `") {
                let (name, rest) = rest.split_once("`, Type = ")?;
                let offset = decimal(rest.split_once("offset = ")?.1)?;
                self.field(index, (name.to_owned(), hexadecimal(rest)?, offset));
            } else if let Some(rest) = line.strip_prefix("type = ")
                && let Some((_, offset)) = line.split_once(", offset = ").filter(|_| line.contains("attrs ="))
            {
                self.field(index, (String::new(), hexadecimal(rest)?, decimal(offset)?));
            }
        }
        Some(())
    }

    fn field(&mut self, index: u32, field: (String, u32, u64)) {
        if let Some(Type::Fields(fields)) = self.types.get_mut(&index) {
            fields.push(field);
        }
    }

    fn read_variables(&mut self, text: &str, sections: &[u64]) -> Option<()> {
        let mut lines = text.lines().map(str::trim);
        while let Some(line) = lines.next() {
            if line.contains("| S_GDATA32") || line.contains("| S_LDATA32") {
                let name = line.split('`').nth(1)?;
                let rest = lines.next()?.strip_prefix("type = ")?;
                let (section, offset) = rest.split_once("addr = ")?.1.split_once(':')?;
                let base = sections.get(usize::try_from(decimal(section)?).ok()?.checked_sub(1)?)?;
                self.variables.push((name.to_owned(), hexadecimal(rest)?, base + decimal(offset)?));
            }
        }
        Some(())
    }

    /// Returns the members of all variables, by their addresses.
    fn members(&self) -> BTreeMap<u64, Vec<String>> {
        let mut members: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for (name, kind, address) in &self.variables {
            self.add(name, *kind, *address, MAX_DEPTH, &mut members);
        }
        members
    }

    fn add(&self, path: &str, kind: u32, address: u64, depth: usize, members: &mut BTreeMap<u64, Vec<String>>) {
        let kind = self.defined.get(&kind).copied().unwrap_or(kind);
        match self.types.get(&kind) {
            Some(Type::Modifier { target }) if depth > 0 => self.add(path, *target, address, depth - 1, members),
            Some(Type::Structure { fields }) if depth > 0 => {
                let Some(Type::Fields(fields)) = self.types.get(fields) else { return };
                for (name, kind, offset) in fields {
                    let path = if name.is_empty() { path.to_owned() } else { format!("{path}.{name}") };
                    self.add(&path, *kind, address + offset, depth - 1, members);
                }
            }
            Some(Type::BitField { position }) => {
                members.entry(address + position / 8).or_default().push(path.to_owned());
            }
            Some(Type::Endless) => {}
            _ => members.entry(address).or_default().push(path.to_owned()),
        }
    }
}

/// Returns the addresses of the sections relative to the image, in their order.
fn sections(text: &str) -> Vec<u64> {
    let addresses = text.lines().filter_map(|line| line.trim().strip_suffix(" virtual address"));
    addresses.filter_map(|address| u64::from_str_radix(address.trim(), 16).ok()).collect()
}

/// Returns the hexadecimal number at the beginning of a text.
fn hexadecimal(text: &str) -> Option<u32> {
    let digits = text.trim().strip_prefix("0x")?;
    let end = digits.find(|digit: char| !digit.is_ascii_hexdigit()).unwrap_or(digits.len());
    u32::from_str_radix(digits.get(..end)?, 16).ok()
}

/// Returns the decimal number at the beginning of a text.
fn decimal(text: &str) -> Option<u64> {
    let end = text.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}
