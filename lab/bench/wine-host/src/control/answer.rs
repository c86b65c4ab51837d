//! The answers to the commands of a test.

use crate::{
    control::threads,
    cpu::{
        interrupt_sites::InterruptSites,
        processor::{Phase, State},
        processors,
    },
    kernel::{
        callbacks, cancel_race, control_areas, deferred, driver_end, etw, hal, loaded_images, pool, power,
        processor_change, requests,
        scripted_events::{self, ASLEEP, core, scripted_core},
        security, stepping, system_information, system_threads, threads as scheduled, time, version,
    },
    nt,
    state::{hal::CURRENT_INFORMATION_SIZE, machine::MACHINE, tracing::Wanted},
    violation,
};
use bench_protocol::{
    Accesses, Answer, BranchKind, Command, Counter, DebugStore, DsWrites, EnabledCounter, Handler, InterruptMode,
    InterruptSite, RegisterQuirk, Registration, ScriptedRequest, StepPlan, TakenBranch, Time, TimerMode,
};
use model::{
    Branch, CounterId, DataSource, ExecutedOp, FaultingAccess, GeneralProtection, LedgerEntry, MemoryAccess, Mode,
    Movement, OpKind, Processor, Quirk, RecordedAccess, Selected,
};

/// `IA32_DEBUGCTL`, `IA32_DS_AREA`, `IA32_PEBS_ENABLE` (SDM Vol. 4, "Architectural MSRs").
const DEBUGCTL: u32 = 0x1D9;
const DS_AREA: u32 = 0x600;
const PEBS_ENABLE: u32 = 0x3F1;
/// `IA32_PEBS_INDEX`, which processors with architectural PEBS have instead.
const PEBS_INDEX: u32 = 0x3F5;

/// Bytes between the source and the target of a scripted branch.
const BRANCH_LENGTH: u64 = 8;

