//! Processor identities: the CPUID leaves of real processors and of made-up edge cases, each with the profile interface
//! that must be selected for it. Each has a section of `identities.cpuid` and a row in the table.

#![forbid(unsafe_code)]

mod amd;
mod debug_store;
mod executable;
mod table;

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use cpuid_dump::Dump;

pub use executable::executable;

/// A processor.
#[derive(Clone, Copy, Debug)]
pub struct CpuIdentity {
    /// Its name, which is the heading of its section in `identities.cpuid`.
    pub name: &'static str,
    /// Whether the leaves were read from a processor. Otherwise they are made up.
    pub real: bool,
    /// The expected outcome.
    pub expected: Expected,
    /// The name of the identity of the processors with odd numbers, on a machine with two kinds of processors.
    pub odd_processors: Option<&'static str>,
}

/// The expected outcome for a processor, determined by hand from the leaves and not by the code under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The profile interface that the HAL of the original Windows 10 selects: "Amd64", "Emon" or "Default".
    pub windows10: &'static str,
    /// The profile interface that halprof selects. It is the same, except "Default" for Emon without counters, and
    /// "NetBurst", "P6" or "Pentium" for some processors with Default.
    pub interface: &'static str,
    /// Number of counters of `interface` on each processor; 0 for Default.
    pub counters: u8,
    /// Number of fixed counters among them.
    pub fixed: u8,
    /// Width of the counters in bits; 0 for Default.
    pub width: u8,
    /// Supported values of `KPROFILE_SOURCE`, ascending: for Emon those that EBX of leaf 0xA allows, for Amd64 those of
    /// the family's cores, for the older interfaces those of their tables. `ProfileTime` is omitted, because every
    /// interface supports it. Empty for Default.
    pub supported: &'static [u64],
    /// The reason for the outcome.
    pub why: &'static str,
}

impl CpuIdentity {
    /// Returns its section of the file, which also states the origin of the leaves.
    #[must_use]
    pub fn dump(&self) -> &'static str {
        self.section().text
    }

    /// Returns the CPUID leaves. They are parsed once in a process.
    ///
    /// # Panics
    /// Never: a test parses every section.
    #[must_use]
    pub fn cpuid(&self) -> &'static Dump {
        let Section { text, parsed } = self.section();
        #[expect(clippy::expect_used, reason = "the file is part of the crate, and a test parses every section")]
        parsed.get_or_init(|| Dump::parse(text).expect("the section of an identity is a CPUID dump"))
    }

    fn section(&self) -> &'static Section {
        static SECTIONS: LazyLock<HashMap<&str, Section>> = LazyLock::new(|| sections().collect());
        #[expect(clippy::expect_used, reason = "the file is part of the crate, and a test finds every identity in it")]
        SECTIONS.get(self.name).expect("every identity has a section")
    }

    /// Returns whether the cores of this processor have two threads whose counters disturb each other: Sandy Bridge to
    /// Haswell with hyper-threading. Leaf 0xA reports four general counters then, otherwise eight.
    #[must_use]
    pub fn has_disturbing_threads(&self) -> bool {
        let dump = self.cpuid();
        let ([signature, ..], [counters, ..]) = (dump.cpuid(1, 0), dump.cpuid(0xA, 0));
        let model = signature >> 4 & 0xF | signature >> 12 & 0xF0;
        signature >> 8 & 0xF == 6
            && matches!(model, 0x2A | 0x2D | 0x3A | 0x3E | 0x3C | 0x3F | 0x45 | 0x46)
            && counters >> 8 & 0xFF == 4
    }

    /// Returns whether the cores of this processor have two threads with registers or errata in common: those whose
    /// counters [disturb each other](Self::has_disturbing_threads), and Nehalem and Westmere with hyper-threading. The
    /// threads of the latter share the registers of off-core responses, which guests do not have.
    #[must_use]
    pub fn has_related_threads(&self) -> bool {
        let dump = self.cpuid();
        let [signature, package, more, features] = dump.cpuid(1, 0);
        let model = signature >> 4 & 0xF | signature >> 12 & 0xF0;
        let shares = signature >> 8 & 0xF == 6
            && matches!(model, 0x1A | 0x1E | 0x1F | 0x2E | 0x25 | 0x2C | 0x2F)
            && features >> 28 & 1 == 1
            && more >> 31 == 0
            && package >> 16 & 0xFF > 1;
        shares || self.has_disturbing_threads()
    }

    /// Returns CPUID as processor `number` of a machine reports it. The threads of a core have adjacent numbers.
    pub fn cpuid_of_processor(&self, number: u32) -> impl Fn(u32, u32) -> [u32; 4] + Send + Sync + use<> {
        let identity = self.of_processor(number);
        let (leaves, has_threads) = (identity.cpuid(), identity.has_related_threads());
        // SDM Vol. 2A, CPUID: the initial APIC ID in leaf 1; in leaf 0xB the bits of a thread, the threads of a core,
        // the kind of level (1: thread), and the x2APIC ID.
        move |leaf, subleaf| match (leaf, leaves.cpuid(leaf, subleaf)) {
            (1, [eax, ebx, ecx, edx]) if has_threads => [eax, ebx & 0x00FF_FFFF | number << 24, ecx, edx],
            (0xB, _) if has_threads && subleaf == 0 => [1, 2, 1 << 8, number],
            (_, registers) => registers,
        }
    }

    /// Returns CPUID as the second thread of a core reports it.
    pub fn cpuid_of_second_thread(&self) -> impl Fn(u32, u32) -> [u32; 4] + use<> {
        /// The lowest bit of the initial APIC ID, in EBX of leaf 1 (SDM Vol. 2A, CPUID).
        const SECOND: u32 = 1 << 24;
        let leaves = self.cpuid();
        move |leaf, subleaf| {
            let [eax, ebx, ecx, edx] = leaves.cpuid(leaf, subleaf);
            [eax, if leaf == 1 { ebx | SECOND } else { ebx }, ecx, edx]
        }
    }

    /// Returns whether CPUID reports Intel's Debug Store.
    #[must_use]
    pub fn has_debug_store(&self) -> bool {
        debug_store::has(self.cpuid())
    }

    /// Returns the number of metrics of fixed counter 3 in MSR_PERF_METRICS, if the processor has that register.
    #[must_use]
    pub fn metrics(&self) -> Option<u8> {
        debug_store::metrics(self.cpuid())
    }

    /// Returns whether the processor has counters that CPUID may not report.
    #[must_use]
    pub fn hides_counters(&self) -> bool {
        debug_store::hides_counters(self.cpuid())
    }

    /// Returns IA32_PERF_CAPABILITIES: the formats of last branch and PEBS records, PEBS_BASELINE, FREEZE_WHILE_SMM,
    /// full-width writes and metrics. All other bits are 0.
    #[must_use]
    pub fn perf_capabilities(&self) -> u64 {
        debug_store::perf_capabilities(self.cpuid())
    }

    /// Returns the identity of processor `number` on a machine that has this identity as processor 0.
    #[must_use]
    pub fn of_processor(&self, number: u32) -> &Self {
        let other = if number % 2 == 1 { self.odd_processors } else { None };
        other.and_then(find).unwrap_or(self)
    }
}

