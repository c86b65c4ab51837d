//! The thread that executes a driver one instruction at a time, or up to a breakpoint.
//!
//! A signal handler uses it at every instruction, so it consists of atomics. Only the stepping thread changes it,
//! except for its breakpoints.

use crate::state::{
    step_breakpoints::{Breakpoints, Code, Hit},
    step_route::Breakpoint,
};
use std::{
    ops::Range,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst},
};

/// The greatest number of nested calls of kernel functions by the driver.
const MAX_CALLS: usize = 64;

/// The greatest number of instructions that are recorded.
const MAX_RECORDED: usize = 1 << 18;

/// What a thread does after a trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterTrap {
    /// The trap is not the stepper's.
    NotOurs,
    /// It executes one more instruction.
    Step,
    /// It runs up to the next breakpoint.
    Run,
    /// It executes the instruction again, where another thread has just removed a breakpoint.
    Again,
    /// It stops before this instruction.
    Stop,
    /// It calls a function outside the driver at full speed, and steps again when the function returns.
    Call,
}

/// The progress of the stepping thread.
#[derive(Debug)]
pub struct Stepper {
    /// The number of the thread, or 0.
    thread: AtomicU32,
    /// Whether the thread steps now, and does not run up to a breakpoint.
    steps: AtomicBool,
    /// The first address of the driver, and the first after it.
    image: [AtomicUsize; 2],
    /// The number of instructions that the thread has reached.
    reached: AtomicU64,
    /// The number of the instruction before which the thread stops.
    stop_before: AtomicU64,
    breakpoints: Breakpoints,
    /// The return addresses of the calls of kernel functions.
    returns: [AtomicUsize; MAX_CALLS],
    depth: AtomicUsize,
    /// The offsets of the instructions, while they are recorded.
    record: Box<[AtomicU32]>,
    records: AtomicBool,
}

impl Default for Stepper {
    fn default() -> Self {
        Self {
            thread: AtomicU32::new(0),
            steps: AtomicBool::new(false),
            image: [const { AtomicUsize::new(0) }; 2],
            reached: AtomicU64::new(0),
            stop_before: AtomicU64::new(u64::MAX),
            breakpoints: Breakpoints::default(),
            returns: [const { AtomicUsize::new(0) }; MAX_CALLS],
            depth: AtomicUsize::new(0),
            record: (0..MAX_RECORDED).map(|_| AtomicU32::new(0)).collect(),
            records: AtomicBool::new(false),
        }
    }
}

impl Stepper {
    /// Prepares a call of the driver in `image`, whose instructions are recorded or not.
    pub fn begin(&self, image: &Range<usize>, records: bool) {
        let [start, end] = &self.image;
        start.store(image.start, SeqCst);
        end.store(image.end, SeqCst);
        self.reached.store(0, SeqCst);
        self.depth.store(0, SeqCst);
        self.records.store(records, SeqCst);
    }

    /// Makes `thread` go on, up to the instruction with the number `stop_before`: first along the breakpoints, then by
    /// steps. Returns whether it steps now.
    pub fn go_on(&self, thread: u32, way: &[Breakpoint], stop_before: u64, code: &impl Code) -> bool {
        self.stop_before.store(stop_before, SeqCst);
        self.steps.store(way.is_empty(), SeqCst);
        self.thread.store(thread, SeqCst);
        let [start, _] = &self.image;
        self.breakpoints.set(start.load(SeqCst), way, code);
        way.is_empty()
    }

    /// Ends the stepping, and removes the breakpoint. The thread may still return from calls of kernel functions.
    pub fn end(&self, code: &impl Code) {
        self.thread.store(0, SeqCst);
        self.breakpoints.clear(code);
    }

    /// Returns whether this thread is in the stepped call.
    pub fn is_inside(&self, thread: u32) -> bool {
        self.thread.load(SeqCst) == thread
    }

    /// Returns whether this thread steps now.
    pub fn is_stepping(&self, thread: u32) -> bool {
        self.is_inside(thread) && self.steps.load(SeqCst)
    }

