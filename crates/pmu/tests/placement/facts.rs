//! The facts of `crates/events/facts` and `crates/pmu/facts`, read independently of the generator, and a processor for
//! each generation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use model::Processor;
use simulation::SimMachine;

/// A row that a request can select.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

/// A generation: its name in the facts, CPUID.1:EAX of one of its processors, leaf 1AH EAX on a hybrid, and the general
/// counters.
#[derive(Debug)]
pub struct Generation {
    pub name: &'static str,
    pub signature: u32,
    pub core_type: u32,
    pub general: u8,
}

const fn generation(name: &'static str, signature: u32, core_type: u32, general: u8) -> Generation {
    Generation { name, signature, core_type, general }
}

/// Every generation of Intel, by the models of Intel's `mapfile.csv`; Core and Core 2 by the SDM.
pub static INTEL: [Generation; 25] = [
    generation("core", 0x006E8, 0, 2),
    generation("core2", 0x006FB, 0, 2),
    generation("nehalem", 0x106A5, 0, 4),
    generation("westmere", 0x206C2, 0, 4),
    generation("sandy-bridge", 0x206A7, 0, 8),
    generation("ivy-bridge", 0x306A9, 0, 8),
    generation("haswell", 0x306C3, 0, 8),
    generation("broadwell", 0x406F1, 0, 8),
    generation("skylake", 0x506E3, 0, 8),
    generation("ice-lake", 0x706E5, 0, 8),
    generation("golden-cove", 0x806F8, 0, 8),
    generation("lion-cove", 0xB06D1, 0x4000_0000, 10),
    generation("cougar-cove", 0xC06C1, 0x4000_0000, 10),
    generation("coyote-cove", 0x0030_0F10, 0x4000_0000, 8),
    generation("bonnell", 0x106CA, 0, 2),
    generation("silvermont", 0x30679, 0, 2),
    generation("knights-landing", 0x50671, 0, 2),
    generation("goldmont", 0x506C9, 0, 4),
    generation("goldmont-plus", 0x706A1, 0, 4),
    generation("tremont", 0x80665, 0, 4),
    generation("gracemont", 0x90672, 0x2000_0000, 6),
    generation("crestmont", 0xA06A4, 0x2000_0002, 8),
    generation("skymont", 0xB06D1, 0x2000_0003, 8),
    generation("darkmont", 0xC06C1, 0x2000_0000, 8),
    generation("arctic-wolf", 0x0030_0F10, 0x2000_0000, 8),
];

/// Family 15h of AMD.
pub static BULLDOZER: Generation = generation("bulldozer", 0x0060_0F12, 0, 6);
/// Intel's P6.
pub static P6: Generation = generation("p6", 0x0686, 0, 2);

impl Generation {
    /// Returns the rows that a request can select: without the extension of the unit mask.
    pub fn facts(&self) -> Vec<Fact> {
        static FACTS: LazyLock<BTreeMap<String, Vec<Fact>>> = LazyLock::new(read);
        FACTS[self.name].clone()
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

/// Returns the lines of a file below `crates` without its header, each split into its columns.
fn lines(file: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn hexadecimal(text: &str) -> u16 {
    u16::from_str_radix(text, 16).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns whether a pattern is `*` or one of the numbers between bars.
fn is_one(pattern: &str, number: u16) -> bool {
    pattern == "*" || pattern.split('|').any(|one| hexadecimal(one) == number)
}

/// Reads every generation.
fn read() -> BTreeMap<String, Vec<Fact>> {
    let (replaced, linux) = (lines("pmu/facts/counters.csv"), lines("pmu/facts/linux.csv"));
    // The names keep rows apart that are alike otherwise, such as those of two products of a generation.
    let mut named: BTreeMap<String, BTreeSet<(String, Fact)>> = BTreeMap::new();
    for row in lines("pmu/facts/tables.csv") {
        let [generation, table] = row.as_slice() else { panic!("{row:?}") };
        let replaced: Vec<_> = replaced.iter().filter(|row| row[0] == *generation).collect();
        let linux: Vec<_> = linux.iter().filter(|row| row[0] == *generation).collect();
        for row in lines(&format!("events/facts/{table}.csv")) {
            let rows = named.entry(generation.clone()).or_default();
            rows.extend(event(&row, &replaced, &linux).into_iter().map(|fact| (row[0].clone(), fact)));
        }
    }
    for row in &linux {
        let rows = named.entry(row[0].clone()).or_default();
        for event in hexadecimal(&row[1])..=hexadecimal(&row[2]) {
            let umasks = row[3].split('|').map(|one| (one != "*").then(|| u8::try_from(hexadecimal(one)).unwrap()));
            let fact = |umask| Fact {
                event,
                umask,
                is_plain: true,
                filters: (0, false, false, false),
                counters: hexadecimal(&row[4]).into(),
                precise: 0,
            };
            rows.extend(umasks.map(|umask| (row[5].clone(), fact(umask))));
        }
    }
    named.into_iter().map(|(name, rows)| (name, rows.into_iter().map(|(_, fact)| fact).collect())).collect()
}

/// Returns the rows of an event, with the last counters that replace those of its table, or those of Linux if its table
/// names none.
fn event(row: &[String], replaced: &[&Vec<String>], linux: &[&Vec<String>]) -> Vec<Fact> {
    let [name, events, umasks, cmask, inv, edge, any, _eq, listed, _precise, recorded, msr, ..] = row else {
        panic!("{row:?}")
    };
    if name.starts_with("PERF_METRICS.") {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for event in events.split('|').map(hexadecimal) {
        for umask in umasks.split('|').map(hexadecimal) {
            let is_event = |row: &&&Vec<String>| is_one(&row[1], event) && is_one(&row[2], umask);
            let is_event_of_linux = |row: &&&Vec<String>| {
                (hexadecimal(&row[1])..=hexadecimal(&row[2])).contains(&event) && is_one(&row[3], umask)
            };
            let general = Some(recorded).filter(|it| !it.is_empty() && !it.starts_with("fixed"));
            let mut precise = if msr.is_empty() { general.map_or(0, |it| hexadecimal(it)) } else { 0 };
            let mut counters = match listed.as_str() {
                // A row with this unit mask comes before that with every one.
                "any" => hexadecimal(&linux.iter().find(is_event_of_linux).unwrap()[4]),
                fixed if fixed.starts_with("fixed") => 0,
                general => hexadecimal(general),
            };
            if let Some(row) = replaced.iter().rev().filter(is_event).find(|row| hexadecimal(&row[3]) == counters) {
                counters = hexadecimal(&row[4]);
                precise &= counters;
            }
            let flags = [inv, edge, any].map(|flag| flag == "1");
            let Ok(umask) = u8::try_from(umask) else { continue };
            rows.push(Fact {
                event,
                umask: Some(umask),
                is_plain: cmask == "0" && !flags[0] && !flags[1],
                filters: (cmask.parse().unwrap(), flags[0], flags[1], flags[2]),
                counters: counters.into(),
                precise: precise.into(),
            });
        }
    }
    rows
}
