//! Contents of the blocks.

use protocol::{SampleRecord, modes};
use serde::{Deserialize, Serialize};

use crate::stack::StackId;
use crate::text;
use crate::tree::StackNodes;

/// In [`Process::id`]: the kernel, which has modules but is not a process. In a sample the same number means
/// [`UNKNOWN`](protocol::UNKNOWN).
pub const KERNEL: u32 = u32::MAX;

/// A block of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// The first block: parameters of the recording.
    Session(RecordedSession),
    /// A process, or modules that it loaded later.
    Process(Process),
    /// Functions that a just-in-time compiler made.
    Methods(Methods),
    /// Call stacks of the samples that follow.
    Stacks(StackNodes),
    /// Samples and losses, throttling and sleep, in the order in which the driver returned them. None has a call stack.
    Samples(Vec<SampleRecord>),
    /// As `Samples`, with call stacks.
    StackedSamples(Vec<(SampleRecord, StackId)>),
    /// The last block: the end of the recording.
    Summary(Summary),
}

impl Block {
    /// Returns the samples of the block and their call stacks.
    pub fn samples(&self) -> impl Iterator<Item = (SampleRecord, StackId)> {
        let (plain, stacked) = match self {
            Self::Samples(samples) => (samples.as_slice(), [].as_slice()),
            Self::StackedSamples(samples) => ([].as_slice(), samples.as_slice()),
            Self::Session(_) | Self::Process(_) | Self::Methods(_) | Self::Stacks(_) | Self::Summary(_) => {
                ([].as_slice(), [].as_slice())
            }
        };
        plain.iter().map(|record| (*record, StackId::NOT_RECORDED)).chain(stacked.iter().copied())
    }
}

/// Parameters of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedSession {
    /// Start time in milliseconds since 1970-01-01 UTC.
    pub created_unix_ms: u64,
    /// Version of the client, for example `1.2.3`.
    #[serde(deserialize_with = "text::one")]
    pub client: String,
    /// Version of the driver.
    #[serde(deserialize_with = "text::one")]
    pub driver: String,
    /// Brand string of the processor, or its vendor if it has none.
    #[serde(deserialize_with = "text::one")]
    pub processor: String,
    /// Name of the computer, if it has one.
    #[serde(default, deserialize_with = "text::optional")]
    pub computer: Option<String>,
    /// The command and its arguments; empty if no command was run.
    #[serde(deserialize_with = "text::several")]
    pub command: Vec<String>,
    /// Units per second of [`SampleRecord::time`].
    pub clock: u64,
    /// The sampled processors, in ascending order.
    pub processors: Vec<u32>,
    /// Records that a processor wrote per interrupt for [precise](protocol::modes::PRECISE) events; 0 if no event is
    /// precise.
    pub batch: u32,
    /// The core types of a hybrid; empty for other machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_types: Vec<CoreTypeProcessors>,
    /// The sampled events. Samples and counts name them by their index here.
    pub events: Vec<RecordedEvent>,
    /// Of which windows there are samples, as the user wrote it: `IPC<0.5`. `None` if of all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "text::optional")]
    pub condition: Option<String>,
    /// Which branches follow each sample of a counter, newest first: bits of [`protocol::last_branches`]; 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub last_branches: u32,
    /// The processes and threads of which there are samples; empty if of all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tasks: RecordedTasks,
    /// Number of this part of the recording, from 1; 0 at its start.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub part: u32,
}

/// Processes and threads that were chosen when they were recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedTasks {
    /// IDs of processes.
    pub processes: Box<[u32]>,
    /// IDs of threads.
    pub threads: Box<[u32]>,
    /// Whether the processes that these started are recorded too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub with_children: bool,
}

