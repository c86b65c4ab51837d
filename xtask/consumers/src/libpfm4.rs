//! Compares event select registers with those of libpfm4, an independent encoder.
//!
//! A small C program prints how libpfm4 encodes each event that it knows. The constraints' facts and the tables
//! of `crates/events` must agree for every event of the same name, and the tables of sources for every source
//! that libpfm4 has. `libpfm4.csv` lists the events that differ, each with the reason; a line of it that no longer
//! applies fails too.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use anyhow::{Context, Result, ensure};
use pmu::{Interface, Kind, source::RawEvent};
use raw_cpuid::CpuIdResult;

use xtask::{prerequisites, run, workspace::Workspace};
use xtask_import::constraints::{Fact, Facts};

const PROGRAM: &str = include_str!("libpfm4.c");
const DIFFERENCES: &str = include_str!("libpfm4.csv");

/// USR, OS, INT and EN of an event select register, which do not select an event.
const CONTROL: u64 = 0x53_0000;

/// The generations that libpfm4 knows too, with its names for them.
const GENERATIONS: [(&str, &[&str]); 15] = [
    ("nehalem", &["nhm", "nhm_ex"]),
    ("westmere", &["wsm", "wsm_dp"]),
    ("sandy-bridge", &["snb", "snb_ep"]),
    ("ivy-bridge", &["ivb", "ivb_ep"]),
    ("haswell", &["hsw", "hsw_ep"]),
    ("broadwell", &["bdw", "bdw_ep"]),
    ("skylake", &["skl", "skx", "clx"]),
    ("ice-lake", &["icl", "icx"]),
    ("golden-cove", &["spr"]),
    ("tremont", &["tmt"]),
    ("goldmont", &["glm"]),
    ("silvermont", &["slm"]),
    ("knights-landing", &["knl", "knm"]),
    ("bonnell", &["atom"]),
    ("bulldozer", &["amd64_fam15h_interlagos"]),
];

/// The tables of events by name that libpfm4 knows too, with its names for their processors.
const TABLES: [(&str, &[&str]); 31] = [
    ("nehalemep", &["nhm"]),
    ("nehalemex", &["nhm_ex"]),
    ("westmereep-sp", &["wsm"]),
    ("westmereep-dp", &["wsm_dp"]),
    ("westmereex", &["wsm_dp"]),
    ("sandybridge", &["snb"]),
    ("jaketown", &["snb_ep"]),
    ("ivybridge", &["ivb"]),
    ("ivytown", &["ivb_ep"]),
    ("haswell", &["hsw"]),
    ("haswellx", &["hsw_ep"]),
    ("broadwell", &["bdw"]),
    ("broadwellde", &["bdw_ep"]),
    ("broadwellx", &["bdw_ep"]),
    ("skylake", &["skl"]),
    ("skylakex", &["skx"]),
    ("cascadelakex", &["clx"]),
    ("icelake", &["icl"]),
    ("icelakex", &["icx"]),
    ("sapphirerapids", &["spr"]),
    ("snowridgex", &["tmt"]),
    ("elkhartlake", &["tmt"]),
    ("goldmont", &["glm"]),
    ("silvermont", &["slm"]),
    ("knightslanding", &["knl", "knm"]),
    ("bonnell", &["atom"]),
    ("amd_fam15h", &["amd64_fam15h_interlagos"]),
    ("amd_fam17h_zen1", &["amd64_fam17h_zen1"]),
    ("amd_fam17h_zen2", &["amd64_fam17h_zen2"]),
    ("amd_fam19h_zen3", &["amd64_fam19h_zen3"]),
    ("amd_fam19h_zen4", &["amd64_fam19h_zen4"]),
];

/// Sources of the Emon interface, with libpfm4's names of their events.
const EMON: [(u64, &str, &str); 6] = [
    (0x02, "INST_RETIRED", "ANY_P"),
    (0x06, "BR_INST_RETIRED", "ALL_BRANCHES"),
    (0x0A, "LONGEST_LAT_CACHE", "MISS"),
    (0x0B, "BR_MISP_RETIRED", "ALL_BRANCHES"),
    (0x13, "CPU_CLK_UNHALTED", "THREAD_P"),
    (0x1C, "LONGEST_LAT_CACHE", "REFERENCE"),
];

