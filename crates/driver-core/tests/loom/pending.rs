//! A request that waits is completed exactly once, and nothing uses its packet afterwards.
//!
//! The I/O manager of these models cancels as IoCancelIrp does: it marks the packet, takes the cancel routine, and
//! calls it if there was one. The engine's lock and the spin lock are loom's mutexes.

use driver_core::{AtomicPtr, End, Packet, Requests, Table, cancel, cancel_routine, enqueue, serve};
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread::{self, JoinHandle};
use sample_ring::{Armed, Consumer, Pushed, channel};

use crate::explore;

const MOST: usize = 2;

/// A deadline that has not come yet.
const LATER: u64 = 100;

/// An I/O request packet. The exclusive lock of `completed` is its memory: using it after its completion panics.
struct Irp {
    cancel: AtomicBool,
    routine: AtomicPtr<()>,
    key: usize,
    /// How it was completed: [`SERVED`], [`CANCELLED`] or [`BUSY`], added up.
    completed: AtomicUsize,
    /// Something that is in the packet and has no order of its own.
    memory: loom::cell::UnsafeCell<usize>,
}

const SERVED: usize = 1;
const CANCELLED: usize = 0x10;
const BUSY: usize = 0x100;

impl Irp {
    fn new(key: usize) -> Arc<Self> {
        let routine = AtomicPtr::new(std::ptr::null_mut());
        let (cancel, completed) = (AtomicBool::new(false), AtomicUsize::new(0));
        Arc::new(Self { cancel, routine, key, completed, memory: loom::cell::UnsafeCell::new(0) })
    }

    fn assert_not_complete(&self) {
        assert_eq!(self.completed.load(Ordering::Relaxed), 0, "a completed packet was used");
    }

    /// Writes to the packet, as the driver does before it completes it.
    fn use_memory(&self) {
        self.assert_not_complete();
        self.memory.with_mut(|_| ());
    }

    fn complete(&self, how: usize) {
        self.use_memory();
        assert_eq!(self.completed.fetch_add(how, Ordering::Relaxed), 0, "a packet was completed twice");
    }

    fn outcome(&self) -> usize {
        self.completed.load(Ordering::Relaxed)
    }
}

struct Pended(Arc<Irp>);

impl Packet for Pended {
    fn cancel_routine(&self) -> &AtomicPtr<()> {
        self.0.assert_not_complete();
        &self.0.routine
    }

    fn is_cancelled(&self) -> bool {
        self.0.assert_not_complete();
        // The driver reads the byte without an order.
        self.0.cancel.load(Ordering::Relaxed)
    }
}

/// The table, its spin lock, and the ring that the requests wait for.
struct Driver {
    table: Mutex<Table<Pended, MOST>>,
    /// The engine's lock, with the reading end of the ring.
    engine: Mutex<Consumer<u8, ()>>,
    armed: Armed,
    /// Whether the thread that serves requests was woken.
    woken: AtomicBool,
}

impl Requests<MOST> for Driver {
    type Request = Arc<Irp>;
    type Packet = Pended;

    fn locked<R>(&self, work: impl FnOnce(&mut Table<Pended, MOST>) -> R) -> R {
        work(&mut self.table.lock().unwrap())
    }

    fn routine(&self) -> *mut () {
        std::ptr::dangling_mut()
    }

    fn pend(request: Arc<Irp>) -> Pended {
        request.use_memory();
        Pended(request)
    }

    fn owned(Pended(packet): Pended) -> Arc<Irp> {
        packet.use_memory();
        packet
    }

    fn end(request: Arc<Irp>, why: End) {
        request.complete(match why {
            End::Cancelled => CANCELLED,
            End::Busy => BUSY,
        });
    }
}

impl Driver {
    fn new(consumer: Consumer<u8, ()>) -> Arc<Self> {
        let (table, engine) = (Mutex::new(Table::new()), Mutex::new(consumer));
        Arc::new(Self { table, engine, armed: Armed::new(), woken: AtomicBool::new(false) })
    }

    /// A dispatch routine: serves a request or queues it.
    fn begin(&self, irp: &Arc<Irp>) {
        let consumer = self.engine.lock().unwrap();
        irp.use_memory();
        if consumer.is_half_full() {
            irp.complete(SERVED);
        } else if let Err(irp) = enqueue(self, &self.armed, (irp.clone(), irp.key, LATER), || self.wake()) {
            irp.complete(BUSY);
        }
    }

    fn wake(&self) {
        self.woken.store(true, Ordering::Release);
    }

    /// The thread that serves requests, at this time.
    fn go_on(&self, now: u64) -> Option<u64> {
        let consumer = self.engine.lock().unwrap();
        serve(self, &self.armed, |irp, deadline| {
            irp.use_memory();
            if consumer.is_half_full() || now >= deadline {
                irp.complete(SERVED);
                None
            } else {
                Some(irp)
            }
        })
    }

    /// The thread, if it was woken.
    fn go_on_if_woken(&self) {
        if self.woken.swap(false, Ordering::Acquire) {
            self.go_on(0);
        }
    }

    /// A handle is closed.
    fn close(&self, key: usize) {
        let _engine = self.engine.lock().unwrap();
        cancel(self, |other| other == key);
    }

    /// The I/O manager cancels a packet (IoCancelIrp).
    fn cancel(&self, irp: &Arc<Irp>) {
        irp.cancel.store(true, Ordering::Relaxed);
        if !irp.routine.swap(std::ptr::null_mut(), Ordering::AcqRel).is_null() {
            cancel_routine(self, |Pended(waiting)| Arc::ptr_eq(waiting, irp));
            irp.complete(CANCELLED);
        }
    }

