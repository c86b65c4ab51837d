//! Threads on the simulated processors.

use bench_protocol::EventCount;
use model::Mode;
use scheduler::Processors;

use super::{SimMachine, served};

/// Interrupts that the events raise stay pending until [`SimMachine::deliver`]. Counters for thread profiling raise
/// none.
impl Processors for &SimMachine {
    fn execute(&mut self, processor: u32, mode: scheduler::Mode, events: &[EventCount]) {
        let mode = match mode {
            scheduler::Mode::User => Mode::User,
            scheduler::Mode::Kernel => Mode::Kernel,
        };
        self.run(processor, mode, &|selected| {
            let same = events.iter().filter(|(event, umask, _)| (*event, *umask) == (selected.event, selected.umask));
            same.map(|(.., count)| count).sum()
        });
    }

    /// # Panics
    /// Panics if the access faults, which would stop a real machine.
    fn read_counter(&mut self, processor: u32, index: u64) -> u64 {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let value = self.processor(processor).model().uncounted(|model| model.rdpmc(index));
        served(value, &format_args!("rdpmc {index:#x} by Windows"))
    }
}
