#!/usr/bin/env bash
# x86 0.52.0 (a crate): its registers of the last branch records belong to different processors.
#
# A good guess: the constants MSR_LASTBRANCH_n_FROM_IP, MSR_LASTBRANCH_n_TO_IP and MSR_LASTBRANCH_TOS belong together,
# so that record n is read at FROM_0 + n and TO_0 + n. Seen: the sources of records 0 to 7 are at 40 as on Core 2,
# those of records 8 to 15 at 688 as since Nehalem; the targets are at 6C0, 61 to 67, and 6C8. The index of the newest
# record is at 1DA, as on NetBurst alone, and the filter at 1C8, which NetBurst lacks (SDM Vol. 4 lists these registers
# by processor; since Core the index is at 1C9). No processor has all of them.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" x86 0.52.0 <<'TEXT'
use x86::msr::*;

fn main() {
    println!("sources {MSR_LASTBRANCH_0_FROM_IP:X} {MSR_LASTBRANCH_7_FROM_IP:X} {MSR_LASTBRANCH_8_FROM_IP:X}");
    println!("targets {MSR_LASTBRANCH_0_TO_IP:X} {MSR_LASTBRANCH_1_TO_IP:X} {MSR_LASTBRANCH_8_TO_IP:X}");
    println!("newest {MSR_LASTBRANCH_TOS:X}, filter {MSR_LBR_SELECT:X}");
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
sources 40 47 688
targets 6C0 61 6C8
newest 1DA, filter 1C8
SEEN
