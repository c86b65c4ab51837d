//! Names of registers, and the programs that are known to write them without asking.

use pmu::Kind;
use x86_defs::amd::{perfmon as amd, perfmon_v2};
use x86_defs::intel::{debug_control, debug_store, extra, microcode, misc_enable, netburst, p6, pentium, perfmon};
use x86_defs::local_apic;

/// Returns the name and the number of a register: `IA32_FIXED_CTR_CTRL (MSR 0x38d)`.
#[must_use]
pub fn named(interface: u32, number: u32) -> String {
    match name(interface, number) {
        Some(name) => format!("{name} (MSR {number:#x})"),
        None => format!("MSR {number:#x}"),
    }
}

/// Returns the programs that are known to write to a register without reserving the counters. Reports of their users
/// and makers name them; not every version does it.
#[must_use]
pub fn known_writers(interface: u32, number: u32) -> &'static str {
    const FIXED: [u32; 4] = [
        perfmon::IA32_FIXED_CTR_CTRL,
        perfmon::IA32_FIXED_CTR0,
        perfmon::IA32_FIXED_CTR0 + 1,
        perfmon::IA32_FIXED_CTR0 + 2,
    ];
    match number {
        debug_control::IA32_DEBUGCTL => "debuggers, profilers that record last branches",
        _ if interface == Kind::Emon as u32 && FIXED.contains(&number) => {
            "HWiNFO, Core Temp, OCCT, ThrottleStop, Intel PCM"
        }
        _ if interface == Kind::Amd64 as u32 => "Microsoft Defender, AMD uProf, wpr",
        _ => "Microsoft Defender, Intel PCM, VTune (sep), wpr",
    }
}

/// Returns whether the register is a counter, whose value only grows.
#[must_use]
pub fn is_counter(interface: u32, number: u32) -> bool {
    const KINDS: [&str; 6] = ["IA32_PMC", "IA32_A_PMC", "IA32_FIXED_CTR", "PERF_CTR", "PERF_LEGACY_CTR", "PerfCtr"];
    name(interface, number).is_some_and(|name| {
        let kind = name.trim_end_matches(|last: char| last.is_ascii_digit());
        KINDS.contains(&kind) || kind.ends_with("_COUNTER") || kind == "CTR"
    })
}

/// Returns the name of a register that a profile interface touches, as its maker spells it.
fn name(interface: u32, number: u32) -> Option<String> {
    let single = match number {
        misc_enable::IA32_MISC_ENABLE => "IA32_MISC_ENABLE",
        perfmon::IA32_PERF_CAPABILITIES => "IA32_PERF_CAPABILITIES",
        debug_control::IA32_DEBUGCTL => "IA32_DEBUGCTL",
        microcode::IA32_BIOS_SIGN_ID => "IA32_BIOS_SIGN_ID",
        debug_store::IA32_DS_AREA => "IA32_DS_AREA",
        local_apic::IA32_APIC_BASE => "IA32_APIC_BASE",
        local_apic::IA32_X2APIC_LVT_PMI => "IA32_X2APIC_LVT_PMI",
        perfmon_v2::PERF_CNTR_GLOBAL_STATUS => "PerfCntrGlobalStatus",
        perfmon_v2::PERF_CNTR_GLOBAL_CTL => "PerfCntrGlobalCtl",
        perfmon_v2::PERF_CNTR_GLOBAL_STATUS_CLR => "PerfCntrGlobalStatusClr",
        _ => return name_in(interface, number),
    };
    Some(single.to_owned())
}

/// Returns the name of a register that other interfaces do not have, or have for something else.
fn name_in(interface: u32, number: u32) -> Option<String> {
    match Kind::ALL.into_iter().find(|kind| *kind as u32 == interface)? {
        Kind::Default => None,
        Kind::Emon => emon(number),
        Kind::Amd64 => amd64(number),
        Kind::NetBurst => netburst(number),
        Kind::P6 => numbered("PerfEvtSel", number, p6::PERF_EVT_SEL0, 1, p6::COUNTERS)
            .or_else(|| numbered("PerfCtr", number, p6::PERF_CTR0, 1, p6::COUNTERS)),
        Kind::Pentium if number == pentium::CESR => Some("CESR".to_owned()),
        Kind::Pentium => numbered("CTR", number, pentium::CTR0, 1, pentium::COUNTERS),
    }
}