    /// Returns the number of instructions that the thread has reached. The first instruction has the number 0.
    pub fn reached(&self) -> u64 {
        self.reached.load(SeqCst)
    }

    /// Returns the offsets of the instructions that were recorded.
    pub fn recorded(&self) -> Vec<u32> {
        let count = usize::try_from(self.reached()).unwrap_or(usize::MAX);
        self.record.iter().take(count).map(|offset| offset.load(SeqCst)).collect()
    }

    /// Decides what follows a single-step trap before the instruction at `ip`. `top_of_stack` returns the word there,
    /// which is the return address if the thread has just called a function.
    pub fn after_step(
        &self,
        thread: u32,
        ip: usize,
        top_of_stack: impl FnOnce() -> usize,
        code: &impl Code,
    ) -> AfterTrap {
        if self.has_passed(thread, code) {
            return AfterTrap::Run;
        }
        if !self.is_stepping(thread) {
            return AfterTrap::NotOurs;
        }
        if self.contains(ip) {
            return self.after_instruction(ip);
        }
        let returns_to = top_of_stack();
        if self.contains(returns_to) && self.push(returns_to) { AfterTrap::Call } else { AfterTrap::Run }
    }

    /// Puts the breakpoint back if this thread has just passed it. Returns whether it has.
    pub fn has_passed(&self, thread: u32, code: &impl Code) -> bool {
        self.breakpoints.has_passed(thread, code)
    }

    /// Decides what follows a trap of INT3 at `address`.
    pub fn after_breakpoint(&self, thread: u32, address: usize, code: &impl Code) -> AfterTrap {
        match self.breakpoints.hit(thread, self.is_inside(thread), address, code) {
            Hit::Unknown => AfterTrap::NotOurs,
            Hit::Removed => {
                if self.contains(address) {
                    AfterTrap::Again
                } else {
                    AfterTrap::NotOurs
                }
            }
            Hit::Passes => AfterTrap::Step,
            Hit::Reached { instruction, is_last } => {
                self.reached.store(instruction, SeqCst);
                if !is_last {
                    return AfterTrap::Run;
                }
                self.steps.store(true, SeqCst);
                self.after_instruction(address)
            }
        }
    }

    /// Counts the instruction at `ip`, which is next.
    pub fn after_instruction(&self, ip: usize) -> AfterTrap {
        let number = self.reached();
        if self.records.load(SeqCst)
            && let Some(slot) = usize::try_from(number).ok().and_then(|number| self.record.get(number))
        {
            let [start, _] = &self.image;
            slot.store(u32::try_from(ip.wrapping_sub(start.load(SeqCst))).unwrap_or_default(), SeqCst);
        }
        self.reached.store(number + 1, SeqCst);
        if number >= self.stop_before.load(SeqCst) { AfterTrap::Stop } else { AfterTrap::Step }
    }

    /// Returns the address to which the last call of a kernel function returns, and forgets it.
    pub fn pop(&self) -> Option<usize> {
        let depth = self.depth.load(SeqCst).checked_sub(1)?;
        self.depth.store(depth, SeqCst);
        self.returns.get(depth).map(|address| address.load(SeqCst))
    }

    fn push(&self, address: usize) -> bool {
        let depth = self.depth.load(SeqCst);
        let Some(slot) = self.returns.get(depth) else { return false };
        slot.store(address, SeqCst);
        self.depth.store(depth + 1, SeqCst);
        true
    }

    /// Returns the first byte of the instruction at an address, if the breakpoint is or was there.
    pub fn original(&self, address: usize) -> Option<u8> {
        self.breakpoints.original(address)
    }

