//! The answers to commands about the threads of programs.

use crate::kernel::{hardware_counters, threads};
use bench_protocol::{ThreadAnswer, ThreadCommand};

pub fn answer(command: ThreadCommand) -> Result<ThreadAnswer, String> {
    match command {
        ThreadCommand::HardwareCounters => Ok(ThreadAnswer::HardwareCounters(hardware_counters::configuration())),
        ThreadCommand::ConfigureHardwareCounters(counters) => {
            hardware_counters::configure_as_another(&counters).map(|()| ThreadAnswer::Done)
        }
        ThreadCommand::PretendProfiling(pretends) => {
            hardware_counters::pretend_profiling(pretends);
            Ok(ThreadAnswer::Done)
        }
        ThreadCommand::StartProgram { process, scheduling } => {
            threads::start_program(process, scheduling).map(|()| ThreadAnswer::Done)
        }
        ThreadCommand::Call { process, thread, call } => threads::call(process, thread, call),
        ThreadCommand::TakeLedgers => threads::take_ledgers().map(ThreadAnswer::Ledgers),
    }
}
