//! Counters of P cores that CPUID hides.

#![cfg(test)]

use cpuid_dumps::CpuIdentity;
use model::{Mode, Processor};

const FIXED_CTR3: u32 = 0x30C;
const PERF_METRICS: u32 = 0x329;
const GLOBAL_CTRL: u32 = 0x38F;
/// The bits of eight general counters, fixed counters 0 to 3 and the metrics.
const WHOLE: u64 = 1 << 48 | 0xF << 32 | 0xFF;

fn processor(identity: &'static CpuIdentity, hypervisor: bool) -> Processor {
    let dump = identity.cpuid();
    let cpuid = move |leaf, subleaf| {
        let [eax, ebx, ecx, edx] = dump.cpuid(leaf, subleaf);
        [eax, ebx, if leaf == 1 && hypervisor { ecx | 1 << 31 } else { ecx }, edx]
    };
    Processor::new(Box::new(cpuid)).with_perf_capabilities(identity.perf_capabilities())
}

fn find(name: &str) -> &'static CpuIdentity {
    cpuid_dumps::find(name).unwrap()
}

const P_CORES: [&str; 5] =
    ["alder-lake-12900k", "alder-lake-p-12900h", "raptor-lake-p-13900h", "meteor-lake-155h", "arrow-lake-u-265u"];

#[test]
fn p_cores_beside_e_cores_have_the_counters_of_their_core() {
    for name in P_CORES {
        let mut cpu = processor(find(name), false);
        for register in (0x186..0x18E).chain(0xC1..0xC9).chain(0x4C1..0x4C9).chain([FIXED_CTR3, PERF_METRICS]) {
            assert!(cpu.rdmsr(register).is_ok(), "{name}: {register:#x}");
        }
        assert!(cpu.wrmsr(GLOBAL_CTRL, WHOLE).is_ok(), "{name}");
        assert!(cpu.wrmsr(GLOBAL_CTRL, 1 << 8).is_err() && cpu.wrmsr(GLOBAL_CTRL, 1 << 36).is_err(), "{name}");
        // Event C0 on counters 6 and 7.
        for counter in [6, 7] {
            cpu.wrmsr(0x186 + counter, 0x43_00C0).unwrap();
        }
        cpu.run(Mode::User, &|selected| u64::from(selected.event));
        assert_eq!([6, 7].map(|counter| cpu.rdpmc(counter)), [Ok(0xC0); 2], "{name}");
    }
}

#[test]
fn the_capability_of_the_metrics_is_clear() {
    for name in ["alder-lake-p-12900h", "raptor-lake-p-13900h", "meteor-lake-155h"] {
        assert_eq!(processor(find(name), false).rdmsr(0x345).map(|value| value >> 15 & 1), Ok(0), "{name}");
    }
}

#[test]
fn e_cores_and_guests_have_what_cpuid_reports() {
    let guests = ["alder-lake-p-12900h", "raptor-lake-p-13900h"].map(|name| processor(find(name), true));
    let efficient = ["alder-lake-p-12900h-efficient", "raptor-lake-p-13900h-efficient"];
    for mut cpu in efficient.map(|name| processor(find(name), false)).into_iter().chain(guests) {
        for register in [0x18C, 0x18D, 0xC7, 0xC8, FIXED_CTR3, PERF_METRICS] {
            assert!(cpu.rdmsr(register).is_err() && cpu.wrmsr(register, 0).is_err(), "{register:#x}");
        }
        for bit in [6, 7, 35, 48] {
            assert!(cpu.wrmsr(GLOBAL_CTRL, 1 << bit).is_err(), "{bit}");
        }
        assert!(cpu.wrmsr(GLOBAL_CTRL, 0x7_0000_003F).is_ok());
    }
}

#[test]
fn the_known_loop_has_slots() {
    let mut cpu = processor(find("alder-lake-p-12900h"), false);
    for (register, value) in [(FIXED_CTR3, 0), (PERF_METRICS, 0), (0x38D, 0x3000), (GLOBAL_CTRL, 1 << 48 | 1 << 35)] {
        cpu.wrmsr(register, value).unwrap();
    }
    cpu.run_loop(600);
    assert_eq!(cpu.rdmsr(FIXED_CTR3), Ok(3600));
    // A sixth retires, and the rest waits for the back end: in units of 1/255.
    assert_eq!(cpu.rdmsr(PERF_METRICS), Ok(0xD500_002B));
}
