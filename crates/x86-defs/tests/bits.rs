//! Bit positions of every field, in the `high:low` notation of the manuals.

use x86_defs::{
    amd,
    cpuid::{
        Leaf1AEax, Leaf1Ebx, Leaf1Ecx, Leaf1Edx, Leaf4Eax, Leaf7Edx, Leaf40000003Ebx, Leaf40000003Edx, Leaf80000001Ebx,
        Leaf80000001Ecx, Leaf80000001Edx, Leaf80000008Ecx, Leaf80000022Eax, Leaf80000022Ebx, LeafAEax, LeafAEbx,
        LeafAEcx, LeafAEdx, Signature,
    },
    intel::{
        architectural_pebs::{CounterConfig, PebsBase, PebsIndex, RecordHeader},
        debug_control::DebugCtl,
        debug_store::{PebsEnable, bts::BtsFlags, pebs::RecordFormat},
        extra::{FrontEnd, LoadLatencyThreshold, OffModuleResponse, OffcoreResponse, OffcoreResponseNehalem},
        microcode::BiosSignId,
        misc_enable::MiscEnable,
        netburst::{Cccr, Escr},
        p6,
        pentium::{Cesr, CesrHalf},
        perfmon::{FixedControl, GlobalCtrl, GlobalStatus, PerfCapabilities, PerfEvtSel},
    },
    local_apic::{ApicBase, LvtPerformance},
};

/// Returns ones in bits `high` to `low`.
fn mask(high: u32, low: u32) -> u64 {
    u64::MAX >> (63 - (high - low)) << low
}

/// Asserts where each field of a register is, and that fields and bits without a field cover the register exactly once.
macro_rules! layout {
    ($register:ty, $bits:ty, fields: $($field:ident $high:literal:$low:literal),+; none: $($none_high:literal:$none_low:literal),*) => {{
        let name = stringify!($register);
        let mut covered = 0_u64;
        $(
            let ones = mask($high, $low);
            assert_eq!(covered & ones, 0, "{name}.{} overlaps", stringify!($field));
            covered |= ones;
            let only = <$register>::from_bits(<$bits>::try_from(ones).unwrap()).$field();
            assert_eq!(u64::from(only), mask($high - $low, 0), "{name}.{}", stringify!($field));
            let others = <$register>::from_bits(<$bits>::MAX ^ <$bits>::try_from(ones).unwrap()).$field();
            assert_eq!(u64::from(others), 0, "{name}.{}", stringify!($field));
        )+
        $(
            let ones = mask($none_high, $none_low);
            assert_eq!(covered & ones, 0, "{name} {}:{} overlaps", $none_high, $none_low);
            covered |= ones;
        )*
        assert_eq!(covered, u64::from(<$bits>::MAX), "{name} has bits without a row");
        let kept = <$register>::from_bits(<$bits>::MAX).into_bits();
        assert_eq!(kept, <$bits>::MAX, "{name} keeps the bits that it does not define");
    }};
}

#[test]
fn cpuid_basic_leaves() {
    layout!(Signature, u32, fields: stepping 3:0, base_model 7:4, base_family 11:8, processor_type 13:12,
        extended_model 19:16, extended_family 27:20; none: 15:14, 31:28);
    layout!(Leaf1Ebx, u32, fields: brand_index 7:0, clflush_size 15:8, logical_processors 23:16, initial_apic_id 31:24;
        none:);
    layout!(Leaf1Ecx, u32, fields: dtes64 2:2, ds_cpl 4:4, pdcm 15:15, hypervisor 31:31; none: 1:0, 3:3, 14:5, 30:16);
    layout!(Leaf1Edx, u32, fields: tsc 4:4, msr 5:5, apic 9:9, ds 21:21, htt 28:28;
        none: 3:0, 8:6, 20:10, 27:22, 31:29);
    layout!(Leaf4Eax, u32, fields: cores_minus_1 31:26; none: 25:0);
    layout!(Leaf7Edx, u32, fields: hybrid 15:15; none: 14:0, 31:16);
    layout!(Leaf1AEax, u32, fields: native_model 23:0, core_type 31:24; none:);
}

#[test]
fn cpuid_architectural_performance_monitoring() {
    layout!(LeafAEax, u32, fields: version 7:0, counters 15:8, width 23:16, ebx_length 31:24; none:);
    layout!(LeafAEbx, u32, fields: no_core_cycles 0:0, no_instructions_retired 1:1, no_reference_cycles 2:2,
        no_llc_references 3:3, no_llc_misses 4:4, no_branches_retired 5:5, no_branch_mispredicts_retired 6:6,
        no_topdown_slots 7:7; none: 31:8);
    layout!(LeafAEcx, u32, fields: fixed_counters 31:0; none:);
    layout!(LeafAEdx, u32, fields: fixed 4:0, fixed_width 12:5, no_any_thread 15:15; none: 14:13, 31:16);
}

