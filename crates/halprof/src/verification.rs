//! What `.\client selftest` has verified about thread profiling on this machine.
//!
//! The documentation of Windows does not say how many bits of a counter Windows keeps, and no test of this project can
//! run on every build. `.\client selftest` compares the counts of Windows with known work and writes a record of it to
//! `%ProgramData%\halprof\threads.json`. Groups read the record. Without one for exactly this machine, virtualized
//! counts are marked as unverified, and long regions need another proof ([`Quality`](crate::Quality)). Where programs
//! cannot execute RDPMC, as Windows has it, there are no virtualized counts without a record.
//!
//! # Security
//! The file is read and written by [`protected`](crate::protected): a link on its path, and a folder or a file that
//! others than administrators can change, are refused. A user who creates the folder first therefore cannot forge a
//! record, and makes `write` fail instead.

use std::io;

use serde::{Deserialize, Serialize};

use crate::system::System;

/// Version of the record's format.
const FORMAT: u32 = 2;

/// Largest size of a file that is read. A record has about 200 bytes.
const MAX_BYTES: u64 = 4096;

/// How the counters of a thread are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum ThreadReading {
    /// By ReadThreadProfilingData, which executes RDPMC in user mode.
    Function,
    /// By the driver, together with the memory that Windows updates when it switches the thread.
    Memory,
}

/// What a record holds for: another Windows, processor or driver must be verified again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineIdentity {
    /// Build of Windows with its update, such as `26100.4061`.
    pub windows_build: String,
    /// EAX of CPUID leaf 1 of the boot processor.
    pub signature: u32,
    /// Brand string of the boot processor.
    pub brand: String,
    /// Version of the driver, such as `1.2.3`.
    pub driver: String,
}

/// What was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    format: u32,
    /// The machine on which it was.
    pub machine: MachineIdentity,
    /// How the counters were read.
    pub reading: ThreadReading,
    /// Whether Windows kept more than 32 bits of what a counter counted between two context switches.
    pub keeps_64_bits: bool,
}

impl Verification {
    /// Returns the record of a machine on which the counts of Windows were as expected.
    #[must_use]
    pub fn new(machine: MachineIdentity, reading: ThreadReading, keeps_64_bits: bool) -> Self {
        Self { format: FORMAT, machine, reading, keeps_64_bits }
    }

    /// Returns the record in a file's text; `None` if there is none of this format.
    fn parse(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok().filter(|record: &Self| record.format == FORMAT)
    }
}

/// Returns what was verified on this machine; `None` if there is no record, or one that does not hold for it.
#[must_use]
pub fn read(system: &dyn System, machine: &MachineIdentity) -> Option<Verification> {
    let text = system.read_protected(&system.verification_file()?, MAX_BYTES).ok()?;
    Verification::parse(&text).filter(|record| record.machine == *machine)
}

/// Writes the record of this machine, in place of an older one.
///
/// # Errors
/// If the system has no place for it, or the file cannot be written, for example because the process is not elevated.
pub fn write(system: &dyn System, record: &Verification) -> io::Result<()> {
    let file = system.verification_file().ok_or(io::ErrorKind::Unsupported)?;
    system.write_protected(&file, &serde_json::to_vec_pretty(record)?)
}

/// Removes the record, so that counts are unverified again.
///
/// # Errors
/// If the file exists and cannot be removed.
pub fn remove(system: &dyn System) -> io::Result<()> {
    let Some(file) = system.verification_file() else { return Ok(()) };
    system.remove_protected(&file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> MachineIdentity {
        MachineIdentity {
            windows_build: "26100.4061".to_owned(),
            signature: 0x306C3,
            brand: "Intel(R) Core(TM) i7-4710MQ CPU @ 2.50GHz".to_owned(),
            driver: "0.1.0".to_owned(),
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_nothing_else_is_a_record() {
        let record = Verification::new(machine(), ThreadReading::Memory, true);
        let text = serde_json::to_string_pretty(&record).unwrap();
        assert_eq!(Verification::parse(text.as_bytes()), Some(record));
        for (from, to) in
            [("\"format\": 2", "\"format\": 1"), ("\"keeps_64_bits\"", "\"keeps\""), ("memory", "rdpmc"), ("}", "")]
        {
            let other = text.replacen(from, to, 1);
            assert_ne!(other, text);
            assert_eq!(Verification::parse(other.as_bytes()), None, "{other}");
        }
        assert!(text.len() < usize::try_from(MAX_BYTES).unwrap() / 8);
    }
}
