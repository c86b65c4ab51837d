//! Where the numbers and profiles go: the endpoint, the collector, the folder and the server of the configuration.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use agent::config::{Config, Profiles};
use agent::profiles::{Folder, Profile, Push};
use agent::{Latest, Otlp, Server, ServerError, StartError};
use thiserror::Error as ThisError;

use super::profiling::{ProfileError, Profiled, Profiling, Taken};
use system::System;
use user_error::UserError;
use user_error::exit::Exit;

/// Longest time until the end is noticed.
pub const ATTENTION: Duration = Duration::from_millis(200);

/// Returns this machine, for a thread of its own.
pub type NewSystem = fn() -> Option<Box<dyn System>>;

/// Why an output cannot begin.
#[derive(Debug, ThisError)]
pub enum OutputsError {
    /// The endpoint cannot begin.
    #[error("[prometheus] cannot be used")]
    Prometheus(#[source] ServerError),
    /// The export to a collector cannot begin.
    #[error("[otlp] cannot be used")]
    Otlp(#[source] StartError),
    /// Profiles cannot be sent.
    #[error("[profiles.push] cannot be used")]
    Push(#[source] StartError),
    /// Profiles cannot be written.
    #[error("the folder {folder} in [profiles] cannot be used")]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Error of the system.
        #[source]
        cause: std::io::Error,
    },
    /// The event of profiles cannot be used.
    #[error(transparent)]
    Profiling(#[from] ProfileError),
    /// The thread that takes profiles cannot begin.
    #[error("cannot start a thread for profiles")]
    Thread(#[source] std::io::Error),
}

impl UserError for OutputsError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::Prometheus(ServerError::Listen { .. }) => {
                "another port in listen, or end what listens there (netstat -ano shows its process)"
            }
            _ => ".\\client agent example   (prints a configuration with every option)",
        };
        Some(text.to_owned())
    }
}

/// What takes profiles and gives them away.
struct ProfileOutputs {
    profiling: Profiling,
    every: Duration,
    folder: Option<Mutex<Folder>>,
    push: Option<Mutex<Push>>,
    profiled: Mutex<Profiled>,
    is_over: AtomicBool,
}

/// All outputs. They end when this is dropped.
pub struct Outputs {
    /// The numbers to publish.
    pub latest: Latest,
    server: Option<Server>,
    otlp: Option<Otlp>,
    profiles: Option<Arc<ProfileOutputs>>,
}

impl Outputs {
    /// Begins all outputs of a configuration.
    ///
    /// # Errors
    /// If an address, a file or a folder of the configuration cannot be used.
    pub fn start(config: &Config, new_system: NewSystem) -> Result<Self, OutputsError> {
        let latest = Latest::default();
        let server = config.prometheus.as_ref().map(|one| Server::start(one, latest.clone()));
        let server = server.transpose().map_err(OutputsError::Prometheus)?;
        let otlp = config.otlp.as_ref().map(|one| Otlp::start(one, latest.clone()));
        let otlp = otlp.transpose().map_err(OutputsError::Otlp)?;
        let profiles = config.profiles.as_ref().map(|profiles| ProfileOutputs::start(profiles, new_system));
        Ok(Self { latest, server, otlp, profiles: profiles.transpose()? })
    }

