//! The answer to each command of a test.

use crate::{
    callbacks, deferred, failing, hal, image, nt, pool, power,
    processor::{self, Core, State},
    processor_change,
    scene::Scene,
    security, violation,
};
use model::{CounterId, GeneralProtection, LedgerEntry, Mode, Processor, Selected};
use wire::{Accesses, Answer, Command, Counter, Enabled, Handler, Happened, Place, Registration};

const ASLEEP: &str = "the machine sleeps";

pub fn answer(command: Command) -> Answer {
    match command {
        Command::Identities => Answer::Names(processors::all().iter().map(|known| known.name.to_owned()).collect()),
        Command::SetIdentity(name) => done(set_identity(&name)),
        Command::SetProcessors { active, maximum } => done(set_processors(active, maximum)),
        Command::AddProcessor => told(add_processor()),
        Command::SetApic { x2apic } => done(unloaded().map(|()| processor::set_apic(x2apic))),
        Command::SetLvt { processor, value } => {
            done(core(processor).map(|core| core.with(|state| state.processor.set_lvt(value))))
        }
        Command::Lvt { processor } => {
            told(core(processor).map(|core| Answer::Lvt(core.with(|state| state.processor.lvt()))))
        }
        Command::HalUnmasks(unmasks) => {
            hal::unmask(unmasks);
            Answer::Done
        }
        Command::WriteMsr { processor, register, value } => done(aside(processor, |cpu| cpu.wrmsr(register, value))),
        Command::ReadMsr { processor, register } => told(aside(processor, |cpu| cpu.rdmsr(register)).map(Answer::Msr)),
        Command::Sleep => done(if power::sleep() { Ok(()) } else { refused(ASLEEP) }),
        Command::Wake { milliseconds } => {
            done(if power::wake(milliseconds) { Ok(()) } else { refused("the machine does not sleep") })
        }
        Command::NotifyPower { first, second } => {
            let argument = |number| usize::try_from(number).unwrap_or(usize::MAX);
            callbacks::notify_power(argument(first), argument(second));
            Answer::Done
        }
        Command::SetTime(time) => {
            processor::set_time(time);
            deferred::time_changed();
            Answer::Done
        }
        Command::Run { processor, user, kernel } => done(run(processor, &user, &kernel)),
        Command::Tick { processor, times } => done(tick(processor, times)),
        Command::Ticks => Answer::Ticks(deferred::ticks()),
        Command::Skipped => Answer::Skipped(each(|state| state.skipped())),
        Command::SetScene { processor, places } => done(set_scene(processor, places)),
        Command::Scene => Answer::Scene(each(|state| state.scene.visited().collect())),
        Command::Ledger => Answer::Ledger(each(|state| state.processor.ledger().entries().map(entry).collect())),
        Command::ClearLedger => {
            each(|state| state.processor.clear_ledger());
            Answer::Done
        }
        Command::Enabled => {
            let enabled = |state: &mut State| state.processor.enabled_counters().into_iter().map(enabled).collect();
            Answer::Enabled(each(enabled))
        }
        Command::Accesses => Answer::Accesses(each(|state| {
            let model::Accesses { rdmsr, wrmsr, rdpmc, faulted } = state.processor.accesses();
            Accesses { rdmsr, wrmsr, rdpmc, faulted }
        })),
        Command::Violations => Answer::Violations(violation::take()),
        Command::Pool => Answer::Pool(pool::account()),
        Command::DenyPrivilege(deny) => {
            security::deny(deny);
            Answer::Done
        }
        Command::FailAllocation(nth) => {
            pool::fail(nth);
            Answer::Done
        }
        Command::FailCall(nth) => {
            failing::fail(nth);
            Answer::Done
        }
        Command::FailedCall => Answer::FailedCall(failing::failed()),
        Command::RefuseCounters(status) => {
            hal::refuse_counters(status.map(nt::status));
            Answer::Done
        }
        Command::Reserved => Answer::Reserved(hal::reserved()),
        Command::RefuseHandler(refuse) => {
            hal::refuse_handler(refuse);
            Answer::Done
        }
        Command::Handler => Answer::Handler(handler()),
        Command::Descriptor => Answer::Descriptor(security::descriptor()),
        Command::Images => Answer::Names(image::names()),
    }
}

