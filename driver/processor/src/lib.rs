//! The processor that runs halprof.sys: its instructions and registers, and the code that is compiled for it for size.
//!
//! Code that is generic over the processor is compiled in the crate that uses it, at the level of optimization of that
//! crate. Only a function that is never inlined is not compiled again if a crate below has it. So [`compile`] makes one
//! copy of each such function, for size, which the interrupt path and the driver share.

#![no_std]
#![expect(unsafe_code, reason = "instructions of the processor, and foreign functions of the kernel")]

pub mod control_area;
mod current;
pub mod local_apic;
mod processor;

use engine::{Deferred, Interrupted, Sampler, Ticks};
use pmu::CurrentCpu;

pub use current::current_processor;
pub use processor::{Processor, known_loop, with_current};

/// Makes the compiler compile here what the handler calls rarely, and the tick. Never called: the linker removes it.
/// Its clock is another one than the handler's, so that code that is generic over the clock is not shared.
pub fn compile(sampler: &Sampler, current: CurrentCpu<'_, Processor>, interrupted: &Interrupted) -> [Deferred; 2] {
    [sampler.interrupt(current, || Ticks(0), interrupted), sampler.tick(current, Ticks(0))]
}
