//! The lab: Wine with shim.sys loaded, and a line to the model behind it.

use std::fs;
use std::io::ErrorKind;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use wire::{Stored, Time, Violation};

use crate::probe::Probe;
use crate::program::Ran;
use crate::target::Target;
use crate::wine::{Wine, artifacts};

/// Services of one load-order group share a process under Wine: the driver's own group, so that the lab sees it.
const GROUP: &str = "Extended Base";

const PORT_FILE: &str = "lab/port";

/// Where drivers lie, on Linux below drive C: and as Windows names it.
const DRIVERS: &str = "windows/system32/drivers";
const WINDOWS_DRIVERS: &str = "C:\\windows\\system32\\drivers";

/// Win32 errors of services that are as they are to be.
const ERROR_SERVICE_ALREADY_RUNNING: u32 = 1056;
const ERROR_SERVICE_DOES_NOT_EXIST: u32 = 1060;
const ERROR_SERVICE_NOT_ACTIVE: u32 = 1062;
const ERROR_SERVICE_EXISTS: u32 = 1073;

/// A machine that a test left in order, for the next one.
static IN_ORDER: Mutex<Option<Bench>> = Mutex::new(None);

/// Wine with the lab in it.
struct Bench {
    services: Services,
    wine: Wine,
    wire: wire::Client,
}

/// Starts and stops drivers: a program that runs as long as Wine, since each start of a program takes longer than what it
/// is asked for.
struct Services(Probe);

impl Services {
    fn start(wine: &Wine) -> Result<Self> {
        let program = artifacts()?.join("probe.exe");
        Ok(Self(Probe::start(|| wine.program(&program.to_string_lossy(), &[]))?))
    }

    /// Starts a driver of the artifacts, of this name; creates its service when there is none.
    fn load(&mut self, wine: &Wine, name: &str) -> Result<()> {
        let file = format!("{name}.sys");
        match self.0.create_service(name, &format!("{WINDOWS_DRIVERS}\\{file}"), GROUP)? {
            Ok(()) => wine.copy(&artifacts()?.join(&file), &format!("{DRIVERS}/{file}"))?,
            Err(ERROR_SERVICE_EXISTS) => {}
            Err(error) => bail!("the service {name} cannot be created: {error}"),
        }
        match self.0.service("load", name)? {
            Ok(()) | Err(ERROR_SERVICE_ALREADY_RUNNING) => Ok(()),
            Err(error) => bail!("{name} does not start: {error}\n{}", wine.said()),
        }
    }

    /// Stops a driver if it runs, and deletes its service and its file if there are any.
    fn remove(&mut self, wine: &Wine, name: &str) -> Result<()> {
        for deed in ["unload", "delete"] {
            match self.0.service(deed, name)? {
                Ok(()) | Err(ERROR_SERVICE_DOES_NOT_EXIST | ERROR_SERVICE_NOT_ACTIVE) => {}
                Err(error) => bail!("{deed} {name}: {error}\n{}", wine.said()),
            }
        }
        match fs::remove_file(wine.drive_c(&format!("{DRIVERS}/{name}.sys"))) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error).context("the driver's file stays"),
            _ => Ok(()),
        }
    }
}

impl Bench {
    /// In a prefix that was just made Wine now and then does not start the first service; that is said, and tried again.
    fn boot() -> Result<Self> {
        const TRIES: usize = 3;
        for _ in 1..TRIES {
            match Self::boot_once() {
                Ok(bench) => return Ok(bench),
                Err(error) => eprintln!("once more: {error:#}"),
            }
        }
        Self::boot_once()
    }

