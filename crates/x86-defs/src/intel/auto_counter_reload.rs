//! Auto counter reload, which CPUID.23H.2 enumerates (SDM Vol. 3B, "Auto Counter Reload"; Linux,
//! arch/x86/events/intel/core.c, `intel_pmu_config_acr`): the overflow of a counter loads others, without an interrupt.
//! The lower half of the value that a counter is loaded with is in its `CFG_C`
//! ([`CounterConfig::reload`](super::architectural_pebs::CounterConfig::reload)).

/// IA32_PMC_GP0_CFG_B: which overflows load general-purpose counter 0, each with its bit of IA32_PERF_GLOBAL_CTRL. That
/// of counter n is [`COUNTER_STRIDE`](super::architectural_pebs::COUNTER_STRIDE) * n further. A counter that loads
/// itself sets no bit of IA32_PERF_GLOBAL_STATUS.
pub const IA32_PMC_GP0_CFG_B: u32 = 0x1902;

/// IA32_PMC_FX0_CFG_B: the same of fixed-function counter 0.
pub const IA32_PMC_FX0_CFG_B: u32 = 0x1982;