/// Returns the name of a register of a bank: `name` and the index in the bank.
fn numbered(name: &str, number: u32, first: u32, stride: u8, count: u8) -> Option<String> {
    let index = (0..u32::from(count)).find(|index| first + index * u32::from(stride) == number)?;
    Some(format!("{name}{index}"))
}

fn emon(number: u32) -> Option<String> {
    /// More general and more fixed counters than any processor has.
    const MOST: u8 = 16;
    let single = match number {
        perfmon::MSR_PERF_METRICS => "MSR_PERF_METRICS",
        perfmon::IA32_FIXED_CTR_CTRL => "IA32_FIXED_CTR_CTRL",
        perfmon::IA32_PERF_GLOBAL_STATUS => "IA32_PERF_GLOBAL_STATUS",
        perfmon::IA32_PERF_GLOBAL_CTRL => "IA32_PERF_GLOBAL_CTRL",
        perfmon::IA32_PERF_GLOBAL_OVF_CTRL => "IA32_PERF_GLOBAL_OVF_CTRL",
        debug_store::IA32_PEBS_ENABLE => "IA32_PEBS_ENABLE",
        extra::MSR_OFFCORE_RSP_0 => "MSR_OFFCORE_RSP_0",
        extra::MSR_OFFCORE_RSP_1 => "MSR_OFFCORE_RSP_1",
        extra::MSR_OMR_0 => "MSR_OMR_0",
        extra::MSR_OMR_1 => "MSR_OMR_1",
        extra::MSR_OMR_2 => "MSR_OMR_2",
        extra::MSR_OMR_3 => "MSR_OMR_3",
        extra::MSR_PEBS_LD_LAT_THRESHOLD => "MSR_PEBS_LD_LAT_THRESHOLD",
        extra::MSR_PEBS_FRONTEND => "MSR_PEBS_FRONTEND",
        _ => {
            return numbered("IA32_PERFEVTSEL", number, perfmon::IA32_PERFEVTSEL0, 1, MOST)
                .or_else(|| numbered("IA32_PMC", number, perfmon::IA32_PMC0, 1, MOST))
                .or_else(|| numbered("IA32_A_PMC", number, perfmon::IA32_A_PMC0, 1, MOST))
                .or_else(|| numbered("IA32_FIXED_CTR", number, perfmon::IA32_FIXED_CTR0, 1, MOST));
        }
    };
    Some(single.to_owned())
}

fn amd64(number: u32) -> Option<String> {
    numbered("PERF_LEGACY_CTL", number, amd::PERF_LEGACY_CTL0, 1, amd::LEGACY_COUNTERS)
        .or_else(|| numbered("PERF_LEGACY_CTR", number, amd::PERF_LEGACY_CTR0, 1, amd::LEGACY_COUNTERS))
        .or_else(|| numbered("PERF_CTL", number, amd::PERF_CTL0, amd::STRIDE, amd::CORE_COUNTERS))
        .or_else(|| numbered("PERF_CTR", number, amd::PERF_CTR0, amd::STRIDE, amd::CORE_COUNTERS))
}

