#!/usr/bin/env bash
# perf-event2 0.7.4 (a crate): its builder of named events refuses every AMD processor.
#
# A good guess: the builder, which reads the formats of a PMU in /sys, knows fields of several ranges, as the ABI of the
# kernel has them (sysfs-bus-event_source-devices-format). The field "event" of AMD's processors is one,
# "config:0-7,32-35" (Linux, arch/x86/events/amd/core.c). Seen: what is behind the first hyphen has to be a number. The
# builder fails before any event is named, since it reads all formats. With Intel's "config:0-7" it works, except on the
# processors whose unit masks have a second half, "config:8-15,40-47" (arch/x86/events/intel/core.c).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
crate 'perf-event2 = "=0.7.4"'
for pmu in intel intel-2 amd; do
    mkdir -p $pmu/format
    echo 4 > $pmu/type
    echo config:0-7 > $pmu/format/event
    echo config:8-15 > $pmu/format/umask
    echo config:18 > $pmu/format/edge
done
echo config:8-15,40-47 > intel-2/format/umask
echo config:0-7,32-35 > amd/format/event
cat > src/main.rs <<'TEXT'
use perf_event::events::Dynamic;

fn main() {
    for pmu in ["intel", "intel-2", "amd"] {
        let folder = std::env::current_dir().unwrap().join(pmu);
        let mut builder = match Dynamic::builder(folder) {
            Ok(builder) => builder,
            Err(error) => {
                println!("{pmu}: {error}");
                continue;
            }
        };
        builder.field("event", 0xC0).unwrap().field("umask", 1).unwrap().field("edge", 0).unwrap();
        println!("{pmu}: {:x?}", builder.build().unwrap());
    }
}
TEXT
CARGO_TARGET_DIR="$folder/target" cargo run --quiet | sed "s,$folder/,," | tee seen
diff seen - <<'SEEN'
intel: Dynamic { ty: 4, config: 1c0, config1: 0, config2: 0 }
intel-2: invalid PMU config file `intel-2/format/umask`
amd: invalid PMU config file `amd/format/event`
SEEN
