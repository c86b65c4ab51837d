//! Every error of every area: exit code, report and remedy.

pub mod refusals;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cpuid_dump::ParseError;
use halprof::source::{OtherInterface, SourceError};
use halprof::{InvalidReply, OpenError, RequestError};
use recording::{ReadError, WriteError};
use report::Reason;

use crate::cli::ShortRing;
use crate::machine::driver_file::{DriverFileError, NotADriver, SignatureError};
use crate::machine::dump::DumpError;
use crate::machine::provider_security::ProviderSecurityError;
use crate::machine::service::DriverBusy;
use crate::reading::branch_profile::ProfileError;
use crate::reading::open::RecordingError;
use crate::verb::{
    AnnotateError, EndedInDelay, InstallError, MemError, SelftestError, SpgoError, TopologyError, Undone, Unestimated,
};
use counts::condition::UndecidedError;
use counts::requests::DetachedError;
use events::condition::ConditionError;
use recorder::Unwritten;
use recorder::command::CommandError;
use recorder::tasks::TaskError;
use system::trace::TraceError;
use user_error::event_error::EventError;
use user_error::exit::Exit;
use user_error::output_error::OutputError;
use user_error::system_error::{NotX86, SystemError};
use user_error::{Error, OutOfMemory};

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
        (
            SystemError::NotWindows.into(),
            Exit::NotWindows,
            "  try: .\\client diagnose, .\\client list --interface   (need no driver)",
        ),
        (
            SystemError::Emulated(NotX86).into(),
            Exit::NotWindows,
            "  try: WindowsPerf, which counts on ARM64; or .\\client diagnose --cpuid FILE",
        ),
        (OpenError::NotInstalled.into(), Exit::NotInstalled, "  try: .\\client install"),
        (OpenError::NotStarted.into(), Exit::NotStarted, "  try: .\\client install   (or: sc.exe start halprof)"),
        (
            OpenError::Stopping.into(),
            Exit::NotStarted,
            "  try: end the programs that use the driver, then: .\\client install",
        ),
        (OpenError::NoDevice.into(), Exit::Failure, "  try: sc.exe stop halprof, then: .\\client install"),
        (
            OpenError::Denied { action: "to the driver".into(), cause: windows_says(5) }.into(),
            Exit::Denied,
            "       \"Profile system performance\" (SeSystemProfilePrivilege)",
        ),
        (OpenError::Open { cause: other() }.into(), Exit::Failure, "  because: odd"),
        (RequestError::Failed { request: "Info", cause: other() }.into(), Exit::Failure, "  because: odd"),
        (
            RequestError::Malformed { request: "Info", cause: InvalidReply::TooShort { got: 1, wanted: 48 } }.into(),
            Exit::Failure,
            "  try: .\\client install, with the halprof.sys that came with this client.exe",
        ),
        (
            SourceError::Unknown { given: "Brunch".into(), near: vec!["BranchInstructions".into()] }.into(),
            Exit::UnknownSource,
            "  try: .\\client list --all",
        ),
        (
            SourceError::OtherInterface { name: "DcacheMisses".into(), cause: OtherInterface("Amd64") }.into(),
            Exit::UnsupportedSource,
            "  try: .\\client list   (lists what is supported)",
        ),
        (
            DetachedError::NotRunning { names: vec!["TotalIssues".into()] }.into(),
            Exit::NotRunning,
            "  try: .\\client status   (lists what runs)",
        ),
        (DetachedError::NoSource.into(), Exit::NotRunning, "  try: .\\client start SOURCE"),
        (
            RequestError::TooManyEvents { given: 65 }.into(),
            Exit::Usage,
            "error: 65 events are too many: a session takes at most 64",
        ),
        (EventError::NothingPrecise.into(), Exit::Usage, "  try: -e SOURCE:p"),
        (EventError::NoBranches.into(), Exit::Usage, "  try: -e cycles, or another event of a counter without :p"),
        (
            UndecidedError::NoRatio(ConditionError::NoComparison).into(),
            Exit::Usage,
            "  try: --when with one event divided by another: \"instructions/cycles<0.5\"",
        ),
        (UndecidedError::Time("Time".into()).into(), Exit::Usage, "  try: -e cycles"),
        (UndecidedError::Precise("X:p".into()).into(), Exit::Usage, "  try: -e with the event without :p"),
        (
            UndecidedError::CoreTypes { event: "LLCMisses".into(), sampled: "cycles".into() }.into(),
            Exit::Usage,
            "  try: -e \"cpu_core/cycles/,cpu_atom/cycles/\", or one type with -C",
        ),
        (
            ShortRing { ring: 65_536, buffer: 65_536, least: 131_072 }.into(),
            Exit::Usage,
            "  try: --ring 131072, or a smaller --buffer",
        ),
        (
            EventError::NoDefault.into(),
            Exit::UnsupportedSource,
            "  try: .\\client info   (says why), or name others with -e",
        ),
        (
            CommandError { program: "dir".into(), meant: None, cause: missing() }.into(),
            Exit::Command,
            "  try: a command of the shell itself runs as: ... -- cmd /c COMMAND",
        ),
        (Unestimated { option: "-I" }.into(), Exit::UnsupportedSource, "  try: without -I, or -a instead of -p and -t"),
        (EndedInDelay { delay: Duration::from_millis(20) }.into(), Exit::NotRunning, "  try: a shorter delay (-D)"),
        (TaskError::None { what: "process", id: 7 }.into(), Exit::NotRunning, "  try: tasklist   (lists processes)"),
        (TaskError::None { what: "thread", id: 7 }.into(), Exit::NotRunning, "  try: -p with its process"),
        (TaskError::NoName { name: "app".into() }.into(), Exit::NotRunning, "  try: tasklist   (lists processes)"),
        (
            TaskError::Closed { what: "process", id: 7, cause: windows_says(5) }.into(),
            Exit::Denied,
            "  try: run from an elevated prompt",
        ),
        (TaskError::Processes { cause: other() }.into(), Exit::Failure, "  because: odd"),
        (TopologyError::Unknown { cause: other() }.into(), Exit::Failure, "  try: --per-cpu"),
        (TopologyError::Missing { processor: 4, reported: 2 }.into(), Exit::Failure, "  try: --per-cpu"),
        (
            DriverFileError::File { action: "read", path: path(), cause: missing() }.into(),
            Exit::DriverFile,
            "  try: .\\client install --driver PATH, with the path of halprof.sys",
        ),
        (
            DriverFileError::File { action: "write", path: path(), cause: windows_says(5) }.into(),
            Exit::DriverFile,
            "  try: run from an elevated prompt",
        ),
        (
            DriverFileError::File { action: "write", path: path(), cause: other() }.into(),
            Exit::DriverFile,
            "  because: odd",
        ),
        (
            DriverFileError::NotADriver { path: path(), cause: NotADriver::NotPe }.into(),
            Exit::DriverFile,
            "  try: .\\client install --driver PATH, with the path of halprof.sys",
        ),
        (
            DriverFileError::NotADriver { path: path(), cause: NotADriver::OtherVersion(5) }.into(),
            Exit::VersionMismatch,
            "  try: .\\client install, with the halprof.sys that came with this client.exe",
        ),
        (
            DriverFileError::Signature { path: path(), cause: SignatureError::ForTests { signer: "me".into() } }.into(),
            Exit::DriverFile,
            "  try: bcdedit /set testsigning on   (Secure Boot off, then restart)",
        ),
        (
            DriverFileError::Signature { path: path(), cause: SignatureError::Missing }.into(),
            Exit::DriverFile,
            "  try: the signed halprof.sys of the package, or --any-signature",
        ),
        (
            DriverFileError::Signature { path: path(), cause: SignatureError::OtherFile }.into(),
            Exit::DriverFile,
            "  try: the signed halprof.sys of the package, or --any-signature",
        ),
        (
            InstallError::SessionsRun(vec!["session 4 (process 12, detached): TotalIssues".into()]).into(),
            Exit::Busy,
            "  try: .\\client stop --all, or: .\\client install --end-sessions",
        ),
        (
            InstallError::NoAnswer(OpenError::NoDevice.into()).into(),
            Exit::Failure,
            "  try: sc.exe stop halprof, then: .\\client install",
        ),
        (
            Undone {
                cause: SystemError::Service { action: "start", cause: other() }.into(),
                outcome: "the old driver is in place, and runs".into(),
            }
            .into(),
            Exit::Failure,
            "  now: the old driver is in place, and runs",
        ),
        (ProviderSecurityError::Restrict(windows_says(5)).into(), Exit::Denied, "  try: run from an elevated prompt"),
        (
            ProviderSecurityError::Restrict(other()).into(),
            Exit::Failure,
            "       HKLM\\SYSTEM\\CurrentControlSet\\Control\\WMI\\Security",
        ),
        (ProviderSecurityError::Remove(windows_says(5)).into(), Exit::Denied, "  try: run from an elevated prompt"),
        (
            SystemError::DriverRefused { cause: windows_says(577) }.into(),
            Exit::DriverFile,
            "       bcdedit /set testsigning on   (Secure Boot off, then restart)",
        ),
        (
            SystemError::DriverRefused { cause: windows_says(2) }.into(),
            Exit::DriverFile,
            "  try: .\\client install   (puts the file in its place)",
        ),
        (
            SystemError::DriverRefused { cause: windows_says(127) }.into(),
            Exit::DriverFile,
            "  try: Windows 10 version 2004 or later, which the driver is made for",
        ),
        (
            SystemError::DriverRefused { cause: windows_says(4551) }.into(),
            Exit::DriverFile,
            "  try: allow the driver in the policies of Windows (Core isolation, App Control)",
        ),
        (
            DriverFileError::Packaged { path: path() }.into(),
            Exit::DriverFile,
            "       (which N: pnputil /enum-drivers), then repeat the command",
        ),
        (
            SystemError::DriverRefused { cause: windows_says(193) }.into(),
            Exit::DriverFile,
            "  try: .\\client install --driver PATH, with a halprof.sys for 64-bit Windows",
        ),
        (
            SystemError::DriverRefused { cause: windows_says(1275) }.into(),
            Exit::DriverFile,
            "  try: allow the driver in the policies of Windows (Core isolation, App Control)",
        ),
        (
            DriverBusy { sessions: vec!["session 3 (process 12): TotalIssues".into()] }.into(),
            Exit::Busy,
            "  try: end the program, then repeat the command",
        ),
        (
            SystemError::DeletePending.into(),
            Exit::Busy,
            "  try: close programs that show services (services.msc), then repeat the command",
        ),
        (SystemError::Service { action: "start", cause: other() }.into(), Exit::Failure, "  because: odd"),
        (SystemError::Directory { cause: other() }.into(), Exit::Failure, "  because: odd"),
        (DumpError::Read { name: "dump.txt".into(), cause: other() }.into(), Exit::Dump, "  because: odd"),
        (
            DumpError::TooLong { name: "dump.txt".into() }.into(),
            Exit::Dump,
            "error: dump.txt is not a CPUID dump: it is longer than 16 MiB",
        ),
        (
            DumpError::Invalid { name: "dump.txt".into(), cause: ParseError::NoLeaf }.into(),
            Exit::Dump,
            "       the output of cpuid -1 -r   (Linux)",
        ),
        (
            DumpError::Invalid {
                name: "dump.txt".into(),
                cause: ParseError::Line { line: 7, cause: cpuid_dump::LineError::Registers },
            }
            .into(),
            Exit::Dump,
            "  because: line 7: the registers are not four groups of eight hexadecimal digits",
        ),
        (
            RecordingError::Unreadable { path: "a.rec".into(), cause: ReadError::NotARecording }.into(),
            Exit::Recording,
            "  try: .\\client report FILE, with a file that .\\client record wrote",
        ),
        (
            RecordingError::Unreadable { path: "a.rec".into(), cause: ReadError::CutOff { offset: 0 } }.into(),
            Exit::Recording,
            "  because: the recording was cut off after 0 bytes",
        ),
        (
            RecordingError::NotRecorded {
                place: "the recording",
                what: "process",
                given: "ap".into(),
                recorded: vec!["app.exe".into()],
            }
            .into(),
            Exit::NotRecorded,
            "error: the recording has no process ap; it has app.exe",
        ),
        (RecordingError::NoSamples { path: "a.rec".into() }.into(), Exit::NotRecorded, "error: a.rec has no samples"),
        (
            RecordingError::NoBranches { path: "a.rec".into() }.into(),
            Exit::NotRecorded,
            "  try: .\\client record -b -- COMMAND",
        ),
        (
            MemError::no_event("loads").into(),
            Exit::UnsupportedSource,
            "  try: .\\client record -e cache-misses -- app.exe   (without addresses)",
        ),
        (MemError::NoThreshold.into(), Exit::Usage, "  try: .\\client mem record without it"),
        (
            RecordingError::NoAccesses { path: "a.rec".into() }.into(),
            Exit::NotRecorded,
            "  try: .\\client mem record -- COMMAND",
        ),
        (
            SpgoError::Run { program: "llvm-profgen".into(), cause: other() }.into(),
            Exit::Command,
            "  try: --profgen FILE, with the path of LLVM's llvm-profgen.exe",
        ),
        (
            SpgoError::Failed { program: "llvm-profgen".into(), last: "no".into() }.into(),
            Exit::Failure,
            "  try: LLVM 19 or later, which reads programs of Windows",
        ),
        (
            SpgoError::NoLines { image: "app.exe".into() }.into(),
            Exit::NoCode,
            "  try: clang -gdwarf -fdebug-info-for-profiling, and lld-link /debug:dwarf",
        ),
        (
            SpgoError::Empty { image: "app.exe".into() }.into(),
            Exit::NoCode,
            "  try: .\\client report --branch   (shows where the branches are)",
        ),
        (ProfileError::Kinds.into(), Exit::NotRecorded, "  try: .\\client record -j any,u -- COMMAND"),
        (
            ProfileError::Several { names: vec!["app.exe".into(), "b.dll".into()] }.into(),
            Exit::NotRecorded,
            "  try: --module app.exe",
        ),
        (
            ProfileError::Nothing.into(),
            Exit::NotRecorded,
            "  try: .\\client report --branch   (shows them, and how many were cut)",
        ),
        (
            ProfileError::OtherCode { wrong: 3, all: 4, image: "app.exe".into() }.into(),
            Exit::NoCode,
            "  try: --symbols DIR, with the image that ran",
        ),
        (
            ProfileError::Image { image: "app.exe".into(), cause: report::CodeError::NoCode(7) }.into(),
            Exit::NoCode,
            "  because: the image has no code at 0x7",
        ),
        (RecordingError::SameFile { path: "a.rec".into() }.into(), Exit::Usage, "  try: name another file with -o"),
        (
            AnnotateError::NoSymbol("mian".into()).into(),
            Exit::NotRecorded,
            "  try: .\\client report --sort \"module,symbol\", which lists them",
        ),
        (
            RecordingError::Ambiguous {
                given: "m".into(),
                names: vec!["m1".into(), "m2".into()],
                remedy: "--symbol \"*m*\"".into(),
            }
            .into(),
            Exit::NotRecorded,
            "  try: --symbol \"*m*\"",
        ),
        (
            AnnotateError::NoCode {
                function: "a.exe!main".into(),
                image: "a.exe (time stamp 00000007, size 0x1000)".into(),
                cause: Reason::NotFound.into(),
            }
            .into(),
            Exit::NoCode,
            "  try: --symbols DIR, with the recorded a.exe (time stamp 00000007, size 0x1000)",
        ),
        (SelftestError::Processor { processor: 7, cause: other() }.into(), Exit::NoProcessor, "  because: odd"),
        (SelftestError::Calls { processor: 7, cause: other() }.into(), Exit::NoProcessor, "  because: odd"),
        (SelftestError::Trace(TraceError::at("StartTrace")(other())).into(), Exit::Failure, "  because: odd"),
        (SelftestError::Save(other()).into(), Exit::Failure, TO_SAVE),
        (SelftestError::Remove(other()).into(), Exit::Failure, TO_SAVE),
        (OutOfMemory.into(), Exit::Failure, "error: out of memory"),
        (
            Unwritten { path: "app.rec".into(), cause: WriteError::Write(other()) }.into(),
            Exit::Unwritten,
            "       .\\client report app.rec",
        ),
        (OutputError::File { path: path(), cause: other() }.into(), Exit::Failure, "  because: odd"),
        (OutputError::Stream(other()).into(), Exit::Failure, "  because: odd"),
        (OutputError::Json(serde_json::Error::io(other())).into(), Exit::Failure, "  because: odd"),
    ]
}

