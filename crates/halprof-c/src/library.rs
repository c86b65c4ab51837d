//! Groups of the library for Rust behind the ABI.

use halprof::{Builder, Counts, CpuGroup, Error, ErrorKind, Machine, Quality, ThreadGroup};

use crate::failure::Failure;
use crate::group::{Grade, Group, Region};
use crate::outcome::{HALPROF_BAD_EVENT, HALPROF_FAILED, HALPROF_NO_DRIVER, HALPROF_REFUSED};

/// The privilege levels in which events are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    /// User mode.
    User,
    /// Kernel mode.
    Kernel,
    /// Both.
    Both,
}

/// Opens the driver and a group for the calling thread.
pub fn open_for_thread(events: &[&str], modes: Modes) -> Result<Box<dyn Group>, Failure> {
    thread_group(builder(events, modes)?, &open()?)
}

/// Opens the driver and a group for a CPU, or for all.
pub fn open_for_cpu(events: &[&str], modes: Modes, cpu: Option<u32>) -> Result<Box<dyn Group>, Failure> {
    cpu_group(builder(events, modes)?, &open()?, cpu)
}

fn open() -> Result<Machine, Failure> {
    Machine::open().map_err(|error| Failure::from(&error))
}

/// Checks the names before the driver is opened.
pub fn builder(events: &[&str], modes: Modes) -> Result<Builder, Failure> {
    if events.is_empty() {
        return Err(Failure::argument("no events: the string of names is empty"));
    }
    let builder = match modes {
        Modes::User => Builder::new().user(),
        Modes::Kernel => Builder::new().kernel(),
        Modes::Both => Builder::new().both(),
    };
    events.iter().try_fold(builder, |builder, name| builder.event(name)).map_err(|error| Failure::from(&error))
}

/// Builds a group for the calling thread.
pub fn thread_group(builder: Builder, machine: &Machine) -> Result<Box<dyn Group>, Failure> {
    Ok(Box::new(builder.build_for_thread_on(machine)?))
}

/// Builds a group for a CPU, or for all.
pub fn cpu_group(builder: Builder, machine: &Machine, cpu: Option<u32>) -> Result<Box<dyn Group>, Failure> {
    Ok(Box::new(match cpu {
        Some(cpu) => builder.build_for_cpu_on(machine, cpu)?,
        None => builder.build_for_all_cpus_on(machine)?,
    }))
}

impl Group for ThreadGroup {
    fn events(&self) -> Vec<String> {
        self.events().map(str::to_owned).collect()
    }

    fn availability(&self) -> (Grade, String) {
        let availability = self.availability();
        let grade = match availability.grade() {
            halprof::Grade::Virtualized => Grade::Virtualized { verified: availability.is_verified() },
            halprof::Grade::Undisturbed => Grade::Undisturbed,
            halprof::Grade::Disturbed => Grade::Disturbed,
        };
        let limits: Vec<String> =
            availability.unavailable().map(|(grade, why)| format!("not {grade}: {why}")).collect();
        (grade, limits.join("; "))
    }

    fn calibrate(&mut self) -> Result<bool, Failure> {
        self.calibrate()?;
        Ok(true)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        Ok(self.begin()?)
    }

    fn checkpoint(&mut self) -> Result<(), Failure> {
        Ok(self.checkpoint()?)
    }

    fn end(&mut self) -> Result<Region, Failure> {
        Ok(self.end()?.into())
    }
}

impl Group for CpuGroup {
    fn events(&self) -> Vec<String> {
        self.events().map(str::to_owned).collect()
    }

    /// A CPU's counts contain everything that runs there, and lack nothing.
    fn availability(&self) -> (Grade, String) {
        (Grade::Undisturbed, String::new())
    }

    /// Everything that runs on the CPU is counted, the readings included.
    fn calibrate(&mut self) -> Result<bool, Failure> {
        Ok(false)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        Ok(self.begin()?)
    }

    /// A session keeps 64 bits of each count.
    fn checkpoint(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn end(&mut self) -> Result<Region, Failure> {
        Ok(self.end()?.into())
    }
}

impl From<Counts> for Region {
    fn from(counts: Counts) -> Self {
        let (grade, reason) = match &counts.quality {
            Quality::Virtualized { verified } => (Grade::Virtualized { verified: *verified }, String::new()),
            Quality::Undisturbed => (Grade::Undisturbed, String::new()),
            Quality::Disturbed(disturbance) => (Grade::Disturbed, disturbance.to_string()),
            other => (Grade::Disturbed, other.to_string()),
        };
        Self {
            counts: counts.iter().map(|(_, count)| count).collect(),
            grade,
            reason,
            enabled: counts.time_enabled,
            running: counts.time_running,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        let status = match error.kind() {
            ErrorKind::NotWindows
            | ErrorKind::NotInstalled
            | ErrorKind::NotStarted
            | ErrorKind::Denied
            | ErrorKind::VersionMismatch => HALPROF_NO_DRIVER,
            ErrorKind::InvalidInput | ErrorKind::UnknownSource | ErrorKind::UnsupportedSource => HALPROF_BAD_EVENT,
            ErrorKind::NoFreeCounter
            | ErrorKind::NotRunning
            | ErrorKind::AlreadyRunning
            | ErrorKind::NoProcessor
            | ErrorKind::NoResources
            | ErrorKind::InterruptTaken
            | ErrorKind::CountersTaken
            | ErrorKind::DebugStoreTaken
            | ErrorKind::ThreadProfilingTaken => HALPROF_REFUSED,
            _ => HALPROF_FAILED,
        };
        Self::new(status, text(error))
    }
}

/// Returns what happened, why, and what the user can do, in one line each.
fn text(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}\nbecause: {error}");
        cause = error.source();
    }
    match error.remedy() {
        Some(remedy) => format!("{text}\ntry: {remedy}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_before_the_driver_is_opened() {
        let status = |events: &[&str]| builder(events, Modes::User).err().map(|failure| failure.status);
        assert_eq!(status(&["instructions", "cpu/event=0xC0,umask=0x01/"]), None);
        assert_eq!(status(&["cpu/event=0xC0"]), Some(HALPROF_BAD_EVENT));
        let refused = builder(&["cpu/event=0xC0"], Modes::Both).err().unwrap();
        assert!(refused.text.contains("has no closing slash"), "{}", refused.text);
    }

    #[cfg(not(windows))]
    #[test]
    fn a_driver_that_cannot_be_opened_has_a_status_and_a_text() {
        for failure in [
            open_for_thread(&["instructions"], Modes::User).err().unwrap(),
            open_for_cpu(&["instructions"], Modes::Kernel, Some(3)).err().unwrap(),
            open_for_cpu(&["instructions"], Modes::Both, None).err().unwrap(),
        ] {
            assert_eq!(failure.status, HALPROF_NO_DRIVER);
            assert!(failure.text.starts_with("this program was not built for Windows"), "{}", failure.text);
        }
    }
}
