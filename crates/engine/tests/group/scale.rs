//! Reads of many processors at the same time, each by a thread of its own: they share nothing that is locked.

use std::sync::Mutex;
use std::thread;

use engine::Engine;
use model::Mode;
use protocol::GroupRequest;
use simulation::{Client, SimMachine};

use super::scene::{event, started};

/// Reads of each processor.
const READS: u64 = 50;

#[test]
fn from_1_to_64_processors_read_while_another_thread_has_the_lock_of_the_engine() {
    for processors in [1_u32, 2, 4, 8, 16, 32, 64] {
        let machine = SimMachine::named("haswell-4710mq", processors);
        let engine = Mutex::new(Engine::new(&machine, [0; 4]).unwrap());
        // Held until the end: a read that took it would wait for ever.
        let mut held = engine.lock().unwrap();
        let client = Client::open(&mut held, 1, 10);
        let session = started(client, &mut held, 0, &[event(2, 0), event(6, 0), event(11, 0)]);
        let sampler = held.sampler();
        let before = (machine.interruptions(), machine.broadcasts());
        let accesses = |number| machine.processor(number).model().accesses();
        let earlier: Vec<_> = (0..processors).map(accesses).collect();
        thread::scope(|scope| {
            for processor in 0..processors {
                let machine = &machine;
                scope.spawn(move || {
                    for events in 1..=READS {
                        machine.run(processor, Mode::User, &|_| 1 + u64::from(processor));
                        let request = GroupRequest { session, flags: 0, reserved: 0 };
                        let read = client.read_group_on(machine, sampler, processor, request).unwrap();
                        assert_eq!(read.counts[..3], [events * (1 + u64::from(processor)); 3]);
                    }
                });
            }
        });
        assert_eq!(
            (machine.interruptions(), machine.broadcasts()),
            before,
            "{processors}: no processor was interrupted"
        );
        for (number, before) in (0..processors).zip(earlier) {
            let after = accesses(number);
            let spent = (after.rdpmc - before.rdpmc, after.rdmsr - before.rdmsr, after.wrmsr - before.wrmsr);
            assert_eq!(spent, (3 * READS, 0, 0), "processor {number} of {processors}");
        }
    }
}
