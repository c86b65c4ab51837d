//! What the blocks say.

use protocol::Sample;
use serde::{Deserialize, Serialize};

/// As [`Process::id`]: the kernel, whose modules are those of no process. As the process of a sample the same number is
/// [`UNKNOWN`](protocol::UNKNOWN).
pub const KERNEL: u32 = u32::MAX;

/// A block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// The first: what was recorded, where and how.
    Session(Session),
    /// A process, or modules of it that were not known before.
    Process(Process),
    /// Samples, and what befell the sampling, in the order in which the driver gave them.
    Samples(Vec<Sample>),
    /// The last: how it ended.
    Summary(Summary),
}

/// What was recorded, where and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// When it began, in milliseconds since 1970, UTC.
    pub created_unix_ms: u64,
    /// Version of the client: `1.2.3`.
    pub client: String,
    /// Version of the driver.
    pub driver: String,
    /// Brand string of the processor, or its vendor.
    pub processor: String,
    /// Name of the computer, where it has one.
    pub computer: Option<String>,
    /// The command and its arguments; empty where none was run.
    pub command: Vec<String>,
    /// Units a second of [`Sample::time`].
    pub clock: u64,
    /// The processors that were sampled, ascending.
    pub processors: Vec<u32>,
    /// Records that a processor wrote before it interrupted, of events that are [precise](protocol::modes::PRECISE); 0
    /// where none is.
    pub batch: u32,
    /// What was sampled.
    pub events: Vec<Event>,
}

/// An event of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// KPROFILE_SOURCE.
    pub source: u32,
    /// Its name in the HAL, without `Profile`.
    pub name: String,
    /// [`protocol::modes`], with [`PRECISE`](protocol::modes::PRECISE) of an event that the processor itself recorded.
    pub modes: u32,
    /// Events between two samples; where there is a frequency, at the beginning. Of [`BRANCHES`](protocol::BRANCHES):
    /// records before an interrupt.
    pub interval: u32,
    /// Samples a second and processor towards which the interval was moved; zero: it stayed.
    pub frequency: u32,
}

/// A process. Later blocks of the same process add their modules to those of the earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its number, or [`KERNEL`].
    pub id: u32,
    /// The name of its program's file; empty where Windows does not tell.
    pub name: String,
    /// Modules that were found in it since the block before.
    pub modules: Vec<Module>,
}

/// A file in the address space of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// Its lowest address.
    pub base: u64,
    /// Bytes of address space.
    pub size: u64,
    /// The file.
    pub path: String,
    /// TimeDateStamp of its COFF header; with `image_size` the key by which symbol servers know it. Zero: not read.
    pub timestamp: u32,
    /// SizeOfImage of its optional header. Zero: not read.
    pub image_size: u32,
    /// The symbols that were built with it, where it names them.
    pub debug: Option<DebugFile>,
}

/// The CodeView record of a module: which PDB holds its symbols.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DebugFile {
    /// The PDB, as the linker named it.
    pub name: String,
    /// Its GUID as 32 hexadecimal digits, upper case, and its age in as many as it takes, as Breakpad writes them.
    pub id: String,
}

/// How the recording ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// From the start to the stop, in units of 100 ns.
    pub elapsed: u64,
    /// The final counts.
    pub counts: Vec<Count>,
    /// Whether Ctrl-C ended it.
    pub interrupted_by_user: bool,
    /// The exit code of the command; none where none was run, or something else ended it.
    pub exit_code: Option<i32>,
}

/// The final count of an event on a processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// KPROFILE_SOURCE.
    pub source: u32,
    /// [`protocol::modes`].
    pub modes: u32,
    /// Processor.
    pub processor: u32,
    /// Events.
    pub count: u64,
    /// Samples that the driver took.
    pub samples: u64,
    /// Samples for which there was no room, or whose interrupt did not come before the counter was stopped or a tick recovered it.
    pub lost: u64,
    /// Overflows that were dropped because the processor had spent its budget.
    pub throttled: u64,
}
