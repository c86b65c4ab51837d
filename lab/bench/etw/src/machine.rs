//! The script, the sessions, and the connection to the lab.

use crate::foreign::{counter, kill, processors, threads};
use bench_protocol::{Client, ProviderId, Refusal, TRACE_SCRIPT, TraceScript};
use etw_model::{Delivery, ProfileSources, Session, SessionError, SessionRequest, Sessions, SwitchModel};
use std::{
    collections::BTreeMap,
    env, fs,
    io::Write as _,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use windows_sys::Win32::Foundation::{ERROR_GEN_FAILURE, ERROR_WRITE_FAULT};

/// The file with the lab's port, and the time limit for the lab to answer.
const PORT_FILE: &str = "C:\\lab\\port";
const LAB_LIMIT: Duration = Duration::from_mins(1);

/// First line of the file of a session.
const NO_TRACE_FILE: &str = "This file is from halprof's test bench. It is not a trace file of Windows.";

static SCRIPT: OnceLock<TraceScript> = OnceLock::new();
static MACHINE: Mutex<Machine> = Mutex::new(Machine {
    sessions: Sessions::new(),
    running: BTreeMap::new(),
    refused: BTreeMap::new(),
    lab: None,
    sources: None,
    calls: 0,
    switches: BTreeMap::new(),
    worked: 0,
});

/// EVENT_TRACE_FLAG_CSWITCH.
const SWITCHES: u32 = 0x10;

/// Locks a mutex. A panic does not leave the data in a state that matters here.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the script from the environment.
pub fn read_script() -> Result<(), String> {
    let text = env::var(TRACE_SCRIPT).map_err(|error| format!("{TRACE_SCRIPT}: {error}"))?;
    let script = serde_json::from_str(&text).map_err(|error| format!("{TRACE_SCRIPT}: {error}"))?;
    SCRIPT.get_or_init(|| script);
    Ok(())
}

/// Returns the script.
pub fn script() -> &'static TraceScript {
    SCRIPT.get_or_init(TraceScript::default)
}

/// Returns the state of the stand-in.
pub fn machine() -> MutexGuard<'static, Machine> {
    lock(&MACHINE)
}

/// The events of a running session.
pub struct Running {
    /// Events on their way.
    pub delivery: Mutex<Delivery>,
    started: Instant,
    has_ended: AtomicBool,
}

impl Running {
    /// Returns the time since the session was started.
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns whether the session was stopped, after which no events are added.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }
}

/// The state of the stand-in.
pub struct Machine {
    /// The sessions.
    pub sessions: Sessions,
    running: BTreeMap<u64, Arc<Running>>,
    /// Number of refused calls of each function.
    refused: BTreeMap<String, u32>,
    lab: Option<Client>,
    sources: Option<ProfileSources>,
    /// Number of calls that change something.
    calls: u32,
    /// The scheduler of each session whose switches have counters.
    switches: BTreeMap<u64, SwitchModel>,
    /// Number of sessions in which the program executed known work.
    worked: usize,
}

impl Machine {
    /// Returns the error with which the script makes this call of a function fail.
    pub fn refusal(&mut self, function: &str) -> Option<u32> {
        if !function.starts_with("TraceQuery") && !function.starts_with("ProcessTrace") {
            self.calls += 1;
            if self.calls == script().hal.killed_at {
                kill();
            }
        }
        let Refusal { error, times, .. } = script().refusals.iter().find(|refusal| refusal.function == function)?;
        let refused = self.refused.entry(function.to_owned()).or_default();
        *refused += 1;
        (*refused <= *times).then_some(*error)
    }

