//! No callback of the kernel uses the engine after it is freed, and none comes after the end.
//!
//! A registration of these models behaves as those of the kernel: unregistering waits for a call in progress. The
//! engine is freed with loom's record of a cell: a callback that uses it meanwhile, or later, panics.

use driver_core::{Parts, Published, SamplingParts, end_sampling, take_down};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

use crate::explore;

/// What callbacks use.
struct Sampler {
    freed: Arc<Freed>,
}

/// Whether the sampler is freed; outlives it.
struct Freed {
    cell: UnsafeCell<()>,
    is_freed: AtomicBool,
}

impl Freed {
    /// Uses the sampler, which must not be freed before this has ended.
    fn use_it(&self) {
        self.cell.with(|_| ());
        assert!(!self.is_freed.load(Ordering::Relaxed), "a callback used the engine after it was freed");
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // Exclusive: loom reports a use that no order puts before this.
        self.freed.cell.with_mut(|_| ());
        self.freed.is_freed.store(true, Ordering::Relaxed);
    }
}

/// A callback that is registered. The lock is held during a call, and unregistering waits for it.
struct Callback(Mutex<bool>);

impl Callback {
    fn registered() -> Self {
        Self(Mutex::new(true))
    }

    fn call(&self, work: impl FnOnce()) {
        let is_registered = self.0.lock().unwrap();
        if *is_registered {
            work();
        }
    }

    fn unregister(&self) {
        *self.0.lock().unwrap() = false;
    }
}

/// DPCs that are queued; a flush runs them, or waits for those that run.
#[derive(Default)]
struct Dpcs(Mutex<usize>);

impl Dpcs {
    fn queue(&self) {
        *self.0.lock().unwrap() += 1;
    }

    /// Runs those that are queued.
    fn flush(&self, work: impl Fn()) {
        let mut queued = self.0.lock().unwrap();
        for _ in 0..*queued {
            work();
        }
        *queued = 0;
    }
}

/// The driver: what is registered, and what callbacks find.
struct Driver {
    published: Published<Freed>,
    /// The sampler is alive while the engine is.
    engine: Mutex<Option<Sampler>>,
    /// The callbacks for power and added processors.
    power: Callback,
    worker: Callback,
    provider: Callback,
    /// Interrupts and ticks, and the DPCs that they queue.
    sampling: Sampling,
    freed: Arc<Freed>,
}

/// The handler of the interrupt, in two steps as Windows has them: unregistering does not wait for a handler in
/// progress, whose processor has its interrupts masked.
struct Sampling {
    handler: AtomicBool,
    processor: Mutex<()>,
    ticks: Callback,
    dpcs: Dpcs,
}

impl Sampling {
    fn new() -> Self {
        let (handler, processor) = (AtomicBool::new(true), Mutex::new(()));
        Self { handler, processor, ticks: Callback::registered(), dpcs: Dpcs::default() }
    }

    fn interrupt(&self, work: impl FnOnce()) {
        let _masked = self.processor.lock().unwrap();
        if self.handler.load(Ordering::Acquire) {
            work();
            self.dpcs.queue();
        }
    }

    fn tick(&self, work: impl FnOnce()) {
        self.ticks.call(|| {
            work();
            self.dpcs.queue();
        });
    }
}

/// The end of sampling, with the work of DPCs.
struct Ending<'a>(&'a Sampling, &'a dyn Fn());

impl SamplingParts for Ending<'_> {
    fn unregister_handler(&mut self) {
        self.0.handler.store(false, Ordering::Release);
    }

    fn wait_for_interrupts(&mut self) {
        drop(self.0.processor.lock().unwrap());
    }

    fn stop_timers(&mut self) {
        self.0.ticks.unregister();
    }

    fn flush_dpcs(&mut self) {
        self.0.dpcs.flush(self.1);
    }
}

impl Driver {
    fn new() -> Arc<Self> {
        let freed = Arc::new(Freed { cell: UnsafeCell::new(()), is_freed: AtomicBool::new(false) });
        let driver = Self {
            published: Published::new(),
            engine: Mutex::new(Some(Sampler { freed: freed.clone() })),
            power: Callback::registered(),
            worker: Callback::registered(),
            provider: Callback::registered(),
            sampling: Sampling::new(),
            freed,
        };
        driver.published.publish(&driver.freed);
        Arc::new(driver)
    }

    /// What every callback does: finds the sampler, and uses it.
    fn callback(&self) {
        if !self.published.load().is_null() {
            self.freed.use_it();
        }
    }
}

impl Parts for Driver {
    type Engine = Sampler;