pub fn answer(command: Command) -> Answer {
    match command {
        Command::Identities => Answer::Names(cpuid_dumps::all().iter().map(|known| known.name.to_owned()).collect()),
        Command::SetIdentity(name) => done(set_identity(&name)),
        Command::SetProcessors { active, maximum } => done(set_processors(active, maximum)),
        Command::AddProcessor => reply(add_processor()),
        Command::SetApic { x2apic } => done(unloaded().map(|()| processors::set_apic(x2apic))),
        Command::SetLvt { processor, value } => {
            done(core(processor).map(|core| core.with(|state| state.processor.set_lvt(value))))
        }
        Command::Lvt { processor } => {
            reply(core(processor).map(|core| Answer::Lvt(core.with(|state| state.processor.lvt()))))
        }
        Command::HalUnmasks(unmasks) => set(hal::set_unmasks, unmasks),
        Command::HalInformationSize(bytes) => set(hal::set_information_size, bytes),
        Command::SetInterruptMode(mode) => set_interrupt_mode(mode),
        Command::SetFaulting { registers } => set_faulting(&registers),
        Command::SetQuirks { quirks } => set_quirks(&quirks),
        Command::SetMovement { processor, shares } => done(set_movement(processor, &shares)),
        Command::SetPhase { counted, factor } => set(set_phase, Phase { counted, factor }),
        Command::WriteMsr { processor, register, value } => {
            done(uncounted(processor, |cpu| cpu.wrmsr(register, value)))
        }
        Command::ReadMsr { processor, register } => {
            reply(uncounted(processor, |cpu| cpu.rdmsr(register)).map(Answer::Msr))
        }
        Command::SetWindows { build } => set(version::set_build, build),
        Command::SetKvaShadow(shadow) => set(system_information::set_kva_shadow, shadow),
        Command::SetControlAreas(areas) => set(control_areas::set_mode, areas),
        Command::OccupyControlArea { processor } => done(occupy(processor)),
        Command::ControlAreas => Answer::ControlAreas(control_areas::addresses()),
        Command::SetDebugStore { processor, area, debugctl, misc_enable } => {
            done(set_debug_store(processor, area, debugctl, misc_enable))
        }
        Command::DebugStore => Answer::DebugStore(per_processor(debug_store)),
        Command::Branch { processor, user, from, step, count } => done(branch(processor, user, from, step, count)),
        Command::TakeBranches { processor, branches } => done(take_branches(processor, &branches)),
        Command::LoseLastBranches { processor } => done(lose_last_branches(processor)),
        Command::SetAccesses { processor, loads, stores } => done(set_accesses(processor, &loads, &stores)),
        Command::DsWrites => Answer::DsWrites(per_processor(ds_writes)),
        Command::Sleep => done(if power::sleep() { Ok(()) } else { refused(ASLEEP) }),
        Command::Wake { milliseconds } => done(wake(milliseconds)),
        Command::Advance { milliseconds } => set(|time| MACHINE.clock_offsets.advance(time), milliseconds),
        Command::HoldClocks(hold) => set(time::hold_clocks, hold),
        Command::NotifyPower { first, second } => set(notify_power, [first, second]),
        Command::SetTime(time) => set(set_time, time),
        Command::SetTimers(mode) => set(deferred::set_timer_mode, timer_mode(mode)),
        Command::Run { processor, user, kernel } => done(scripted_events::run(processor, &user, &kernel)),
        Command::ScriptRequests { processor, script } => done(script_requests(processor, script)),
        Command::ScriptedRequests => Answer::ScriptedRequests(MACHINE.kernel.request_script.left()),
        Command::Tick { processor, times } => done(tick(processor, times)),
        Command::Ticks => Answer::Ticks(deferred::ticks()),
        Command::Interruptions => Answer::Interruptions(deferred::interruptions()),
        Command::Skipped => Answer::Skipped(per_processor(|state| state.skipped())),
        Command::SetInterruptSites { processor, sites } => done(set_interrupt_sites(processor, sites)),
        Command::InterruptSites => Answer::InterruptSites(per_processor(|state| state.sites.interrupts().collect())),
        Command::Ledger => {
            Answer::Ledger(per_processor(|state| state.processor.ledger().entries().map(entry).collect()))
        }
        Command::ClearLedger => {
            per_processor(|state| state.processor.clear_ledger());
            Answer::Done
        }
        Command::EnabledCounters => {
            let enabled = |state: &mut State| state.processor.enabled_counters().into_iter().map(enabled).collect();
            Answer::EnabledCounters(per_processor(enabled))
        }
        Command::Accesses => Answer::Accesses(per_processor(accesses)),
        Command::Violations => Answer::Violations(violation::take()),
        Command::Pool => Answer::Pool(pool::statistics()),
        Command::DenyPrivilege(deny) => set(security::deny, deny),
        Command::FailAllocation(nth) => set(pool::fail_nth, nth),
        Command::FailCall(nth) => set(|nth| MACHINE.faults.fail_nth(nth), nth),
        Command::FailNewStack(fail) => set(|fail| MACHINE.faults.fail_new_stack(fail), fail),
        Command::FailedCall => Answer::FailedCall(MACHINE.faults.failed()),
        Command::RefuseCounters(status) => set(hal::refuse_counters, status.map(nt::status)),
        Command::BusyCounters { milliseconds } => set(hal::set_busy, milliseconds),
        Command::CountersReserved => Answer::CountersReserved(hal::reserved()),
        Command::Threads(command) => reply(threads::answer(command).map(Answer::Threads)),
        Command::PendingRequests => Answer::PendingRequests(requests::waiting()),
        Command::SystemThreads => Answer::SystemThreads(system_threads::running()),
        Command::CancelAt(moment) => {
            done(if cancel_race::arm(moment) { Ok(()) } else { refused("there is only one processor") })
        }
        Command::HideFrames(hide) => set(hal::hide_frames, hide),
        Command::StopDriver => reply(driver_end::stop().map(Answer::Stop)),
        Command::StopState => reply(driver_end::state_of_stop().map(Answer::Stop)),
        Command::RefuseHandler(refuse) => set(hal::refuse_handler, refuse),
        Command::Handler => Answer::Handler(handler()),
        Command::Descriptor => Answer::Descriptor(security::descriptor()),
        Command::Images => Answer::Names(loaded_images::names()),
        Command::SetStacks(stacks) => set(|stacks| MACHINE.kernel.tracing.set_stacks(stacks), stacks),
        Command::EnableProvider { provider, level, keywords, enabled } => {
            etw::enable(provider, enabled.then_some(Wanted { level, keywords }));
            Answer::Done
        }
        Command::Step(plan) => done(step(plan)),
        Command::Steps => reply(stepping::take().map(Answer::Steps).ok_or_else(|| IN_CALL.to_owned())),
        Command::Providers => Answer::Providers(MACHINE.kernel.tracing.providers()),
        Command::TakeEvents => Answer::Events(MACHINE.kernel.tracing.take()),
    }
}

