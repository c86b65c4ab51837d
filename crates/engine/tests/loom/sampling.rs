//! Requests while interrupts come on other processors.

#![expect(unsafe_code, reason = "the sampler is lent to threads as the driver lends it to interrupts: by its address")]

use engine::{Engine, Sampler};
use loom::thread::{self, JoinHandle};
use protocol::CountRecord;

use crate::explore;
use crate::machine::{Client, INTERVAL, Machine, Shared};

/// The sampler of an engine, for interrupts.
struct Lent(*const Sampler);

// SAFETY: interrupts use it from any processor, and the tests join their threads before they drop the engine
unsafe impl Send for Lent {}

/// Raises interrupts on a processor, one after the other.
fn interrupts(machine: &Shared, engine: &Engine<Shared>, processor: u32, count: usize) -> JoinHandle<()> {
    let (machine, lent) = (machine.clone(), Lent(engine.sampler()));
    thread::spawn(move || {
        let Lent(sampler) = { lent };
        for _ in 0..count {
            // SAFETY: the engine lives until this thread is joined
            machine.interrupt(processor, unsafe { &*sampler });
        }
    })
}

/// Asserts that every overflow on every processor is a sample, lost or throttled, and that all samples were fetched.
fn assert_ledger(counts: &[CountRecord], fetched: u64) {
    let mut samples = 0;
    for count in counts {
        let overflows = count.count / u64::from(INTERVAL);
        assert_eq!(overflows, count.samples + count.lost + count.throttled, "{count:?}");
        samples += count.samples;
    }
    assert_eq!(fetched, samples, "{counts:?}");
}

/// Law: while one of two sessions that share a counter stops, and interrupts of the counter come, each session has a
/// sample or a loss for every overflow until its own end. The other session keeps the counter, and has all of them.
#[test]
fn counter_that_two_sessions_share_goes_on_for_the_one_that_stays() {
    explore(2, || {
        let machine = Machine::new(1);
        let mut engine = Engine::new(machine.clone(), [0; 4]).unwrap();
        let (leaves, stays) = (Client::open(&mut engine, 1), Client::open(&mut engine, 2));
        let (first, second) = (leaves.start(&mut engine), stays.start(&mut engine));
        let other = interrupts(&machine, &engine, 0, 3);
        let counts = leaves.stop(&mut engine, first);
        let fetched = leaves.fetch_rest(&mut engine, first);
        assert_ledger(&counts, fetched);
        other.join().unwrap();
        let counts = stays.stop(&mut engine, second);
        assert_eq!(counts[0].count, 3 * u64::from(INTERVAL));
        let fetched = stays.fetch_rest(&mut engine, second);
        assert_ledger(&counts, fetched);
    });
}

/// Law: a session that starts on two processors while interrupts come on both has a sample or a loss for every overflow
/// from its start on, and an interrupt before that changes nothing.
#[test]
fn start_during_interrupts_on_other_processors_misses_no_overflow() {
    explore(2, || {
        let machine = Machine::new(2);
        let mut engine = Engine::new(machine.clone(), [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1);
        let others = [interrupts(&machine, &engine, 0, 1), interrupts(&machine, &engine, 1, 2)];
        let session = client.start(&mut engine);
        let (early, _) = client.fetch(&mut engine, session);
        others.into_iter().for_each(|other| other.join().unwrap());
        let counts = client.stop(&mut engine, session);
        assert!(counts[0].count <= u64::from(INTERVAL) && counts[1].count <= 2 * u64::from(INTERVAL));
        let rest = client.fetch_rest(&mut engine, session);
        assert_ledger(&counts, early + rest);
    });
}

/// Law: a request for the account during interrupts has no number that is larger than what has happened, although an
/// interrupt on another processor may have stored a sample that it has not counted yet.
#[test]
fn account_read_during_an_interrupt_is_within_what_has_happened() {
    explore(2, || {
        let machine = Machine::new(1);
        let mut engine = Engine::new(machine.clone(), [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1);
        let session = client.start(&mut engine);
        let other = interrupts(&machine, &engine, 0, 2);
        let (early, _) = client.fetch(&mut engine, session);
        let info = client.info(&mut engine);
        assert!(info.delivered == early && info.lost + info.throttled <= 2 && info.discarded == 0);
        other.join().unwrap();
        let counts = client.stop(&mut engine, session);
        let rest = client.fetch_rest(&mut engine, session);
        assert_ledger(&counts, early + rest);
    });
}