    /// Returns a line for each output.
    pub fn describe(&self, config: &Config) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(server), Some(prometheus)) = (&self.server, &config.prometheus) {
            let scheme = if prometheus.tls.is_some() { "https" } else { "http" };
            lines.push(format!("metrics at {scheme}://{}/metrics", server.address()));
        }
        if self.otlp.is_some() {
            lines.push("metrics to an OpenTelemetry collector".to_owned());
        }
        if let Some(profiles) = &config.profiles {
            let (duration, every) = (profiles.duration, profiles.every);
            let (duration, every) = (humantime::format_duration(duration), humantime::format_duration(every));
            lines.push(format!("profiles of {}: {duration} every {every}", profiles.event));
        }
        lines
    }

    /// Returns what became of profiles and exports.
    pub fn profiled(&self) -> Profiled {
        let mut profiled = self.profiles.as_ref().map(|profiles| profiles.profiled()).unwrap_or_default();
        profiled.otlp_failures = self.otlp.as_ref().map(Otlp::failures);
        profiled
    }

    /// Returns the latest error of each output.
    pub fn errors(&self) -> Vec<String> {
        let otlp = self.otlp.as_ref().and_then(Otlp::last_error).map(|error| format!("[otlp]: {error}"));
        let push = self.profiles.as_ref().and_then(|profiles| lock(profiles.push.as_ref()?).last_error());
        let taken = self.profiles.as_ref().and_then(|profiles| lock(&profiles.profiled).error.clone());
        let push = push.map(|error| format!("[profiles.push]: {error}"));
        otlp.into_iter().chain(push).chain(taken.map(|error| format!("[profiles]: {error}"))).collect()
    }

    /// Ends all outputs. The numbers are exported once more.
    pub fn stop(self) {
        if let Some(profiles) = &self.profiles {
            profiles.is_over.store(true, Ordering::Relaxed);
        }
        if let Some(otlp) = self.otlp {
            otlp.stop();
        }
        if let Some(server) = self.server {
            server.stop();
        }
    }
}

impl ProfileOutputs {
    fn start(config: &Profiles, new_system: NewSystem) -> Result<Arc<Self>, OutputsError> {
        let folder = config.folder.as_ref().map(|one| {
            let unusable = |cause| OutputsError::Folder { folder: one.path.clone(), cause };
            Folder::open(one).map(Mutex::new).map_err(unusable)
        });
        let push = config.push.as_ref().map(|push| Push::start(push).map(Mutex::new).map_err(OutputsError::Push));
        let outputs = Arc::new(Self {
            profiling: Profiling::new(config)?,
            every: config.every,
            folder: folder.transpose()?,
            push: push.transpose()?,
            profiled: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let running = Arc::clone(&outputs);
        let run = move || {
            if let Some(system) = new_system() {
                running.run(&*system);
            }
        };
        thread::Builder::new().name("profiles".to_owned()).spawn(run).map_err(OutputsError::Thread)?;
        Ok(outputs)
    }

    fn profiled(&self) -> Profiled {
        let folder = self.folder.as_ref().map(|folder| lock(folder).statistics()).unwrap_or_default();
        let push = self.push.as_ref().map(|push| lock(push).statistics());
        let mut profiled = lock(&self.profiled).clone();
        profiled.push_failures = push.map(|push| push.send_failures);
        profiled.statistics = folder + push.unwrap_or_default();
        profiled
    }

    /// Takes profiles until the end.
    fn run(&self, system: &dyn System) {
        let mut next = Instant::now();
        while !self.is_over.load(Ordering::Relaxed) {
            if Instant::now() < next {
                thread::sleep(ATTENTION);
                continue;
            }
            next += self.every;
            match self.profiling.take(&|| self.is_over.load(Ordering::Relaxed), system) {
                Ok(taken) => self.deliver(taken),
                Err(error) => {
                    let mut profiled = lock(&self.profiled);
                    profiled.skipped += 1;
                    profiled.error = Some(error.in_one_line());
                }
            }
            // Profiles that were due meanwhile, as while the machine slept, are left out.
            next = next.max(Instant::now());
        }
    }

    fn deliver(&self, Taken { pprof, begun, ended, profiled }: Taken) {
        let profile = Profile { pprof, begun, ended };
        // Both count a profile that cannot be written as failed.
        let written = self.folder.as_ref().map(|folder| lock(folder).write(&profile).map(drop));
        let put = self.push.as_ref().map(|push| lock(push).put(&profile));
        let error = written.into_iter().chain(put).find_map(Result::err);
        let mut sums = lock(&self.profiled);
        sums.samples += profiled.samples;
        sums.lost += profiled.lost;
        sums.interrupts += profiled.interrupts;
        sums.accesses += profiled.accesses;
        sums.error = error.map(|error| error.to_string()).or(profiled.error);
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