fn accesses(state: &mut State) -> Accesses {
    let model::Accesses { rdmsr, wrmsr, rdpmc, faulted } = state.processor.accesses();
    Accesses { rdmsr, wrmsr, rdpmc, faulted }
}

/// Why the plan of a stepped call cannot be replaced.
const IN_CALL: &str = "a stepped call does not return";

fn step(plan: StepPlan) -> Result<(), String> {
    // The machine may sleep: the callback for the wake is a call, too.
    core(plan.processor)?;
    core(plan.target)?;
    if !MACHINE.time_mode.is_scripted() {
        return refused("the time is real");
    }
    if stepping::arm(plan) { Ok(()) } else { refused(IN_CALL) }
}

fn set_time(time: Time) {
    processors::set_time(time);
    deferred::time_changed();
    if time == Time::Script {
        deferred::flush(); // a tick of real time that a busy machine has not run yet belongs to no script
    }
}

fn set_phase(phase: Phase) {
    per_processor(|state| state.phase = Some(phase));
}

fn notify_power(arguments: [u64; 2]) {
    let [first, second] = arguments.map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    callbacks::notify_power(first, second);
}

/// Applies a setting that cannot be refused.
fn set<T>(change: fn(T), value: T) -> Answer {
    change(value);
    Answer::Done
}

fn per_processor<T>(mut body: impl FnMut(&mut State) -> T) -> Vec<T> {
    processors::active().iter().map(|core| core.with(&mut body)).collect()
}

fn refused<T>(why: &str) -> Result<T, String> {
    Err(why.to_owned())
}

fn reply(result: Result<Answer, String>) -> Answer {
    result.unwrap_or_else(Answer::Refused)
}

fn done(result: Result<(), String>) -> Answer {
    reply(result.map(|()| Answer::Done))
}

fn unloaded() -> Result<(), String> {
    if loaded_images::names().is_empty() { Ok(()) } else { refused("a driver is loaded") }
}

fn set_identity(name: &str) -> Result<(), String> {
    unloaded()?;
    if !processors::reset(name) {
        return Err(format!("there is no identity {name}"));
    }
    hal::set_unmasks(true);
    hal::set_information_size(CURRENT_INFORMATION_SIZE);
    hal::hide_frames(false);
    scheduled::reset();
    time::hold_clocks(false);
    system_information::reset();
    control_areas::reset();
    MACHINE.kernel.tracing.reset();
    MACHINE.faults.forget_stacks();
    MACHINE.time_mode.set_asleep(false);
    deferred::reset_timer_calls();
    deferred::set_timer_mode(model::TimerMode::Exact);
    Ok(())
}

fn set_processors(active: u32, maximum: u32) -> Result<(), String> {
    unloaded()?;
    if MACHINE.topology.set_counts(active, maximum) {
        Ok(())
    } else {
        refused("the machine cannot have so many processors")
    }
}

fn add_processor() -> Result<Answer, String> {
    if MACHINE.time_mode.is_asleep() {
        return refused(ASLEEP);
    }
    processor_change::add().map(Answer::Added).ok_or_else(|| "every processor is active".to_owned())
}

/// Accesses a processor as the test, not as the driver: the accesses are not counted.
fn uncounted<T>(
    processor: u32,
    access: impl FnOnce(&mut Processor) -> Result<T, GeneralProtection>,
) -> Result<T, String> {
    let (core, thread) = (core(processor)?, nt::current_thread());
    core.high_level.acquire(thread);
    let result = core.with(|state| state.processor.uncounted(access));
    core.high_level.release(thread);
    result.map_err(|fault| fault.to_string())
}

fn occupy(processor: u32) -> Result<(), String> {
    let number = core(processor)?.number;
    if control_areas::allocate_foreign(number) { Ok(()) } else { refused("the processor has a control area") }
}

