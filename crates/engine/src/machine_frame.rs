//! The unwind codes of x64, as far as they tell the frame of an interrupt from the frame of a call ("x64 exception
//! handling" in the documentation of Microsoft's compiler, "struct UNWIND_INFO" and "Unwind operation code").

/// UWOP_PUSH_MACHFRAME: the function was entered by an interrupt or an exception, which pushed RIP, CS, RFLAGS, RSP and
/// SS.
const PUSH_MACHFRAME: u16 = 10;

/// UWOP_ALLOC_LARGE: the size is in one more code, or in two if the operation info is not 0.
const ALLOC_LARGE: u16 = 1;

/// Operations with one more code: UWOP_SAVE_NONVOL, UWOP_EPILOG and UWOP_SAVE_XMM128.
const WITH_ONE_MORE: [u16; 3] = [4, 6, 8];

/// Operations with two more codes: UWOP_SAVE_NONVOL_FAR and UWOP_SAVE_XMM128_FAR.
const WITH_TWO_MORE: [u16; 2] = [5, 9];

/// First byte of an UNWIND_INFO: the version, and the flags above it.
const VERSION: u8 = 0b111;
const FLAG_SHIFT: u32 = 3;

/// UNW_FLAG_CHAININFO: the unwind codes of another function entry follow.
const CHAINED: u8 = 1 << 2;

/// Versions of UNWIND_INFO with these codes.
const KNOWN_VERSIONS: [u8; 2] = [1, 2];

/// Returns whether an UNWIND_INFO with this first byte is chained to another, or nothing if its version is unknown.
#[must_use]
pub fn is_chained(first: u8) -> Option<bool> {
    KNOWN_VERSIONS.contains(&(first & VERSION)).then_some(first >> FLAG_SHIFT & CHAINED != 0)
}

/// Returns whether one of the unwind codes of a function says that an interrupt or an exception entered it.
#[must_use]
pub fn is_pushed(codes: &[u16]) -> bool {
    let mut left = codes;
    while let Some(code) = left.first() {
        let (operation, info) = (code >> 8 & 0xF, code >> 12);
        let length = match operation {
            PUSH_MACHFRAME => return true,
            ALLOC_LARGE => {
                if info == 0 {
                    2
                } else {
                    3
                }
            }
            operation if WITH_ONE_MORE.contains(&operation) => 2,
            operation if WITH_TWO_MORE.contains(&operation) => 3,
            _ => 1,
        };
        left = left.get(length..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a code with an operation and its info.
    const fn code(operation: u16, info: u16) -> u16 {
        info << 12 | operation << 8 | 0x17
    }

    #[test]
    fn a_machine_frame_is_found_behind_codes_of_every_length() {
        for before in [
            &[][..],
            &[code(0, 3)],
            &[code(2, 7), code(3, 0), code(0, 5)],
            &[code(1, 0), 0x0A00],
            &[code(1, 1), 0x0A00, 0x0A00],
            &[code(4, 6), 0x0A0A],
            &[code(5, 6), 0x0A0A, 0x0A0A],
            &[code(6, 0), 0x0A0A],
            &[code(8, 6), 0x0A0A],
            &[code(9, 6), 0x0A0A, 0x0A0A],
        ] {
            assert!(!is_pushed(before), "{before:x?}: what follows an operation is no operation");
            for info in [0, 1] {
                assert!(is_pushed(&[before, &[code(PUSH_MACHFRAME, info)]].concat()), "{before:x?}");
            }
        }
    }

    #[test]
    fn the_first_byte_tells_version_and_chain() {
        assert_eq!([0x01, 0x02, 0x09, 0x21, 0x22].map(is_chained), [false, false, false, true, true].map(Some));
        assert_eq!([0x00, 0x03, 0x23].map(is_chained), [None; 3]);
    }
}
