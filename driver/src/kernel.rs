//! The kernel as the machine that the engine runs on.

use engine::Machine;

use crate::cpu::Processor;
use crate::nt::{clock, processors};

/// See the module.
#[derive(Debug)]
pub struct Kernel;

impl Machine for Kernel {
    type Cpu = Processor;

    fn processors(&self) -> u32 {
        processors::active()
    }

    fn maximum_processors(&self) -> u32 {
        processors::maximum()
    }

    fn on_boot_processor<T>(&self, work: impl FnOnce(&Processor) -> T) -> T {
        let _stay = processors::BootProcessor::enter();
        work(&Processor::current())
    }

    fn on_each_processor(&self, work: &(impl Fn(u32, &Processor) + Sync)) {
        processors::broadcast(&|| work(processors::current(), &Processor::current()));
    }

    fn now(&self) -> u64 {
        clock::now()
    }
}
