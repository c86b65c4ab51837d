//! Addresses and numbers, against the second spelling that the manuals give: decimal in SDM Vol. 4, MSRC001_0000 in the
//! PPR and the APM.

use x86_defs::{
    amd, cpuid,
    intel::{architectural_pebs, debug_control, debug_store, microcode, misc_enable, netburst, p6, pentium, perfmon},
    local_apic,
};

#[test]
fn intel_msr_addresses_are_the_decimal_ones_of_the_sdm() {
    for (name, address, decimal) in [
        ("CESR", pentium::CESR, 17),
        ("CTR0", pentium::CTR0, 18),
        ("IA32_APIC_BASE", local_apic::IA32_APIC_BASE, 27),
        ("PERFCTR0", p6::PERF_CTR0, 193),
        ("IA32_PMC0", perfmon::IA32_PMC0, 193),
        ("EVNTSEL0", p6::PERF_EVT_SEL0, 390),
        ("IA32_PERFEVTSEL0", perfmon::IA32_PERFEVTSEL0, 390),
        ("IA32_BIOS_SIGN_ID", microcode::IA32_BIOS_SIGN_ID, 139),
        ("IA32_MISC_ENABLE", misc_enable::IA32_MISC_ENABLE, 416),
        ("IA32_DEBUGCTL", debug_control::IA32_DEBUGCTL, 473),
        ("MSR_BPU_COUNTER0", netburst::MSR_BPU_COUNTER0, 768),
        ("IA32_FIXED_CTR0", perfmon::IA32_FIXED_CTR0, 777),
        ("IA32_PERF_CAPABILITIES", perfmon::IA32_PERF_CAPABILITIES, 837),
        ("MSR_BPU_CCCR0", netburst::MSR_BPU_CCCR0, 864),
        ("IA32_FIXED_CTR_CTRL", perfmon::IA32_FIXED_CTR_CTRL, 909),
        ("IA32_PERF_GLOBAL_STATUS", perfmon::IA32_PERF_GLOBAL_STATUS, 910),
        ("IA32_PERF_GLOBAL_CTRL", perfmon::IA32_PERF_GLOBAL_CTRL, 911),
        ("IA32_PERF_GLOBAL_OVF_CTRL", perfmon::IA32_PERF_GLOBAL_OVF_CTRL, 912),
        ("MSR_BSU_ESCR0", netburst::MSR_BSU_ESCR0, 928),
        ("MSR_FSB_ESCR0", netburst::MSR_FSB_ESCR0, 930),
        ("MSR_CRU_ESCR0", netburst::MSR_CRU_ESCR0, 952),
        ("MSR_CRU_ESCR2", netburst::MSR_CRU_ESCR2, 972),
        ("IA32_PEBS_ENABLE", debug_store::IA32_PEBS_ENABLE, 1009),
        ("IA32_PEBS_BASE", architectural_pebs::IA32_PEBS_BASE, 1012),
        ("IA32_PEBS_INDEX", architectural_pebs::IA32_PEBS_INDEX, 1013),
        ("IA32_A_PMC0", perfmon::IA32_A_PMC0, 1217),
        ("IA32_DS_AREA", debug_store::IA32_DS_AREA, 1536),
        ("IA32_PMC_GP0_CFG_C", architectural_pebs::IA32_PMC_GP0_CFG_C, 6403),
        ("IA32_PMC_FX0_CFG_C", architectural_pebs::IA32_PMC_FX0_CFG_C, 6531),
        ("IA32_X2APIC_LVT_PMI", local_apic::IA32_X2APIC_LVT_PMI, 2100),
    ] {
        assert_eq!(address, decimal, "{name}");
    }
}

#[test]
fn amd_msr_addresses_are_those_in_the_names_of_the_ppr() {
    for (name, address) in [
        ("MSRC000_0300", amd::perfmon_v2::PERF_CNTR_GLOBAL_STATUS),
        ("MSRC000_0301", amd::perfmon_v2::PERF_CNTR_GLOBAL_CTL),
        ("MSRC000_0302", amd::perfmon_v2::PERF_CNTR_GLOBAL_STATUS_CLR),
        ("MSRC001_0000", amd::perfmon::PERF_LEGACY_CTL0),
        ("MSRC001_0004", amd::perfmon::PERF_LEGACY_CTR0),
        ("MSRC001_0200", amd::perfmon::PERF_CTL0),
        ("MSRC001_0201", amd::perfmon::PERF_CTR0),
    ] {
        assert_eq!(format!("MSR{:04X}_{:04X}", address >> 16, address & 0xFFFF), name);
    }
}

