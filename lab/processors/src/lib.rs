//! Processor identities: the CPUID leaves of real processors and of made-up edge cases, each with the outcome that a
//! profile interface's selection must have. One file each under `identities/`, one line each in the table.

#![forbid(unsafe_code)]

mod amd;
mod debug_store;
mod table;

use cpuid_dump::Dump;

/// One processor.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// The name to choose it by; the file is `identities/<name>.cpuid`.
    pub name: &'static str,
    /// What it is, in a line.
    pub description: &'static str,
    /// Whether the leaves were read from a processor; else they are made up.
    pub real: bool,
    /// The text of its file, which also tells where the leaves are from.
    pub dump: &'static str,
    /// What must come of it.
    pub expected: Expected,
    /// The name of the identity of every other processor, from processor 1 on, on a machine with two kinds of them.
    pub beside: Option<&'static str>,
}

/// The outcome for one processor, found by reading its leaves and not by running the code that is tested with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// What the HAL of the original Windows 10 chooses: "Amd64", "Emon" or "Default".
    pub windows10: &'static str,
    /// What halprof uses: the same, but "Default" for Emon without counters, and for some Default "NetBurst", "P6" or
    /// "Pentium".
    pub interface: &'static str,
    /// The counters of `interface` on each processor, 0 for Default.
    pub counters: u8,
    /// How many of these are fixed counters that it uses.
    pub fixed: u8,
    /// Their width in bits, 0 for Default.
    pub width: u8,
    /// The values of `KPROFILE_SOURCE` that can be had, ascending: for Emon what EBX of leaf 0xA allows, for Amd64 what
    /// the family counts in its cores, for the older ones those of the interface's table. `ProfileTime` is not among them:
    /// every interface has it. Empty for Default.
    pub supported: &'static [u32],
    /// Why, in a few words.
    pub why: &'static str,
}

impl Identity {
    /// Its leaves.
    ///
    /// # Panics
    /// Never: a test reads every file.
    #[must_use]
    #[expect(clippy::expect_used, reason = "the files are part of the crate, and a test reads every one")]
    pub fn cpuid(&self) -> Dump {
        Dump::parse(self.dump).expect("an identity is a CPUID dump")
    }

    /// What CPUID answers on the second thread of a core with two.
    pub fn cpuid_of_second_thread(&self) -> impl Fn(u32, u32) -> [u32; 4] + use<> {
        /// EBX of leaf 1, the lowest bit of the initial APIC number (SDM Vol. 2A, CPUID).
        const SECOND: u32 = 1 << 24;
        let leaves = self.cpuid();
        move |leaf, subleaf| {
            let [eax, ebx, ecx, edx] = leaves.cpuid(leaf, subleaf);
            [eax, if leaf == 1 { ebx | SECOND } else { ebx }, ecx, edx]
        }
    }

    /// Whether CPUID tells of Intel's Debug Store.
    #[must_use]
    pub fn has_debug_store(&self) -> bool {
        debug_store::has(&self.cpuid())
    }

    /// What IA32_PERF_CAPABILITIES says of PEBS: format and PEBS_BASELINE; the rest of it is 0.
    #[must_use]
    pub fn perf_capabilities(&self) -> u64 {
        debug_store::perf_capabilities(&self.cpuid())
    }

    /// What a processor of the machine is, whose boot processor, 0, is this.
    #[must_use]
    pub fn of_processor(&self, number: u32) -> &Self {
        let other = if number % 2 == 1 { self.beside } else { None };
        other.and_then(find).unwrap_or(self)
    }
}

/// One identity for each generation of counters that 64-bit Windows runs on, by vendor and age.
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

/// Every identity, the real ones first.
#[must_use]
pub fn all() -> &'static [Identity] {
    table::IDENTITIES
}

/// The identity of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Identity> {
    all().iter().find(|identity| identity.name == name)
}

/// Returns the identity that a user names.
///
/// # Errors
/// If there is none of that name: the error names the nearest ones.
pub fn named(name: &str) -> Result<&'static Identity, String> {
    /// How many are named.
    const NEAREST: usize = 3;
    find(name).ok_or_else(|| {
        let mut names: Vec<(f64, &str)> = all().iter().map(|one| (likeness(name, one.name), one.name)).collect();
        names.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let nearest: Vec<&str> = names.iter().take(NEAREST).map(|(_, name)| *name).collect();
        format!("no processor has this name; the nearest ones: {}", nearest.join(", "))
    })
}

/// How near two names are; a part of a name is nearer than a misspelling.
fn likeness(wanted: &str, name: &str) -> f64 {
    let wanted = wanted.to_ascii_lowercase();
    let is_part = !wanted.is_empty() && name.contains(&wanted);
    strsim::jaro_winkler(&wanted, name) + if is_part { 1.0 } else { 0.0 }
}
