//! Raw events, whether or not a table lists them, against the counters on which the model counts them.

use model::Mode;
use pmu::source::RawEvent;
use pmu::{Hal, Source};
use simulation::SimMachine;

use super::INTEL;

/// IA32_PERFEVTSEL0 and IA32_PERF_GLOBAL_CTRL; the bits USR, OS and EN.
const PERFEVTSEL0: u32 = 0x186;
const GLOBAL_CTRL: u32 = 0x38F;
const STARTED: u64 = 1 << 16 | 1 << 17 | 1 << 22;

/// Unit masks that stand for all: none, single bits, a combination, all bits, and with UMASK2.
const UMASKS: [u16; 13] = [0, 1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x87, 0xFF, 0x100, 0x101];

/// Returns a bit for each general counter that counts an event on the model.
fn counting(machine: &SimMachine, general: u8, event: RawEvent) -> u32 {
    let mut model = machine.processor(0).model();
    for counter in 0..u32::from(general) {
        model.wrmsr(PERFEVTSEL0 + counter, event.select() | STARTED).unwrap();
        model.wrmsr(0xC1 + counter, 0).unwrap();
    }
    model.wrmsr(GLOBAL_CTRL, (1 << general) - 1).unwrap();
    // The erratum of Nehalem loses every second event.
    model.run(Mode::User, &|_| 4);
    let counts = |counter: &u32| model.rdpmc(*counter).unwrap() != 0;
    (0..u32::from(general)).filter(counts).fold(0, |all, counter| all | 1 << counter)
}

/// A counter on which an event does not count shows zero, and nothing tells that zero from a count.
#[test]
fn a_raw_event_is_placed_only_where_the_processor_counts_it() {
    let machines = INTEL.iter().map(|generation| (generation.name, generation.machine(), generation.general));
    let real = ["lunar-lake-288v", "arrow-lake-245k", "panther-lake-355"];
    let real = real.map(|name| (name, SimMachine::named(name, 1), 10));
    let (mut wrong, mut compared) = (Vec::new(), 0_u32);
    // Version 1 has no global control, and its events are alike.
    for (name, machine, general) in machines.filter(|(name, ..)| *name != "core").chain(real) {
        let hal = Hal::new(machine.processor(0), 1).unwrap();
        for (event, umask) in (1..=0xFF).flat_map(|event| UMASKS.map(|umask| (event, umask))) {
            let raw = RawEvent::new().with_event(event).with_umask(umask);
            let Ok(known) = hal.source_information(Source(raw.source().0)) else { continue };
            if known.support != pmu::Support::Supported {
                continue;
            }
            let (placed, counts) = (known.counters.bits() & ((1 << general) - 1), counting(&machine, general, raw));
            // Some events count only beside another register.
            if counts == 0 {
                continue;
            }
            compared += 1;
            if placed & !counts != 0 {
                wrong.push(format!("{name}: {event:#x}/{umask:#x} on {placed:#x}, counts on {counts:#x}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} events, the first: {:#?}", wrong.len(), &wrong[..wrong.len().min(12)]);
    assert!(compared > 60_000, "{compared}");
}
