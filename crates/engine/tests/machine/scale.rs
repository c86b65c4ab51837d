//! 256 processors, which Windows manages in four groups of 64.

use model::{Accesses, Mode};
use protocol::CountRecord;
use simulation::{Client, SimMachine};

use super::scene::{IDENTITIES, engine, event, on, started};

/// Starts, counts and stops four sources on every processor. Returns the accesses of each processor.
fn life(name: &str, processors: u32) -> Vec<Accesses> {
    let machine = SimMachine::named(name, processors);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let sources = if name == "amd-legacy" { [2, 6, 8, 11] } else { [2, 6, 10, 11] };
    let session = started(client, &mut engine, on(&[]), &sources.map(|source| event(source, 0)));
    for processor in 0..processors {
        machine.run(processor, Mode::User, &|_| u64::from(processor) + 1);
    }
    let counts = client.stop(&mut engine, session, None).records::<CountRecord>();
    assert!(counts.iter().all(|one| one.count == u64::from(one.processor) + 1), "{name}");
    machine.all().map(|cpu| cpu.model().accesses()).collect()
}

#[test]
fn start_and_stop_of_four_sources_cost_each_of_256_processors_what_they_cost_one_alone() {
    for name in IDENTITIES {
        let alone = life(name, 1);
        let among_many = life(name, 256);
        assert_eq!(among_many.len(), 256, "{name}");
        assert!(among_many.iter().all(|cost| *cost == alone[0]), "{name}: {:?}", alone[0]);
    }
}