impl RecordedTasks {
    /// Returns whether none was chosen, so that all are recorded.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        self.processes.is_empty() && self.threads.is_empty()
    }

    /// Returns whether samples of this thread of this process are recorded.
    #[must_use]
    pub fn select(&self, process: u32, thread: u32) -> bool {
        self.is_all() || self.processes.contains(&process) || self.threads.contains(&thread)
    }

    /// Returns the processes and threads in a line; `None` if all were recorded.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let list = |numbers: &[u32], one: &str, several: &str| {
            let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            let noun = if numbers.len() == 1 { one } else { several };
            (!numbers.is_empty()).then(|| format!("{noun} {}", numbers.join(", ")))
        };
        let lists = [list(&self.processes, "process", "processes"), list(&self.threads, "thread", "threads")];
        let text = lists.into_iter().flatten().reduce(|all, more| format!("{all}; {more}"))?;
        Some(if self.with_children { format!("{text} and those that it started") } else { text })
    }
}

/// The processors of a core type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreTypeProcessors {
    /// Number of the core type in CPUID leaf 0x1A, EAX\[31:24\]; never 0.
    pub core_type: u32,
    /// Its name in the notation of events: `cpu_core`.
    #[serde(deserialize_with = "text::one")]
    pub name: String,
    /// The sampled processors of the type, in ascending order.
    pub processors: Vec<u32>,
}

/// A sampled event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedEvent {
    /// [`protocol::Event::source`].
    pub source: u64,
    /// Name in the HAL without the prefix `Profile`, or the name of a raw event.
    #[serde(deserialize_with = "text::one")]
    pub name: String,
    /// Bits of [`protocol::modes`], with [`PRECISE`](protocol::modes::PRECISE) if the processor itself recorded the
    /// event.
    pub modes: u32,
    /// Events between two samples, or the initial value of it if `frequency` is not zero. For
    /// [`BRANCHES`](protocol::BRANCHES): records per interrupt.
    pub interval: u32,
    /// Target of samples per second and processor, to which the interval was adjusted; zero if the interval was fixed.
    pub frequency: u32,
    /// [Core type](CoreTypeProcessors::core_type) of the processors on which it was sampled; zero for all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub core_type: u32,
}

impl RecordedEvent {
    /// The event of the times in which threads did not run, in nanoseconds, by the name that perf gave it.
    pub const OFF_CPU: &str = "offcpu-time";

    /// [`source`](Self::source) of that event. It is none of the HAL, and no raw event.
    pub const OFF_CPU_SOURCE: u64 = 0x7FFF_FFFE;

    /// Returns the event of the times in which threads did not run.
    #[must_use]
    pub fn off_cpu() -> Self {
        let (source, name) = (Self::OFF_CPU_SOURCE, Self::OFF_CPU.to_owned());
        Self { source, name, modes: modes::BOTH, interval: 1, frequency: 0, core_type: 0 }
    }

    /// Returns whether it is the event of the times in which threads did not run.
    #[must_use]
    pub const fn is_off_cpu(&self) -> bool {
        self.source == Self::OFF_CPU_SOURCE
    }
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// A process. Later blocks of the same process add modules to those of earlier blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Process ID, or [`KERNEL`].
    pub id: u32,
    /// Time of its creation in units of [`RecordedSession::clock`]; `None` if it is unknown.
    /// Windows gives the ID of a process that has ended to another one, which has another time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<u64>,
    /// File name of the program; empty if Windows does not report it.
    #[serde(deserialize_with = "text::one")]
    pub name: String,
    /// Modules found since the previous block of the process.
    pub modules: Vec<Module>,
}

/// An image in the address space of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// Lowest address.
    pub base: u64,
    /// Size in the address space, in bytes.
    pub size: u64,
    /// Path of the file.
    #[serde(deserialize_with = "text::one")]
    pub path: String,
    /// TimeDateStamp of the COFF header; with `image_size` the key of the image on symbol servers. Zero if it was not
    /// read.
    pub timestamp: u32,
    /// SizeOfImage of the optional header. Zero if it was not read.
    pub image_size: u32,
    /// PDB of the image, if its headers name one.
    pub debug: Option<DebugFile>,
}

