//! Files with CPUID dumps, in the encodings that editors and shells write.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use cpuid_dump::{Dump, ParseError};
use thiserror::Error;

use user_error::UserError;
use user_error::exit::Exit;

/// Maximum size of a file. Dumps of hundreds of processors are smaller.
pub const MAX_BYTES: usize = 16 << 20;

/// Why a CPUID dump cannot be used. `name` is that of the file, or "standard input".
#[derive(Debug, Error)]
pub enum DumpError {
    /// The file cannot be read.
    #[error("cannot read {name}")]
    Read {
        /// Name of the file.
        name: String,
        /// Error of the system.
        #[source]
        cause: io::Error,
    },
    /// The file is longer than [`MAX_BYTES`].
    #[error("{name} is not a CPUID dump: it is longer than {} MiB", MAX_BYTES >> 20)]
    TooLong {
        /// Name of the file.
        name: String,
    },
    /// The file has no CPUID leaf, or a damaged one.
    #[error("{name} is not a CPUID dump")]
    Invalid {
        /// Name of the file.
        name: String,
        /// Line and reason.
        #[source]
        cause: ParseError,
    },
}

impl UserError for DumpError {
    fn exit(&self) -> Exit {
        Exit::Dump
    }

    fn remedy(&self) -> Option<String> {
        let Self::Invalid { cause: ParseError::NoLeaf, .. } = self else { return None };
        let text = "a file with lines such as\n       \
                    CPUID 00000000: 00000016-756E6547-6C65746E-49656E69   (AIDA64), or\n       \
                    the output of cpuid -1 -r   (Linux)";
        Some(text.to_owned())
    }
}

/// Reads the dump in a file, or in `input` if the path is `-`.
pub fn read(path: &Path, input: &mut dyn Read) -> Result<Dump, DumpError> {
    let name = name(path);
    let bytes = if is_input(path) { bounded(input) } else { File::open(path).and_then(bounded) };
    let bytes = match bytes {
        Ok(bytes) if bytes.len() > MAX_BYTES => return Err(DumpError::TooLong { name }),
        Ok(bytes) => bytes,
        Err(cause) => return Err(DumpError::Read { name, cause }),
    };
    Dump::parse(&text(&bytes)).map_err(|cause| DumpError::Invalid { name, cause })
}

/// Returns the name of the file, or "standard input".
pub fn name(path: &Path) -> String {
    if is_input(path) { "standard input".to_owned() } else { path.display().to_string() }
}

fn is_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads at most one byte more than [`MAX_BYTES`], which is enough to detect that the input is too long.
fn bounded(input: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Decodes UTF-16 if a byte order mark says so, otherwise UTF-8. Other encodings differ only outside CPUID lines.
fn text(bytes: &[u8]) -> String {
    match bytes {
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (pairs, _) = bytes.as_chunks();
    char::decode_utf16(pairs.iter().map(|pair| unit(*pair)))
        .map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use user_error::Error;

    const LEAF: &str = "CPUID 0000000A: 07300403-00000000-00000000-00000603";

    fn read_bytes(mut bytes: &[u8]) -> Result<Dump, DumpError> {
        read(Path::new("-"), &mut bytes)
    }

    fn utf16_bytes(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
        ["\u{feff}", text].concat().encode_utf16().flat_map(unit).collect()
    }

    #[test]
    fn every_encoding_and_line_end_gives_the_same_dump() {
        for line_end in ["\n", "\r\n"] {
            let text = format!("Prozessor: Größe®{line_end}{LEAF}{line_end}");
            let mut latin1 = b"Gr\xF6\xDFe\xAE\n".to_vec();
            latin1.extend(LEAF.bytes());
            for bytes in [
                text.clone().into_bytes(),
                format!("\u{feff}{text}").into_bytes(),
                utf16_bytes(&text, u16::to_le_bytes),
                utf16_bytes(&text, u16::to_be_bytes),
                [&utf16_bytes(&text, u16::to_le_bytes), &b"\n"[..]].concat(),
                latin1,
            ] {
                let dump = read_bytes(&bytes).unwrap();
                assert_eq!(dump.cpuid(0xA, 0), [0x0730_0403, 0, 0, 0x603], "{bytes:?}");
            }
        }
    }

    #[test]
    fn an_endless_input_is_rejected() {
        let error = read(Path::new("-"), &mut io::repeat(b'\n')).unwrap_err();
        assert_eq!(Error::from(error).report(), "error: standard input is not a CPUID dump: it is longer than 16 MiB");
        let mut full = vec![b'\n'; MAX_BYTES - LEAF.len()];
        full.extend(LEAF.bytes());
        assert!(read_bytes(&full).is_ok(), "exactly as long as may be");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            mark in prop_oneof![Just(&b""[..]), Just(&b"\xFF\xFE"[..]), Just(&b"\xFE\xFF"[..])],
            bytes in prop::collection::vec(any::<u8>(), 0..600),
        ) {
            if let Err(error) = read_bytes(&[mark, &bytes].concat()) {
                prop_assert!(Error::from(error).report().starts_with("error: standard input is not a CPUID dump\n"));
            }
        }

        #[test]
        fn no_damage_to_a_dump_panics(
            which in any::<prop::sample::Index>(),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        ) {
            let mut bytes = which.get(cpuid_dumps::all()).dump().as_bytes().to_vec();
            for (place, byte) in damage {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            drop(read_bytes(&bytes));
        }
    }
}