    fn unregister_callbacks(&self) {
        self.power.unregister();
    }

    fn stop_worker(&self) {
        self.worker.unregister();
    }

    fn take_engine(&self) -> Option<Sampler> {
        self.engine.lock().unwrap().take()
    }

    fn shut_down(&self, _engine: &mut Sampler) {
        end_sampling(&mut Ending(&self.sampling, &|| self.callback()), true);
    }

    fn flush_dpcs(&self) {
        self.sampling.dpcs.flush(|| self.callback());
    }

    fn unregister_provider(&self) {
        self.provider.unregister();
    }

    fn withdraw(&self) {
        self.published.withdraw();
    }
}

/// Law: a callback that finds the address of the engine finds the engine whole.
#[test]
fn callback_that_finds_the_engine_finds_it_whole() {
    static ENGINE: u8 = 0;
    explore(3, || {
        let shared = Arc::new((Published::<u8>::new(), UnsafeCell::new(0)));
        let callback = {
            let shared = shared.clone();
            thread::spawn(move || {
                if !shared.0.load().is_null() {
                    shared.1.with(|_| ());
                }
            })
        };
        // The engine is made before it is published: loom reports a use that no order puts after this.
        shared.1.with_mut(|_| ());
        shared.0.publish(&ENGINE);
        callback.join().unwrap();
    });
}

/// Runs `call` in a thread while the driver is taken down, and checks that nothing is left.
fn during_the_end(call: impl Fn(&Driver) + Copy + Send + Sync + 'static) {
    explore(3, move || {
        let driver = Driver::new();
        let other = {
            let driver = driver.clone();
            thread::spawn(move || call(&driver))
        };
        take_down(&*driver);
        assert!(driver.freed.is_freed.load(Ordering::Relaxed));
        let queued = *driver.sampling.dpcs.0.lock().unwrap();
        assert_eq!(queued, 0, "a DPC is queued after the end");
        other.join().unwrap();
        assert!(driver.published.load().is_null());
    });
}

/// Law: a callback for sleep or for an added processor uses the engine before it is freed, or not at all.
#[test]
fn callback_during_the_end_uses_the_engine_before_it_is_freed() {
    during_the_end(|driver| driver.power.call(|| driver.callback()));
}

/// Law: the same for the thread that serves requests, which takes the engine's lock.
#[test]
fn thread_during_the_end_finds_the_engine_in_its_lock_or_nothing() {
    during_the_end(|driver| {
        driver.worker.call(|| {
            let engine = driver.engine.lock().unwrap();
            if let Some(sampler) = engine.as_ref() {
                sampler.freed.use_it();
            }
        });
    });
}

/// Law: the same for the callback by which a trace session enables the provider.
#[test]
fn provider_enabled_during_the_end_uses_the_engine_before_it_is_freed() {
    during_the_end(|driver| driver.provider.call(|| driver.callback()));
}

/// Law: the same for an interrupt on another processor, and a DPC that it queues has run when the driver is gone.
#[test]
fn interrupt_during_the_end_uses_the_engine_before_it_is_freed_and_leaves_no_dpc() {
    during_the_end(|driver| driver.sampling.interrupt(|| driver.callback()));
}

/// Law: the same for a tick.
#[test]
fn tick_during_the_end_uses_the_engine_before_it_is_freed_and_leaves_no_dpc() {
    during_the_end(|driver| driver.sampling.tick(|| driver.callback()));
}

/// Law: when sampling has ended, no processor is in the handler and no DPC is queued, also if an interrupt and a tick
/// come at the same time. The end of a session relies on it: the driver stays.
#[test]
fn end_of_sampling_waits_for_interrupts_ticks_and_their_dpcs() {
    explore(2, || {
        let freed = Arc::new(Freed { cell: UnsafeCell::new(()), is_freed: AtomicBool::new(false) });
        let sampling = Arc::new(Sampling::new());
        let in_a_thread = |call: fn(&Sampling, &Freed)| {
            let (sampling, freed) = (sampling.clone(), freed.clone());
            thread::spawn(move || call(&sampling, &freed))
        };
        let interrupt = in_a_thread(|sampling, freed| sampling.interrupt(|| freed.use_it()));
        let tick = in_a_thread(|sampling, freed| sampling.tick(|| freed.use_it()));
        end_sampling(&mut Ending(&sampling, &|| freed.use_it()), true);
        // Exclusive: nothing uses the sampler now or later.
        drop(Sampler { freed: freed.clone() });
        assert_eq!(*sampling.dpcs.0.lock().unwrap(), 0);
        interrupt.join().unwrap();
        tick.join().unwrap();
    });
}