/// CodeView record of a module, which identifies the PDB with its symbols.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DebugFile {
    /// Name of the PDB, as the linker wrote it.
    #[serde(deserialize_with = "text::one")]
    pub name: String,
    /// Breakpad ID: the GUID as 32 upper-case hexadecimal digits, followed by the age without leading zeros.
    #[serde(deserialize_with = "text::one")]
    pub id: String,
}

/// Functions that a just-in-time compiler made in a process. Later blocks of the same process add to those of earlier
/// ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Methods {
    /// Process ID.
    pub id: u32,
    /// As [`Process::created`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<u64>,
    /// Functions found since the previous block of the process.
    pub methods: Vec<Method>,
}

/// A function that a just-in-time compiler made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Method {
    /// Lowest address.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// Name with its namespace, and its signature if it is known.
    #[serde(deserialize_with = "text::one")]
    pub name: String,
    /// Time from which on it has the addresses, in units of [`RecordedSession::clock`]. Compilers reuse addresses.
    pub loaded: u64,
}

/// End of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Time from start to stop, in units of 100 ns.
    pub elapsed: u64,
    /// Final counts.
    pub counts: Vec<Count>,
    /// Whether Ctrl-C ended the recording.
    pub interrupted_by_user: bool,
    /// Exit code of the command; `None` if no command was run or it did not end the recording.
    pub exit_code: Option<i32>,
    /// What was kept of a recording with a limit; `None` if nothing was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
    /// What is missing of the times in which threads did not run; `None` if those were not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_cpu: Option<OffCpuSummary>,
}

/// What is missing of the times in which threads did not run: of the chosen threads, and losses of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OffCpuSummary {
    /// Number of times that a CPU switched from another thread than it had switched to: switches between were lost.
    pub lost: u64,
    /// Number of switches that came after later ones were followed.
    pub late: u64,
    /// Number of threads that did not run at the end, and have no stack for that reason.
    pub open: u64,
    /// How long those had not run, in nanoseconds.
    pub open_time: u64,
    /// Number of threads that ran on after a time that had begun before the recording.
    pub begun_before: u64,
    /// Number of times without a stack.
    pub without_stack: u64,
}

impl Summary {
    /// Returns the time that the samples cover, in units of 100 ns: the elapsed time, or what is left of it.
    #[must_use]
    pub fn sampled_time(&self) -> u64 {
        self.kept.map_or(self.elapsed, |kept| kept.elapsed)
    }
}

/// The end of a longer recording, which is all that is left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// Time that is left, in units of 100 ns.
    pub elapsed: u64,
    /// Number of samples that were removed.
    pub removed: u64,
}

/// Final count of an event on a processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// Index of the event in [`RecordedSession::events`].
    pub event: u32,
    /// Processor.
    pub processor: u32,
    /// Events.
    pub count: u64,
    /// Samples taken by the driver.
    pub samples: u64,
    /// Samples lost because the ring was full, or because the interrupt did not arrive before the counter stopped or a
    /// tick recovered it.
    pub lost: u64,
    /// Overflows dropped because the processor had used up its interrupt budget.
    pub throttled: u64,
    /// Overflows whose windows did not meet the condition.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unmet: u64,
    /// Samples of other processes and threads, which were filtered: a part of `samples`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub filtered: u64,
    /// What another program changed in the registers of the count; `None` if nothing was found changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<Disturbed>,
    /// Which kind of counter made the precise records, as in [`protocol::CountRecord::recorder`]; zero if the event is
    /// not precise, or the client was older.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub recorder: u32,
}

/// The first register of a count that was found changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disturbed {
    /// Address of the register.
    pub register: u32,
    /// Profile interface, as in [`protocol::InfoReply`]: the same address names different registers.
    pub interface: u32,
    /// Value that was found.
    pub found: u64,
    /// Value that was expected; of a counter, the smallest possible one.
    pub expected: u64,
    /// Time from the start until it was found, in units of 100 ns.
    pub at: u64,
}