    fn boot_once() -> Result<Self> {
        let wine = Wine::boot()?;
        let artifacts = artifacts()?;
        wine.copy(&artifacts.join("bcryptprimitives.dll"), "windows/system32/bcryptprimitives.dll")?;
        wine.copy(&artifacts.join("lab.dll"), "lab/lab.dll")?;
        // The lab writes it when it serves; one of an earlier boot would mislead.
        let _ = fs::remove_file(wine.drive_c(PORT_FILE));
        let mut services = Services::start(&wine)?;
        for left in ["halprof", "specimen", "shim"] {
            services.remove(&wine, left)?; // by a test that died half-way, or by an earlier boot
        }
        services.load(&wine, "shim").context("the lab does not start")?;
        let line = wire::Client::find(&wine.drive_c(PORT_FILE), Duration::from_secs(20))
            .with_context(|| format!("the lab does not answer\n{}", wine.said()))?;
        Ok(Self { services, wine, wire: line })
    }
}

/// A machine with a processor of a chosen identity, on which halprof is not installed yet.
pub struct Lab {
    /// The line to the model.
    pub wire: wire::Client,
    services: Services,
    wine: Wine,
    client: String,
    probe: String,
}

impl Lab {
    /// A machine of this identity. Events happen when the test says so, see [`Lab::live`].
    ///
    /// # Errors
    /// Something is missing, or the identity does not exist.
    pub fn boot(identity: &str) -> Result<Self> {
        let left = IN_ORDER.lock().ok().and_then(|mut left| left.take());
        let bench = left.map_or_else(Bench::boot, Ok)?;
        let artifacts = artifacts()?;
        let path = |name: &str| artifacts.join(name).to_string_lossy().into_owned();
        let (client, probe) = (path("client.exe"), path("probe.exe"));
        let mut lab = Self { wire: bench.wire, services: bench.services, wine: bench.wine, client, probe };
        lab.become_processor(identity)?;
        lab.scripted()?;
        Ok(lab)
    }

    /// Changes the processors to another identity, after reset. The driver must not be loaded.
    ///
    /// # Errors
    /// It is loaded, or the identity does not exist.
    pub fn become_processor(&mut self, identity: &str) -> Result<()> {
        Ok(self.wire.set_identity(identity)?)
    }

    /// From now on events happen as time goes by.
    ///
    /// # Errors
    /// The lab is gone.
    pub fn live(&mut self) -> Result<()> {
        Ok(self.wire.set_time(Time::Live)?)
    }

    /// From now on events happen only when the test says so.
    ///
    /// # Errors
    /// The lab is gone.
    pub fn scripted(&mut self) -> Result<()> {
        Ok(self.wire.set_time(Time::Script)?)
    }

    /// The Windows it runs.
    #[must_use]
    pub const fn wine(&self) -> &Wine {
        &self.wine
    }

    /// Runs client.exe to its end.
    ///
    /// # Errors
    /// It can not be started, or does not end. An exit code is no error.
    pub fn client(&self, arguments: &[&str]) -> Result<Ran> {
        let ran = self.wine.run(&self.client, arguments)?;
        // The client does not fail without a word. On a busy machine Wine now and then ends before a program begins; that
        // is said, and tried again.
        if (ran.code, ran.out.as_str(), ran.err.as_str()) != (1, "", "") {
            return Ok(ran);
        }
        eprintln!("once more: {} did not begin", ran.line);
        self.wine.run(&self.client, arguments)
    }

