//! The sampled processes and their modules.
//!
//! A process is queried when its first sample arrives, and again after 50 ms, 100 ms, 200 ms and so on while samples of
//! it arrive. This finds modules that it loads later, at a cost that grows with the logarithm of its lifetime. At the
//! end, every process with samples since its last query is queried once more. The process of the command is queried
//! from its start, and at least once per second.
//!
//! Windows gives the ID of a process that has ended to another one. While samples arrive, the time at which each
//! process was created is compared once per second: a process with a new time is another one. A process that has ended
//! is forgotten when its last samples have arrived, so memory grows with the running processes only.
//!
//! With a trace session, `traced` adds what it tells: processes that ended before they were queried, and modules that
//! were unloaded.

pub mod image;

mod traced;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use recording::{KERNEL, Module, Process};

use self::traced::TracedProcess;
use crate::processes::image::Image;
use system::{LoadedModule, ProcessSource, RunningProcess};
use user_error::win32;

/// Time between the first and the second query of a process.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Maximum time between two queries of the command.
const COMMAND_PAUSE: Duration = Duration::from_secs(1);

/// Time between two comparisons with the running processes.
const REFRESH: Duration = Duration::from_secs(1);

/// Time without samples after which a process that has ended is forgotten.
const FORGET: Duration = Duration::from_secs(10);

/// Number of files from which on those that no process has loaded are forgotten.
const MANY_IMAGES: usize = 4_096;

/// The idle process, which has no name in Windows.
const IDLE: u32 = 0;

/// Modules that every process of one boot maps at the same address. `client.exe` has them as well.
const SHARED: [&str; 3] = ["ntdll.dll", "kernel32.dll", "KernelBase.dll"];

/// The processes found so far.
#[derive(Debug, Default)]
pub struct Processes {
    tracked: BTreeMap<u32, TrackedProcess>,
    /// Processes to query, each once.
    scheduled: VecDeque<u32>,
    command: Option<u32>,
    /// Whether the last query of the kernel was refused.
    is_kernel_hidden: bool,
    images: Images,
    /// Time of the last comparison with the running processes.
    refreshed: Option<Instant>,
    /// What the trace session reported, by process ID.
    from_trace: BTreeMap<u32, TracedProcess>,
    /// Number of methods in `traced`.
    methods_from_trace: usize,
    /// Time within which two times of creation can be those of one process, in units of the clock of samples.
    slack: u64,
}

/// Identities of files by path. Most processes load the same modules, and share their paths.
#[derive(Debug, Default)]
struct Images {
    by_path: HashMap<Arc<Path>, Option<Image>>,
    /// Number of files at which those that no process has loaded are forgotten.
    limit: usize,
}

impl Images {
    /// Returns the identity of a file with its shared path.
    fn get(&mut self, path: PathBuf) -> (Arc<Path>, Option<&Image>) {
        if !self.by_path.contains_key(path.as_path()) {
            if self.by_path.len() >= self.limit.max(MANY_IMAGES) {
                self.by_path.retain(|path, _| Arc::strong_count(path) > 1);
                self.limit = 2 * self.by_path.len();
            }
            let image = Image::read(&path);
            self.by_path.insert(path.clone().into(), image);
        }
        match self.by_path.get_key_value(path.as_path()) {
            Some((path, image)) => (Arc::clone(path), image.as_ref()),
            None => (path.into(), None),
        }
    }
}

/// A module without its own copy of the path.
type SharedModule = (u64, u64, Arc<Path>);

#[derive(Debug)]
struct TrackedProcess {
    name: String,
    /// As [`RunningProcess::created`].
    created: u64,
    /// As [`RunningProcess::created_on_clock`] when it was found.
    created_on_clock: Option<u64>,
    /// Modules that it had at the last query. They were reported.
    modules: HashSet<SharedModule>,
    is_reported: bool,
    is_scheduled: bool,
    /// Whether it has samples since its last query.
    has_samples: bool,
    /// When its last samples arrived.
    sampled: Instant,
    pause: Duration,
    /// Time of the next query.
    due: Instant,
}

/// The running processes, listed when they are needed first.
#[derive(Debug, Default)]
pub struct ProcessList(Option<HashMap<u32, RunningProcess>>);