    /// Starts a session and returns its handle. `time` is the performance counter.
    pub fn start(&mut self, request: SessionRequest, time: u64) -> Result<u64, SessionError> {
        let enable_flags = request.enable_flags;
        let left = left_sessions();
        if left.contains(&request.name) && self.sessions.find(0, Some(&request.name)).is_err() {
            self.sessions.start(request.clone())?; // that of a program that was killed
        }
        let name = request.name.clone();
        let handle = self.sessions.start(request)?;
        leave_sessions(left.into_iter().chain([name]));
        let mut delivery = Delivery::new(script().disorder.clone());
        for event in &script().system_events {
            if let Some(event) = etw_model::encode(event, enable_flags, time) {
                delivery.add_as_is(event);
            }
        }
        let (delivery, started) = (Mutex::new(delivery), Instant::now());
        self.running.insert(handle, Arc::new(Running { delivery, started, has_ended: AtomicBool::new(false) }));
        Ok(handle)
    }

    /// Returns the events of a session.
    pub fn running(&self, handle: u64) -> Option<Arc<Running>> {
        self.running.get(&handle).cloned()
    }

    /// Tells the lab what the sessions want of a provider.
    pub fn update_provider(&mut self, provider: ProviderId) -> Result<(), u32> {
        let wanted = self.sessions.wanted(&provider);
        ask(&mut self.lab, |lab| match wanted {
            Some((level, keywords)) => lab.enable_provider(provider, level, keywords),
            None => lab.disable_provider(provider),
        })
    }

    /// Returns the HAL's profile sources.
    pub fn sources(&mut self) -> &mut ProfileSources {
        self.sources.get_or_insert_with(|| ProfileSources::new(&script().hal))
    }

    /// Lets the schedulers run until now, and adds their events to the sessions.
    fn pull_switches(&mut self) {
        let wanted: Vec<u64> = self.running.keys().copied().collect();
        for handle in wanted {
            let has_switches = self.sessions.get(handle).is_some_and(|session| session.enable_flags & SWITCHES != 0);
            let switches = self.sources().of_switches(handle).filter(|_| has_switches).map(<[u32]>::to_vec);
            let samples = self.sources().of_samples(handle);
            let has_waits = has_switches && self.sources().walks_switches(handle);
            let Some(running) =
                self.running.get(&handle).filter(|_| switches.is_some() || samples.is_some() || has_waits)
            else {
                continue;
            };
            let (time, now) = (counter(), running.now());
            let model = self.switches.entry(handle).or_insert_with(|| {
                let mut script = script().hal.clone();
                if script.processors == 0 {
                    script.processors = processors();
                }
                let model = match samples {
                    Some((sources, with_stacks)) => SwitchModel::sampling(&script, sources, with_stacks, time),
                    None => SwitchModel::new(&script, &switches.unwrap_or_default(), time),
                };
                if has_waits { model.with_waits() } else { model }
            });
            let mut delivery = lock(&running.delivery);
            for event in model.run_until(time, &threads()) {
                delivery.add_of_kernel(event, now);
            }
            let changed = model.changed_interval();
            drop(delivery);
            if let Some((source, interval)) = changed {
                self.sources().set_interval(source, interval);
            }
        }
    }

    /// Takes the events that drivers have written and adds them to the sessions that want them.
    pub fn pull(&mut self) -> Result<(), u32> {
        self.pull_switches();
        if !self.running.keys().any(|one| self.sessions.get(*one).is_some_and(|session| !session.providers.is_empty()))
        {
            return Ok(()); // no driver writes for a session
        }
        let events = ask(&mut self.lab, Client::take_events)?;
        for (handle, running) in &self.running {
            let Some(session) = self.sessions.get(*handle) else { continue };
            let (mut delivery, now) = (lock(&running.delivery), running.now());
            for event in events.iter().filter(|event| is_wanted(session, event)) {
                delivery.add(event.clone(), session.has_stacks(&event.provider), now);
            }
        }
        Ok(())
    }

