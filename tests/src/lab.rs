//! The lab: Wine with shim.sys loaded, and the connection to the model.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;

use anyhow::{Context, Result, bail, ensure};
use bench_protocol::{DsWrites, THREAD_SCRIPT, TRACE_SCRIPT, ThreadLedger, ThreadScript, Time, TraceScript, Violation};

use crate::event_access;
use crate::log;
use crate::probe::Probe;
use crate::program::ProgramOutput;
use crate::start::{self, REPEATS, never_began, start_with_retries};
use crate::wine::{Wine, artifacts, line};
use crate::workload::{Description, Workload};
use crate::{HANG_LIMIT, wait_until};

/// Under Wine, services of one load-order group share a process. This is the driver's group, so that the lab shares its
/// process.
const GROUP: &str = "Extended Base";

const PORT_FILE: &str = "lab/port";

/// The folder of drivers: on Linux relative to drive C:, and as a Windows path.
const DRIVERS: &str = "windows/system32/drivers";
const WINDOWS_DRIVERS: &str = "C:\\windows\\system32\\drivers";

/// Win32 errors of calls for services that are already in the requested state.
const ERROR_SERVICE_ALREADY_RUNNING: u32 = 1056;
const ERROR_SERVICE_DOES_NOT_EXIST: u32 = 1060;
const ERROR_SERVICE_NOT_ACTIVE: u32 = 1062;
const ERROR_SERVICE_EXISTS: u32 = 1073;

/// A clean machine from an earlier test, for reuse by the next one.
static CLEAN_BENCH: Mutex<Option<Bench>> = Mutex::new(None);

/// Wine with the lab loaded.
struct Bench {
    services: Services,
    wine: Wine,
    wire: bench_protocol::Client,
}

/// Starts and stops drivers through a program that runs as long as Wine, because starting a program takes longer than a
/// request.
struct Services(Probe);

impl Services {
    fn start(wine: &Wine) -> Result<Self> {
        let program = artifacts()?.join("probe.exe");
        Ok(Self(Probe::start(|| wine.program(&program.to_string_lossy(), &[]))?))
    }

    /// Starts the driver with this name from the artifacts. Creates its service if necessary.
    fn load(&mut self, wine: &Wine, name: &str) -> Result<()> {
        let file = format!("{name}.sys");
        match self.0.create_service(name, &format!("{WINDOWS_DRIVERS}\\{file}"), GROUP)? {
            Ok(()) => wine.copy(&artifacts()?.join(&file), &format!("{DRIVERS}/{file}"))?,
            Err(ERROR_SERVICE_EXISTS) => {}
            Err(error) => bail!("the service {name} cannot be created: {error}"),
        }
        match self.0.service("load", name)? {
            Ok(()) | Err(ERROR_SERVICE_ALREADY_RUNNING) => Ok(()),
            Err(error) => bail!("{name} does not start: {error}\n{}", wine.log_text()),
        }
    }

    /// Stops a driver if it runs, and deletes its service and its file if they exist.
    fn remove(&mut self, wine: &Wine, name: &str) -> Result<()> {
        for action in ["unload", "delete"] {
            match self.0.service(action, name)? {
                Ok(()) | Err(ERROR_SERVICE_DOES_NOT_EXIST | ERROR_SERVICE_NOT_ACTIVE) => {}
                Err(error) => bail!("{action} {name}: {error}\n{}", wine.log_text()),
            }
        }
        match fs::remove_file(wine.drive_c(&format!("{DRIVERS}/{name}.sys"))) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error).context("the driver's file stays"),
            _ => Ok(()),
        }
    }
}

impl Bench {
    /// Boots Wine and the lab. In a new prefix Wine sometimes fails to start the first service.
    fn boot() -> Result<Self> {
        start_with_retries(Self::boot_once)
    }

