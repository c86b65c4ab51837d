//! PDBs with damages: whatever the bytes are, the result is a name, none, or an error.

use std::sync::LazyLock;

use data_types::{Code, DataTypes, Operation};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::program::Program;

/// A program, and the accesses that it says about itself.
struct Sound {
    program: Program,
    /// Address and size.
    accesses: Vec<(u32, u32)>,
    code: (u32, Vec<u8>),
}

static SOUND: LazyLock<Vec<Sound>> = LazyLock::new(|| {
    let sound = |name: &&str| {
        let program = Program::read(name);
        let code = program.code();
        let accesses = match *name {
            "pointers" => Vec::new(),
            _ => program.known().iter().map(|known| (known.address, known.size)).collect(),
        };
        Sound { program, accesses, code }
    };
    ["objects", "records", "pointers", "statics"].iter().map(sound).collect()
});

/// Bytes that a path has at most, whatever the types say.
const MAX_PATH: usize = 1 << 20;

#[derive(Clone, Debug)]
enum Damage {
    Byte(Index, u8),
    /// A number of four bytes that is one of a type, which makes circles.
    Type(Index, u32),
    /// Any number of four bytes.
    Number(Index, u32),
    End(Index),
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Byte(place, value) => {
                let place = place.index(bytes.len());
                bytes[place] = *value;
            }
            Self::Type(place, number) | Self::Number(place, number) => {
                let place = place.index(bytes.len() / 4) * 4;
                bytes[place..place + 4].copy_from_slice(&number.to_le_bytes());
            }
            Self::End(place) => bytes.truncate(place.index(bytes.len()).max(16)),
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => (any::<Index>(), any::<u8>()).prop_map(|(place, value)| Damage::Byte(place, value)),
        8 => (any::<Index>(), 0x1000_u32..0x1080).prop_map(|(place, number)| Damage::Type(place, number)),
        2 => (any::<Index>(), select(vec![0, 1, 0x7FFF_FFFF, 0xFFFF_FFFF, 0x8000, 0xFFFF]))
            .prop_map(|(place, number)| Damage::Number(place, number)),
        1 => any::<Index>().prop_map(Damage::End),
    ]
}

/// Asks for the names of data.
fn name_data(types: &DataTypes, sound: &Sound) {
    for (address, size) in &sound.accesses {
        let place = types.global(*address, *size);
        assert!(place.is_none_or(|place| place.path.len() < MAX_PATH));
    }
}

/// Asks for every name that a report could ask for.
fn name_all(types: &DataTypes, sound: &Sound) {
    name_data(types, sound);
    let (address, bytes) = &sound.code;
    let code = Code { address: *address, bytes, is_64_bit: true };
    for ip in (*address..).take(bytes.len()) {
        for operation in [Operation::Load, Operation::Store] {
            if let Some(operand) = code.operand(ip, operation) {
                let place = types.place(&code, ip, &operand);
                assert!(place.is_none_or(|place| place.path.len() < MAX_PATH));
            }
        }
    }
}

/// Returns the places with something: most of a small PDB is empty space.
fn filled(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len()).filter(|place| bytes[*place] != 0).collect()
}

proptest! {
    #[test]
    fn damaged_pdbs_have_names_or_none(program in 0..4_usize, damages in vec(damage(), 1..24)) {
        let sound = &SOUND[program];
        let mut bytes = sound.program.pdb.clone();
        for damage in damages {
            damage.apply(&mut bytes);
        }
        if let Ok(types) = DataTypes::from_bytes(bytes) {
            name_all(&types, sound);
        }
    }

    /// The same with damages only where the PDB has something.
    #[test]
    fn damaged_records_have_names_or_none(
        program in 0..4_usize,
        damages in vec((any::<Index>(), any::<u8>()), 1..64),
    ) {
        let sound = &SOUND[program];
        let mut bytes = sound.program.pdb.clone();
        let places = filled(&bytes);
        for (place, value) in damages {
            bytes[*place.get(&places)] = value;
        }
        if let Ok(types) = DataTypes::from_bytes(bytes) {
            name_all(&types, sound);
        }
    }
}

/// Records that a name goes through, as the bytes before the type that they lead to: the modifier of a constant, a
/// member of a structure, and a base class.
const LINKS: [(&str, &[u8]); 3] =
    [("color", &[0x0A, 0, 0x01, 0x10]), ("table", &[0x0D, 0x15, 3, 0]), ("square", &[0, 0x14, 3, 0])];

#[test]
fn types_in_circles_end() {
    let sound = &SOUND[0];
    let mut changed = 0;
    for (name, before) in LINKS {
        let bytes = &sound.program.pdb;
        let places: Vec<usize> =
            (0..bytes.len() - 8).step_by(2).filter(|place| bytes[*place..].starts_with(before)).collect();
        assert!(!places.is_empty(), "{name}");
        let number = |place: usize| u32::from_le_bytes(bytes[place + 4..place + 8].try_into().unwrap());
        for place in places.into_iter().filter(|place| number(*place) >= 0x1000) {
            for index in 0x1000..0x10C0_u32 {
                let mut bytes = bytes.clone();
                bytes[place + 4..place + 8].copy_from_slice(&index.to_le_bytes());
                name_data(&DataTypes::from_bytes(bytes).unwrap(), sound);
                changed += 1;
            }
        }
    }
    assert!(changed > 1000, "{changed}");
}
