//! Events by script: by a command, or when a driver completes a request.

use crate::{
    cpu::{processor::Core, processors},
    state::machine::MACHINE,
    violation,
};
use bench_protocol::EventCount;
use model::Mode;

/// Why nothing happens while the machine sleeps.
pub const ASLEEP: &str = "the machine sleeps";

/// Returns a processor.
pub fn core(processor: u32) -> Result<&'static Core, String> {
    processors::find(processor).ok_or_else(|| format!("there is no processor {processor}"))
}

/// Returns a processor where events happen only by script.
pub fn scripted_core(processor: u32) -> Result<&'static Core, String> {
    match core(processor)? {
        _ if !MACHINE.time_mode.is_scripted() => Err("the time is real".to_owned()),
        _ if MACHINE.time_mode.is_asleep() => Err(ASLEEP.to_owned()),
        core => Ok(core),
    }
}

/// Makes events occur on a processor, and waits for the interrupt that they raise.
pub fn run(processor: u32, user: &[EventCount], kernel: &[EventCount]) -> Result<(), String> {
    let core = scripted_core(processor)?;
    // An interrupt can raise another when it ends. Its handler stops the counters, which would miss these events.
    deliver_due(core)?;
    core.with(|state| {
        state.run(Mode::User, user);
        state.run(Mode::Kernel, kernel);
    });
    deliver_due(core)
}

/// Waits until the interrupt that is due is handled, if there is one.
pub fn deliver_due(core: &Core) -> Result<(), String> {
    if core.pmi.notify_and_wait() { Ok(()) } else { Err("the processor stays at HIGH_LEVEL".to_owned()) }
}

/// Makes the events occur that the script has for a request with this control code.
pub fn after_request(code: u32) {
    let Some((processor, sets)) = MACHINE.kernel.request_script.take(code) else { return };
    if let Err(why) = sets.iter().try_for_each(|events| run(processor, events, &[])) {
        violation::other(format!("the events after a request cannot occur: {why}"));
    }
}