    fn contains(&self, address: usize) -> bool {
        let [start, end] = &self.image;
        (start.load(SeqCst)..end.load(SeqCst)).contains(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::step_breakpoints::{
        INT3,
        fake::{Bytes, NOP},
    };

    const NONE: [usize; 0] = [];
    const IMAGE: Range<usize> = 0x1000..0x2000;
    const KERNEL: usize = 0x9000;

    fn stepper(stop_before: u64, way: &[Breakpoint], code: &Bytes) -> Stepper {
        let stepper = Stepper::default();
        stepper.begin(&IMAGE, true);
        assert_eq!(stepper.go_on(7, way, stop_before, code), way.is_empty());
        stepper
    }

    #[test]
    fn each_instruction_of_the_driver_counts_and_the_wanted_one_stops() {
        let code = Bytes::new(IMAGE);
        let stepper = stepper(2, &[], &code);
        let after: Vec<_> = (0..4).map(|number| stepper.after_step(7, 0x1000 + number, || 0, &code)).collect();
        assert_eq!(after, [AfterTrap::Step, AfterTrap::Step, AfterTrap::Stop, AfterTrap::Stop]);
        assert_eq!(stepper.recorded(), [0, 1, 2, 3]);
        stepper.go_on(7, &[], 100, &code);
        assert_eq!(stepper.after_step(7, 0x1FFF, || 0, &code), AfterTrap::Step);
    }

    #[test]
    fn other_threads_and_a_thread_after_the_end_are_not_stepped() {
        let code = Bytes::new(IMAGE);
        let stepper = stepper(0, &[], &code);
        assert_eq!(stepper.after_step(8, 0x1000, || 0, &code), AfterTrap::NotOurs);
        stepper.end(&code);
        assert_eq!(stepper.after_step(7, 0x1000, || 0, &code), AfterTrap::NotOurs);
        assert_eq!(stepper.reached(), 0);
    }

    #[test]
    fn calls_of_kernel_functions_return_in_reverse_order() {
        let code = Bytes::new(IMAGE);
        let stepper = stepper(u64::MAX, &[], &code);
        assert_eq!(stepper.after_step(7, KERNEL, || 0x1010, &code), AfterTrap::Call);
        assert_eq!(stepper.after_step(7, 0x1800, || 0, &code), AfterTrap::Step, "a routine that the function calls");
        assert_eq!(stepper.after_step(7, KERNEL, || 0x1820, &code), AfterTrap::Call);
        assert_eq!((stepper.pop(), stepper.pop(), stepper.pop()), (Some(0x1820), Some(0x1010), None));
        assert_eq!(stepper.reached(), 1, "the functions' own instructions do not count");
    }

    #[test]
    fn a_return_to_the_lab_leaves_the_driver() {
        let code = Bytes::new(IMAGE);
        assert_eq!(stepper(u64::MAX, &[], &code).after_step(7, KERNEL, || KERNEL, &code), AfterTrap::Run);
    }

    #[test]
    fn too_many_nested_calls_are_not_stepped_after_their_return() {
        let code = Bytes::new(IMAGE);
        let stepper = stepper(u64::MAX, &[], &code);
        for _ in 0..MAX_CALLS {
            assert_eq!(stepper.after_step(7, KERNEL, || 0x1010, &code), AfterTrap::Call);
        }
        assert_eq!(stepper.after_step(7, KERNEL, || 0x1010, &code), AfterTrap::Run);
    }

    #[test]
    fn breakpoints_lead_to_an_instruction_and_leave_the_code_as_it_was() {
        let code = Bytes::new(IMAGE);
        let first = Breakpoint { offset: 0x20, passes: 0, instruction: 40 };
        let second = Breakpoint { offset: 0x30, passes: 1, instruction: 60 };
        let stepper = stepper(61, &[first, second], &code);
        assert_eq!(code.planted(), [0x20]);
        code.replace(0x1040, INT3);
        assert_eq!(stepper.after_breakpoint(7, 0x1040, &code), AfterTrap::NotOurs, "the driver's own");
        code.replace(0x1040, NOP);
        assert_eq!((stepper.original(0x1020), stepper.original(0x1021)), (Some(NOP), None));
        assert_eq!(stepper.after_breakpoint(7, 0x1020, &code), AfterTrap::Run);
        assert_eq!(code.planted(), [0x30]);
        assert_eq!(stepper.after_breakpoint(7, 0x1030, &code), AfterTrap::Step, "passed once");
        assert_eq!(code.planted(), NONE);
        assert_eq!(stepper.after_step(7, 0x1031, || 0, &code), AfterTrap::Run);
        assert_eq!(code.planted(), [0x30]);
        assert_eq!(stepper.after_breakpoint(7, 0x1030, &code), AfterTrap::Step, "instruction 60");
        assert_eq!(stepper.after_step(7, 0x1031, || 0, &code), AfterTrap::Stop, "instruction 61");
        assert_eq!((stepper.reached(), code.planted()), (62, NONE.to_vec()));
    }

    #[test]
    fn another_thread_passes_a_breakpoint_without_counting() {
        let code = Bytes::new(IMAGE);
        let stepper = stepper(40, &[Breakpoint { offset: 0x20, passes: 0, instruction: 40 }], &code);
        assert_eq!(stepper.after_breakpoint(9, 0x1020, &code), AfterTrap::Step);
        assert_eq!(stepper.after_step(9, 0x1021, || 0, &code), AfterTrap::Run);
        assert_eq!(code.planted(), [0x20]);
        assert_eq!(stepper.after_breakpoint(7, 0x1020, &code), AfterTrap::Stop);
        stepper.end(&code);
        assert_eq!(code.planted(), NONE);
    }

    #[test]
    fn threads_that_reach_a_breakpoint_at_once_all_go_on() {
        let code = Bytes::new(IMAGE);
        let way = [(0x20, 40), (0x30, 50)].map(|(offset, instruction)| Breakpoint { offset, passes: 0, instruction });
        let stepper = stepper(50, &way, &code);
        assert_eq!(stepper.after_breakpoint(9, 0x1020, &code), AfterTrap::Step);
        assert_eq!(stepper.after_breakpoint(8, 0x1020, &code), AfterTrap::Again, "the other one passes it");
        assert_eq!(stepper.after_breakpoint(7, 0x1020, &code), AfterTrap::Run);
        assert_eq!(stepper.after_breakpoint(8, 0x1020, &code), AfterTrap::Again, "it was removed");
        assert_eq!(stepper.after_step(9, 0x1021, || 0, &code), AfterTrap::Run);
        assert_eq!(code.planted(), [0x30], "and does not come back");
    }

    #[test]
    fn a_breakpoint_stays_away_until_every_thread_has_passed_it() {
        let code = Bytes::new(IMAGE);
        let stepper = stepper(40, &[Breakpoint { offset: 0x20, passes: 1, instruction: 40 }], &code);
        assert_eq!(stepper.after_breakpoint(9, 0x1020, &code), AfterTrap::Step);
        assert_eq!(stepper.after_breakpoint(7, 0x1020, &code), AfterTrap::Step, "its trap was on the way");
        assert_eq!(stepper.after_step(9, 0x1021, || 0, &code), AfterTrap::Run);
        assert_eq!(code.planted(), NONE, "the stepping thread would count it twice");
        assert_eq!(stepper.after_step(7, 0x1021, || 0, &code), AfterTrap::Run);
        assert_eq!(code.planted(), [0x20]);
        assert_eq!(stepper.after_breakpoint(7, 0x1020, &code), AfterTrap::Stop);
    }

    #[test]
    fn a_breakpoint_that_is_not_reached_is_removed_at_the_end() {
        let code = Bytes::new(IMAGE);
        let stepper = stepper(40, &[Breakpoint { offset: 0x20, passes: 3, instruction: 40 }], &code);
        stepper.after_breakpoint(7, 0x1020, &code);
        stepper.end(&code);
        assert_eq!(stepper.after_step(7, 0x1021, || 0, &code), AfterTrap::Run, "the thread was passing it");
        assert_eq!(code.planted(), NONE);
    }
}
