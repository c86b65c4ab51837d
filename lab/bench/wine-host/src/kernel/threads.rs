//! The threads of programs on the processors.

use crate::{
    cpu::{affinity, processors},
    lock::lock,
    nt,
    state::{
        machine::MACHINE,
        threads::{ThreadState, numbers, thread_id},
    },
    violation,
};
use bench_protocol::{EventCount, Scheduling, ThreadAnswer, ThreadCall, ThreadData, ThreadLedger, thread_memory};
use scheduler::{Mode, Processors, ProfileHandle, ProfilingData, ThreadId};
use std::{
    fs::{self, File},
    os::windows::fs::FileExt,
    sync::{MutexGuard, PoisonError, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

/// The interval at which a thread checks whether the machine is awake.
const POLL: Duration = Duration::from_millis(5);

/// The processors of the lab.
struct LabProcessors;

impl Processors for LabProcessors {
    fn execute(&mut self, processor: u32, mode: Mode, events: &[EventCount]) {
        let Some(core) = processors::find(processor) else { return };
        let mode = match mode {
            Mode::User => model::Mode::User,
            Mode::Kernel => model::Mode::Kernel,
        };
        // The threads of programs do not run while the processor is at HIGH_LEVEL.
        let own = nt::current_thread();
        core.high_level.acquire(own);
        let interrupts = core.with(|state| {
            state.run(mode, events);
            state.processor.interrupt_due()
        });
        core.high_level.release(own);
        if interrupts && !core.pmi.notify_and_wait() {
            violation::other("a processor stays at HIGH_LEVEL, and its threads do not run");
        }
    }

    fn read_counter(&mut self, processor: u32, index: u64) -> u64 {
        let Some(core) = processors::find(processor) else { return 0 };
        let register = u32::try_from(index).unwrap_or(u32::MAX);
        let value = core.with(|state| state.processor.uncounted(|cpu| cpu.rdpmc(register)));
        value.unwrap_or_else(|_| {
            violation::other(format!("Windows reads the configured counter {index:#x} on CPU {processor}: #GP"));
            0
        })
    }
}

/// Returns the state when no driver serves a request of a thread.
fn unoccupied() -> Result<MutexGuard<'static, ThreadState>, String> {
    let deadline = Instant::now() + nt::HANG_LIMIT;
    let threads = &MACHINE.kernel.threads;
    let mut state = lock(&threads.state);
    while state.in_request.is_some() {
        let left = deadline.checked_duration_since(Instant::now()).ok_or("a driver does not return from a request")?;
        state = threads.served.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    Ok(state)
}

/// Returns CR4.PCE of a processor. It takes no lock: a driver asks at HIGH_LEVEL.
pub fn rdpmc_works_on(processor: u32) -> bool {
    MACHINE.kernel.threads.user_rdpmc.load(Ordering::SeqCst).checked_shr(processor).unwrap_or_default() & 1 == 1
}

/// Opens the memory of a thread that profiles. Its program maps the file.
fn open_memory(thread: ThreadId) -> Option<File> {
    let (process, number) = numbers(thread);
    File::options().write(true).open(thread_memory(process, number)).ok()
}

/// Writes the profiles of all threads to the memory of their programs, and CR4 of each processor.
fn publish(state: &mut ThreadState) {
    let ThreadState { scheduler, memories, .. } = state;
    let works = (0..scheduler.processors()).filter(|processor| scheduler.rdpmc_works_on(*processor));
    let works = works.fold(0_u64, |mask, processor| mask | 1_u64.checked_shl(processor).unwrap_or_default());
    MACHINE.kernel.threads.user_rdpmc.store(works, Ordering::SeqCst);
    for (thread, file) in memories {
        if let Some(memory) = scheduler.performance_data(*thread)
            && let Err(error) = file.seek_write(&memory, 0)
        {
            violation::other(format!("the memory of a profile cannot be written: {error}"));
        }
    }
}

/// Forgets all threads and the configuration.
pub fn reset() {
    let state = std::mem::take(&mut *lock(&MACHINE.kernel.threads.state));
    state.programs.into_values().for_each(nt::close_process);
}

/// Ends the threads of programs that have ended.
pub fn end_threads(state: &mut ThreadState) {
    let ended = state.programs.extract_if(.., |_, handle| nt::has_ended(*handle));
    for (process, handle) in ended.collect::<Vec<_>>() {
        nt::close_process(handle);
        let threads: Vec<ThreadId> = state.scheduler.threads().filter(|thread| numbers(*thread).0 == process).collect();
        for thread in threads {
            state.scheduler.end(&mut LabProcessors, thread);
            if state.memories.remove(&thread).is_some() {
                // The next profile of a thread with this number would replace it anyway.
                let _ = fs::remove_file(thread_memory(process, numbers(thread).1));
            }
        }
    }
}

/// A program starts whose threads are scheduled.
pub fn start_program(process: u32, scheduling: Scheduling) -> Result<(), String> {
    let handle = nt::open_process(process).ok_or("there is no such process")?;
    let mut state = unoccupied()?;
    end_threads(&mut state);
    state.programs.insert(process, handle).into_iter().for_each(nt::close_process);
    state.scheduler.set_processors(&mut LabProcessors, MACHINE.topology.active());
    state.scheduler.set_behavior(scheduling);
    Ok(())
}

/// Returns the ledgers of the threads whose programs have ended, and forgets them.
pub fn take_ledgers() -> Result<Vec<ThreadLedger>, String> {
    let mut state = unoccupied()?;
    end_threads(&mut state);
    let ThreadState { scheduler, programs, .. } = &mut *state;
    let ended = scheduler.take_ended(|thread| !programs.contains_key(&numbers(thread).0));
    let report = |(thread, ledger): (ThreadId, scheduler::Ledger)| {
        let (process, number) = numbers(thread);
        ledger.report(process, number)
    };
    Ok(ended.into_iter().map(report).collect())
}

/// Does what a thread of a program does.
pub fn call(process: u32, number: u32, call: ThreadCall) -> Result<ThreadAnswer, String> {
    wait_until_awake()?;
    if !MACHINE.time_mode.is_scripted() {
        return Err("the time is real".to_owned());
    }
    let mut state = unoccupied()?;
    if !state.programs.contains_key(&process) {
        return Err(format!("no program was started with the process {process}"));
    }
    let state = &mut *state;
    let (scheduler, machine) = (&mut state.scheduler, &mut LabProcessors);
    let thread = thread_id(process, number);
    let of = |target| thread_id(process, target);
    let result = match call {
        ThreadCall::Execute(work) => {
            scheduler.run(machine, thread, &work);
            Ok(ThreadAnswer::Done)
        }
        ThreadCall::Enable { target, flags, mask } => {
            let enabled = scheduler.enable(machine, thread, of(target), flags, mask);
            if enabled.is_ok() {
                state.memories.extend(open_memory(thread).map(|file| (thread, file)));
            }
            enabled.map(|ProfileHandle(handle)| ThreadAnswer::Handle(handle))
        }
        ThreadCall::Read { handle, flags } => {
            scheduler.read(machine, thread, ProfileHandle(handle), flags).map(|data| ThreadAnswer::Data(report(&data)))
        }
        ThreadCall::Disable { handle } => {
            let disabled = scheduler.disable(machine, thread, ProfileHandle(handle));
            if disabled.is_ok() {
                state.memories.remove(&thread);
            }
            disabled.map(|()| ThreadAnswer::Done)
        }
        ThreadCall::Query { target } => scheduler.query(machine, thread, of(target)).map(ThreadAnswer::Profiles),
        ThreadCall::SetAffinity { target, mask } => {
            scheduler.set_affinity(machine, thread, of(target), mask).map(ThreadAnswer::Affinity)
        }
        ThreadCall::Affinity { target } => Ok(ThreadAnswer::Affinity(scheduler.affinity(of(target)))),
        ThreadCall::CurrentProcessor => Ok(ThreadAnswer::Processor(scheduler.current_processor(machine, thread))),
        ThreadCall::ProcessorCount => Ok(ThreadAnswer::ProcessorCount(scheduler.processors())),
        ThreadCall::Ledger => Ok(ThreadAnswer::Ledger(scheduler.ledger(thread).report(process, number))),
        ThreadCall::SleepTime => Ok(ThreadAnswer::SleepTime(MACHINE.clock_offsets.slept())),
        ThreadCall::End => {
            scheduler.end(machine, thread);
            Ok(ThreadAnswer::Done)
        }
    };
    publish(state);
    Ok(result.unwrap_or_else(|error| ThreadAnswer::Failed(error.0)))
}

fn report(data: &ProfilingData) -> ThreadData {
    let ProfilingData { counter_count, context_switches, wait_reasons, cycles, retries, counters } = *data;
    ThreadData { counter_count, context_switches, wait_reasons, cycles, retries, counters: counters.to_vec() }
}

fn wait_until_awake() -> Result<(), String> {
    let begun = Instant::now();
    while MACHINE.time_mode.is_asleep() {
        if begun.elapsed() > nt::HANG_LIMIT {
            return Err("the machine sleeps".to_owned());
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// Calls `serve`, which lets a driver serve a request, on the processor of the thread that sent it. Other senders than
/// scheduled threads have none.
pub fn with_request<T>(serve: impl FnOnce() -> T) -> T {
    match begin_request() {
        Some((thread, processor)) => {
            let result = affinity::with_scheduled(processor, serve);
            end_request(thread);
            result
        }
        None => serve(),
    }
}

fn begin_request() -> Option<(ThreadId, u32)> {
    let process = nt::current_process();
    let is_scheduled = MACHINE.time_mode.is_scripted() && !MACHINE.time_mode.is_asleep();
    if !is_scheduled || !lock(&MACHINE.kernel.threads.state).programs.contains_key(&process) {
        return None;
    }
    let thread = thread_id(process, nt::client_thread());
    // Wine serves one request at a time, so this does not wait for another one.
    let mut state = unoccupied().ok()?;
    let processor = state.scheduler.begin_request(&mut LabProcessors, thread);
    publish(&mut state);
    state.in_request = Some(thread);
    Some((thread, processor))
}

fn end_request(thread: ThreadId) {
    let mut state = lock(&MACHINE.kernel.threads.state);
    // A program can be terminated during the request.
    if state.programs.contains_key(&numbers(thread).0) {
        state.scheduler.end_request(&mut LabProcessors, thread);
        publish(&mut state);
    }
    state.in_request = None;
    MACHINE.kernel.threads.served.notify_all();
}