impl ProcessList {
    fn get(&mut self, source: &dyn ProcessSource) -> &HashMap<u32, RunningProcess> {
        self.0.get_or_insert_with(|| {
            let running = source.processes().unwrap_or_default();
            running.into_iter().map(|process| (process.id, process)).collect()
        })
    }
}

impl Processes {
    /// Returns the kernel with the modules that were not reported before; `None` if nothing changed.
    pub fn query_kernel(&mut self, source: &dyn ProcessSource, now: Instant) -> Option<Process> {
        let tracked = self.tracked.entry(KERNEL).or_insert_with(|| TrackedProcess::new(now));
        "kernel".clone_into(&mut tracked.name);
        let modules = source.kernel_modules();
        self.is_kernel_hidden = modules.is_err();
        self.report_new(KERNEL, modules.unwrap_or_default())
    }

    /// Returns whether the last query of the kernel was refused, so that its modules have no names.
    #[must_use]
    pub fn is_kernel_hidden(&self) -> bool {
        self.is_kernel_hidden
    }

    /// Tracks the process of the command, which has started.
    pub fn track_command(&mut self, command: u32, now: Instant) {
        self.command = Some(command);
        self.schedule_process(command, now);
    }

    /// Schedules queries of the processes that have new samples.
    pub fn schedule(&mut self, sampled: impl IntoIterator<Item = u32>, now: Instant) {
        for id in sampled {
            let tracked = self.schedule_process(id, now);
            tracked.has_samples = true;
            tracked.sampled = now;
        }
        if let Some(command) = self.command {
            self.schedule_process(command, now);
        }
    }

    /// Compares the processes with the running ones, at most once per second. Schedules those with the ID of another
    /// one that has ended, and forgets those that have ended.
    pub fn refresh(&mut self, source: &dyn ProcessSource, running: &mut ProcessList, now: Instant) {
        if self.refreshed.is_some_and(|last| now < last + REFRESH) {
            return;
        }
        self.refreshed = Some(now);
        let running = running.get(source);
        if running.is_empty() {
            return; // They cannot be listed.
        }
        let Self { tracked, scheduled, from_trace, slack, .. } = self;
        tracked.retain(|id, process| match running.get(id) {
            _ if *id == KERNEL || *id == IDLE => true,
            Some(new) if process.is_other(new, *slack) => {
                if !process.is_scheduled {
                    scheduled.push_back(*id);
                }
                *process = TrackedProcess { is_scheduled: true, ..process.successor(now) };
                true
            }
            Some(_) => true,
            None => process.is_scheduled || now < process.sampled + FORGET,
        });
        let mut forgotten = 0;
        from_trace.retain(|id, process| {
            let is_kept = tracked.contains_key(id) || running.contains_key(id) || now < process.told + FORGET;
            forgotten += if is_kept { 0 } else { process.methods.len() };
            is_kept
        });
        self.methods_from_trace = self.methods_from_trace.saturating_sub(forgotten);
    }

    /// Schedules a last query of every process with samples since its last one.
    pub fn schedule_last(&mut self) {
        for (id, tracked) in &mut self.tracked {
            if tracked.has_samples && !tracked.is_scheduled {
                tracked.is_scheduled = true;
                self.scheduled.push_back(*id);
            }
        }
    }

    fn schedule_process(&mut self, id: u32, now: Instant) -> &mut TrackedProcess {
        let tracked = self.tracked.entry(id).or_insert_with(|| TrackedProcess::new(now));
        if !tracked.is_scheduled && now >= tracked.due {
            tracked.is_scheduled = true;
            self.scheduled.push_back(id);
        }
        tracked
    }

    /// Queries the process that was scheduled first, and passes what is new of it to `report`. Returns whether a
    /// process was scheduled.
    pub fn query_next(
        &mut self,
        source: &dyn ProcessSource,
        running: &mut ProcessList,
        now: Instant,
        report: impl FnOnce(Process),
    ) -> bool {
        let Some(id) = self.scheduled.pop_front() else { return false };
        self.begin_query(id, now, source, running);
        if let Some(change) = self.report_new(id, modules(source, id)) {
            report(change);
        }
        true
    }

    /// Returns the time of the next query of the command.
    #[must_use]
    pub fn next_query(&self) -> Option<Instant> {
        self.command.and_then(|command| self.tracked.get(&command)).map(|tracked| tracked.due)
    }