fn set_debug_store(processor: u32, area: u64, debugctl: u64, misc_enable: Option<u64>) -> Result<(), String> {
    uncounted(processor, |cpu| {
        if let Some(value) = misc_enable {
            cpu.set_misc_enable(value);
        }
        for (register, value) in [(DS_AREA, area), (DEBUGCTL, debugctl)] {
            if value != 0 || cpu.rdmsr(register).is_ok() {
                cpu.wrmsr(register, value)?;
            }
        }
        Ok(())
    })
}

fn debug_store(state: &mut State) -> DebugStore {
    state.processor.uncounted(|cpu| {
        let [area, debugctl] = [DS_AREA, DEBUGCTL].map(|register| cpu.rdmsr(register).unwrap_or_default());
        let pebs_enable = cpu.rdmsr(PEBS_ENABLE).or_else(|_| cpu.rdmsr(PEBS_INDEX)).unwrap_or_default();
        DebugStore { area, debugctl, pebs_enable }
    })
}

fn ds_writes(state: &mut State) -> DsWrites {
    let model::Stored { branches, branches_refused, records, records_refused, faults } = state.processor.stored();
    DsWrites {
        branches: *branches,
        branches_dropped: *branches_refused,
        records: records.iter().map(|(id, count)| (counter(*id), *count)).collect(),
        records_dropped: *records_refused,
        faults: *faults,
    }
}

fn take_branches(processor: u32, branches: &[TakenBranch]) -> Result<(), String> {
    let core = scripted_core(processor)?;
    core.with(|state| branches.iter().for_each(|branch| state.processor.take_branch(&taken(*branch))));
    Ok(())
}

fn set_accesses(processor: u32, loads: &[[u64; 4]], stores: &[[u64; 4]]) -> Result<(), String> {
    let access = |[address, source, latency, instruction_latency]: &[u64; 4]| RecordedAccess {
        address: *address,
        source: *source,
        latency: *latency,
        instruction_latency: *instruction_latency,
    };
    let executed = loads.iter().filter_map(|[address, source, latency, modified]| {
        let source = *DataSource::ALL.get(usize::try_from(*source).ok()?)?;
        let latency = u16::try_from(*latency).ok()?;
        let (address, modified) = (*address, *modified != 0);
        let access = MemoryAccess { address, source, modified, latency, tlb_miss: false, locked: false };
        Some(ExecutedOp { ip: 0, cycles: 50, kind: OpKind::Load(access) })
    });
    let executed = executed.collect();
    let [loads, stores] = [loads, stores].map(|accesses| accesses.iter().map(access).collect());
    core(processor)?.with(|state| {
        state.processor.set_accesses(loads, stores);
        state.processor.set_ops(executed);
    });
    Ok(())
}

fn lose_last_branches(processor: u32) -> Result<(), String> {
    scripted_core(processor).map(|core| core.with(|state| state.processor.lose_last_branches()))
}

fn wake(milliseconds: u64) -> Result<(), String> {
    if power::wake(milliseconds) { Ok(()) } else { refused("the machine does not sleep") }
}

fn taken(TakenBranch { from, to, kind, mispredicted, cycles }: TakenBranch) -> model::TakenBranch {
    let kind = match kind {
        BranchKind::Conditional => model::BranchKind::Conditional,
        BranchKind::DirectJump => model::BranchKind::DirectJump,
        BranchKind::IndirectJump => model::BranchKind::IndirectJump,
        BranchKind::DirectCall => model::BranchKind::DirectCall,
        BranchKind::IndirectCall => model::BranchKind::IndirectCall,
        BranchKind::Return => model::BranchKind::Return,
        BranchKind::Far => model::BranchKind::Far,
    };
    model::TakenBranch { from, to, kind, mispredicted, cycles }
}

fn branch(processor: u32, user: bool, from: u64, step: u64, count: u64) -> Result<(), String> {
    let core = scripted_core(processor)?;
    let mode = if user { Mode::User } else { Mode::Kernel };
    let mut number = 0;
    loop {
        core.with(|state| {
            while number < count && !state.processor.interrupt_due() {
                let from = from.wrapping_add(step.wrapping_mul(number));
                let to = from.wrapping_add(BRANCH_LENGTH);
                state.processor.branch(mode, Branch { from, to, predicted: number.is_multiple_of(2) });
                number += 1;
            }
        });
        scripted_events::deliver_due(core)?;
        if number == count {
            return Ok(());
        }
    }
}