    fn boot_once() -> Result<Self> {
        let wine = Wine::boot()?;
        let artifacts = artifacts()?;
        wine.copy(&artifacts.join("bcryptprimitives.dll"), "windows/system32/bcryptprimitives.dll")?;
        wine.copy(&artifacts.join("lab.dll"), "lab/lab.dll")?;
        // The lab writes this file when it is ready. A file of an earlier boot would have the wrong port.
        let _ = fs::remove_file(wine.drive_c(PORT_FILE));
        let mut services = Services::start(&wine)?;
        for left in ["halprof", "faulty-driver", "shim"] {
            services.remove(&wine, left)?; // of an aborted test or an earlier boot
        }
        let _ = event_access::set(|program, arguments| wine.run(program, arguments), None); // often there is none
        services.load(&wine, "shim").context("the lab does not start")?;
        let line = bench_protocol::Client::find(&wine.drive_c(PORT_FILE), HANG_LIMIT)
            .with_context(|| format!("the lab does not answer\n{}", wine.log_text()))?
            .observed_by(|command, answer| log::note(&format!("lab: {} -> {}", command.trim_end(), answer)));
        Ok(Self { services, wine, wire: line })
    }
}

/// A machine with processors of a chosen identity, on which halprof is not installed yet.
pub struct Lab {
    /// The connection to the model.
    pub wire: bench_protocol::Client,
    services: Services,
    wine: Wine,
    client: String,
    agent: String,
    probe: String,
}

impl Lab {
    /// Boots a machine of this identity. Events occur only on commands of the test; see [`Lab::run_in_real_time`].
    ///
    /// # Errors
    /// Something is missing, or the identity does not exist.
    pub fn boot(identity: &str) -> Result<Self> {
        let left = CLEAN_BENCH.lock().ok().and_then(|mut left| left.take());
        let bench = left.map_or_else(Bench::boot, Ok)?;
        let artifacts = artifacts()?;
        let path = |name: &str| artifacts.join(name).to_string_lossy().into_owned();
        let [client, agent, probe] = ["client.exe", "halprof-agent.exe", "probe.exe"].map(path);
        let mut lab = Self { wire: bench.wire, services: bench.services, wine: bench.wine, client, agent, probe };
        lab.become_processor(identity)?;
        lab.run_by_script()?;
        Ok(lab)
    }

    /// Resets the processors and gives them another identity. The driver must not be loaded.
    ///
    /// # Errors
    /// The driver is loaded, or the identity does not exist.
    pub fn become_processor(&mut self, identity: &str) -> Result<()> {
        Ok(self.wire.set_identity(identity)?)
    }

    /// Makes events occur as time passes.
    ///
    /// # Errors
    /// The connection to the lab is lost.
    pub fn run_in_real_time(&mut self) -> Result<()> {
        Ok(self.wire.set_time(Time::Real)?)
    }

    /// Makes events occur only on commands of the test.
    ///
    /// # Errors
    /// The connection to the lab is lost.
    pub fn run_by_script(&mut self) -> Result<()> {
        Ok(self.wire.set_time(Time::Script)?)
    }

    /// Returns the Wine that the lab runs in.
    #[must_use]
    pub const fn wine(&self) -> &Wine {
        &self.wine
    }

    /// Runs client.exe and waits until it exits.
    ///
    /// # Errors
    /// The program cannot be started or does not end. An exit code is not an error.
    pub fn client(&self, arguments: &[&str]) -> Result<ProgramOutput> {
        self.wine.run(&self.client, arguments)
    }

    /// Runs client.exe with the stand-in for Event Tracing for Windows, and waits until it exits.
    ///
    /// # Errors
    /// The program cannot be started or does not end. An exit code is not an error.
    pub fn traced_client(&self, script: &TraceScript, arguments: &[&str]) -> Result<ProgramOutput> {
        self.run_traced(&self.client, script, arguments)
    }

    /// As [`traced_client`](Self::traced_client), with the client of this path on Linux.
    ///
    /// # Errors
    /// The program cannot be started or does not end. An exit code is not an error.
    pub fn run_traced(&self, client: &str, script: &TraceScript, arguments: &[&str]) -> Result<ProgramOutput> {
        let launched = self.traced_program(client, script)?;
        start::run(&line(client, arguments), || Ok(with(launched(), arguments)))
    }