/// Processors of the test bench with the names of libpfm4 for their events.
const AMD: [(&str, &str); 5] = [
    ("k8-brisbane", "amd64_k8_revg"),
    ("zen-1800x", "amd64_fam17h_zen1"),
    ("zen2-3600x", "amd64_fam17h_zen2"),
    ("zen3-5950x", "amd64_fam19h_zen3"),
    ("zen4-7700x", "amd64_fam19h_zen4"),
];

/// The least number of comparisons: fewer mean that names no longer match.
const LEAST: usize = 11_500;

/// Encodings by PMU, event and unit mask, without the control bits.
type Encodings = BTreeMap<(String, String, String), u64>;

/// Compares the encodings.
pub fn run(workspace: &Workspace) -> Result<()> {
    prerequisites::for_libpfm4(workspace)?;
    let encodings = encodings(workspace)?;
    let compared = compare(workspace, &encodings)?;
    println!("libpfm4 encodes {compared} events alike");
    Ok(())
}

/// Compiles and runs the C program.
fn encodings(workspace: &Workspace) -> Result<Encodings> {
    let folder = workspace.tools().join("libpfm4");
    fs::create_dir_all(&folder)?;
    let (source, program) = (folder.join("encodings.c"), folder.join("encodings"));
    fs::write(&source, PROGRAM)?;
    run::verbose(Command::new("cc").args(["-O1", "-Wall", "-o"]).arg(&program).arg(&source).arg("-lpfm"))?;
    parse(&run::output(&mut Command::new(&program))?)
}

fn parse(text: &str) -> Result<Encodings> {
    let line = |line: &str| {
        let [pmu, event, umask, code] = line.split(',').collect::<Vec<_>>().try_into().ok()?;
        let code = u64::from_str_radix(code, 16).ok()?;
        Some(((String::from(pmu), String::from(event), String::from(umask)), code & !CONTROL))
    };
    text.lines().map(|text| line(text).with_context(|| format!("libpfm4: {text}"))).collect()
}

/// An event of which the encodings differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Difference {
    pmu: String,
    event: String,
    ours: u64,
    theirs: u64,
}

/// Returns the number of events that are encoded alike.
fn compare(workspace: &Workspace, encodings: &Encodings) -> Result<usize> {
    let mut alike = 0;
    let mut found = BTreeSet::new();
    let mut check = |pmu: &str, event: &str, umask: &str, ours: u64| {
        let Some(theirs) = encodings.get(&(pmu.into(), event.into(), umask.into())) else { return };
        if *theirs == ours {
            alike += 1;
        } else {
            let event = if umask.is_empty() { event.into() } else { format!("{event}.{umask}") };
            found.insert(Difference { pmu: pmu.into(), event, ours, theirs: *theirs });
        }
    };
    let facts = Facts::read(workspace)?;
    for (generation, pmus) in GENERATIONS {
        let facts = facts.of_generation(generation)?;
        for (fact, pmu) in facts.iter().flat_map(|fact| pmus.iter().map(move |pmu| (fact, pmu))) {
            let (event, umask) = fact.name.split_once('.').unwrap_or((&fact.name, ""));
            if let Some(ours) = register(fact) {
                check(pmu, event, umask, ours);
            }
        }
        for (source, event, umask) in EMON {
            let entry = Kind::Emon.sources().iter().find(|entry| entry.source.0 == source);
            let ours = entry.context("a source of Emon is missing")?.select & !CONTROL;
            for pmu in pmus {
                check(pmu, event, umask, ours);
            }
        }
    }
    for (name, pmus) in TABLES {
        let table = events::tables().find(|table| table.name() == name).with_context(|| format!("no table {name}"))?;
        for event in table.events().filter(|event| event.extra.is_none()) {
            let (title, umask) = event.name.split_once('.').unwrap_or((&event.name, ""));
            for pmu in pmus {
                check(pmu, title, umask, event.encoding.select());
            }
        }
    }
    for (identity, pmu) in AMD {
        let (others, equal) = amd(identity, pmu, encodings)?;
        found.extend(others);
        alike += equal;
    }
    let listed = differences(DIFFERENCES)?;
    let new: Vec<_> = found.difference(&listed).collect();
    ensure!(new.is_empty(), "libpfm4 encodes these events otherwise, and libpfm4.csv does not say why: {new:#x?}");
    let gone: Vec<_> = listed.difference(&found).collect();
    ensure!(gone.is_empty(), "libpfm4.csv lists differences that do not exist: {gone:#x?}");
    ensure!(alike >= LEAST, "only {alike} events have the same name in libpfm4");
    Ok(alike)
}