/// The CPUID leaves of an identity.
struct Section {
    text: &'static str,
    parsed: OnceLock<Dump>,
}

/// Returns the sections of the file with their headings, which are lines that begin with `## `.
fn sections() -> impl Iterator<Item = (&'static str, Section)> {
    let sections = include_str!("../identities.cpuid").split("\n## ").skip(1);
    sections.filter_map(|section| {
        let (name, text) = section.split_once('\n')?;
        Some((name.trim_end(), Section { text, parsed: OnceLock::new() }))
    })
}

/// Returns the headings of the file.
pub fn headings() -> impl Iterator<Item = &'static str> {
    sections().map(|(name, _)| name)
}

/// One identity for each generation of counters in processors that run 64-bit Windows, by vendor and age.
pub const GENERATIONS: [&str; 16] = [
    "netburst-irwindale",
    "netburst-cedarmill",
    "intel-v1",
    "core2-6420",
    "nehalem-920",
    "haswell-4710mq",
    "skylake-6600k",
    "sapphire-rapids-2475x",
    "intel-hybrid",
    "k8-clawhammer",
    "k10-thuban",
    "bulldozer-fx8150",
    "zen-1800x",
    "zen3-5950x",
    "zen4-7700x",
    "zen5-9800x3d",
];

/// Returns every identity, the real ones first.
#[must_use]
pub fn all() -> &'static [CpuIdentity] {
    table::IDENTITIES
}

/// Returns the identity with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static CpuIdentity> {
    all().iter().find(|identity| identity.name == name)
}

/// Returns the identity with this name, as a user types it.
///
/// # Errors
/// If there is none; the error names the nearest ones.
pub fn parse_name(name: &str) -> Result<&'static CpuIdentity, String> {
    /// The number of names in the error.
    const NEAREST: usize = 3;
    find(name).ok_or_else(|| {
        let mut names: Vec<(f64, &str)> = all().iter().map(|one| (similarity(name, one.name), one.name)).collect();
        names.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let nearest: Vec<&str> = names.iter().take(NEAREST).map(|(_, name)| *name).collect();
        format!("no processor has this name; the nearest ones: {}", nearest.join(", "))
    })
}

/// Returns the identity that has this name, or the only one whose name begins so, as a user types it.
///
/// # Errors
/// If there is none, or more than one; the error names the nearest ones.
pub fn parse_beginning(name: &str) -> Result<&'static CpuIdentity, String> {
    let mut found = all().iter().filter(|identity| identity.name.starts_with(name));
    match (found.next(), found.next()) {
        (Some(identity), None) if !name.is_empty() => Ok(identity),
        _ => parse_name(name),
    }
}

/// Returns the similarity of two names; a part of a name is more similar than a misspelling.
fn similarity(wanted: &str, name: &str) -> f64 {
    let wanted = wanted.to_ascii_lowercase();
    let is_part = !wanted.is_empty() && name.contains(&wanted);
    strsim::jaro_winkler(&wanted, name) + if is_part { 1.0 } else { 0.0 }
}
