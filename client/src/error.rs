//! Everything that can go wrong, each with its exit code and with what to do about it.

use std::error::Error as _;
use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use cpuid_dump::ParseError;
use recording::{ReadError, WriteError};
use thiserror::Error;

use crate::driver_file::NotADriver;
use crate::dump;
use crate::exit::Exit;
use crate::refusal::Refusal;
use crate::reply::Malformed;
use crate::system::{SERVICE, win32};

/// The profile interface that has a source which this machine's has not.
#[derive(Debug, Error)]
#[error("the {0} profile interface has it, and that of this machine has not")]
pub struct OtherInterface(pub &'static str);

/// Why a verb did not do what it was asked to.
#[derive(Debug, Error)]
pub enum Error {
    /// A build for another system.
    #[error("this client was not built for Windows, and the driver runs nowhere else")]
    NotWindows,
    /// No service.
    #[error("the driver is not installed")]
    NotInstalled,
    /// A service that does not run.
    #[error("the driver is installed but not started")]
    NotStarted,
    /// A service that runs without its device.
    #[error("the service {SERVICE} runs, but its device is not there")]
    NoDevice,
    /// Windows or the driver denies it; `action` as in "access ... denied".
    #[error("access {action} was denied")]
    Denied {
        /// What was tried.
        action: String,
        /// Windows' words.
        #[source]
        cause: io::Error,
    },
    /// The device is there and can not be opened.
    #[error("the driver's device cannot be opened")]
    Open {
        /// Windows' words.
        #[source]
        cause: io::Error,
    },
    /// A request failed before the driver could answer with a cause.
    #[error("the driver did not answer the request {request}")]
    Request {
        /// Name of the request.
        request: &'static str,
        /// Windows' words.
        #[source]
        cause: io::Error,
    },
    /// An answer that the protocol does not allow.
    #[error("the driver's answer to the request {request} makes no sense")]
    Reply {
        /// Name of the request.
        request: &'static str,
        /// What is wrong with it.
        #[source]
        cause: Malformed,
    },
    /// The driver said no, and why.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// No source has that name.
    #[error("no source is called {given}{}", did_you_mean(.near))]
    UnknownSource {
        /// As the user typed it.
        given: String,
        /// The nearest names, best first.
        near: Vec<String>,
    },
    /// A source that only another profile interface has.
    #[error("{name} is not supported on this machine")]
    OtherInterface {
        /// Its name.
        name: String,
        /// Which.
        #[source]
        cause: OtherInterface,
    },
    /// Named sources that do not run detached.
    #[error("{} not running detached", verb_for(.names))]
    NotRunning {
        /// Their labels.
        names: Vec<String>,
    },
    /// `read` with nothing to read.
    #[error("no source runs detached")]
    NothingRuns,
    /// More events than a request carries.
    #[error("{given} events are too many: a session takes at most {}", protocol::MAX_EVENTS)]
    TooManyEvents {
        /// How many were named.
        given: usize,
    },
    /// `record --batch` with events of which none is precise.
    #[error("--batch is for precise events, and none of the events is one")]
    NothingPrecise,
    /// `branches --ring` with less than two buffers.
    #[error(
        "a ring of {ring} records is too small for a buffer of {buffer}\n  \
         because: one interrupt hands over a whole buffer, and the next can come before\n  \
         that is fetched"
    )]
    ShortRing {
        /// Records that it would have room for.
        ring: u32,
        /// Records of a buffer.
        buffer: u32,
        /// Records that it has to have room for.
        least: u32,
    },
    /// `stat` or `record` without events on a machine that has none of the usual ones.
    #[error("none of the sources that are taken without -e is supported here")]
    NoDefaultEvents,
    /// The command of `stat` or `record`.
    #[error("the command {program} could not be run")]
    Command {
        /// Its first word.
        program: String,
        /// Windows' words.
        #[source]
        cause: io::Error,
    },
    /// The driver's file: `action` as in "cannot ...".
    #[error("cannot {action} {}", .path.display())]
    DriverFile {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Windows' words.
        #[source]
        cause: io::Error,
    },
    /// The file that is to be installed cannot be a driver.
    #[error("cannot install {}; nothing was changed", .path.display())]
    NotADriver {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: NotADriver,
    },
    /// It came by the other way to install, and goes by it.
    #[error("the driver was installed by halprof.inf, as {}", .path.display())]
    OfPackage {
        /// The driver's file.
        path: PathBuf,
    },
    /// Windows does not load it.
    #[error("Windows refuses to load the driver")]
    DriverRefused {
        /// Windows' words.
        #[source]
        cause: io::Error,
    },
    /// The driver does not unload.
    #[error("the driver does not stop: a program holds its device open{}", holding(.holders))]
    Busy {
        /// Sessions tied to a handle, a line each.
        holders: Vec<String>,
    },
    /// The service was deleted before, but not by everyone.
    #[error("the service {SERVICE} is being deleted, and a program still holds it")]
    Lingering,
    /// The service control manager: `action` as in "cannot ... the service".
    #[error("cannot {action} the service {SERVICE}")]
    Service {
        /// What was tried.
        action: &'static str,
        /// Windows' words.
        #[source]
        cause: io::Error,
    },
    /// Windows does not say where it lives.
    #[error("cannot find the directory of Windows or of this program")]
    Directory {
        /// Windows' words.
        #[source]
        cause: io::Error,
    },
    /// The dump of `diagnose`.
    #[error("cannot read {name}")]
    DumpFile {
        /// The file, or what stands for it.
        name: String,
        /// The system's words.
        #[source]
        cause: io::Error,
    },
    /// As above, and it has no end, or none in reach.
    #[error("{name} is no CPUID dump: it is longer than {} MiB", dump::MAX_BYTES >> 20)]
    DumpTooLong {
        /// The file, or what stands for it.
        name: String,
    },
    /// As above, and it says nothing, or nothing that makes sense.
    #[error("{name} is no CPUID dump")]
    NoDump {
        /// The file, or what stands for it.
        name: String,
        /// Where and why.
        #[source]
        cause: ParseError,
    },
    /// The recording of `report`.
    #[error("cannot read {}", .path.display())]
    UnreadableRecording {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: ReadError,
    },
    /// A source or a process, as `what` says, that the recording has not.
    #[error("the recording has no {what} {given}{}", has_instead(.recorded))]
    NotRecorded {
        /// "source" or "process".
        what: &'static str,
        /// As the user typed it.
        given: String,
        /// Those that it has.
        recorded: Vec<String>,
    },
    /// Nothing to draw.
    #[error("{} has no samples", .path.display())]
    NoSamples {
        /// The recording.
        path: PathBuf,
    },
    /// The output would take the place of what is read.
    #[error("{} is the recording itself", .path.display())]
    OverRecording {
        /// The recording.
        path: PathBuf,
    },
    /// No memory for what the driver would keep.
    #[error("out of memory")]
    Memory,
    /// The file of `record`, after its beginning.
    #[error("the recording could not be written to its end")]
    Recording {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, or the system's words.
        #[source]
        cause: WriteError,
    },
    /// The file of `stat -o`, or of `record`.
    #[error("cannot write {}", .path.display())]
    OutputFile {
        /// The file.
        path: PathBuf,
        /// Windows' words.
        #[source]
        cause: io::Error,
    },
    /// Standard output or standard error.
    #[error("cannot write the output")]
    Output(#[from] io::Error),
    /// As above, on the way through JSON.
    #[error("cannot write the output")]
    Json(#[from] serde_json::Error),
}

fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean: {}?", near.join(", ")) }
}