    /// Stops a session, after the last events have been added. Returns its events.
    pub fn stop(&mut self, handle: u64) -> Result<Option<Arc<Running>>, u32> {
        let providers = self.sessions.get(handle).map(|session| session.providers.clone()).unwrap_or_default();
        for provider in providers.keys() {
            if !self.is_enabled_elsewhere(handle, provider) {
                ask(&mut self.lab, |lab| lab.disable_provider(*provider))?;
            }
        }
        // Events that were written until then belong to the session.
        self.pull()?;
        self.execute_known_work(handle);
        let session = self.sessions.stop(handle);
        if let Some(Session { name, .. }) = &session {
            leave_sessions(left_sessions().into_iter().filter(|other| other != name));
        }
        for provider in providers.keys() {
            if self.sessions.wanted(provider).is_some() {
                self.update_provider(*provider)?;
            }
        }
        let running = self.running.remove(&handle);
        self.sources().forget(handle);
        if let (Some(model), Some(path)) = (self.switches.remove(&handle), &script().hal.ledger) {
            let ledger = serde_json::to_string(&model.ledger()).map_err(|_| ERROR_WRITE_FAULT)?;
            fs::write(path, ledger).map_err(|_| ERROR_WRITE_FAULT)?;
        }
        if let (Some(session), Some(running)) = (&session, &running) {
            running.has_ended.store(true, Ordering::Release);
            finish(session, running).map_err(|_| ERROR_WRITE_FAULT)?;
        }
        Ok(running)
    }

    /// Lets the program execute the known work of the script in a session that counts.
    fn execute_known_work(&mut self, handle: u64) {
        let work = script().hal.known_work.get(self.worked);
        if let (Some(work), Some(model), Some(running)) =
            (work, self.switches.get_mut(&handle), self.running.get(&handle))
        {
            self.worked += 1;
            for event in model.execute(work, counter()) {
                lock(&running.delivery).add_of_kernel(event, running.now());
            }
        }
    }

    fn is_enabled_elsewhere(&self, handle: u64, provider: &ProviderId) -> bool {
        let others = self.running.keys().filter(|other| **other != handle);
        others.filter_map(|other| self.sessions.get(*other)).any(|session| session.providers.contains_key(provider))
    }
}

/// Returns the names of the sessions that run, also those of programs that were killed.
fn left_sessions() -> Vec<String> {
    let names = script().hal.sessions.as_ref().and_then(|path| fs::read_to_string(path).ok());
    names.unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Writes the names of the sessions that run.
fn leave_sessions(names: impl Iterator<Item = String>) {
    if let Some(path) = &script().hal.sessions {
        // The test finds what is missing.
        let _ = fs::write(path, names.collect::<Vec<_>>().join("\n"));
    }
}

/// Sends a command to the lab, and connects to it if necessary. The connection stays, because the lab disables what it
/// enabled when it closes.
fn ask<T>(
    lab: &mut Option<Client>,
    command: impl FnOnce(&mut Client) -> Result<T, bench_protocol::Error>,
) -> Result<T, u32> {
    let report = |error: bench_protocol::Error| {
        eprintln!("etw.dll: {error}");
        ERROR_GEN_FAILURE
    };
    let lab = match lab {
        Some(lab) => lab,
        none => none.insert(Client::find(Path::new(PORT_FILE), LAB_LIMIT).map_err(report)?),
    };
    command(lab).map_err(report)
}

/// Returns whether a session wants an event.
fn is_wanted(session: &Session, event: &bench_protocol::WrittenEvent) -> bool {
    session.providers.get(&event.provider).is_some_and(|wanted| wanted.includes(event.level, event.keyword))
}

/// Writes the file of a session that is not in real time, and the report for the test.
fn finish(session: &Session, running: &Running) -> std::io::Result<()> {
    let mut delivery = lock(&running.delivery);
    if let Some(report) = &script().report {
        fs::write(report, serde_json::to_string(delivery.report())?)?;
    }
    if let Some(path) = session.file.as_ref().filter(|_| !session.is_real_time()) {
        let mut file = fs::File::create(path)?;
        writeln!(file, "{NO_TRACE_FILE}")?;
        delivery.finish().into_iter().try_for_each(|event| writeln!(file, "{event:?}"))?;
    }
    Ok(())
}
