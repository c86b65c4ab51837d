//! What a program can distinguish an error of the library by.

/// What a program can distinguish an error by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The program was not built for Windows.
    NotWindows,
    /// The driver is not installed.
    NotInstalled,
    /// The driver is installed but not started.
    NotStarted,
    /// Windows or the driver denies access: the process is not elevated, or has no SeSystemProfilePrivilege.
    Denied,
    /// A value of the request is invalid: the text of an event, modes, an interval, the number of events.
    InvalidInput,
    /// No event has this name or number.
    UnknownSource,
    /// The event exists, but cannot be counted or sampled in this way on this machine.
    UnsupportedSource,
    /// All counters that can count the event are in use, or are too few.
    NoFreeCounter,
    /// The library and the driver have different protocol versions.
    VersionMismatch,
    /// The session or event to read or stop does not run.
    NotRunning,
    /// The event already runs detached.
    AlreadyRunning,
    /// No such processor is active.
    NoProcessor,
    /// The driver has no memory or no free session.
    NoResources,
    /// Another driver has the performance interrupt.
    InterruptTaken,
    /// Another driver or program has the counters.
    CountersTaken,
    /// The Debug Store is in use, or Windows refuses its control area.
    DebugStoreTaken,
    /// Another driver has configured Windows' thread profiling, or a thread still profiles.
    ThreadProfilingTaken,
    /// The required grade of a group is unavailable.
    GradeUnavailable,
    /// Windows or the driver failed in a way that has no kind of its own.
    Other,
}
