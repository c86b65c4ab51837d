//! The facts, read without the code under test, and the processors of the bench.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::path::Path;

use cpuid_dumps::CpuIdentity;
use events::{CoreType, Identity, Vendor};

/// Reads a file of facts: a list of cells for each line.
pub fn cells(table: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("facts").join(table).with_extension("csv");
    let text = fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// Returns what the tables know a processor of the bench by, if it is of a maker that they know.
pub fn identity(processor: &CpuIdentity) -> Option<Identity> {
    let dump = processor.cpuid();
    let [_, ebx, ecx, edx] = dump.cpuid(0, 0);
    let name: Vec<u8> = [ebx, edx, ecx].into_iter().flat_map(u32::to_le_bytes).collect();
    let vendor = Vendor::from_name(std::str::from_utf8(&name).ok()?)?;
    Some(Identity::of_signature(vendor, dump.cpuid(1, 0)[0]))
}

/// Returns the core type of a processor of the bench, if it is of a hybrid, and its native model.
pub fn core_type(processor: &CpuIdentity) -> Option<(CoreType, u32)> {
    let dump = processor.cpuid();
    let is_hybrid = dump.cpuid(7, 0)[3] >> 15 & 1 == 1;
    let [eax, ..] = dump.cpuid(0x1A, 0);
    CoreType::from_number(eax >> 24).filter(|_| is_hybrid).map(|core_type| (core_type, eax & 0xFF_FFFF))
}