fn each<T>(mut body: impl FnMut(&mut State) -> T) -> Vec<T> {
    processor::all().iter().map(|core| core.with(&mut body)).collect()
}

fn refused<T>(why: &str) -> Result<T, String> {
    Err(why.to_owned())
}

fn told(result: Result<Answer, String>) -> Answer {
    result.unwrap_or_else(Answer::Refused)
}

fn done(result: Result<(), String>) -> Answer {
    told(result.map(|()| Answer::Done))
}

fn core(processor: u32) -> Result<&'static Core, String> {
    processor::find(processor).ok_or_else(|| format!("there is no processor {processor}"))
}

/// The same, where nothing happens by itself.
fn scripted(processor: u32) -> Result<&'static Core, String> {
    match core(processor)? {
        _ if !processor::is_scripted() => refused("the time is live"),
        _ if power::asleep() => refused(ASLEEP),
        core => Ok(core),
    }
}

fn unloaded() -> Result<(), String> {
    if image::names().is_empty() { Ok(()) } else { refused("a driver is loaded") }
}

fn set_identity(name: &str) -> Result<(), String> {
    unloaded()?;
    if !processor::reset(name) {
        return Err(format!("there is no identity {name}"));
    }
    hal::unmask(true);
    power::awake();
    deferred::clear_account();
    Ok(())
}

fn set_processors(active: u32, maximum: u32) -> Result<(), String> {
    unloaded()?;
    if processor::set_count(active, maximum) { Ok(()) } else { refused("there can not be so many") }
}

fn add_processor() -> Result<Answer, String> {
    if power::asleep() {
        return refused(ASLEEP);
    }
    processor_change::add().map(Answer::Added).ok_or_else(|| "there are as many as there can be".to_owned())
}

/// What somebody else than the driver does to a processor.
fn aside<T>(processor: u32, access: impl FnOnce(&mut Processor) -> Result<T, GeneralProtection>) -> Result<T, String> {
    let (core, thread) = (core(processor)?, nt::current_thread());
    core.gate.enter(thread);
    let result = core.with(|state| state.processor.uncounted(access));
    core.gate.leave(thread);
    result.map_err(|fault| fault.to_string())
}

fn run(processor: u32, user: &[Happened], kernel: &[Happened]) -> Result<(), String> {
    let core = scripted(processor)?;
    core.with(|state| {
        state.run(Mode::User, user);
        state.run(Mode::Kernel, kernel);
    });
    if core.bell.settle() { Ok(()) } else { refused("the processor stays at HIGH_LEVEL") }
}

fn tick(processor: u32, times: u64) -> Result<(), String> {
    let core = scripted(processor)?;
    if deferred::tick(core.number, times) { Ok(()) } else { refused("the processor stays at DISPATCH_LEVEL") }
}

fn set_scene(processor: u32, places: Vec<Place>) -> Result<(), String> {
    let core = core(processor)?;
    let scene = Scene::new(places).ok_or("no place has a weight")?;
    core.with(|state| state.scene = scene);
    Ok(())
}

fn handler() -> Handler {
    let registration = hal::handler().map(|registered| Registration {
        process: registered.process,
        system: registered.process == std::process::id(),
    });
    Handler { registration, delivered: each(|state| state.delivered) }
}

fn counter(id: CounterId) -> Counter {
    match id {
        CounterId::General(number) => Counter::General(number),
        CounterId::Fixed(number) => Counter::Fixed(number),
    }
}

fn entry(entry: LedgerEntry) -> wire::LedgerEntry {
    let LedgerEntry { counter: id, selected, user, kernel, counted, overflows, interrupts } = entry;
    let Selected { event, umask, .. } = selected;
    wire::LedgerEntry { counter: counter(id), event, umask, user, kernel, counted, overflows, interrupts }
}

fn enabled((id, selected): (CounterId, Selected)) -> Enabled {
    let Selected { event, umask, cmask, invert, edge } = selected;
    Enabled { counter: counter(id), event, umask, cmask, invert, edge }
}
