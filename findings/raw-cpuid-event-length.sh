#!/usr/bin/env bash
# raw-cpuid 11.6.0 (a crate): architectural events that CPUID does not enumerate count as available.
#
# A good guess: is_core_cyc_ev_unavailable() is false if the processor has the event. Leaf 0xA has a length in EAX[31:24]
# and a bit for each event in EBX, which is clear if the event is available, and has a meaning below the length only
# (SDM Vol. 2A, CPUID). Seen: the length is not looked at. A hypervisor that clears both, as for no event at all, offers
# all of them: with length 0 the cycles, with length 3 the mispredicted branches (event 6). The safe test is the method
# and ebx_length() together.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" raw-cpuid 11.6.0 <<'TEXT'
use raw_cpuid::{CpuId, CpuIdReader, CpuIdResult};

/// EAX of leaf 0xA; EBX is 0.
#[derive(Clone)]
struct Reader(u32);

impl CpuIdReader for Reader {
    fn cpuid2(&self, leaf: u32, _subleaf: u32) -> CpuIdResult {
        let [eax, ebx, ecx, edx] = match leaf {
            0 => [0xD, 0x756E_6547, 0x6C65_746E, 0x4965_6E69],
            0xA => [self.0, 0, 0, 0x603],
            _ => [0; 4],
        };
        CpuIdResult { eax, ebx, ecx, edx }
    }
}

fn main() {
    for eax in [0x0730_0403, 0x0330_0403, 0x0030_0403] {
        let leaf = CpuId::with_cpuid_reader(Reader(eax)).get_performance_monitoring_info().unwrap();
        let unavailable = [leaf.is_core_cyc_ev_unavailable(), leaf.is_branch_midpred_ev_unavailable()];
        println!("length {}: unavailable {unavailable:?}", leaf.ebx_length());
    }
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
length 7: unavailable [false, false]
length 3: unavailable [false, false]
length 0: unavailable [false, false]
SEEN
