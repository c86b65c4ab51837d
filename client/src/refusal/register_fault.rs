//! Texts for [`ErrorCode::RegisterFault`](protocol::ErrorCode::RegisterFault): which register, and what to do.

use pmu::first_access::Access;
use pmu::{Hypervisor, Kind};
use protocol::{RegisterFault, ReplyHeader};
use x86_defs::amd::{perfmon as amd, perfmon_v2};
use x86_defs::intel::{debug_control, debug_store, misc_enable, netburst, p6, pentium, perfmon};
use x86_defs::local_apic;

use crate::unavailable;

/// Returns the error and its reason.
pub fn sentence(header: &ReplyHeader) -> String {
    let ReplyHeader { processor, detail: [fault, hypervisor], .. } = *header;
    let fault = RegisterFault::from_detail(fault);
    let why = match known(hypervisor) {
        Some(Hypervisor::Other | Hypervisor::Guest | Hypervisor::Root | Hypervisor::Kvm) => {
            "CPUID enumerates the counters, but the hypervisor lacks some of them"
        }
        Some(Hypervisor::None) | None => {
            "CPUID enumerates it, but the processor, or a hypervisor that hides\n  itself, does not have it"
        }
    };
    format!("CPU {processor} faulted (#GP) when it {}\n  because: {why}", accessed(fault))
}

/// Returns what to do.
pub fn remedy(header: &ReplyHeader) -> String {
    match known(header.detail[1]) {
        Some(Hypervisor::Root) => unavailable::HYPER_V_BELOW.to_owned(),
        Some(Hypervisor::Guest) => "give this virtual machine counters that work, or hide them from it; on a\n  \
             Hyper-V host, with the machine off:\n  Set-VMProcessor NAME -Perfmon @(\"pmu\",\"lbr\",\"pebs\"), or @()"
            .to_owned(),
        Some(Hypervisor::Other | Hypervisor::Kvm) => {
            "give this virtual machine a whole virtual PMU, or hide the PMU from it\n  \
             (KVM: -cpu host,pmu=on or pmu=off)"
                .to_owned()
        }
        Some(Hypervisor::None) | None => "update the firmware, and turn off what virtualizes this machine".to_owned(),
    }
}

/// Returns the hypervisor with this number in a detail of a refusal.
pub(super) fn known(hypervisor: u64) -> Option<Hypervisor> {
    u32::try_from(hypervisor).ok().and_then(Hypervisor::from_number)
}

/// Returns what the processor did, with the name and the number of the register.
fn accessed(RegisterFault { number, access, interface }: RegisterFault) -> String {
    let register = || match name(u32::from(interface), number) {
        Some(name) => format!("{name} (MSR {number:#x})"),
        None => format!("MSR {number:#x}"),
    };
    match Access::from_number(access) {
        Some(Access::Read) => format!("read {}", register()),
        Some(Access::Write) => format!("wrote {}", register()),
        Some(Access::Counter) => match number.checked_sub(perfmon::RDPMC_FIXED) {
            Some(fixed) => format!("read fixed counter {fixed} by RDPMC"),
            None => format!("read counter {number} by RDPMC"),
        },
        None => format!("accessed {}", register()),
    }
}

/// Returns the name of a register that a profile interface touches, as its maker spells it.
fn name(interface: u32, number: u32) -> Option<String> {
    let single = match number {
        misc_enable::IA32_MISC_ENABLE => "IA32_MISC_ENABLE",
        perfmon::IA32_PERF_CAPABILITIES => "IA32_PERF_CAPABILITIES",
        debug_control::IA32_DEBUGCTL => "IA32_DEBUGCTL",
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
        perfmon::IA32_FIXED_CTR_CTRL => "IA32_FIXED_CTR_CTRL",
        perfmon::IA32_PERF_GLOBAL_STATUS => "IA32_PERF_GLOBAL_STATUS",
        perfmon::IA32_PERF_GLOBAL_CTRL => "IA32_PERF_GLOBAL_CTRL",
        perfmon::IA32_PERF_GLOBAL_OVF_CTRL => "IA32_PERF_GLOBAL_OVF_CTRL",
        debug_store::IA32_PEBS_ENABLE => "IA32_PEBS_ENABLE",
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
            (Kind::Emon, &[0x1B, 0xC1, 0xC8, 0x186, 0x18D, 0x1A0, 0x1D9, 0x309, 0x30B, 0x345, 0x38D, 0x38E, 0x38F]),
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
}
