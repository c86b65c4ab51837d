//! Exit codes.

use std::fmt::Write;

use halprof::ErrorKind;

macro_rules! exits {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $meaning:literal;)*) => {
        /// An exit code of the client itself.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Exit { $($(#[$doc])* $name = $code,)* }

        impl Exit {
            /// Every code, in ascending order.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the meaning of the code, for `--help`.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)* }
            }
        }
    };
}

exits! {
    /// Success.
    Done = 0, "done";
    /// A failure without a code of its own.
    Failure = 1, "Windows or the driver failed in a way that has no code of its own";
    /// A wrong command line; the code is that of clap.
    Usage = 2, "the command line is wrong";
    /// The service does not exist.
    NotInstalled = 3, "the driver is not installed; agent: its service is not";
    /// The service is not running.
    NotStarted = 4, "the driver is installed but not started; agent: its service";
    /// Windows or the driver denies access.
    Denied = 5, "access denied: not elevated, or without SeSystemProfilePrivilege";
    /// No source has this name or number.
    UnknownSource = 6, "no source has this name or number";
    /// The source exists, but not on this machine.
    UnsupportedSource = 7, "the source is not supported on this machine";
    /// All counters are in use.
    NoFreeCounter = 8, "no counter is free; the message names the sessions that hold them";
    /// Client and driver have different protocol versions.
    VersionMismatch = 9, "client and driver have different protocol versions";
    /// The source or session to read or stop is not running.
    NotRunning = 10, "the source or the session does not run";
    /// `stat`, `record` or `branches` could not run its command.
    Command = 11, "stat, record, branches: the command could not be run";
    /// The source already runs detached.
    AlreadyRunning = 12, "the source runs detached already";
    /// No such processor is active.
    NoProcessor = 13, "no such processor is active";
    /// Open handles keep the driver loaded, or detached sessions would end.
    Busy = 14, "the driver is in use: by an open handle, or by a detached session";
    /// The driver's file is missing, is not halprof's driver, belongs to halprof.inf, or is refused by Windows.
    DriverFile = 15, "the driver's file: missing, another, halprof.inf's, refused by Windows";
    /// The driver has no memory or no free session.
    NoResources = 16, "the driver is short of memory or of sessions";
    /// The client was built for another system, or Windows emulates the processor for it.
    NotWindows = 17, "this is no Windows on an x86-64 processor";
    /// `diagnose` cannot use the file.
    Dump = 18, "diagnose: the file cannot be read, or is not a CPUID dump";
    /// Another driver has registered the handler of the performance interrupt.
    InterruptTaken = 19, "another driver has the performance interrupt";
    /// `record` or `branches` cannot write the file.
    Unwritten = 20, "record, branches: the file cannot be written to its end";
    /// `report` cannot read the file.
    Recording = 21, "report, export: the file cannot be read, or is not a recording";
    /// The recording is incomplete.
    Incomplete = 22, "report, export: done, but the recording is cut off or damaged";
    /// The recording does not have what the user selected.
    NotRecorded = 23, "report, export: the recording has nothing of this name";
    /// Another driver or program has the counters.
    CountersTaken = 24, "another program has the counters; start, stat, record: --force";
    /// The Debug Store is in use, or Windows refuses its control area.
    DebugStoreTaken = 25, "the Debug Store is in use, or Windows refuses its control area";
    /// The image with the machine code of a function is not found.
    NoCode = 26, "annotate: the image of the recorded build is missing or damaged";
    /// A change is worse than the limit of `--fail-above`.
    Worse = 27, "diff, stat --baseline: a change is worse than --fail-above allows";
    /// Counters, call stacks or counts of threads are not as expected, or were not tested.
    Selftest = 28, "selftest: counters, stacks or threads are not as expected, or not tested";
}

impl Exit {
    /// Returns the code as a process exit code.
    #[must_use]
    pub fn code(self) -> i32 {
        i32::from(self as u8)
    }
}

/// The code for each kind of error of the library.
impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NotWindows => Self::NotWindows,
            ErrorKind::NotInstalled => Self::NotInstalled,
            ErrorKind::NotStarted => Self::NotStarted,
            ErrorKind::Denied => Self::Denied,
            ErrorKind::InvalidInput => Self::Usage,
            ErrorKind::UnknownSource => Self::UnknownSource,
            ErrorKind::UnsupportedSource => Self::UnsupportedSource,
            ErrorKind::NoFreeCounter => Self::NoFreeCounter,
            ErrorKind::VersionMismatch => Self::VersionMismatch,
            ErrorKind::NotRunning => Self::NotRunning,
            ErrorKind::AlreadyRunning => Self::AlreadyRunning,
            ErrorKind::NoProcessor => Self::NoProcessor,
            ErrorKind::NoResources => Self::NoResources,
            ErrorKind::InterruptTaken => Self::InterruptTaken,
            ErrorKind::CountersTaken | ErrorKind::ThreadProfilingTaken => Self::CountersTaken,
            ErrorKind::DebugStoreTaken => Self::DebugStoreTaken,
            // Kinds of later versions of the library have no code of their own either.
            _ => Self::Failure,
        }
    }
}

/// Returns the section about exit codes in `--help`.
#[must_use]
pub fn help() -> String {
    let mut text = String::from("EXIT CODES\n");
    for exit in Exit::ALL {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "  {:>2}  {}", exit.code(), exit.meaning());
    }
    text.push_str("  `stat`, `record` and `branches` exit with the code of their COMMAND. A failure\n");
    text.push_str("  of the client itself says \"error:\" on standard error. A reader that closes the\n");
    text.push_str("  pipe early (.\\client report | head) is not a failure: the client exits with 0.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_consecutive_and_each_has_its_own_meaning() {
        for (wanted, exit) in (0..).zip(Exit::ALL) {
            assert_eq!(exit.code(), wanted);
            assert_eq!(Exit::ALL.iter().filter(|other| other.meaning() == exit.meaning()).count(), 1);
        }
    }

    #[test]
    fn the_section_of_the_help_fits_a_console() {
        assert!(help().lines().all(|line| line.len() <= 80), "{}", help());
    }
}
