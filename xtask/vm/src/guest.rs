//! The guest as the runner sees it: programs run in it, files go in and come out, and the host acts on it.

use std::{path::Path, time::Duration};

use anyhow::Error;

/// Folder in the guest for everything that is copied there.
pub const ROOT: &str = r"C:\halprof-vm";

/// Folder in the guest for what the steps write. It is the working folder of every program once it exists.
pub const OUTPUT: &str = r"C:\halprof-vm\output";

/// Prints the time at which the guest booted, in units of 100 ns, which is another number after each restart.
const BOOT_TIME: &str = "(Get-CimInstance Win32_OperatingSystem).LastBootUpTime.ToFileTimeUtc()";

/// Prints a line for each crash dump: path, length and time of the last write.
const DUMPS: &str = "$r = $env:SystemRoot; \
    Get-ChildItem -File -ErrorAction SilentlyContinue \"$r\\MEMORY.DMP\", \"$r\\Minidump\\*.dmp\" | \
    ForEach-Object { '{0}|{1}|{2}' -f $_.FullName, $_.Length, $_.LastWriteTimeUtc.Ticks }";

/// A program to run in the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Path, or a name on the PATH of the guest.
    pub program: String,
    /// Arguments, each as the program receives it.
    pub arguments: Vec<String>,
    /// Variables to add to the environment.
    pub environment: Vec<(String, String)>,
    /// Working folder.
    pub folder: &'static str,
}

impl Call {
    /// Returns the call of a program in the folder of the output.
    pub fn new(program: &str, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self { program: program.to_owned(), arguments, environment: Vec::new(), folder: OUTPUT }
    }

    /// Returns the call of a line of Windows PowerShell. It works before anything is copied to the guest.
    pub fn powershell(line: &str) -> Self {
        let arguments = ["-NoProfile", "-NonInteractive", "-Command", line];
        Self { folder: r"C:\", ..Self::new("powershell.exe", &arguments) }
    }

    /// Returns the call that prints when the guest booted.
    pub fn boot_time() -> Self {
        Self::powershell(BOOT_TIME)
    }

    /// Returns the call that lists the crash dumps.
    pub fn dumps() -> Self {
        Self::powershell(DUMPS)
    }

    /// Returns the call that restarts the guest.
    pub fn restart() -> Self {
        Self { folder: r"C:\", ..Self::new("shutdown.exe", &["/r", "/f", "/t", "0"]) }
    }

    /// Returns the call that ends every process of a program, and what these started.
    pub fn end(image: &str) -> Self {
        Self { folder: r"C:\", ..Self::new("taskkill.exe", &["/F", "/T", "/IM", image]) }
    }

    /// Returns the command line, to read.
    pub fn line(&self) -> String {
        let program =
            self.program.strip_prefix(ROOT).map_or(self.program.as_str(), |rest| rest.trim_start_matches('\\'));
        let words = self.arguments.iter().map(|word| windows_argument(word));
        std::iter::once(program.to_owned()).chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// Returns an argument as CommandLineToArgvW and the C runtime read it.
pub fn windows_argument(word: &str) -> String {
    if !word.is_empty() && !word.contains([' ', '\t', '"']) {
        return word.to_owned();
    }
    let mut line = String::from("\"");
    let mut backslashes = 0;
    for character in word.chars() {
        if character == '"' {
            // Backslashes before a quote are escapes, and so is one more for the quote itself.
            line.extend(std::iter::repeat_n('\\', backslashes + 1));
        }
        backslashes = if character == '\\' { backslashes + 1 } else { 0 };
        line.push(character);
    }
    line.extend(std::iter::repeat_n('\\', backslashes));
    line.push('"');
    line
}

/// What a program did that ran to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ran {
    /// Exit code.
    pub code: i32,
    /// Standard output, with LF line ends.
    pub out: String,
    /// Standard error, with LF line ends.
    pub err: String,
}

/// Why a program in the guest did not run to its end.
#[derive(Debug)]
pub enum Failure {
    /// The guest does not answer, or the connection ended while the program ran; with what the host's program reported.
    Lost(String),
    /// The program ran longer than its limit, and was ended.
    TimedOut,
    /// The host cannot reach any guest in this way. Waiting does not help.
    Host(Error),
}

/// What the host can do to the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostAction {
    /// Turns Secure Boot off, which refuses test signing.
    SecureBootOff,
    /// Exposes the counters of the processor, and reports whether the hypervisor accepted it.
    ExposeCounters,
    /// Creates a checkpoint.
    Checkpoint,
    /// Interrupts a guest that hangs, so that it writes a dump and restarts.
    Interrupt,
}

impl HostAction {
    /// Returns what it does.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SecureBootOff => "turn Secure Boot off",
            Self::ExposeCounters => "expose the counters to the guest",
            Self::Checkpoint => "create a checkpoint",
            Self::Interrupt => "interrupt the guest",
        }
    }
}

/// The result of an action of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostResult {
    /// Done, with the output.
    Done(String),
    /// The hypervisor refused, with its message.
    Refused(String),
    /// This transport does not control the hypervisor; with what to do by hand.
    ByHand(String),
}

/// A virtual machine with Windows.
pub trait Guest {
    /// Checks what can be checked without the guest: programs, names, files.
    fn check(&mut self) -> anyhow::Result<()>;

    /// Runs a program in the guest to its end.
    fn run(&mut self, call: &Call, limit: Duration) -> Result<Ran, Failure>;

    /// Copies the contents of a folder of the host into an empty folder of the guest.
    fn copy_in(&mut self, from: &Path, to: &str) -> Result<(), Failure>;

    /// Copies a file of the guest to a path of the host.
    fn copy_out(&mut self, from: &str, to: &Path) -> Result<(), Failure>;

    /// Acts on the virtual machine from the host.
    fn host(&mut self, action: HostAction) -> Result<HostResult, Failure>;
}

/// The time, which tests replace.
pub trait Clock {
    /// Returns the time since a fixed moment.
    fn now(&self) -> Duration;

    /// Waits.
    fn sleep(&mut self, time: Duration);
}