/// Returns the value that the driver writes for the raw event of a fact, without control bits. `None` if no raw event
/// selects it, or its row stands for other unit masks too.
fn register(fact: &Fact) -> Option<u64> {
    if fact.second || fact.any || fact.counters == 0 {
        return None;
    }
    let event = RawEvent::new()
        .with_event(fact.event)
        .with_umask(fact.umask.filter(|umask| *umask <= 0xFF)?)
        .with_cmask(fact.cmask)
        .with_inv(fact.inv)
        .with_edge(fact.edge);
    Some(event.select() & !CONTROL)
}

fn differences(text: &str) -> Result<BTreeSet<Difference>> {
    let line = |line: &str| {
        let [pmu, event, ours, theirs, reason] = line.split(',').collect::<Vec<_>>().try_into().ok()?;
        let code = |text| u64::from_str_radix(text, 16).ok();
        let difference =
            Difference { pmu: String::from(pmu), event: String::from(event), ours: code(ours)?, theirs: code(theirs)? };
        (!reason.is_empty()).then_some(difference)
    };
    text.lines().skip(1).map(|text| line(text).with_context(|| format!("libpfm4.csv: {text}"))).collect()
}

/// Compares the sources of an AMD processor with the events that libpfm4 has: each has to have the event number and
/// every bit of the unit mask. Returns the sources that differ, with zero or the bits that libpfm4 has, and the number
/// of others.
fn amd(identity: &str, pmu: &str, encodings: &Encodings) -> Result<(Vec<Difference>, usize)> {
    const EVENT: u64 = 0xF_0000_00FF;
    let mut codes: BTreeMap<u64, u64> = BTreeMap::new();
    for (_, code) in encodings.iter().filter(|((of, ..), _)| of == pmu) {
        *codes.entry(code & EVENT).or_default() |= code & (EVENT | 0xFF00);
    }
    ensure!(!codes.is_empty(), "libpfm4 does not know {pmu}");
    let dump = cpuid_dumps::find(identity).context("no such processor")?.cpuid();
    let interface = Interface::new(Kind::Amd64, &Leaves(|leaf, subleaf| dump.cpuid(leaf, subleaf)));
    let (mut others, mut alike) = (Vec::new(), 0);
    for source in interface.sources().iter().filter(|source| source.select != 0) {
        let ours = source.select & !CONTROL;
        let theirs = codes.get(&(ours & EVENT)).copied().unwrap_or_default();
        if theirs != 0 && ours & !theirs == 0 {
            alike += 1;
        } else {
            others.push(Difference { pmu: pmu.into(), event: source.name.into(), ours, theirs });
        }
    }
    Ok((others, alike))
}

/// CPUID of a dump.
struct Leaves<F>(F);

impl<F: Fn(u32, u32) -> [u32; 4]> pmu::Cpuid for Leaves<F> {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let [eax, ebx, ecx, edx] = (self.0)(leaf, subleaf);
        CpuIdResult { eax, ebx, ecx, edx }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_has_a_reason() {
        assert!(differences(DIFFERENCES).unwrap().len() > 50);
        let without = "pmu,event,halprof,libpfm4,reason\nskl,A.B,1,2,\n";
        assert!(differences(without).is_err());
    }

    #[test]
    fn control_bits_are_not_compared() {
        let encodings = parse("skl,MEM_LOAD_RETIRED,L3_MISS,5320d1\n").unwrap();
        assert_eq!(encodings.into_values().collect::<Vec<_>>(), [0x20D1]);
        assert!(parse("skl,MEM_LOAD_RETIRED,5320d1\n").is_err());
    }
}
