//! PDBs, and the names that their types give to data.

use data_types::{Code, DataTypes, Operation};

/// Addresses of a small image, and the distance between two that are asked for.
const ADDRESSES: std::ops::Range<u32> = 0x1000..0x7000;
const DISTANCE: usize = 24;

/// Bytes that a path has at most.
const MAX_PATH: usize = 1 << 20;

/// `mov rax, [rcx+0x18]`, `lea rdx, [rax+8]`, `mov eax, [rdx+r8*4]` and `mov [rsp+0x28], eax`.
const CODE: &[u8] = &[0x48, 0x8B, 0x41, 0x18, 0x48, 0x8D, 0x50, 8, 0x42, 0x8B, 4, 0x82, 0x89, 0x44, 0x24, 0x28, 0xC3];

/// A PDB names data or does not, the same in each call, and ends a path, whatever its types say.
pub fn data_types(bytes: &[u8]) {
    let Ok(types) = DataTypes::from_bytes(bytes.to_vec()) else { return };
    for address in ADDRESSES.step_by(DISTANCE) {
        let place = types.global(address, 4);
        assert_eq!(types.global(address, 4), place);
        assert!(place.is_none_or(|place| !place.path.is_empty() && place.path.len() < MAX_PATH));
        let code = Code { address, bytes: CODE, is_64_bit: true };
        for (ip, operation) in [(0, Operation::Load), (8, Operation::Load), (12, Operation::Store)] {
            let operand = code.operand(address + ip, operation).expect("the instruction has one");
            let place = types.place(&code, address + ip, &operand);
            assert!(place.is_none_or(|place| place.path.len() < MAX_PATH));
        }
    }
}