    fn begin_query(&mut self, id: u32, now: Instant, source: &dyn ProcessSource, running: &mut ProcessList) {
        let Some(tracked) = self.tracked.get_mut(&id) else { return };
        let found = running.get(source).get(&id);
        if found.is_some_and(|found| tracked.is_other(found, self.slack)) {
            *tracked = tracked.successor(now);
        }
        if let Some(started) = self.from_trace.get(&id)
            && started.is_after(tracked.created_on_clock, self.slack)
            && !found.is_some_and(|found| started.is_before(found.created_on_clock, self.slack))
        {
            *tracked = tracked.successor(now);
            tracked.created_on_clock = started.created;
            started.name.clone_into(&mut tracked.name);
        }
        tracked.is_scheduled = false;
        tracked.has_samples = false;
        tracked.due = now + tracked.pause;
        tracked.pause *= 2;
        if self.command == Some(id) {
            tracked.pause = tracked.pause.min(COMMAND_PAUSE);
        }
        if tracked.name.is_empty() {
            if id == IDLE {
                "Idle".clone_into(&mut tracked.name);
            } else if let Some(process) = found {
                process.name.clone_into(&mut tracked.name);
                tracked.created = process.created;
                tracked.created_on_clock = process.created_on_clock;
            }
            // A process that was reported without a name is reported again with it.
            tracked.is_reported &= tracked.name.is_empty();
        } else if let Some(process) = found {
            tracked.created = process.created;
        }
    }

    fn report_new(&mut self, id: u32, found: Vec<LoadedModule>) -> Option<Process> {
        let Self { tracked, images, from_trace, .. } = self;
        let tracked = tracked.get_mut(&id)?;
        let (mut modules, mut new) = (HashSet::with_capacity(found.len()), Vec::new());
        // Before those that it has now, which may have taken their place.
        let mut loaded =
            from_trace.get_mut(&id).map(|from_trace| std::mem::take(&mut from_trace.modules)).unwrap_or_default();
        loaded.retain(|module| !found.contains(module));
        for LoadedModule { base, size, path } in loaded {
            let (path, image) = images.get(path);
            let module = (base, size, path);
            if !tracked.modules.contains(&module) {
                new.push(describe(&module, image));
            }
        }
        for LoadedModule { base, size, path } in found {
            let (path, image) = images.get(path);
            let module = (base, size, path);
            if !tracked.modules.contains(&module) {
                new.push(describe(&module, image));
            }
            modules.insert(module);
        }
        // A process that cannot be queried any more has ended or is ending: its modules were those of the last query.
        if !modules.is_empty() {
            tracked.modules = modules;
        }
        if tracked.is_reported && new.is_empty() {
            return None;
        }
        tracked.is_reported = true;
        Some(Process { id, created: tracked.created_on_clock, name: tracked.name.clone(), modules: new })
    }
}

fn describe((base, size, path): &SharedModule, image: Option<&Image>) -> Module {
    let (timestamp, image_size, debug) = match image {
        Some(image) if image.matches_module_size(*size) => (image.timestamp, image.size, image.debug.clone()),
        _ => (0, 0, None),
    };
    let path = path.to_string_lossy().into_owned();
    Module { base: *base, size: *size, path, timestamp, image_size, debug }
}

/// Returns the modules of a process. Windows refuses to list those of a protected process (PPL), such as Defender's;
/// of these, the modules that all processes share are known.
fn modules(source: &dyn ProcessSource, id: u32) -> Vec<LoadedModule> {
    match source.modules(id) {
        Ok(modules) => modules,
        Err(error) if error.raw_os_error() == Some(win32::ERROR_ACCESS_DENIED) && id != IDLE && id != KERNEL => {
            let own = source.modules(std::process::id()).unwrap_or_default();
            own.into_iter().filter(is_shared).collect()
        }
        Err(_) => Vec::new(),
    }
}

fn is_shared(module: &LoadedModule) -> bool {
    let path = module.path.to_string_lossy();
    let name = path.rsplit('\\').next().unwrap_or_default();
    SHARED.iter().any(|shared| shared.eq_ignore_ascii_case(name))
}

impl TrackedProcess {
    /// Returns whether the running process with the same ID is another one.
    fn is_other(&self, running: &RunningProcess, slack: u64) -> bool {
        match (self.created, self.created_on_clock, running.created_on_clock) {
            (0, Some(started), Some(running)) => started.abs_diff(running) > slack,
            (0, ..) => false,
            (created, ..) => created != running.created,
        }
    }