    /// Starts client.exe and leaves it running.
    ///
    /// # Errors
    /// It can not be started.
    pub fn client_running(&self, arguments: &[&str]) -> Result<std::process::Child> {
        let mut command = self.wine.program(&self.client, arguments);
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::null()).spawn().context("cannot start client.exe")
    }

    /// Starts a program that sends any request.
    ///
    /// # Errors
    /// It can not be started.
    pub fn probe(&self) -> Result<Probe> {
        Probe::start(|| self.wine.program(&self.probe, &[]))
    }

    /// How many processors the machine has.
    ///
    /// # Errors
    /// The lab is gone.
    pub fn processors(&mut self) -> Result<u32> {
        Ok(u32::try_from(self.wire.accesses()?.len())?)
    }

    /// Starts the program whose functions are known.
    ///
    /// # Errors
    /// It can not be started.
    pub fn target(&self) -> Result<Target> {
        let program = artifacts()?.join("target.exe");
        Target::start(self.wine.program(&program.to_string_lossy(), &[]))
    }

    /// Installs and starts the driver, without the client.
    ///
    /// # Errors
    /// It does not start.
    pub fn install(&mut self) -> Result<()> {
        self.load("halprof")
    }

    /// Stops the driver and removes it, without the client.
    ///
    /// # Errors
    /// It does not stop.
    pub fn uninstall(&mut self) -> Result<()> {
        self.unload("halprof")
    }

    /// Starts a driver of the artifacts, of this name.
    ///
    /// # Errors
    /// It does not start.
    pub fn load(&mut self, name: &str) -> Result<()> {
        self.services.load(&self.wine, name)
    }

    /// Stops it and removes it.
    ///
    /// # Errors
    /// It does not stop.
    pub fn unload(&mut self, name: &str) -> Result<()> {
        self.services.remove(&self.wine, name)
    }

    /// Stops the driver, which stays installed.
    ///
    /// # Errors
    /// It does not stop.
    pub fn stop(&mut self) -> Result<()> {
        match self.services.0.service("unload", "halprof")? {
            Ok(()) => Ok(()),
            Err(error) => bail!("the driver does not stop: {error}"),
        }
    }

    /// How many counters count on all processors together.
    ///
    /// # Errors
    /// The lab is gone.
    pub fn counting(&mut self) -> Result<usize> {
        Ok(self.wire.enabled()?.iter().map(Vec::len).sum())
    }

    /// How many processors have a control area, whoever allocated it.
    ///
    /// # Errors
    /// The lab is gone.
    pub fn control_areas(&mut self) -> Result<usize> {
        Ok(self.wire.control_areas()?.iter().flatten().count())
    }

    /// What a processor wrote to memory by itself, by the model's own account.
    ///
    /// # Errors
    /// The lab is gone, or there is no such processor.
    pub fn stored(&mut self, processor: usize) -> Result<Stored> {
        self.wire.stored()?.into_iter().nth(processor).context("no such processor")
    }

    /// What the counters of a processor that count (event, unit mask) were given, by the model's own account.
    ///
    /// # Errors
    /// The lab is gone.
    pub fn ledger(&mut self, processor: usize, event: u16, umask: u8) -> Result<u64> {
        let ledger = self.wire.ledger()?;
        let entries = ledger.get(processor).context("no such processor")?;
        Ok(entries.iter().filter(|entry| (entry.event, entry.umask) == (event, umask)).map(|entry| entry.counted).sum())
    }

    /// Uninstalls the driver, and makes sure that it [left nothing](Self::left_nothing).
    ///
    /// # Errors
    /// What it left or did.
    pub fn finish(mut self) -> Result<()> {
        self.uninstall()?;
        self.left_nothing()?;
        if let Ok(mut next) = IN_ORDER.lock() {
            *next = Some(Bench { services: self.services, wine: self.wine, wire: self.wire });
        }
        Ok(())
    }

    /// Makes sure that the driver, which is not loaded any more, left nothing behind and did nothing that Windows
    /// or the processor punishes.
    ///
    /// # Errors
    /// What it left or did.
    pub fn left_nothing(&mut self) -> Result<()> {
        let violations: Vec<String> = self.wire.violations()?.iter().map(Violation::to_string).collect();
        ensure!(violations.is_empty(), "the driver did what it must not: {violations:#?}");
        // Wine keeps the image of a driver whose entry failed, so that the lab does not see it go.
        ensure!(self.wire.threads()? == 0, "a thread of the driver still runs");
        let pool = self.wire.pool()?;
        ensure!(pool.allocations == 0, "the driver left memory behind: {pool:?}");
        let stored = self.wire.stored()?;
        ensure!(stored.iter().all(|stored| stored.faults == 0), "a processor wrote to what is not there: {stored:?}");
        ensure!(self.counting()? == 0, "counters go on counting: {:?}", self.wire.enabled()?);
        ensure!(self.wire.handler()?.registration.is_none(), "the handler is still registered");
        ensure!(!self.wire.reserved()?, "the counters are still reserved");
        Ok(())
    }
}