    /// Returns a function that makes commands which run a Windows program, given by its path on Linux, with the
    /// stand-in for Event Tracing for Windows.
    ///
    /// # Errors
    /// The folder of the stand-in is not set.
    pub fn traced_program(&self, program: &str, script: &TraceScript) -> Result<impl Fn() -> Command> {
        let (launcher, script) = (artifacts()?.join("launcher.exe"), serde_json::to_string(script)?);
        Ok(move || {
            let mut command = self.wine.program(&launcher.to_string_lossy(), &[program]);
            command.env(TRACE_SCRIPT, &script);
            command
        })
    }

    /// Returns a command that runs a Windows program, given by its path on Linux, with the stand-in for thread
    /// profiling: the lab schedules its threads on its processors.
    fn scheduled_program(&self, program: &str, script: &ThreadScript, arguments: &[&str]) -> Result<Command> {
        let (launcher, script) = (artifacts()?.join("launcher.exe"), serde_json::to_string(script)?);
        let mut command = self.wine.program(&launcher.to_string_lossy(), &[program]);
        command.args(arguments).env(THREAD_SCRIPT, script);
        Ok(command)
    }

    /// Runs a Windows program, given by its path on Linux, and waits until it exits. The lab schedules its threads on
    /// its processors, by the stand-in for thread profiling. Returns its output and what each of its threads executed.
    ///
    /// # Errors
    /// The program cannot be started or does not end, or the connection to the lab is lost. An exit code is not an
    /// error.
    pub fn run_scheduled(
        &mut self,
        program: &str,
        script: &ThreadScript,
        arguments: &[&str],
    ) -> Result<(ProgramOutput, Vec<ThreadLedger>)> {
        let ran = start::run(&line(program, arguments), || {
            self.wire.take_ledgers()?;
            self.scheduled_program(program, script, arguments)
        })?;
        Ok((ran, self.wire.take_ledgers()?))
    }

    /// Lets the processors execute a workload, called as it has described, and only that.
    ///
    /// # Errors
    /// The workload did not describe its calls, or the connection to the lab is lost.
    pub fn execute_with_stacks(&mut self, workload: &Description) -> Result<()> {
        let (sites, stacks): (Vec<_>, Vec<_>) = workload.traced_sites()?.into_iter().unzip();
        for processor in 0..self.processors()? {
            self.wire.set_interrupt_sites(processor, &sites)?;
        }
        Ok(self.wire.set_stacks(stacks)?)
    }

    /// Returns how often code has been interrupted on all processors since the interrupt sites were set, by its
    /// address.
    ///
    /// # Errors
    /// The connection to the lab is lost.
    pub fn interrupts_by_address(&mut self) -> Result<BTreeMap<u64, u64>> {
        let mut interrupts = BTreeMap::new();
        for one in self.wire.interrupt_sites()?.into_iter().flatten() {
            *interrupts.entry(one.site.ip).or_default() += one.interrupts;
        }
        Ok(interrupts)
    }

    /// Sets an option of the driver, a REG_DWORD in the key `Parameters` of its service. It counts from the next start
    /// of the driver on.
    ///
    /// # Errors
    /// `reg.exe` fails.
    pub fn set_option(&self, name: &str, value: u32) -> Result<()> {
        const PARAMETERS: &str = r"HKLM\System\CurrentControlSet\Services\halprof\Parameters";
        let value = value.to_string();
        let ran = self.wine.run("reg.exe", &["add", PARAMETERS, "/v", name, "/t", "REG_DWORD", "/d", &value, "/f"])?;
        ran.success().map(|_| ())
    }

    /// Starts client.exe, which goes on beside the test with an input that stays open, and waits until it has begun.
    ///
    /// # Errors
    /// The program cannot be started, or ends before.
    ///
    /// # Panics
    /// It does not begin, with `otherwise`.
    pub fn client_running(
        &mut self,
        arguments: &[&str],
        otherwise: &str,
        mut has_begun: impl FnMut(&mut Self) -> bool,
    ) -> Result<Child> {
        let command = |lab: &Self| Ok(lab.client_command(arguments));
        self.start_beside(&line(&self.client, arguments), command, otherwise, |lab, _| has_begun(lab))
    }

