//! The answer to each command of a test.

use crate::{
    deferred, hal, image, nt, pool,
    processor::{self, Core, State},
    scene::Scene,
    security, violation,
};
use model::{CounterId, LedgerEntry, Mode, Selected};
use wire::{Accesses, Answer, Command, Counter, Enabled, Handler, Happened, Place, Registration};

pub fn answer(command: Command) -> Answer {
    match command {
        Command::Identities => Answer::Names(processors::all().iter().map(|known| known.name.to_owned()).collect()),
        Command::SetIdentity(name) => set_identity(&name),
        Command::SetTime(time) => {
            processor::set_time(time);
            deferred::time_changed();
            Answer::Done
        }
        Command::Run { processor, user, kernel } => run(processor, &user, &kernel),
        Command::Tick { processor, times } => tick(processor, times),
        Command::Ticks => Answer::Ticks(deferred::ticks()),
        Command::Skipped => Answer::Skipped(each(|state| state.skipped())),
        Command::SetScene { processor, places } => set_scene(processor, places),
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
        _ => Answer::Refused("not served yet".to_owned()),
    }
}

fn each<T>(mut body: impl FnMut(&mut State) -> T) -> Vec<T> {
    processor::all().iter().map(|core| core.with(&mut body)).collect()
}

fn refused<T>(why: &str) -> Result<T, String> {
    Err(why.to_owned())
}

fn done(result: Result<(), String>) -> Answer {
    result.map_or_else(Answer::Refused, |()| Answer::Done)
}

fn set_identity(name: &str) -> Answer {
    done(if !image::names().is_empty() {
        refused("a driver is loaded")
    } else if processor::reset(name) {
        deferred::clear_account();
        Ok(())
    } else {
        Err(format!("there is no identity {name}"))
    })
}

fn run(processor: u32, user: &[Happened], kernel: &[Happened]) -> Answer {
    let run = |core: &Core| {
        core.with(|state| {
            state.run(Mode::User, user);
            state.run(Mode::Kernel, kernel);
        });
        if core.bell.settle() { Ok(()) } else { refused("the processor stays at HIGH_LEVEL") }
    };
    done(match processor::find(processor) {
        _ if processor::is_live() => refused("the time is live"),
        None => Err(format!("there is no processor {processor}")),
        Some(core) => run(core),
    })
}

fn tick(processor: u32, times: u64) -> Answer {
    done(match processor::find(processor) {
        _ if processor::is_live() => refused("the time is live"),
        None => Err(format!("there is no processor {processor}")),
        Some(_) if deferred::tick(processor, times) => Ok(()),
        Some(_) => refused("the processor stays at DISPATCH_LEVEL"),
    })
}

fn set_scene(processor: u32, places: Vec<Place>) -> Answer {
    done(match (processor::find(processor), Scene::new(places)) {
        (None, _) => Err(format!("there is no processor {processor}")),
        (_, None) => refused("no place has a weight"),
        (Some(core), Some(scene)) => {
            core.with(|state| state.scene = scene);
            Ok(())
        }
    })
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
