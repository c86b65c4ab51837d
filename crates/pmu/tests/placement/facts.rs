//! The facts of `crates/pmu/facts`, read independently of the generator, and a processor for each generation.

use model::Processor;
use simulation::SimMachine;

/// A row of a file of facts that a request can select.
#[derive(Debug, Clone, Copy)]
pub struct Fact {
    pub event: u16,
    pub umask: Option<u8>,
    /// Event select and unit mask alone select the event.
    pub is_plain: bool,
    /// CMASK, INV, edge, and AnyThread.
    pub filters: (u8, bool, bool, bool),
    /// Mask of general counters.
    pub counters: u32,
    /// Mask of general counters that record it.
    pub precise: u32,
}

/// A generation: its file, CPUID.1:EAX of one of its processors, leaf 1AH EAX on a hybrid, and the general counters.
#[derive(Debug)]
pub struct Generation {
    pub name: &'static str,
    facts: &'static str,
    pub signature: u32,
    pub core_type: u32,
    pub general: u8,
}

macro_rules! generation {
    ($name:literal, $signature:literal, $core_type:literal, $general:literal) => {
        Generation {
            name: $name,
            facts: include_str!(concat!("../../facts/", $name, ".csv")),
            signature: $signature,
            core_type: $core_type,
            general: $general,
        }
    };
}

/// Every generation of Intel with a file, by the models of Intel's `mapfile.csv`; Core and Core 2 by the SDM.
pub static INTEL: [Generation; 25] = [
    generation!("core", 0x006E8, 0, 2),
    generation!("core2", 0x006FB, 0, 2),
    generation!("nehalem", 0x106A5, 0, 4),
    generation!("westmere", 0x206C2, 0, 4),
    generation!("sandy-bridge", 0x206A7, 0, 8),
    generation!("ivy-bridge", 0x306A9, 0, 8),
    generation!("haswell", 0x306C3, 0, 8),
    generation!("broadwell", 0x406F1, 0, 8),
    generation!("skylake", 0x506E3, 0, 8),
    generation!("ice-lake", 0x706E5, 0, 8),
    generation!("golden-cove", 0x806F8, 0, 8),
    generation!("lion-cove", 0xB06D1, 0x4000_0000, 10),
    generation!("cougar-cove", 0xC06C1, 0x4000_0000, 10),
    generation!("coyote-cove", 0x0030_0F10, 0x4000_0000, 8),
    generation!("bonnell", 0x106CA, 0, 2),
    generation!("silvermont", 0x30679, 0, 2),
    generation!("knights-landing", 0x50671, 0, 2),
    generation!("goldmont", 0x506C9, 0, 4),
    generation!("goldmont-plus", 0x706A1, 0, 4),
    generation!("tremont", 0x80665, 0, 4),
    generation!("gracemont", 0x90672, 0x2000_0000, 6),
    generation!("crestmont", 0xA06A4, 0x2000_0002, 8),
    generation!("skymont", 0xB06D1, 0x2000_0003, 8),
    generation!("darkmont", 0xC06C1, 0x2000_0000, 8),
    generation!("arctic-wolf", 0x0030_0F10, 0x2000_0000, 8),
];

/// Family 15h of AMD.
pub static BULLDOZER: Generation = generation!("bulldozer", 0x0060_0F12, 0, 6);
/// Intel's P6.
pub static P6: Generation = generation!("p6", 0x0686, 0, 2);

impl Generation {
    /// Returns the rows that a request can select: without the extension of the unit mask.
    pub fn facts(&self) -> Vec<Fact> {
        let row = |line: &str| {
            let fields: Vec<&str> = line.split(',').collect();
            let hexadecimal = |index: usize| u32::from_str_radix(fields[index], 16);
            let umask = if fields[2] == "*" { None } else { Some(u8::try_from(hexadecimal(2).unwrap()).ok()?) };
            Some(Fact {
                event: hexadecimal(1).unwrap().try_into().unwrap(),
                umask,
                is_plain: fields[3..6] == ["0", "0", "0"],
                filters: (fields[3].parse().unwrap(), fields[4] == "1", fields[5] == "1", fields[6] == "1"),
                counters: hexadecimal(7).unwrap_or(0),
                precise: hexadecimal(8).unwrap(),
            })
        };
        self.facts.lines().skip(1).filter_map(row).collect()
    }

    /// Returns a machine of this generation with one processor.
    pub fn machine(&self) -> SimMachine {
        match self.name {
            "bulldozer" => SimMachine::named("bulldozer-fx8150", 1),
            "p6" => SimMachine::named("p6-coppermine", 1),
            _ => {
                let (signature, core_type) = (self.signature, self.core_type);
                // Version 5 with three fixed counters; Core has version 1.
                let version = if self.name == "core" { 1 } else { 5 };
                let eax = u32::from_le_bytes([version, self.general, 48, 7]);
                let leaves = move |leaf, _| match leaf {
                    0 => [0x1F, 0x756E_6547, 0x6C65_746E, 0x4965_6E69],
                    // TSC and MSR; DS, PDCM and DTES64.
                    1 => [signature, 0, 1 << 2 | 1 << 15, 1 << 4 | 1 << 5 | 1 << 21],
                    7 => [0, 0, 0, u32::from(core_type != 0) << 15],
                    0xA => [eax, 0, 0b111, 48 << 5 | 3],
                    0x1A => [core_type, 0, 0, 0],
                    _ => [0; 4],
                };
                SimMachine::of([Processor::new(Box::new(leaves)).with_perf_capabilities(0x300)])
            }
        }
    }
}