    /// As [`run_scheduled`](Self::run_scheduled) for a program that goes on beside the test until its input is closed.
    /// Waits until it has begun, which `has_begun` knows from the lab and from the output so far.
    ///
    /// # Errors
    /// The program cannot be started, or ends before.
    ///
    /// # Panics
    /// It does not begin, with `otherwise`.
    pub fn scheduled_running(
        &mut self,
        program: &str,
        script: &ThreadScript,
        arguments: &[&str],
        otherwise: &str,
        has_begun: impl FnMut(&mut Self, &str) -> bool,
    ) -> Result<Child> {
        let command = |lab: &Self| lab.scheduled_program(program, script, arguments);
        self.start_beside(&line(program, arguments), command, otherwise, has_begun)
    }

    fn start_beside(
        &mut self,
        line: &str,
        command: impl Fn(&Self) -> Result<Command>,
        otherwise: &str,
        mut has_begun: impl FnMut(&mut Self, &str) -> bool,
    ) -> Result<Child> {
        // A pipe would have to be read as long as the program runs.
        let output = self.wine.drive_c("lab/output.txt");
        let said = || fs::read_to_string(&output).unwrap_or_default();
        let start = || {
            log::note(&format!("{line}: begins"));
            let file = File::create(&output)?;
            let mut child = command(self)?.stdin(Stdio::piped()).stdout(file.try_clone()?).stderr(file).spawn()?;
            let mut ended = None;
            wait_until(otherwise, || {
                has_begun(self, &said()) || {
                    ended = child.try_wait().ok().flatten();
                    ended.is_some()
                }
            });
            Ok((child, ended))
        };
        let is_silent = |(_, ended): &(Child, Option<ExitStatus>)| {
            ended.is_some_and(|status| never_began(status.code(), said().is_empty()))
        };
        let (child, ended) = REPEATS.start(line, is_silent, start).with_context(|| format!("cannot start {line}"))?;
        ensure!(ended.is_none(), "{line} has ended before: {ended:?}\n{}", said());
        Ok(child)
    }

    /// Returns a command that runs client.exe.
    pub(crate) fn client_command(&self, arguments: &[&str]) -> Command {
        self.wine.program(&self.client, arguments)
    }

    /// Returns a command that runs halprof-agent.exe.
    pub(crate) fn agent_command(&self, arguments: &[&str]) -> Command {
        self.wine.program(&self.agent, arguments)
    }

    /// As [`agent_command`](Self::agent_command), with the stand-in for Event Tracing for Windows.
    ///
    /// # Errors
    /// The folder of the stand-in is not set.
    pub(crate) fn traced_agent_command(&self, script: &TraceScript, arguments: &[&str]) -> Result<Command> {
        Ok(with(self.traced_program(&self.agent, script)?(), arguments))
    }