/// How many names there is room for.
const NAMES: usize = 5;

fn has_instead(names: &[String]) -> String {
    match names.len() {
        0 => String::new(),
        1..=NAMES => format!("; it has {}", names.join(", ")),
        all => format!(
            "; it has {} and {} more",
            names.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", "),
            all - NAMES
        ),
    }
}

fn verb_for(names: &[String]) -> String {
    format!("{} {}", names.join(", "), if names.len() == 1 { "is" } else { "are" })
}

fn holding(holders: &[String]) -> String {
    if holders.is_empty() { String::new() } else { format!("\n  held by: {}", holders.join("\n           ")) }
}

impl Error {
    /// The exit code it has.
    pub fn exit(&self) -> Exit {
        match self {
            Self::NotWindows => Exit::NotWindows,
            Self::NotInstalled => Exit::NotInstalled,
            Self::NotStarted => Exit::NotStarted,
            Self::Denied { .. } => Exit::Denied,
            Self::Refused(refusal) => refusal.exit(),
            Self::UnknownSource { .. } => Exit::UnknownSource,
            Self::NotRunning { .. } | Self::NothingRuns => Exit::NotRunning,
            Self::TooManyEvents { .. } | Self::NothingPrecise | Self::ShortRing { .. } | Self::OverRecording { .. } => {
                Exit::Usage
            }
            Self::OtherInterface { .. } | Self::NoDefaultEvents => Exit::UnsupportedSource,
            Self::Command { .. } => Exit::Command,
            Self::Recording { .. } => Exit::Unwritten,
            Self::DriverFile { .. } | Self::NotADriver { .. } | Self::OfPackage { .. } | Self::DriverRefused { .. } => {
                Exit::DriverFile
            }
            Self::Busy { .. } | Self::Lingering => Exit::Busy,
            Self::DumpFile { .. } | Self::DumpTooLong { .. } | Self::NoDump { .. } => Exit::Dump,
            Self::UnreadableRecording { .. } => Exit::Recording,
            Self::NotRecorded { .. } | Self::NoSamples { .. } => Exit::NotRecorded,
            Self::NoDevice
            | Self::Memory
            | Self::Open { .. }
            | Self::Request { .. }
            | Self::Reply { .. }
            | Self::Service { .. }
            | Self::Directory { .. }
            | Self::OutputFile { .. }
            | Self::Output(_)
            | Self::Json(_) => Exit::Failure,
        }
    }

