//! The end of what the kernel calls: no callback uses the engine after it is freed.

use core::sync::atomic::Ordering;

use crate::sync::AtomicPtr;

/// The address of a value, for callbacks that get no context.
#[derive(Debug)]
pub struct Published<T>(AtomicPtr<T>);

impl<T> Published<T> {
    /// Creates an address of nothing.
    #[cfg(not(loom))]
    #[expect(clippy::new_without_default, reason = "not const")]
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// Creates an address of nothing.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// Publishes a value. It must not move or be dropped before it is [withdrawn](Self::withdraw) and every callback
    /// that may have found it has ended.
    pub fn publish(&self, value: &T) {
        // Release: a callback that finds the address also finds the value.
        self.0.store(core::ptr::from_ref(value).cast_mut(), Ordering::Release);
    }

    /// Withdraws the value. Callbacks that found it before can still use it.
    pub fn withdraw(&self) {
        // No order: the callbacks end before the value is freed.
        self.0.store(core::ptr::null_mut(), Ordering::Relaxed);
    }

    /// Returns the address of the value, or null.
    ///
    /// # IRQL
    /// Any.
    #[inline]
    #[must_use]
    pub fn load(&self) -> *const T {
        self.0.load(Ordering::Acquire)
    }
}

/// What calls the engine, and can be ended. Each function returns when no call is in progress and none will come.
pub trait Parts {
    /// The engine. Dropping it frees what callbacks find.
    type Engine;

    /// Unregisters the callbacks for added processors and for sleep.
    fn unregister_callbacks(&self);

    /// Ends the thread that serves requests.
    fn stop_worker(&self);

    /// Takes the engine out of its lock.
    fn take_engine(&self) -> Option<Self::Engine>;

    /// Stops all sessions. Interrupts and timers end as in [`end_sampling`].
    fn shut_down(&self, engine: &mut Self::Engine);

    /// Waits for the DPCs that are queued: those that write events are the last.
    fn flush_dpcs(&self);

    /// Unregisters the provider of events, whose callback uses the engine.
    fn unregister_provider(&self);

    /// Withdraws the published engine.
    fn withdraw(&self);
}

/// Ends everything that calls the engine, then frees the engine. The device has no name any more, and no handle is
/// open.
///
/// # IRQL
/// PASSIVE_LEVEL.
pub fn take_down(parts: &impl Parts) {
    parts.unregister_callbacks();
    parts.stop_worker();
    // The engine leaves the lock first: its kernel resources can only be freed at PASSIVE_LEVEL.
    // Not moved once more: it is larger than a kilobyte.
    let mut engine = parts.take_engine();
    if let Some(engine) = &mut engine {
        parts.shut_down(engine);
        parts.flush_dpcs();
        parts.unregister_provider();
        parts.withdraw();
    }
    drop(engine);
}

/// What samples: the interrupt, the timers of the ticks, and the DPCs that both queue.
pub trait SamplingParts {
    /// Unregisters the handler of the interrupt. It may still run on any processor.
    fn unregister_handler(&mut self);

    /// Waits until no processor is in the handler.
    fn wait_for_interrupts(&mut self);

    /// Stops the timers, and waits for ticks in progress.
    fn stop_timers(&mut self);

    /// Waits until every queued DPC has run.
    fn flush_dpcs(&mut self);
}

/// Ends sampling; the handler is `registered` unless registering it failed. When it returns, no processor runs in the
/// sampler or will enter it.
///
/// # IRQL
/// PASSIVE_LEVEL.
pub fn end_sampling(parts: &mut impl SamplingParts, registered: bool) {
    if registered {
        parts.unregister_handler();
        parts.wait_for_interrupts();
    }
    parts.stop_timers();
    // Last: interrupts and ticks queue DPCs.
    parts.flush_dpcs();
}