fn script_requests(processor: u32, script: Vec<ScriptedRequest>) -> Result<(), String> {
    scripted_core(processor)?;
    MACHINE.kernel.request_script.set(processor, script);
    Ok(())
}

fn tick(processor: u32, times: u64) -> Result<(), String> {
    let core = scripted_core(processor)?;
    if deferred::tick(core.number, times) { Ok(()) } else { refused("the processor stays at DISPATCH_LEVEL") }
}

fn set_interrupt_sites(processor: u32, sites: Vec<InterruptSite>) -> Result<(), String> {
    let core = core(processor)?;
    let no_weight = "no site has a weight";
    let clock_sites = InterruptSites::new(sites.clone()).ok_or(no_weight)?;
    let sites = InterruptSites::new(sites).ok_or(no_weight)?;
    core.with(|state| (state.sites, state.clock_sites) = (sites, clock_sites));
    Ok(())
}

fn handler() -> Handler {
    let registration = hal::handler().map(|registered| Registration {
        process: registered.process,
        system: registered.process == std::process::id(),
    });
    Handler { registration, delivered: per_processor(|state| state.delivered) }
}

fn set_faulting(registers: &[u32]) -> Answer {
    let faulting = || registers.iter().flat_map(|register| FaultingAccess::without(*register));
    per_processor(|state| state.processor.set_faulting(faulting()));
    Answer::Done
}

fn set_quirks(quirks: &[RegisterQuirk]) -> Answer {
    let quirk = |quirk: &RegisterQuirk| match *quirk {
        RegisterQuirk::Faults { register, bits } => Quirk::Faults { register, bits },
        RegisterQuirk::Drops { register, bits } => Quirk::Drops { register, bits },
        RegisterQuirk::Ignores { register } => Quirk::Ignores { register },
    };
    per_processor(|state| state.processor.set_quirks(quirks.iter().map(quirk)));
    Answer::Done
}

fn set_movement(processor: u32, shares: &[(Counter, u16)]) -> Result<(), String> {
    core(processor)?.with(|state| {
        for (counter, share) in shares {
            let id = match *counter {
                Counter::General(number) => CounterId::General(number),
                Counter::Fixed(number) => CounterId::Fixed(number),
                Counter::Metric(number) => CounterId::Metric(number),
            };
            let movement = match *share {
                0 => Movement::None,
                1_000.. => Movement::All,
                share => Movement::PerMille(share),
            };
            state.processor.set_movement(id, movement);
        }
    });
    Ok(())
}

fn set_interrupt_mode(mode: InterruptMode) -> Answer {
    let mode = match mode {
        InterruptMode::Edge => model::InterruptMode::Edge,
        InterruptMode::RaisedOnUnmask => model::InterruptMode::RaisedOnUnmask,
        InterruptMode::LostWhileMasked => model::InterruptMode::LostWhileMasked,
    };
    per_processor(|state| state.processor.set_interrupt_mode(mode));
    Answer::Done
}

const fn timer_mode(mode: TimerMode) -> model::TimerMode {
    match mode {
        TimerMode::Exact => model::TimerMode::Exact,
        TimerMode::Clock => model::TimerMode::Clock,
        TimerMode::Coarse => model::TimerMode::Coarse,
        TimerMode::Late => model::TimerMode::Late,
        TimerMode::Merged => model::TimerMode::Merged,
    }
}

fn counter(id: CounterId) -> Counter {
    match id {
        CounterId::General(number) => Counter::General(number),
        CounterId::Fixed(number) => Counter::Fixed(number),
        CounterId::Metric(number) => Counter::Metric(number),
    }
}

fn entry(entry: LedgerEntry) -> bench_protocol::LedgerEntry {
    let LedgerEntry { counter: id, selected, user, kernel, counted, between, overflows, interrupts, .. } = entry;
    let Selected { event, umask, .. } = selected;
    let counter = counter(id);
    bench_protocol::LedgerEntry { counter, event, umask, user, kernel, counted, between, overflows, interrupts }
}

fn enabled((id, selected): (CounterId, Selected)) -> EnabledCounter {
    let Selected { event, umask, cmask, invert, edge } = selected;
    EnabledCounter { counter: counter(id), event, umask, cmask, invert, edge }
}