#[test]
fn cpuid_hypervisor_and_extended_leaves() {
    layout!(Leaf40000003Ebx, u32, fields: cpu_management 12:12; none: 11:0, 31:13);
    layout!(Leaf40000003Edx, u32, fields: performance_monitors_available 2:2; none: 1:0, 31:3);
    layout!(Leaf80000001Ebx, u32, fields: pkg_type 31:28; none: 27:0);
    layout!(Leaf80000001Ecx, u32, fields: perf_ctr_ext_core 23:23, perf_ctr_ext_nb 24:24; none: 22:0, 31:25);
    layout!(Leaf80000001Edx, u32, fields: long_mode 29:29; none: 28:0, 31:30);
    layout!(Leaf80000008Ecx, u32, fields: cores_minus_1 7:0, apic_id_size 15:12; none: 11:8, 31:16);
    layout!(Leaf80000022Eax, u32, fields: perf_mon_v2 0:0, lbr_stack 1:1, lbr_and_pmc_freeze 2:2; none: 31:3);
    layout!(Leaf80000022Ebx, u32, fields: num_perf_ctr_core 3:0, lbr_stack_size 9:4, num_perf_ctr_nb 15:10; none: 31:16);
}

#[test]
fn local_apic() {
    layout!(ApicBase, u64, fields: bsp 8:8, extd 10:10, en 11:11, page 51:12; none: 7:0, 9:9, 63:52);
    layout!(LvtPerformance, u32, fields: vector 7:0, delivery_mode 10:8, send_pending 12:12, masked 16:16;
        none: 11:11, 15:13, 31:17);
}

#[test]
fn intel_architectural_performance_monitoring() {
    layout!(PerfEvtSel, u64, fields: event_select 7:0, umask 15:8, usr 16:16, os 17:17, edge 18:18, pin_control 19:19,
        int 20:20, any_thread 21:21, en 22:22, inv 23:23, cmask 31:24, in_tx 32:32, in_txcp 33:33, adaptive_record 34:34,
        en_lbr_log 35:35, eq 36:36, umask2 47:40; none: 39:37, 63:48);
    layout!(FixedControl, u8, fields: os 0:0, usr 1:1, any_thread 2:2, pmi 3:3; none: 7:4);
    layout!(GlobalCtrl, u64, fields: general 31:0, fixed 47:32, perf_metrics 48:48; none: 63:49);
    layout!(GlobalStatus, u64, fields: general 31:0, fixed 47:32, perf_metrics 48:48, pebs_threshold 54:54,
        trace_topa_pmi 55:55, lbr_frz 58:58, ctr_frz 59:59, asci 60:60, ovf_uncore 61:61, ovf_buf 62:62,
        cond_chgd 63:63; none: 53:49, 57:56);
    layout!(PerfCapabilities, u64, fields: lbr_fmt 5:0, pebs_trap 6:6, pebs_save_arch_regs 7:7, pebs_format 11:8,
        freeze_while_smm 12:12, fw_write 13:13, pebs_baseline 14:14, perf_metrics_available 15:15,
        pebs_output_pt_avail 16:16, pebs_timing_info 17:17; none: 63:18);
}

#[test]
fn intel_fixed_counter_control() {
    // SDM Vol. 3B, Figure 21-2: counter 0 has bits 3:0, counter 1 bits 7:4, counter 2 bits 11:8.
    for (number, low) in [(0, 0), (1, 4), (2, 8), (3, 12), (15, 60)] {
        assert_eq!(FixedControl::ALL.to_register(number), mask(low + 3, low), "{number}");
        assert_eq!(FixedControl::from_register(mask(low + 3, low), number), FixedControl::ALL, "{number}");
        assert_eq!(FixedControl::from_register(!mask(low + 3, low), number), FixedControl::new(), "{number}");
    }
    // What IA32_FIXED_CTR_CTRL holds if counters 0, 1 and 2 count in all modes with interrupts.
    let control = FixedControl::new().with_os(true).with_usr(true).with_pmi(true);
    assert_eq!((0..3).map(|number| control.to_register(number)).sum::<u64>(), 0xBBB);
    assert_eq!(FixedControl::from_bits(0xFF).to_register(1), 0xF0, "the unused bits do not reach the next counter");
}