    /// Returns the process that has the ID now, and the last samples.
    fn successor(&self, now: Instant) -> Self {
        Self { has_samples: self.has_samples, sampled: self.sampled, ..Self::new(now) }
    }

    fn new(now: Instant) -> Self {
        Self {
            name: String::new(),
            created: 0,
            created_on_clock: None,
            modules: HashSet::new(),
            is_reported: false,
            is_scheduled: false,
            has_samples: false,
            sampled: now,
            pause: FIRST_PAUSE,
            due: now,
        }
    }
}

#[cfg(test)]
mod day;

#[cfg(test)]
mod tests {
    use protocol::{LostRecord, PreciseKind, SampleRecord, UNKNOWN};

    use super::*;
    use crate::sampled;
    use fake_system::{FakeDriver, FakeSystem, module, precise_sample, sample};
    use system::System;

    fn system() -> FakeSystem {
        let system = FakeSystem::running(FakeDriver::default());
        system.processes.replace(vec![(4, "System".into()), (12, "app.exe".into())]);
        system.modules.borrow_mut().insert(12, vec![module(0x40_0000, "app.exe")]);
        system
    }

    /// Schedules the processes of the samples, as when they were fetched.
    fn schedule(processes: &mut Processes, records: &[SampleRecord], now: Instant) {
        processes.schedule(sampled(records), now);
    }

    fn query_scheduled(processes: &mut Processes, system: &FakeSystem, now: Instant) -> Vec<Process> {
        let (source, mut running, mut changes) = (system.process_source(), ProcessList::default(), Vec::new());
        while processes.query_next(&*source, &mut running, now, |change| changes.push(change)) {}
        changes
    }

    fn query_kernel(processes: &mut Processes, system: &FakeSystem, now: Instant) -> Vec<Process> {
        processes.query_kernel(&*system.process_source(), now).into_iter().collect()
    }

    /// IDs, names and bases of modules.
    fn module_bases(changes: &[Process]) -> Vec<(u32, &str, Vec<u64>)> {
        let bases = |process: &Process| process.modules.iter().map(|module| module.base).collect();
        changes.iter().map(|process| (process.id, process.name.as_str(), bases(process))).collect()
    }

    #[test]
    fn a_process_is_reported_at_its_first_sample_and_again_with_new_modules() {
        let (system, begin) = (system(), Instant::now());
        let mut processes = Processes::default();
        schedule(&mut processes, &[sample(12, 1), sample(12, 2), sample(0, 3), sample(99, 4)], begin);
        let changes = query_scheduled(&mut processes, &system, begin);
        assert_eq!(module_bases(&changes), [(12, "app.exe", vec![0x40_0000]), (0, "Idle", vec![]), (99, "", vec![])]);

        system.modules.borrow_mut().get_mut(&12).unwrap().push(module(0x50_0000, "late.dll"));
        system.processes.borrow_mut().push((99, "slow.exe".into()));
        let later = begin + Duration::from_secs(1);
        schedule(&mut processes, &[sample(12, 1), sample(0, 3), sample(99, 4)], later);
        let changes = query_scheduled(&mut processes, &system, later);
        assert_eq!(module_bases(&changes), [(12, "app.exe", vec![0x50_0000]), (99, "slow.exe", vec![])]);
    }

    #[test]
    fn the_time_between_queries_doubles_up_to_a_second_for_the_command() {
        let (system, begin) = (system(), Instant::now());
        let mut processes = Processes::default();
        processes.track_command(12, begin);
        let mut looks: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for milliseconds in 0..5_000 {
            let now = begin + Duration::from_millis(milliseconds);
            // The command is queried although it is never sampled.
            schedule(&mut processes, &[sample(4, milliseconds)], now);
            for id in &processes.scheduled {
                looks.entry(*id).or_default().push(milliseconds);
            }
            query_scheduled(&mut processes, &system, now);
        }
        assert_eq!(looks[&4], [0, 50, 150, 350, 750, 1_550, 3_150]);
        assert_eq!(looks[&12], [0, 50, 150, 350, 750, 1_550, 2_550, 3_550, 4_550]);
    }