    fn waits(&self) -> bool {
        self.table.lock().unwrap().first_deadline().is_some()
    }
}

/// Cancels a packet on another thread.
fn cancel_elsewhere(driver: &Arc<Driver>, irp: &Arc<Irp>) -> JoinHandle<()> {
    let (driver, irp) = (driver.clone(), irp.clone());
    thread::spawn(move || driver.cancel(&irp))
}

fn ring() -> (sample_ring::Producer<u8, ()>, Consumer<u8, ()>) {
    channel(2, ()).unwrap()
}

/// Law: a request that is cancelled while it is queued is completed once, as cancelled, and does not stay in the table.
#[test]
fn request_cancelled_while_it_is_queued_is_completed_once() {
    explore(3, || {
        let (_producer, consumer) = ring();
        let (driver, irp) = (Driver::new(consumer), Irp::new(1));
        let manager = cancel_elsewhere(&driver, &irp);
        driver.begin(&irp);
        manager.join().unwrap();
        assert_eq!(irp.outcome(), CANCELLED);
        assert!(!driver.waits());
    });
}

/// Law: a request is completed once, whatever comes first: its cancellation, or the thread that serves it because its
/// deadline has come, or because it goes on waiting and returns to the table.
#[test]
fn request_is_completed_by_the_thread_or_by_its_cancel_routine() {
    for (now, outcomes) in [(LATER, &[SERVED, CANCELLED][..]), (0, &[CANCELLED])] {
        explore(3, move || {
            let (_producer, consumer) = ring();
            let (driver, irp) = (Driver::new(consumer), Irp::new(1));
            driver.begin(&irp);
            let manager = cancel_elsewhere(&driver, &irp);
            driver.go_on(now);
            manager.join().unwrap();
            assert!(outcomes.contains(&irp.outcome()), "{:#x}", irp.outcome());
            assert!(!driver.waits());
        });
    }
}

/// Law: when a handle is closed, its requests end and those of other handles go on, also if the I/O manager cancels
/// them at the same time and the thread looks at all of them. Each is completed once.
#[test]
fn closed_handle_has_no_request_and_others_keep_theirs() {
    explore(2, || {
        let (_producer, consumer) = ring();
        let (driver, mine, other) = (Driver::new(consumer), Irp::new(1), Irp::new(2));
        driver.begin(&mine);
        driver.begin(&other);
        let manager = cancel_elsewhere(&driver, &mine);
        let worker = {
            let driver = driver.clone();
            thread::spawn(move || driver.go_on(0))
        };
        driver.close(1);
        manager.join().unwrap();
        let next = worker.join().unwrap();
        assert_eq!((mine.outcome(), other.outcome()), (CANCELLED, 0));
        assert_eq!(next, Some(LATER), "the thread saw a request that waits");
        driver.close(2);
        assert_eq!(other.outcome(), CANCELLED);
        assert!(!driver.waits());
    });
}

/// Law: every request that waits is asked for, even if another one is cancelled while the thread goes through the
/// table.
#[test]
fn no_request_is_passed_over_while_another_is_cancelled() {
    explore(3, || {
        let (_producer, consumer) = ring();
        let (driver, first, second) = (Driver::new(consumer), Irp::new(1), Irp::new(2));
        driver.begin(&first);
        driver.begin(&second);
        let manager = cancel_elsewhere(&driver, &first);
        let mut asked = 0;
        let engine = driver.engine.lock().unwrap();
        serve(&*driver, &driver.armed, |irp, _| {
            asked |= 1 << irp.key;
            Some(irp)
        });
        drop(engine);
        manager.join().unwrap();
        assert!(asked & 1 << second.key != 0, "{asked:b}");
        assert_eq!((first.outcome(), second.outcome()), (CANCELLED, 0));
        driver.close(2);
    });
}

/// Law: a full table refuses a request, and the request is still the caller's. One that is cancelled makes room.
#[test]
fn full_table_refuses_a_request_and_a_cancelled_one_makes_room() {
    explore(3, || {
        let (_producer, consumer) = ring();
        let (driver, all) = (Driver::new(consumer), [Irp::new(1), Irp::new(1), Irp::new(1)]);
        driver.begin(&all[0]);
        driver.begin(&all[1]);
        let manager = cancel_elsewhere(&driver, &all[0]);
        driver.begin(&all[2]);
        manager.join().unwrap();
        assert_eq!((all[0].outcome(), all[1].outcome()), (CANCELLED, 0));
        assert!([0, BUSY].contains(&all[2].outcome()));
        driver.close(1);
        assert_eq!(all[1].outcome(), CANCELLED);
        assert!([CANCELLED, BUSY].contains(&all[2].outcome()));
    });
}

/// Law: a request that is queued while an interrupt fills half of the ring is served: by the dispatch routine, or
/// because the thread is woken, at the latest after the interrupt. It does not sleep until its deadline.
#[test]
fn request_queued_during_the_interrupt_that_fills_the_ring_is_served() {
    explore(3, || {
        let (mut producer, consumer) = ring();
        let (driver, irp) = (Driver::new(consumer), Irp::new(1));
        let interrupt = {
            let driver = driver.clone();
            thread::spawn(move || {
                let pushed = producer.push(1);
                if pushed == (Pushed::Stored { watermark_hit: true }) && driver.armed.is_armed() {
                    driver.wake();
                }
                producer
            })
        };
        driver.begin(&irp);
        // The thread may run before the interrupt, and runs again when it is woken.
        driver.go_on_if_woken();
        let _producer = interrupt.join().unwrap();
        driver.go_on_if_woken();
        assert_eq!(irp.outcome(), SERVED);
    });
}
