//! Two threads of a core share its counter registers, and each uses its own counters.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use engine::Engine;
use model::{Mode, Processor};
use simulation::{Client, SimMachine};

/// Returns a machine with the two threads of a core.
fn machine() -> SimMachine {
    let identity = cpuid_dumps::find("netburst-irwindale").unwrap();
    let dump = identity.cpuid();
    let first = Processor::new(Box::new(move |leaf, subleaf| dump.cpuid(leaf, subleaf)));
    let second = first.other_thread(Box::new(identity.cpuid_of_second_thread()));
    SimMachine::of([first, second.unwrap()])
}

#[test]
fn a_session_on_both_threads_counts_for_each_what_happened_there() {
    let machine = machine();
    let mut engine = Engine::new(&machine, [0; 4]).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    let session = client.started(&mut engine, 0, &[2, 6, 19]);
    machine.run(0, Mode::User, &|selected| u64::from(selected.event));
    machine.run(1, Mode::User, &|selected| 100 * u64::from(selected.event));
    let counts: Vec<_> = client.read(&mut engine, session).iter().map(|it| (it.processor, it.count)).collect();
    assert_eq!(counts, [(0, 0x02), (0, 0x06), (0, 0x13), (1, 200), (1, 600), (1, 1_900)]);
    engine.close(client.0);
    assert!(machine.all().all(|cpu| cpu.model().enabled_counters().is_empty()));
}
