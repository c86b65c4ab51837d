//! The Debug Store of Intel's processors: the CPUID bits, and IA32_PERF_CAPABILITIES by the processor's signature,
//! because CPUID dumps do not contain it.

use cpuid_dump::Dump;

/// PEBS_BASELINE in IA32_PERF_CAPABILITIES (SDM Vol. 4): records consist of groups, and fixed counters write records as
/// well.
const PEBS_BASELINE: u64 = 1 << 14;

/// FREEZE_WHILE_SMM in IA32_PERF_CAPABILITIES (SDM Vol. 4): IA32_DEBUGCTL can stop the counters in SMM.
const FREEZE_WHILE_SMM: u64 = 1 << 12;

/// "GenuineIntel", in EBX, ECX, EDX.
const INTEL: [u32; 3] = [0x756E_6547, 0x6C65_746E, 0x4965_6E69];

/// FW_WRITE in IA32_PERF_CAPABILITIES (SDM Vol. 4): the general counters have addresses for full-width writes.
const FULL_WIDTH_WRITES: u64 = 1 << 13;

/// PERF_METRICS_AVAILABLE in IA32_PERF_CAPABILITIES (SDM Vol. 4): fixed counter 3 has metrics, which
/// IA32_PERF_GLOBAL_CTRL enables.
const PERF_METRICS: u64 = 1 << 15;

/// PEBS_FMT of architectural PEBS, which leaf 23H describes (Linux, arch/x86/events/intel/ds.c, `intel_pebs_init`).
const ARCHITECTURAL_PEBS: u64 = 0xF;

/// Returns whether this is an Intel processor with DS (`CPUID.1:EDX[21]`).
pub(crate) fn has(leaves: &Dump) -> bool {
    let [_, vendor @ ..] = leaves.cpuid(0, 0);
    let [.., features] = leaves.cpuid(1, 0);
    vendor == INTEL && features >> 21 & 1 == 1
}

/// Returns the fields of IA32_PERF_CAPABILITIES that the model knows: the formats of last branch records in bits 5:0
/// and of PEBS in bits 11:8, PEBS_BASELINE,
/// FREEZE_WHILE_SMM from Nehalem on, full-width writes from Ivy Bridge and Silvermont on (Linux commit 069e0c3c4058),
/// and the metrics of P cores from Ice Lake on, except where they are hidden. All other bits are 0. The result is 0 if
/// CPUID reports no such register (PDCM) or no Debug Store.
pub(crate) fn perf_capabilities(leaves: &Dump) -> u64 {
    let [signature, _, features, _] = leaves.cpuid(1, 0);
    let has_register = features >> 15 & 1 == 1;
    let is_family_6 = signature >> 8 & 0xF == 6;
    let is_architectural = has_architectural_pebs(leaves);
    if !has(leaves) || !has_register || !is_family_6 && !is_architectural {
        return 0;
    }
    let model = signature >> 12 & 0xF0 | signature >> 4 & 0xF;
    let format = if is_architectural { ARCHITECTURAL_PEBS } else { format_of_model(model) };
    let is_ivy_bridge = is_family_6 && matches!(model, 0x3A | 0x3E);
    let fixed_counter_3 = leaves.cpuid(0xA, 0)[3] & 0x1F > 3 || leaves.cpuid(0x23, 1)[1] & 0xF == 0xF;
    let flags = [
        (FREEZE_WHILE_SMM, format >= 1),
        (FULL_WIDTH_WRITES, format >= 2 || is_ivy_bridge),
        (PEBS_BASELINE, matches!(format, 4..=6)),
        // Always clear on Meteor Lake (Linux, arch/x86/events/intel/core.c, `intel_pmu_broken_perf_cap`).
        (PERF_METRICS, format >= 4 && fixed_counter_3 && !matches!(model, 0xAA | 0xAC)),
    ];
    let last_branches = if has_architectural_last_branches(leaves) { 0x3F } else { last_branches_of_model(model) };
    last_branches | format << 8 | flags.iter().filter(|(_, has)| *has).map(|(flag, _)| flag).sum::<u64>()
}

/// Returns the number of metrics of fixed counter 3: four on Ice Lake, Tiger Lake and Rocket Lake, eight on later
/// processors (Linux, arch/x86/events/intel/core.c, `intel_pmu_init`).
pub(crate) fn metrics(leaves: &Dump) -> Option<u8> {
    let signature = leaves.cpuid(1, 0)[0];
    let model = signature >> 12 & 0xF0 | signature >> 4 & 0xF;
    let has_level_1_alone =
        signature >> 8 & 0xF == 6 && matches!(model, 0x7D | 0x7E | 0x6A | 0x6C | 0x8C | 0x8D | 0xA7);
    let has_metrics = perf_capabilities(leaves) & PERF_METRICS != 0 || hides_counters(leaves);
    has_metrics.then_some(if has_level_1_alone { 4 } else { 8 })
}