    #[test]
    fn a_process_without_samples_is_not_queried_again() {
        let (system, begin) = (system(), Instant::now());
        let mut processes = Processes::default();
        schedule(&mut processes, &[sample(12, 1)], begin);
        assert!(!processes.scheduled.is_empty());
        query_scheduled(&mut processes, &system, begin);
        let later = begin + Duration::from_mins(1);
        schedule(&mut processes, &[], later);
        let lost = LostRecord::new(1, 0, 0x13, 77).into();
        schedule(&mut processes, &[lost, precise_sample(UNKNOWN, PreciseKind::Precise)], later);
        assert!(processes.scheduled.is_empty(), "only samples with a process schedule a query");
        schedule(&mut processes, &[precise_sample(78, PreciseKind::Precise)], later);
        assert!(!processes.scheduled.is_empty(), "a precise record is a sample");
    }

    #[test]
    fn a_protected_process_has_its_name_and_the_modules_that_all_processes_share() {
        let (system, begin) = (system(), Instant::now());
        let path = |name: &str| format!(r"C:\Windows\System32\{name}");
        let own =
            [module(0x7FF0, &path("ntdll.dll")), module(0x1_0000, &path("user32.dll")), module(0x2_0000, "client")];
        system.modules.borrow_mut().insert(std::process::id(), own.to_vec());
        system.processes.borrow_mut().push((77, "MsMpEng.exe".into()));
        let mut processes = Processes::default();
        schedule(&mut processes, &[sample(77, 1)], begin);
        let changes = query_scheduled(&mut processes, &system, begin);
        assert_eq!(module_bases(&changes), [(77, "MsMpEng.exe", vec![0x7FF0])]);
    }

    #[test]
    fn the_last_query_covers_processes_that_are_not_due() {
        let (system, begin) = (system(), Instant::now());
        let mut processes = Processes::default();
        schedule(&mut processes, &[sample(4, 1), sample(12, 2)], begin);
        assert_eq!(query_scheduled(&mut processes, &system, begin).len(), 2);
        system.modules.borrow_mut().get_mut(&12).unwrap().push(module(0x50_0000, "late.dll"));
        schedule(&mut processes, &[sample(12, 3)], begin + FIRST_PAUSE / 2);
        assert!(processes.scheduled.is_empty(), "no process is due");
        processes.schedule_last();
        assert_eq!(processes.scheduled, [12], "the other one has no sample since its last query");
        let changes = query_scheduled(&mut processes, &system, begin);
        assert_eq!(module_bases(&changes), [(12, "app.exe", vec![0x50_0000])]);
    }

    #[test]
    fn the_kernel_is_reported_once_and_again_with_a_new_driver() {
        let (system, begin) = (system(), Instant::now());
        let mut processes = Processes::default();
        system.kernel.borrow_mut().push(module(0xF000_0000, "ntoskrnl.exe"));
        let first: Vec<Process> = query_kernel(&mut processes, &system, begin);
        assert_eq!(module_bases(&first), [(KERNEL, "kernel", vec![0xF000_0000])]);
        assert_eq!(query_kernel(&mut processes, &system, begin), []);
        system.kernel.borrow_mut().push(module(0xF100_0000, "late.sys"));
        let second: Vec<Process> = query_kernel(&mut processes, &system, begin);
        assert_eq!(module_bases(&second), [(KERNEL, "kernel", vec![0xF100_0000])]);
    }

    #[test]
    fn a_module_has_the_identity_of_its_file_only_if_the_sizes_match() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.dll");
        std::fs::write(&path, fake_system::payloads::tiny_image()).unwrap();
        let (system, begin) = (system(), Instant::now());
        let of = |base, size| LoadedModule { base, size, path: path.clone() };
        system
            .modules
            .borrow_mut()
            .insert(12, vec![of(0x1_0000, 0x3000), of(0x2_0000, 0x4000), module(0x3_0000, "no.dll")]);
        let mut processes = Processes::default();
        processes.track_command(12, begin);
        let [process] = &query_scheduled(&mut processes, &system, begin)[..] else { panic!() };
        let identities: Vec<_> = process
            .modules
            .iter()
            .map(|module| (module.timestamp, module.image_size, module.debug.is_some()))
            .collect();
        assert_eq!(identities, [(0x5F00_0001, 0x3000, true), (0, 0, false), (0, 0, false)]);
    }
}
