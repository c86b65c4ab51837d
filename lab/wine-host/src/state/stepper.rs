//! The thread that executes a driver one instruction at a time.
//!
//! A signal handler uses it at every instruction, so it consists of atomics. Only the stepping thread changes it.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The greatest number of nested calls of kernel functions by the driver.
const MAX_CALLS: usize = 64;

/// What the thread does after a single-step trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterTrap {
    /// The trap is not of the stepping thread.
    NotOurs,
    /// It executes one more instruction.
    Step,
    /// It stops before this instruction.
    Stop,
    /// It calls a function outside the driver at full speed, and steps again when the function returns.
    Call,
    /// It has returned from the driver to the lab, and runs at full speed.
    Leave,
}

/// The progress of the stepping thread.
#[derive(Debug)]
pub struct Stepper {
    /// The number of the thread, or 0.
    thread: AtomicU32,
    /// The first address of the driver, and the first after it.
    image: [AtomicUsize; 2],
    /// The number of instructions that the thread has reached.
    reached: AtomicU64,
    /// The number of the instruction before which the thread stops.
    stop_before: AtomicU64,
    /// The return addresses of the calls of kernel functions.
    returns: [AtomicUsize; MAX_CALLS],
    depth: AtomicUsize,
}

impl Default for Stepper {
    fn default() -> Self {
        Self {
            thread: AtomicU32::new(0),
            image: [const { AtomicUsize::new(0) }; 2],
            reached: AtomicU64::new(0),
            stop_before: AtomicU64::new(u64::MAX),
            returns: [const { AtomicUsize::new(0) }; MAX_CALLS],
            depth: AtomicUsize::new(0),
        }
    }
}

impl Stepper {
    /// Makes `thread` step through the driver in `image`, up to the instruction with the number `stop_before`.
    pub fn begin(&self, thread: u32, image: &std::ops::Range<usize>, stop_before: u64) {
        let [start, end] = &self.image;
        start.store(image.start, Relaxed);
        end.store(image.end, Relaxed);
        self.reached.store(0, Relaxed);
        self.depth.store(0, Relaxed);
        self.stop_before.store(stop_before, Relaxed);
        self.thread.store(thread, Relaxed);
    }

    /// Ends the stepping. The thread may still return from calls of kernel functions.
    pub fn end(&self) {
        self.thread.store(0, Relaxed);
    }

    /// Returns whether this thread steps.
    pub fn is_stepping(&self, thread: u32) -> bool {
        self.thread.load(Relaxed) == thread
    }

    /// Makes `thread` step again after a stop, up to the instruction with the number `stop_before`.
    pub fn go_on(&self, thread: u32, stop_before: u64) {
        self.stop_before.store(stop_before, Relaxed);
        self.thread.store(thread, Relaxed);
    }

    /// Returns the number of instructions that the thread has reached. The first instruction has the number 0.
    pub fn reached(&self) -> u64 {
        self.reached.load(Relaxed)
    }

    /// Decides what follows a trap before the instruction at `ip`. `top_of_stack` returns the word there, which is the
    /// return address if the thread has just called a function.
    pub fn after_trap(&self, thread: u32, ip: usize, top_of_stack: impl FnOnce() -> usize) -> AfterTrap {
        if !self.is_stepping(thread) {
            return AfterTrap::NotOurs;
        }
        if self.contains(ip) {
            return self.after_instruction();
        }
        let returns_to = top_of_stack();
        if self.contains(returns_to) && self.push(returns_to) { AfterTrap::Call } else { AfterTrap::Leave }
    }

    /// Counts the instruction that is next.
    pub fn after_instruction(&self) -> AfterTrap {
        let number = self.reached.load(Relaxed);
        self.reached.store(number + 1, Relaxed);
        if number >= self.stop_before.load(Relaxed) { AfterTrap::Stop } else { AfterTrap::Step }
    }

    /// Returns the address to which the last call of a kernel function returns, and forgets it.
    pub fn pop(&self) -> Option<usize> {
        let depth = self.depth.load(Relaxed).checked_sub(1)?;
        self.depth.store(depth, Relaxed);
        self.returns.get(depth).map(|address| address.load(Relaxed))
    }

    fn push(&self, address: usize) -> bool {
        let depth = self.depth.load(Relaxed);
        let Some(slot) = self.returns.get(depth) else { return false };
        slot.store(address, Relaxed);
        self.depth.store(depth + 1, Relaxed);
        true
    }

    fn contains(&self, address: usize) -> bool {
        let [start, end] = &self.image;
        (start.load(Relaxed)..end.load(Relaxed)).contains(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: std::ops::Range<usize> = 0x1000..0x2000;
    const KERNEL: usize = 0x9000;

    fn stepper(stop_before: u64) -> Stepper {
        let stepper = Stepper::default();
        stepper.begin(7, &IMAGE, stop_before);
        stepper
    }

    #[test]
    fn each_instruction_of_the_driver_counts_and_the_wanted_one_stops() {
        let stepper = stepper(2);
        let after: Vec<_> = (0..4).map(|number| stepper.after_trap(7, 0x1000 + number, || 0)).collect();
        assert_eq!(after, [AfterTrap::Step, AfterTrap::Step, AfterTrap::Stop, AfterTrap::Stop]);
        assert_eq!(stepper.reached(), 4);
        stepper.go_on(7, 100);
        assert_eq!(stepper.after_trap(7, 0x1FFF, || 0), AfterTrap::Step);
    }

    #[test]
    fn other_threads_and_a_thread_after_the_end_are_not_stepped() {
        let stepper = stepper(0);
        assert_eq!(stepper.after_trap(8, 0x1000, || 0), AfterTrap::NotOurs);
        stepper.end();
        assert_eq!(stepper.after_trap(7, 0x1000, || 0), AfterTrap::NotOurs);
        assert_eq!(stepper.reached(), 0);
    }

    #[test]
    fn calls_of_kernel_functions_return_in_reverse_order() {
        let stepper = stepper(u64::MAX);
        assert_eq!(stepper.after_trap(7, KERNEL, || 0x1010), AfterTrap::Call);
        assert_eq!(stepper.after_trap(7, 0x1800, || 0), AfterTrap::Step, "a routine that the function calls");
        assert_eq!(stepper.after_trap(7, KERNEL, || 0x1820), AfterTrap::Call);
        assert_eq!((stepper.pop(), stepper.pop(), stepper.pop()), (Some(0x1820), Some(0x1010), None));
        assert_eq!(stepper.reached(), 1, "the functions' own instructions do not count");
    }

    #[test]
    fn a_return_to_the_lab_leaves_the_driver() {
        assert_eq!(stepper(u64::MAX).after_trap(7, KERNEL, || KERNEL), AfterTrap::Leave);
    }

    #[test]
    fn too_many_nested_calls_are_not_stepped_after_their_return() {
        let stepper = stepper(u64::MAX);
        for _ in 0..MAX_CALLS {
            assert_eq!(stepper.after_trap(7, KERNEL, || 0x1010), AfterTrap::Call);
        }
        assert_eq!(stepper.after_trap(7, KERNEL, || 0x1010), AfterTrap::Leave);
    }
}