    /// What to do about it, where there is something to do.
    pub fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::NotWindows => "client diagnose, client list --interface   (need no driver)",
            Self::NotInstalled => "client install",
            Self::NotStarted => "client install   (or: sc start halprof)",
            Self::NoDevice => "sc stop halprof, then: client install",
            Self::Denied { .. } => {
                "run from an elevated prompt; the account needs the right\n       \
                 \"Profile system performance\" (SeSystemProfilePrivilege)"
            }
            Self::Reply { .. } => "client install, with the halprof.sys that came with this client.exe",
            Self::Refused(refusal) => return refusal.remedy(),
            Self::UnknownSource { .. } => "client list --all",
            Self::OtherInterface { .. } => "client list   (says what is supported)",
            Self::NotRunning { .. } => "client status   (says what runs)",
            Self::NothingRuns => "client start SOURCE",
            Self::NothingPrecise => "-e SOURCE:p",
            Self::ShortRing { least, .. } => return Some(format!("--ring {least}, or a smaller --buffer")),
            Self::NoDefaultEvents => "client info   (says why), or name others with -e",
            Self::Command { .. } => "a command of the shell itself runs as: ... -- cmd /c COMMAND",
            Self::NotADriver { path, cause: NotADriver::Folder } => {
                let file = path.join(format!("{SERVICE}.sys"));
                return Some(format!("client install --driver {}", file.display()));
            }
            Self::NotADriver { .. } => "client install --driver PATH, with the path of halprof.sys",
            Self::DriverFile { cause, .. } if cause.kind() == io::ErrorKind::NotFound => {
                "client install --driver PATH, with the path of halprof.sys"
            }
            Self::DriverFile { cause, .. } if crate::system::is_denied(cause) => "run from an elevated prompt",
            Self::Recording { path, .. } => {
                return Some(format!(
                    "-o with a file where there is room; what was written before is whole:\n       \
                     client report {}",
                    path.display()
                ));
            }
            Self::OfPackage { .. } => {
                "sc stop halprof, then: pnputil /delete-driver oemN.inf /uninstall\n       \
                 (which N: pnputil /enum-drivers), then the same command again"
            }
            Self::DriverRefused { cause } => return Some(refused_driver(cause).to_owned()),
            Self::Busy { .. } => "end the program, then the same command again",
            Self::Lingering => "close the programs that look at services (services.msc), then again",
            Self::NoDump { cause: ParseError::NoLeaf, .. } => {
                "a file with lines such as\n       \
                 CPUID 00000000: 00000016-756E6547-6C65746E-49656E69   (AIDA64), or\n       \
                 the output of cpuid -1 -r   (Linux)"
            }
            Self::UnreadableRecording { cause: ReadError::NotARecording, .. } => {
                "client report FILE, with what client record wrote"
            }
            Self::UnreadableRecording { cause: ReadError::Version { .. }, .. } => {
                "report, of the client that recorded it"
            }
            Self::OverRecording { .. } => "name another file with -o",
            Self::UnreadableRecording { .. }
            | Self::NotRecorded { .. }
            | Self::NoSamples { .. }
            | Self::DumpFile { .. }
            | Self::DumpTooLong { .. }
            | Self::NoDump { .. }
            | Self::Memory
            | Self::Open { .. }
            | Self::Request { .. }
            | Self::TooManyEvents { .. }
            | Self::DriverFile { .. }
            | Self::Service { .. }
            | Self::Directory { .. }
            | Self::OutputFile { .. }
            | Self::Output(_)
            | Self::Json(_) => return None,
        };
        Some(text.to_owned())
    }

    /// What the user reads: what happened, why, and what to do.
    pub fn report(&self) -> String {
        let mut text = format!("error: {self}");
        let mut cause = self.source();
        while let Some(error) = cause {
            // Writing to a String does not fail.
            let _ = write!(text, "\n  because: {error}");
            cause = error.source();
        }
        if let Some(remedy) = self.remedy() {
            let _ = write!(text, "\n  try: {remedy}");
        }
        text
    }
}