/// Returns the report of every error that is not a refusal.
pub fn reports() -> Vec<String> {
    table().iter().map(|(error, ..)| error.report()).collect()
}

const TO_SAVE: &str = r"  try: run as administrator, and let administrators own %ProgramData%\halprof";

#[test]
fn every_error_has_its_code_and_ends_with_a_remedy_or_a_cause() {
    for (error, exit, last) in table() {
        assert_eq!(error.exit(), exit, "{error:?}");
        let report = error.report();
        assert_eq!(report.lines().last(), Some(last), "{report}");
        assert!(report.starts_with("error: "), "{report}");
        assert!(report.lines().all(|line| line.len() <= 80), "{report}");
    }
}

#[test]
fn an_unknown_name_is_reported_with_similar_names() {
    let near = vec!["BranchInstructions".to_owned(), "BranchMispredictions".to_owned()];
    let error = Error::from(SourceError::Unknown { given: "branch".into(), near });
    assert_eq!(
        error.report(),
        "error: no source is called branch; did you mean: BranchInstructions, BranchMispredictions?\n  \
         try: .\\client list --all"
    );
}

#[test]
fn a_driver_that_does_not_stop_is_reported_with_its_sessions() {
    let sessions = vec!["session 3 (process 12): TotalIssues".into(), "session 4 (process 13): CacheMisses".into()];
    assert_eq!(
        Error::from(DriverBusy { sessions }).report(),
        "error: the driver does not stop: a program holds its device open\n  \
         held by: session 3 (process 12): TotalIssues\n           \
         session 4 (process 13): CacheMisses\n  \
         try: end the program, then repeat the command"
    );
}