    /// Starts probe.exe, which sends arbitrary requests to the driver.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn probe(&self) -> Result<Probe> {
        Probe::start(|| self.wine.program(&self.probe, &[]))
    }

    /// Returns the number of processors.
    ///
    /// # Errors
    /// The connection to the lab is lost.
    pub fn processors(&mut self) -> Result<u32> {
        Ok(u32::try_from(self.wire.accesses()?.len())?)
    }

    /// Starts workload.exe, which has known functions.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn workload(&self) -> Result<Workload> {
        let program = artifacts()?.join("workload.exe");
        Workload::start(|| self.wine.program(&program.to_string_lossy(), &["describe"]))
    }

    /// Installs and starts the driver, without the client.
    ///
    /// # Errors
    /// The driver does not start.
    pub fn install(&mut self) -> Result<()> {
        self.load("halprof")
    }

    /// Stops the driver and removes it, without the client.
    ///
    /// # Errors
    /// The driver does not stop.
    pub fn uninstall(&mut self) -> Result<()> {
        self.unload("halprof")
    }

    /// Starts the driver with this name from the artifacts.
    ///
    /// # Errors
    /// The driver does not start.
    pub fn load(&mut self, name: &str) -> Result<()> {
        self.services.load(&self.wine, name)
    }

    /// Stops and removes the driver with this name.
    ///
    /// # Errors
    /// The driver does not stop.
    pub fn unload(&mut self, name: &str) -> Result<()> {
        self.services.remove(&self.wine, name)
    }

    /// Stops the driver, which stays installed.
    ///
    /// # Errors
    /// The driver does not stop.
    pub fn stop(&mut self) -> Result<()> {
        match self.services.0.service("unload", "halprof")? {
            Ok(()) => Ok(()),
            Err(error) => bail!("the driver does not stop: {error}"),
        }
    }

    /// Returns the number of enabled counters on all processors together.
    ///
    /// # Errors
    /// The connection to the lab is lost.
    pub fn enabled_counters(&mut self) -> Result<usize> {
        Ok(self.wire.enabled_counters()?.iter().map(Vec::len).sum())
    }

    /// Returns the number of processors that have a control area, regardless of its owner.
    ///
    /// # Errors
    /// The connection to the lab is lost.
    pub fn control_areas(&mut self) -> Result<usize> {
        Ok(self.wire.control_areas()?.iter().flatten().count())
    }

    /// Returns the totals of a processor's Debug Store in the model.
    ///
    /// # Errors
    /// The connection to the lab is lost, or there is no such processor.
    pub fn ds_writes(&mut self, processor: usize) -> Result<DsWrites> {
        self.wire.ds_writes()?.into_iter().nth(processor).context("no such processor")
    }

    /// Returns what the driver may have counted of the events (event, unit mask) that the model delivered to the
    /// counters of a processor: with and without those that occurred between its accesses.
    ///
    /// # Errors
    /// The connection to the lab is lost.
    pub fn ledger(&mut self, processor: usize, event: u16, umask: u16) -> Result<RangeInclusive<u64>> {
        let ledger = self.wire.ledger()?;
        let entries = ledger.get(processor).context("no such processor")?;
        let entries = entries.iter().filter(|entry| (entry.event, entry.umask) == (event, umask));
        let [counted, between] =
            entries.fold([0; 2], |[counted, between], entry| [counted + entry.counted, between + entry.between]);
        Ok(counted - between..=counted)
    }

    /// Uninstalls the driver and checks that it [left nothing](Self::check_clean).
    ///
    /// # Errors
    /// The driver left something behind or violated a rule.
    pub fn finish(mut self) -> Result<()> {
        self.uninstall()?;
        self.check_clean()?;
        if let Ok(mut next) = CLEAN_BENCH.lock() {
            *next = Some(Bench { services: self.services, wine: self.wine, wire: self.wire });
        }
        Ok(())
    }

    /// Checks that the driver, which is no longer loaded, left nothing behind and violated no rule of Windows or of the
    /// processor.
    ///
    /// # Errors
    /// The driver left something behind or violated a rule.
    pub fn check_clean(&mut self) -> Result<()> {
        let violations: Vec<String> = self.wire.violations()?.iter().map(Violation::to_string).collect();
        ensure!(violations.is_empty(), "the driver did what it must not: {violations:#?}");
        // Wine keeps the image of a driver after a failed DriverEntry, so the lab does not see it unload.
        ensure!(self.wire.threads()? == 0, "a thread of the driver still runs");
        let pool = self.wire.pool()?;
        ensure!(pool.allocations == 0, "the driver left memory behind: {pool:?}");
        let stored = self.wire.ds_writes()?;
        ensure!(
            stored.iter().all(|stored| stored.faults == 0),
            "a processor wrote to memory that is not mapped: {stored:?}"
        );
        ensure!(self.enabled_counters()? == 0, "counters are still enabled: {:?}", self.wire.enabled_counters()?);
        ensure!(self.wire.handler()?.registration.is_none(), "the handler is still registered");
        ensure!(!self.wire.counters_reserved()?, "the counters are still reserved");
        let configured = self.wire.hardware_counters()?;
        ensure!(configured.owner.is_none(), "counters are still configured for thread profiling: {configured:?}");
        Ok(())
    }
}

fn with(mut command: Command, arguments: &[&str]) -> Command {
    command.args(arguments);
    command
}