fn refused_driver(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(win32::ERROR_FILE_NOT_FOUND | win32::ERROR_PATH_NOT_FOUND) => {
            "client install   (puts the file in its place)"
        }
        Some(win32::ERROR_PROC_NOT_FOUND) => "Windows 10 version 2004 or later, which the driver is made for",
        Some(win32::ERROR_INVALID_IMAGE_HASH) => {
            "a signed halprof.sys, as the package has it. Signed for tests, it takes\n       \
             bcdedit /set testsigning on   (Secure Boot off, then restart)"
        }
        Some(win32::ERROR_BAD_EXE_FORMAT) => "client install --driver PATH, with a halprof.sys for 64-bit Windows",
        _ => "allow the driver in the policies of Windows (Core isolation, App Control)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows_says(code: i32) -> io::Error {
        io::Error::from_raw_os_error(code)
    }

    /// Every error but the refusals, which have a table of their own; with its code and its last line.
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn table() -> Vec<(Error, Exit, &'static str)> {
        let path = || PathBuf::from("halprof.sys");
        let missing = || io::Error::new(io::ErrorKind::NotFound, "gone");
        let other = || io::Error::other("odd");
        vec![
            (Error::NotWindows, Exit::NotWindows, "  try: client diagnose, client list --interface   (need no driver)"),
            (Error::NotInstalled, Exit::NotInstalled, "  try: client install"),
            (Error::NotStarted, Exit::NotStarted, "  try: client install   (or: sc start halprof)"),
            (Error::NoDevice, Exit::Failure, "  try: sc stop halprof, then: client install"),
            (
                Error::Denied { action: "to the driver".into(), cause: windows_says(5) },
                Exit::Denied,
                "       \"Profile system performance\" (SeSystemProfilePrivilege)",
            ),
            (Error::Open { cause: other() }, Exit::Failure, "  because: odd"),
            (Error::Request { request: "Info", cause: other() }, Exit::Failure, "  because: odd"),
            (
                Error::Reply { request: "Info", cause: Malformed::TooShort { got: 1, wanted: 48 } },
                Exit::Failure,
                "  try: client install, with the halprof.sys that came with this client.exe",
            ),
            (
                Error::UnknownSource { given: "Brunch".into(), near: vec!["BranchInstructions".into()] },
                Exit::UnknownSource,
                "  try: client list --all",
            ),
            (
                Error::OtherInterface { name: "DcacheMisses".into(), cause: OtherInterface("Amd64") },
                Exit::UnsupportedSource,
                "  try: client list   (says what is supported)",
            ),
            (
                Error::NotRunning { names: vec!["TotalIssues".into()] },
                Exit::NotRunning,
                "  try: client status   (says what runs)",
            ),
            (Error::NothingRuns, Exit::NotRunning, "  try: client start SOURCE"),
            (
                Error::TooManyEvents { given: 65 },
                Exit::Usage,
                "error: 65 events are too many: a session takes at most 64",
            ),
            (Error::NothingPrecise, Exit::Usage, "  try: -e SOURCE:p"),
            (
                Error::ShortRing { ring: 65_536, buffer: 65_536, least: 131_072 },
                Exit::Usage,
                "  try: --ring 131072, or a smaller --buffer",
            ),
            (
                Error::NoDefaultEvents,
                Exit::UnsupportedSource,
                "  try: client info   (says why), or name others with -e",
            ),
            (
                Error::Command { program: "dir".into(), cause: missing() },
                Exit::Command,
                "  try: a command of the shell itself runs as: ... -- cmd /c COMMAND",
            ),
            (
                Error::DriverFile { action: "read", path: path(), cause: missing() },
                Exit::DriverFile,
                "  try: client install --driver PATH, with the path of halprof.sys",
            ),
            (
                Error::DriverFile { action: "write", path: path(), cause: windows_says(5) },
                Exit::DriverFile,
                "  try: run from an elevated prompt",
            ),
            (Error::DriverFile { action: "write", path: path(), cause: other() }, Exit::DriverFile, "  because: odd"),
            (
                Error::NotADriver { path: path(), cause: NotADriver::NotPe },
                Exit::DriverFile,
                "  try: client install --driver PATH, with the path of halprof.sys",
            ),
            (
                Error::DriverRefused { cause: windows_says(577) },
                Exit::DriverFile,
                "       bcdedit /set testsigning on   (Secure Boot off, then restart)",
            ),
            (
                Error::DriverRefused { cause: windows_says(2) },
                Exit::DriverFile,
                "  try: client install   (puts the file in its place)",
            ),
            (
                Error::DriverRefused { cause: windows_says(127) },
                Exit::DriverFile,
                "  try: Windows 10 version 2004 or later, which the driver is made for",
            ),
            (
                Error::DriverRefused { cause: windows_says(4551) },
                Exit::DriverFile,
                "  try: allow the driver in the policies of Windows (Core isolation, App Control)",
            ),
            (
                Error::OfPackage { path: path() },
                Exit::DriverFile,
                "       (which N: pnputil /enum-drivers), then the same command again",
            ),
            (
                Error::DriverRefused { cause: windows_says(193) },
                Exit::DriverFile,
                "  try: client install --driver PATH, with a halprof.sys for 64-bit Windows",
            ),
            (
                Error::DriverRefused { cause: windows_says(1275) },
                Exit::DriverFile,
                "  try: allow the driver in the policies of Windows (Core isolation, App Control)",
            ),
            (
                Error::Busy { holders: vec!["session 3 (process 12): TotalIssues".into()] },
                Exit::Busy,
                "  try: end the program, then the same command again",
            ),
            (
                Error::Lingering,
                Exit::Busy,
                "  try: close the programs that look at services (services.msc), then again",
            ),
            (Error::Service { action: "start", cause: other() }, Exit::Failure, "  because: odd"),
            (Error::Directory { cause: other() }, Exit::Failure, "  because: odd"),
            (Error::DumpFile { name: "dump.txt".into(), cause: other() }, Exit::Dump, "  because: odd"),
            (
                Error::DumpTooLong { name: "dump.txt".into() },
                Exit::Dump,
                "error: dump.txt is no CPUID dump: it is longer than 16 MiB",
            ),
            (
                Error::NoDump { name: "dump.txt".into(), cause: ParseError::NoLeaf },
                Exit::Dump,
                "       the output of cpuid -1 -r   (Linux)",
            ),
            (
                Error::NoDump {
                    name: "dump.txt".into(),
                    cause: ParseError::Line { line: 7, cause: cpuid_dump::Cause::Registers },
                },
                Exit::Dump,
                "  because: line 7: the registers are not four groups of eight hexadecimal digits",
            ),
            (
                Error::UnreadableRecording { path: "a.rec".into(), cause: ReadError::NotARecording },
                Exit::Recording,
                "  try: client report FILE, with what client record wrote",
            ),
            (
                Error::UnreadableRecording { path: "a.rec".into(), cause: ReadError::CutOff { offset: 0 } },
                Exit::Recording,
                "  because: the recording was cut off after 0 bytes",
            ),
            (
                Error::NotRecorded { what: "process", given: "ap".into(), recorded: vec!["app.exe".into()] },
                Exit::NotRecorded,
                "error: the recording has no process ap; it has app.exe",
            ),
            (Error::NoSamples { path: "a.rec".into() }, Exit::NotRecorded, "error: a.rec has no samples"),
            (Error::OverRecording { path: "a.rec".into() }, Exit::Usage, "  try: name another file with -o"),
            (Error::Memory, Exit::Failure, "error: out of memory"),
            (
                Error::Recording { path: "app.rec".into(), cause: WriteError::Write(other()) },
                Exit::Unwritten,
                "       client report app.rec",
            ),
            (Error::OutputFile { path: path(), cause: other() }, Exit::Failure, "  because: odd"),
            (Error::Output(other()), Exit::Failure, "  because: odd"),
            (Error::Json(serde_json::Error::io(other())), Exit::Failure, "  because: odd"),
        ]
    }

    #[test]
    fn every_error_has_its_code_and_ends_with_what_to_do_or_why() {
        for (error, exit, last) in table() {
            assert_eq!(error.exit(), exit, "{error:?}");
            let report = error.report();
            assert_eq!(report.lines().last(), Some(last), "{report}");
            assert!(report.starts_with("error: "), "{report}");
            assert!(report.lines().all(|line| line.len() <= 80), "{report}");
        }
    }

    #[test]
    fn an_unknown_name_comes_back_with_its_neighbours() {
        let near = vec!["BranchInstructions".to_owned(), "BranchMispredictions".to_owned()];
        let error = Error::UnknownSource { given: "branch".into(), near };
        assert_eq!(
            error.report(),
            "error: no source is called branch; did you mean: BranchInstructions, BranchMispredictions?\n  \
             try: client list --all"
        );
    }

    #[test]
    fn a_driver_that_does_not_stop_comes_with_who_holds_it() {
        let holders = vec!["session 3 (process 12): TotalIssues".into(), "session 4 (process 13): CacheMisses".into()];
        assert_eq!(
            Error::Busy { holders }.report(),
            "error: the driver does not stop: a program holds its device open\n  \
             held by: session 3 (process 12): TotalIssues\n           \
             session 4 (process 13): CacheMisses\n  \
             try: end the program, then the same command again"
        );
    }
}