#[test]
fn intel_debug_registers() {
    layout!(BiosSignId, u64, fields: revision 63:32; none: 31:0);
    layout!(MiscEnable, u64, fields: perfmon_available 7:7, bts_unavailable 11:11, pebs_unavailable 12:12;
        none: 6:0, 10:8, 63:13);
    layout!(DebugCtl, u64, fields: lbr 0:0, btf 1:1, bld 2:2, tr 6:6, bts 7:7, btint 8:8, bts_off_os 9:9,
        bts_off_usr 10:10, freeze_lbrs_on_pmi 11:11, freeze_perfmon_on_pmi 12:12, enable_uncore_pmi 13:13,
        freeze_while_smm 14:14, rtm_debug 15:15; none: 5:3, 63:16);
    layout!(PebsEnable, u64, fields: general 31:0, latency_or_fixed 62:32, precise_store 63:63; none:);
    layout!(PebsBase, u64, fields: size 3:0, page 63:12; none: 11:4);
    layout!(PebsIndex, u64, fields: wr 26:4, full 31:31, en 32:32, thresh 58:36; none: 3:0, 30:27, 35:33, 63:59);
    layout!(CounterConfig, u64, fields: reload 31:0, allow_counter 35:35, counters 38:36, lbr 41:40, vectors 55:49,
        gpr 61:61, aux 62:62, en 63:63; none: 34:32, 39:39, 48:42, 60:56);
    layout!(RecordHeader, u64, fields: size 15:0, long_mode 30:30, continued 31:31, counters 39:35, lbr 41:40,
        vectors 55:49, gpr 61:61, aux 62:62, basic 63:63; none: 29:16, 34:32, 48:42, 60:56);
    layout!(OffcoreResponse, u64, fields: requests 15:0, responses 63:16; none:);
    layout!(OffModuleResponse, u64, fields: requests 15:0, responses 63:16; none:);
    layout!(OffcoreResponseNehalem, u64, fields: requests 7:0, responses 15:8; none: 63:16);
    layout!(LoadLatencyThreshold, u64, fields: cycles 15:0; none: 63:16);
    layout!(FrontEnd, u64, fields: event 7:0, bubble_length 19:8, bubble_width 22:20; none: 63:23);
    layout!(BtsFlags, u64, fields: predicted 4:4; none: 3:0, 63:5);
    layout!(RecordFormat, u64, fields: memory 0:0, registers 1:1, xmm 2:2, lbr 3:3, last_lbr_entry 31:24,
        retire_latency 47:32, size 63:48; none: 23:4);
}

#[test]
fn intel_older_processors() {
    layout!(p6::PerfEvtSel, u64, fields: event_select 7:0, umask 15:8, usr 16:16, os 17:17, edge 18:18, pin_control 19:19,
        int 20:20, en 22:22, inv 23:23, cmask 31:24; none: 21:21, 63:32);
    layout!(CesrHalf, u16, fields: event_select 5:0, kernel 6:6, user 7:7, clocks 8:8, pin_control 9:9; none: 15:10);
    let ones = CesrHalf::from_bits(u16::MAX);
    assert_eq!(Cesr::new().with_counter0(ones).into_bits(), mask(15, 0));
    assert_eq!(Cesr::new().with_counter1(ones).into_bits(), mask(31, 16));
    layout!(Escr, u64, fields: t1_usr 0:0, t1_os 1:1, t0_usr 2:2, t0_os 3:3, tag_enable 4:4, tag_value 8:5,
        event_mask 24:9, event_select 30:25; none: 63:31);
    layout!(Cccr, u64, fields: enable 12:12, escr_select 15:13, active_thread 17:16, compare 18:18, complement 19:19,
        threshold 23:20, edge 24:24, force_ovf 25:25, ovf_pmi_t0 26:26, ovf_pmi_t1 27:27, cascade 30:30, ovf 31:31;
        none: 11:0, 29:28, 63:32);
}

#[test]
fn amd_performance_monitoring() {
    layout!(amd::perfmon::PerfEvtSel, u64, fields: event_select 7:0, unit_mask 15:8, usr 16:16, os 17:17, edge 18:18,
        int 20:20, en 22:22, inv 23:23, cnt_mask 31:24, event_select_high 35:32, hg_only 41:40;
        none: 19:19, 21:21, 39:36, 63:42);
    layout!(amd::perfmon_v2::GlobalStatus, u64, fields: overflowed 15:0, lbrs_frozen 58:58, pmcs_frozen 59:59;
        none: 57:16, 63:60);
    layout!(amd::perfmon_v2::GlobalCtl, u64, fields: enabled 15:0; none: 63:16);
}

#[test]
fn family_and_model_combine_as_the_manuals_say() {
    for (eax, family, model, stepping, processor) in [
        (0x0000_0543, 5, 4, 3, "Pentium MMX"),
        (0x0FFF_0543, 5, 4, 3, "family 5: the extended fields do not count"),
        (0x0000_06D8, 6, 0x0D, 8, "Pentium M"),
        (0x0001_067A, 6, 0x17, 10, "Core 2"),
        (0x0005_0654, 6, 0x55, 4, "Skylake-SP"),
        (0x00C0_06F2, 6, 0x0F, 2, "family 6: the extended family does not count"),
        (0x0003_07B0, 7, 0x3B, 0, "Zhaoxin KX-6000"),
        (0x0006_07B1, 7, 0x6B, 1, "Zhaoxin KX-7000"),
        (0x0000_0F29, 15, 0x02, 9, "Pentium 4"),
        (0x0002_0FB1, 15, 0x2B, 1, "Athlon 64 X2"),
        (0x0010_0F43, 0x10, 0x04, 3, "Phenom II"),
        (0x0087_0F10, 0x17, 0x71, 0, "Zen 2"),
        (0x00A2_0F12, 0x19, 0x21, 2, "Zen 3"),
        (0x00B4_0F40, 0x1A, 0x44, 0, "Zen 5"),
        (0xFFFF_FFFF, 0x10E, 0xFF, 15, "every bit"),
    ] {
        let signature = Signature::from_bits(eax);
        let decoded = (signature.family(), signature.model(), signature.stepping());
        assert_eq!(decoded, (family, model, stepping), "{processor}: {eax:#010x}");
    }
}