#[test]
fn an_x2apic_register_is_at_800h_and_a_sixteenth_of_its_xapic_offset() {
    assert_eq!(local_apic::IA32_X2APIC_LVT_PMI, 2048 + u32::from(local_apic::XAPIC_LVT_PERFORMANCE) / 16);
    assert_eq!(local_apic::XAPIC_LVT_PERFORMANCE, 832);
    assert_eq!(local_apic::XAPIC_PAGE_SIZE, 4096);
    assert_eq!(local_apic::DELIVERY_MODE_FIXED, 0);
}

#[test]
fn leaf_numbers_are_those_of_the_manuals() {
    use cpuid::leaf;
    for (number, spelled) in [
        (leaf::VENDOR, "00000000"),
        (leaf::FEATURES, "00000001"),
        (leaf::CACHE_PARAMETERS, "00000004"),
        (leaf::STRUCTURED_FEATURES, "00000007"),
        (leaf::ARCHITECTURAL_PERFMON, "0000000A"),
        (leaf::NATIVE_MODEL, "0000001A"),
        (leaf::HYPERVISOR_VENDOR, "40000000"),
        (leaf::HYPERVISOR_INTERFACE, "40000001"),
        (leaf::HYPERVISOR_FEATURES, "40000003"),
        (leaf::EXTENDED_MAXIMUM, "80000000"),
        (leaf::EXTENDED_FEATURES, "80000001"),
        (leaf::BRAND_STRING_FIRST, "80000002"),
        (leaf::BRAND_STRING_LAST, "80000004"),
        (leaf::EXTENDED_PERFMON, "80000022"),
    ] {
        assert_eq!(format!("{number:08X}"), spelled);
    }
}

#[test]
fn strings_of_cpuid_are_the_register_values_of_the_manuals() {
    let text = |registers: [u32; 3]| registers.map(u32::to_le_bytes).concat();
    // SDM Vol. 2A, CPUID: EBX "Genu", EDX "ineI", ECX "ntel".
    assert_eq!(text([0x756E_6547, 0x4965_6E69, 0x6C65_746E]), cpuid::VENDOR_INTEL);
    // APM Vol. 3 E.3.1: EBX, EDX, ECX.
    assert_eq!(text([0x6874_7541, 0x6974_6E65, 0x444D_4163]), cpuid::VENDOR_AMD);
    // TLFS, "Hypervisor CPUID Leaf Range".
    assert_eq!(cpuid::HV1, 0x3123_7648);
}

#[test]
fn counters_are_as_many_and_as_wide_as_the_manuals_say() {
    assert_eq!((pentium::COUNTERS, pentium::WIDTH), (2, 40));
    assert_eq!((p6::COUNTERS, p6::WIDTH), (2, 40));
    assert_eq!((netburst::COUNTERS, netburst::WIDTH), (18, 40));
    assert_eq!((amd::perfmon::LEGACY_COUNTERS, amd::perfmon::CORE_COUNTERS, amd::perfmon::WIDTH), (4, 6, 48));
    // PERF_CTL5 is MSRC001_020A, PERF_CTR5 MSRC001_020B.
    let last = u32::from(amd::perfmon::STRIDE) * u32::from(amd::perfmon::CORE_COUNTERS - 1);
    assert_eq!((amd::perfmon::PERF_CTL0 + last, amd::perfmon::PERF_CTR0 + last), (0xC001_020A, 0xC001_020B));
    assert_eq!((perfmon::RDPMC_FIXED, perfmon::GLOBAL_FIXED_SHIFT), (1_073_741_824, 32));
}

#[test]
fn netburst_selects_escrs_by_the_numbers_of_the_sdm() {
    use netburst::escr_select;
    assert_eq!(
        (escr_select::BSU_ESCR0, escr_select::FSB_ESCR0, escr_select::CRU_ESCR0, escr_select::CRU_ESCR2),
        (7, 6, 4, 5)
    );
    assert_eq!(netburst::ACTIVE_THREAD_ANY, 3);
}