/// Returns whether this is a P core of Alder Lake, Raptor Lake or Meteor Lake beside E cores, without a hypervisor.
/// Leaf 0AH reports the counters that both kinds of cores have, and the core has those of a Golden Cove.
pub(crate) fn hides_counters(leaves: &Dump) -> bool {
    let [signature, _, features, _] = leaves.cpuid(1, 0);
    let model = signature >> 12 & 0xF0 | signature >> 4 & 0xF;
    signature >> 8 & 0xF == 6
        && matches!(model, 0x97 | 0x9A | 0xB7 | 0xBA | 0xBF | 0xAA | 0xAC | 0xB5)
        && leaves.cpuid(7, 0)[3] >> 15 & 1 == 1
        && leaves.cpuid(0x1A, 0)[0] >> 24 == 0x40
        && features >> 31 == 0
}

/// Returns whether leaf 23H has the subleaves of architectural PEBS, EAX\[5:4\].
fn has_architectural_pebs(leaves: &Dump) -> bool {
    leaves.cpuid(7, 1)[0] >> 8 & 1 == 1 && leaves.cpuid(0x23, 0)[0] >> 4 & 0b11 == 0b11
}

/// Returns PEBS_FMT for a model of family 6, for the microarchitectures that have an identity.
///
/// # References
/// SDM Vol. 4, "CPUID Signature Values of DisplayFamily_DisplayModel", for the models; SDM Vol. 3B, the performance
/// monitoring section of each microarchitecture, for the formats; format 6 as reported for Lunar Lake.
fn format_of_model(model: u32) -> u64 {
    match model {
        // Nehalem, Westmere, Sandy Bridge, Ivy Bridge
        0x1A | 0x1E | 0x1F | 0x2E | 0x25 | 0x2C | 0x2F | 0x2A | 0x2D | 0x3A | 0x3E => 1,
        // Haswell, Broadwell; Silvermont, Airmont; Knights Landing
        0x3C | 0x3F | 0x45 | 0x46 | 0x3D | 0x47 | 0x4F | 0x56 | 0x37 | 0x4A | 0x4D | 0x4C | 0x5A | 0x57 | 0x85 => 2,
        // Skylake to Comet Lake, server processors up to Cooper Lake; Goldmont, Goldmont Plus
        0x4E | 0x5E | 0x55 | 0x8E | 0x9E | 0xA5 | 0xA6 | 0x66 | 0x5C | 0x5F | 0x7A => 3,
        // Ice Lake, Tiger Lake, Rocket Lake, Alder Lake, Raptor Lake, Sapphire Rapids, Emerald Rapids, Gracemont; then
        // Tremont, Lakefield, Meteor Lake, Arrow Lake-U, Granite Rapids, Sierra Forest, Grand Ridge
        0x7D | 0x7E | 0x6A | 0x6C | 0x8C | 0x8D | 0xA7 | 0x97 | 0x9A | 0xB7 | 0xBA | 0xBF | 0x8F | 0xCF | 0xD7
        | 0xBE | 0x86 | 0x96 | 0x9C | 0x8A | 0xAA | 0xAC | 0xB5 | 0xAD | 0xAE | 0xAF | 0xB6 => 4,
        // Lunar Lake, Arrow Lake
        0xBD | 0xC5 | 0xC6 => 6,
        // Core 2, Bonnell
        _ => 0,
    }
}

/// Returns whether CPUID has leaf 1CH of architectural last branch records.
fn has_architectural_last_branches(leaves: &Dump) -> bool {
    leaves.cpuid(0, 0)[0] >= 0x1C && leaves.cpuid(7, 0)[3] >> 19 & 1 == 1
}

/// Returns LBR_FMT for a model of family 6 (SDM Vol. 3B, "LBR Stack and 64-bit Mode" and the sections of the
/// processors; Linux, arch/x86/events/intel/lbr.c). Those of Nehalem, Silvermont and Knights Landing hold addresses
/// alone.
fn last_branches_of_model(model: u32) -> u64 {
    match model {
        // Nehalem, Westmere, Silvermont, Airmont, Knights Landing
        0x1A | 0x1E | 0x1F | 0x2E | 0x25 | 0x2C | 0x2F | 0x37 | 0x4A | 0x4D | 0x4C | 0x5A | 0x57 | 0x85 => 1,
        // Sandy Bridge, Ivy Bridge
        0x2A | 0x2D | 0x3A | 0x3E => 3,
        // Haswell, Broadwell
        0x3C | 0x3F | 0x45 | 0x46 | 0x3D | 0x47 | 0x4F | 0x56 => 4,
        // Skylake to Rocket Lake
        0x4E | 0x5E | 0x55 | 0x8E | 0x9E | 0xA5 | 0xA6 | 0x66 | 0x7D | 0x7E | 0x6A | 0x6C | 0x8C | 0x8D | 0xA7 => 5,
        // Goldmont
        0x5C | 0x5F => 6,
        // Goldmont Plus, Tremont
        0x7A | 0x86 | 0x96 | 0x9C => 7,
        _ => 0,
    }
}