fn netburst(number: u32) -> Option<String> {
    /// The groups of counters, with the number of counters in each (SDM Vol. 3B, Table "Performance Counter MSRs and
    /// Associated CCCR and ESCR MSRs").
    const GROUPS: [(&str, u8); 4] = [("BPU", 4), ("MS", 4), ("FLAME", 4), ("IQ", 6)];
    for (bank, kind) in [(netburst::MSR_BPU_COUNTER0, "COUNTER"), (netburst::MSR_BPU_CCCR0, "CCCR")] {
        let mut first = bank;
        for (group, count) in GROUPS {
            if let Some(name) = numbered(&format!("MSR_{group}_{kind}"), number, first, 1, count) {
                return Some(name);
            }
            first += u32::from(count);
        }
    }
    let escrs = [
        (netburst::MSR_BSU_ESCR0, "BSU", 0),
        (netburst::MSR_FSB_ESCR0, "FSB", 0),
        (netburst::MSR_CRU_ESCR0, "CRU", 0),
        (netburst::MSR_CRU_ESCR2, "CRU", 2),
    ];
    escrs.into_iter().find_map(|(first, unit, index)| {
        let column = number.checked_sub(first).filter(|column| *column < 2)?;
        Some(format!("MSR_{unit}_ESCR{}", index + column))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_register_that_an_interface_touches_has_its_own_name() {
        let touched: [(Kind, &[u32]); 5] = [
            (
                Kind::Emon,
                &[0x1B, 0x8B, 0xC1, 0xC8, 0x186, 0x18D, 0x1A0, 0x1D9, 0x309, 0x30B, 0x345, 0x38D, 0x38E, 0x38F],
            ),
            (Kind::Emon, &[0x390, 0x3F1, 0x4C1, 0x4C8, 0x600, 0x834]),
            (Kind::Amd64, &[0xC000_0300, 0xC000_0301, 0xC000_0302, 0xC001_0003, 0xC001_0007, 0xC001_020A, 0xC001_020B]),
            (Kind::P6, &[0x186, 0x187, 0xC1, 0xC2]),
            (Kind::Pentium, &[0x11, 0x12, 0x13]),
        ];
        let netburst =
            (0x300..0x312).chain(0x360..0x372).chain([0x3A0, 0x3A1, 0x3A2, 0x3A3, 0x3B8, 0x3B9, 0x3CC, 0x3CD]);
        let mut all: Vec<_> =
            touched.into_iter().flat_map(|(kind, numbers)| numbers.iter().map(move |number| (kind, *number))).collect();
        all.extend(netburst.map(|number| (Kind::NetBurst, number)));
        let names: Vec<_> = all.iter().map(|(kind, number)| name(*kind as u32, *number).unwrap()).collect();
        for (index, name) in names.iter().enumerate() {
            let same = |(other, (kind, _)): &(&String, &(Kind, u32))| *other == name && *kind == all[index].0;
            assert_eq!(names.iter().zip(&all).filter(same).count(), 1, "{name}");
        }
        let of = |kind: Kind, number| name(kind as u32, number).unwrap();
        assert_eq!(of(Kind::NetBurst, 0x309), "MSR_FLAME_COUNTER1");
        assert_eq!(of(Kind::NetBurst, 0x371), "MSR_IQ_CCCR5");
        assert_eq!(of(Kind::NetBurst, 0x3CD), "MSR_CRU_ESCR3");
        assert_eq!(of(Kind::Emon, 0x309), "IA32_FIXED_CTR0");
        assert_eq!(of(Kind::Amd64, 0xC001_0203), "PERF_CTR1");
        assert_eq!(name(Kind::Default as u32, 0x186), None);
        assert_eq!(name(99, 0x186), None);
    }

    #[test]
    fn counters_and_their_controls_are_told_apart() {
        let counters = [(Kind::Emon, 0xC1), (Kind::Emon, 0x4C1), (Kind::Emon, 0x309), (Kind::Amd64, 0xC001_0201)];
        let more = [(Kind::Amd64, 0xC001_0004), (Kind::P6, 0xC2), (Kind::Pentium, 0x13), (Kind::NetBurst, 0x30C)];
        assert!(counters.into_iter().chain(more).all(|(kind, number)| is_counter(kind as u32, number)));
        let controls = [(Kind::Emon, 0x38D), (Kind::Emon, 0x186), (Kind::Pentium, 0x11), (Kind::NetBurst, 0x36C)];
        assert!(controls.into_iter().all(|(kind, number)| !is_counter(kind as u32, number)));
    }
}
