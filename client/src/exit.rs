//! What the exit code says.

use std::fmt::Write;

macro_rules! exits {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $meaning:literal;)*) => {
        /// An exit code of the client itself.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Exit { $($(#[$doc])* $name = $code,)* }

        impl Exit {
            /// Every one, in ascending order.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// What it means, for `--help`.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)* }
            }
        }
    };
}

exits! {
    /// All is well.
    Done = 0, "done";
    /// What none of the others says.
    Failure = 1, "Windows or the driver failed in a way that has no code of its own";
    /// clap's own code for it.
    Usage = 2, "the command line is wrong";
    /// No service.
    NotInstalled = 3, "the driver is not installed";
    /// A service that does not run.
    NotStarted = 4, "the driver is installed but not started";
    /// Windows or the driver denies access.
    Denied = 5, "access denied: not elevated, or without SeSystemProfilePrivilege";
    /// No source has that name or number.
    UnknownSource = 6, "no source has this name or number";
    /// The source exists, but not here.
    UnsupportedSource = 7, "the source is not supported on this machine";
    /// All counters are taken.
    NoFreeCounter = 8, "no counter is free; the message says who holds them";
    /// Client and driver differ.
    VersionMismatch = 9, "client and driver speak different protocol versions";
    /// Nothing to read or to stop.
    NotRunning = 10, "the source or the session does not run";
    /// `stat`, `record` or `branches` could not run its command.
    Command = 11, "stat, record, branches: the command could not be run";
    /// Detached already.
    AlreadyRunning = 12, "the source runs detached already";
    /// No such processor.
    NoProcessor = 13, "no such processor is active";
    /// Handles keep the driver loaded.
    Busy = 14, "the driver does not stop: a program holds its device open";
    /// The driver's file cannot be installed or loaded.
    DriverFile = 15, "the driver's file: missing, no driver, halprof.inf's, refused by Windows";
    /// Memory or sessions.
    NoResources = 16, "the driver is short of memory or of sessions";
    /// Built for another system.
    NotWindows = 17, "this client was not built for Windows";
    /// The file of `diagnose`.
    Dump = 18, "diagnose: the file cannot be read, or is no CPUID dump";
    /// The HAL's slot for its handler.
    InterruptTaken = 19, "another driver has the performance interrupt";
    /// The file of `record` or of `branches`.
    Unwritten = 20, "record, branches: the file cannot be written to its end";
    /// The file of `report`.
    Recording = 21, "report, export: the file cannot be read, or is no recording";
    /// As above, and it is not whole.
    Incomplete = 22, "report, export: done, but the recording is cut off or damaged";
    /// As above, and it has nothing of what is asked for.
    NotRecorded = 23, "report, export: the recording has no such source or process";
    /// The HAL, or the registers themselves, say so.
    CountersTaken = 24, "the counters belong to another; start, stat, record: --force";
    /// Its registers, another session, or Windows say so.
    DebugStoreTaken = 25, "another has the Debug Store, or Windows refuses its control area";
}

impl Exit {
    /// As the process exits with it.
    pub fn code(self) -> i32 {
        i32::from(self as u8)
    }
}

/// The section of `--help`.
pub fn help() -> String {
    let mut text = String::from("EXIT CODES\n");
    for exit in Exit::ALL {
        // Writing to a String does not fail.
        let _ = writeln!(text, "  {:>2}  {}", exit.code(), exit.meaning());
    }
    text.push_str("  `stat`, `record` and `branches` exit with the code of their COMMAND. A failure\n");
    text.push_str("  of the client itself says \"error:\" on standard error. A reader that closes the\n");
    text.push_str("  pipe early (client report | head) is no failure: the client ends, with 0.");
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
