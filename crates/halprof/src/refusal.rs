//! Refusals of the driver: what each [`ErrorCode`] means, and what to do.

mod core_type;
mod debug_store;
mod extra;
pub(crate) mod ibs;
mod last_branches;
mod register_fault;
mod threads;

use std::error::Error;
use std::fmt;

use pmu::Hypervisor;
use pmu::debug_store::MissingFeature;
use protocol::{ErrorCode, NtStatus, PROTOCOL_VERSION, RegisterInUse, ReplyHeader};

use crate::core_types::{CoreTypeInfo, qualified};
use crate::error_kind::ErrorKind;
use crate::sessions::RunningSession;
use crate::text::argument::argument;
use crate::text::format::{bytes, grouped};
use crate::text::unavailable::{self, OTHER_PROFILERS};
use crate::text::{ntstatus, register, support};

/// The remedy if client and driver are of different versions.
pub const SAME_VERSION: &str = ".\\client install, with the halprof.sys that came with this client.exe";

/// A refusal of the driver. Its text says what was refused and why.
#[derive(Debug)]
pub struct Refusal {
    /// Name of the request.
    pub request: &'static str,
    /// Header of the reply.
    pub header: ReplyHeader,
    /// Name of the refused source.
    pub source: String,
    /// Sessions that hold the counters, if there are too few.
    pub sessions: Vec<RunningSession>,
    /// Events of a group that fit on the counters, for the refusal of the group.
    pub part: Vec<String>,
    /// Core types of the machine; queried only for causes that name them.
    pub core_types: Vec<CoreTypeInfo>,
    /// Whether this Windows is the root partition of Hyper-V; queried only for causes that depend on it.
    pub is_root: bool,
}

impl Refusal {
    /// Returns why the driver refused; `None` for a cause that this version of the library does not know.
    #[must_use]
    pub fn cause(&self) -> Option<ErrorCode> {
        ErrorCode::from_number(self.header.cause)
    }

    /// Returns the source on the core types that have it, if the refusing processor is of another.
    #[must_use]
    pub fn on_other_core_type(&self) -> Option<String> {
        let has_refused = |one: &&CoreTypeInfo| one.processors.contains(&self.header.processor);
        let others = self.core_types.iter().filter(|one| !has_refused(one));
        let others: Vec<String> = others.map(|one| qualified(&self.source, one.number)).collect();
        (!others.is_empty()).then(|| others.join(", "))
    }

    /// Returns the source on each of the core types between which the request has to choose, for
    /// [`ErrorCode::CoreTypeNeeded`].
    #[must_use]
    pub fn on_each_core_type(&self) -> Vec<String> {
        match self.cause() {
            Some(ErrorCode::CoreTypeNeeded) => core_type::on_each(&self.source, &self.header),
            _ => Vec::new(),
        }
    }

    /// Returns which feature the processor lacks, for [`ErrorCode::NoDebugStore`] and [`ErrorCode::NotPrecise`].
    #[must_use]
    pub fn missing_feature(&self) -> Option<MissingFeature> {
        match self.cause() {
            Some(ErrorCode::NoDebugStore | ErrorCode::NotPrecise) => debug_store::missing_feature(&self.header),
            _ => None,
        }
    }

    /// Returns whether KVM hides the counters from Windows, for causes whose second detail is the kind of hypervisor.
    #[must_use]
    pub fn is_hidden_by_kvm(&self) -> bool {
        register_fault::known(self.header.detail[1]) == Some(Hypervisor::Kvm)
    }

    /// Returns what was refused because of an extra register, a condition, thread profiling or the Debug Store.
    fn of_facility(&self, cause: ErrorCode) -> String {
        let Self { source, header, sessions, .. } = self;
        match cause {
            ErrorCode::ExtraRegisterTaken | ErrorCode::PreciseOnly | ErrorCode::BadEvent => {
                extra::sentence(cause, source, header)
            }
            ErrorCode::BadCondition => self.undecided(),
            ErrorCode::ThreadProfilingTaken
            | ErrorCode::ThreadsConflict
            | ErrorCode::NoCommonCounter
            | ErrorCode::NotReadable => threads::sentence(cause, source, header, sessions),
            ErrorCode::NoLastBranches | ErrorCode::LastBranchesInUse | ErrorCode::LastBranchesTaken => {
                last_branches::sentence(cause, header)
            }
            ErrorCode::NoIbs | ErrorCode::IbsInUse | ErrorCode::IbsTaken => ibs::sentence(cause, source, header),
            _ => debug_store::sentence(cause, source, header),
        }
    }

    fn write_no_interrupt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReplyHeader { processor, detail: [first, _], .. } = self.header;
        if self.cause() == Some(ErrorCode::HandlerRefused) {
            let told = ntstatus::of_detail(first);
            write!(f, "Windows did not accept a handler of the performance interrupt: NTSTATUS {told}")?;
        } else {
            write!(f, "Windows has not enabled the performance interrupt of CPU {processor}")?;
        }
        if self.is_hidden_by_kvm() {
            f.write_str("\n  because: KVM with Hyper-V enlightenments hides the counters from Windows")?;
        } else if self.cause() == Some(ErrorCode::HandlerRefused) {
            f.write_str("\n  because: another driver has it, or this machine's HAL has none")?;
        }
        if self.cause() == Some(ErrorCode::InterruptNotEnabled) {
            write!(f, "\n  its entry in the local APIC is {first:#x}; Windows uses vector 0xfe, delivered as fixed")?;
        }
        Ok(())
    }

    fn free_a_counter(&self) -> String {
        let [there, wanted] = self.header.detail;
        if wanted > there {
            let source = argument(&self.source);
            return format!("fewer such events at once   (.\\client query {source} shows on which counters)");
        }
        match self.sessions.iter().find(|session| session.detached) {
            Some(session) => {
                let names: Vec<_> = session.events.iter().map(|event| argument(&event.name)).collect();
                format!(".\\client stop {}", names.join(" "))
            }
            None => match self.sessions.first() {
                Some(session) => format!("wait for process {} to end, or end it", session.process),
                None => OTHER_PROFILERS.to_owned(),
            },
        }
    }

    fn write_group_too_large(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReplyHeader { processor, detail: [members, part], .. } = self.header;
        write!(
            f,
            "the {members} events of a group cannot be counted at the same time on CPU {processor}\n  \
             because: there is no counter for {} beside the others; {} fit together",
            self.source,
            part.count_ones()
        )
    }

    fn write_not_working(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processor = self.header.processor;
        write!(f, "the counters of CPU {processor} do not work: a hypervisor reports them in CPUID only")?;
        register_fault::why_not_working(&self.header).map_or(Ok(()), |why| write!(f, "\n  because: {why}"))
    }

    fn write_no_counter(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, processor) = (&self.source, self.header.processor);
        write!(f, "no free counter for {source} on CPU {processor}: {}", self.why_no_counter())?;
        for (index, session) in self.sessions.iter().enumerate() {
            let lead = if index == 0 { "held by:" } else { "        " };
            write!(f, "\n  {lead} {session}")?;
        }
        Ok(())
    }

    fn why_no_counter(&self) -> String {
        let [there, wanted] = self.header.detail;
        match (there, wanted) {
            _ if wanted > there && there == 1 => format!("{wanted} events need the one that can count them"),
            _ if wanted > there => format!("{wanted} events need the {there} that can count them"),
            (1, _) => "the only one is in use".to_owned(),
            (_, 0 | 1) => format!("all {there} are in use"),
            _ => format!("{wanted} of the {there} that can count it are needed, and fewer are free"),
        }
    }

    fn undecided(&self) -> String {
        let (source, processor) = (&self.source, self.header.processor);
        let why = match self.header.detail {
            [0, _] => "only an interrupt of a counter that counts all the time decides on its sample".to_owned(),
            [2, _] => "four other events have a condition".to_owned(),
            _ => format!("the interrupt needs both counts of the ratio, and CPU {processor} lacks one"),
        };
        format!("the condition of {source} cannot be decided\n  because: {why}")
    }

    fn why_bad_counters(&self) -> String {
        let (source, processor, [there, asked]) = (&self.source, self.header.processor, self.header.detail);
        if there == 0 {
            return format!("{source} takes no counter, but counters={asked:#x} was asked for");
        }
        format!(
            "{source} counts on none of the counters asked for\n  \
             because: on CPU {processor} it can use counters={there:#x}, and counters={asked:#x} was asked for"
        )
    }
}

fn rings_too_large(wanted: u64, most: u64) -> String {
    let [wanted, most] = [wanted, most].map(bytes);
    format!(
        "the rings of all sessions would take {wanted} of memory that cannot be paged out,\n  \
         and the driver allows {most}"
    )
}

impl Error for Refusal {}

impl Refusal {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.cause() {
            Some(ErrorCode::VersionMismatch) => ErrorKind::VersionMismatch,
            Some(ErrorCode::UnknownSource) => ErrorKind::UnknownSource,
            Some(
                ErrorCode::UnsupportedSource
                | ErrorCode::CountersDoNotWork
                | ErrorCode::NoCounterCounts
                | ErrorCode::CountersNotEnumerated
                | ErrorCode::RegisterFault
                | ErrorCode::NotSampled
                | ErrorCode::InterruptNotEnabled
                | ErrorCode::ApicNotReached
                | ErrorCode::NoDebugStore
                | ErrorCode::Shadowed
                | ErrorCode::NotPrecise
                | ErrorCode::NoLastBranches
                | ErrorCode::NoIbs,
            ) => ErrorKind::UnsupportedSource,
            Some(
                ErrorCode::CountersTaken
                | ErrorCode::ForeignUse
                | ErrorCode::LastBranchesInUse
                | ErrorCode::LastBranchesTaken
                | ErrorCode::IbsInUse
                | ErrorCode::IbsTaken,
            ) => ErrorKind::CountersTaken,
            Some(ErrorCode::DebugStoreInUse | ErrorCode::DebugStoreTaken | ErrorCode::ControlArea) => {
                ErrorKind::DebugStoreTaken
            }
            Some(
                ErrorCode::NoFreeCounter
                | ErrorCode::OtherThread
                | ErrorCode::ExtraRegisterTaken
                | ErrorCode::GroupTooLarge,
            ) => ErrorKind::NoFreeCounter,
            Some(
                ErrorCode::NoMemory
                | ErrorCode::TooManySessions
                | ErrorCode::TooManyRawEvents
                | ErrorCode::RingsTooLarge,
            ) => ErrorKind::NoResources,
            Some(ErrorCode::NoSuchSession | ErrorCode::NotStarted | ErrorCode::NothingSampled) => ErrorKind::NotRunning,
            Some(ErrorCode::NoProcessor | ErrorCode::NoSuchProcessor) => ErrorKind::NoProcessor,
            Some(ErrorCode::AlreadyStarted) => ErrorKind::AlreadyRunning,
            Some(
                ErrorCode::BadModes
                | ErrorCode::BadInterval
                | ErrorCode::BadRing
                | ErrorCode::BadFrequency
                | ErrorCode::NoInterval
                | ErrorCode::BadBuffer
                | ErrorCode::BadCounters
                | ErrorCode::PreciseOnly
                | ErrorCode::BadEvent
                | ErrorCode::BadCondition,
            ) => ErrorKind::InvalidInput,
            Some(ErrorCode::HandlerRefused) => ErrorKind::InterruptTaken,
            Some(cause @ (ErrorCode::CoreTypeNeeded | ErrorCode::NoSuchCoreType)) => {
                core_type::kind(cause, &self.header)
            }
            Some(
                cause @ (ErrorCode::ThreadProfilingTaken
                | ErrorCode::ThreadsConflict
                | ErrorCode::NoCommonCounter
                | ErrorCode::NotReadable),
            ) => threads::kind(cause),
            Some(ErrorCode::None | ErrorCode::BadFlags | ErrorCode::Asleep) | None => ErrorKind::Other,
        }
    }

    /// Returns what the user can do about it, if anything. Commands are those of client.exe and of Windows.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        let source = &self.source;
        let text = match self.cause() {
            Some(ErrorCode::VersionMismatch) => SAME_VERSION.to_owned(),
            Some(ErrorCode::UnknownSource) => ".\\client list --all".to_owned(),
            Some(ErrorCode::UnsupportedSource) if self.header.detail[1] == 1 => {
                self.on_other_core_type().unwrap_or_else(|| "the processors that have it".to_owned())
            }
            Some(ErrorCode::UnsupportedSource) => ".\\client list   (lists what is supported)".to_owned(),
            Some(ErrorCode::NoFreeCounter) => self.free_a_counter(),
            Some(ErrorCode::OtherThread) => {
                "one CPU of each core, or fewer events at once, or hyper-threading off".to_owned()
            }
            Some(cause @ (ErrorCode::ExtraRegisterTaken | ErrorCode::PreciseOnly | ErrorCode::BadEvent)) => {
                extra::remedy(cause)
            }
            Some(ErrorCode::GroupTooLarge) => format!("\"{{{}}}\", or the events without braces", self.part.join(",")),
            Some(ErrorCode::NoMemory) => "fewer sources or fewer processors at once".to_owned(),
            Some(ErrorCode::NoSuchSession | ErrorCode::NotStarted) => ".\\client status   (lists what runs)".to_owned(),
            Some(ErrorCode::NoProcessor | ErrorCode::NoSuchProcessor) => {
                "CPUs that are active   (.\\client info shows how many there are)".to_owned()
            }
            Some(ErrorCode::AlreadyStarted) => format!(".\\client read {0}, or: .\\client stop {0}", argument(source)),
            Some(ErrorCode::NoCounterCounts) => "again later, because the host may use the counters now".to_owned(),
            Some(ErrorCode::CountersDoNotWork) if self.is_root => unavailable::HYPER_V_BELOW.to_owned(),
            Some(ErrorCode::CountersDoNotWork | ErrorCode::CountersNotEnumerated) => {
                "give this virtual machine performance counters, if its hypervisor has them".to_owned()
            }
            Some(ErrorCode::RegisterFault) => register_fault::remedy(&self.header),
            Some(ErrorCode::NoInterval) => format!("an interval for {source}"),
            Some(ErrorCode::TooManySessions | ErrorCode::TooManyRawEvents) => {
                ".\\client status, then: .\\client stop SOURCE".to_owned()
            }
            Some(ErrorCode::BadModes) => format!("{source} without :u or :k"),
            Some(ErrorCode::BadInterval) => format!(".\\client query {}   (shows its range)", argument(source)),
            Some(ErrorCode::RingsTooLarge) => "smaller rings, or fewer CPUs".to_owned(),
            Some(ErrorCode::BadRing) => "a power of two in that range".to_owned(),
            Some(ErrorCode::BadFrequency) => "a lower frequency or budget".to_owned(),
            Some(ErrorCode::BadCounters) if self.header.detail[0] == 0 => format!("{source} without counters="),
            Some(ErrorCode::BadCounters) => {
                format!("counters= with one of them   (.\\client query {} shows all)", argument(source))
            }
            Some(ErrorCode::BadCondition) => "a ratio of other events, and samples without :p".to_owned(),
            Some(ErrorCode::NotSampled) => {
                "counting it, which needs no interrupt, or samples by time: the source Time".to_owned()
            }
            Some(ErrorCode::HandlerRefused | ErrorCode::InterruptNotEnabled) if self.is_hidden_by_kvm() => {
                unavailable::WITHOUT_ENLIGHTENMENTS.to_owned()
            }
            Some(ErrorCode::HandlerRefused | ErrorCode::CountersTaken) => OTHER_PROFILERS.to_owned(),
            Some(ErrorCode::ForeignUse) => {
                let RegisterInUse { number, interface, .. } = RegisterInUse::from_detail(self.header.detail[0]);
                let known = register::known_writers(interface.into(), number);
                format!("end the program that does this; known are\n  {known}")
            }
            Some(ErrorCode::InterruptNotEnabled | ErrorCode::ApicNotReached) => {
                "counting, which needs no interrupt".to_owned()
            }
            Some(ErrorCode::NothingSampled) => "a session that samples".to_owned(),
            Some(ErrorCode::Asleep) => "the same command again when the machine is awake".to_owned(),
            Some(
                cause @ (ErrorCode::NoDebugStore
                | ErrorCode::DebugStoreInUse
                | ErrorCode::DebugStoreTaken
                | ErrorCode::Shadowed
                | ErrorCode::NotPrecise
                | ErrorCode::ControlArea
                | ErrorCode::BadBuffer),
            ) => return debug_store::remedy(cause, source, &self.header),
            Some(cause @ (ErrorCode::NoLastBranches | ErrorCode::LastBranchesInUse | ErrorCode::LastBranchesTaken)) => {
                return last_branches::remedy(cause, &self.header);
            }
            Some(cause @ (ErrorCode::NoIbs | ErrorCode::IbsInUse | ErrorCode::IbsTaken)) => {
                return ibs::remedy(cause, &self.header);
            }
            Some(cause @ (ErrorCode::CoreTypeNeeded | ErrorCode::NoSuchCoreType)) => {
                core_type::remedy(cause, source, &self.header, &self.core_types)
            }
            Some(
                cause @ (ErrorCode::ThreadProfilingTaken
                | ErrorCode::ThreadsConflict
                | ErrorCode::NoCommonCounter
                | ErrorCode::NotReadable),
            ) => threads::remedy(cause, source),
            Some(ErrorCode::None | ErrorCode::BadFlags) | None => return None,
        };
        Some(text)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request, source, .. } = self;
        let ReplyHeader { cause, processor, detail: [first, second], .. } = self.header;
        let (status, told) = (NtStatus::new(self.header.status), ntstatus::of_detail(first));
        match self.cause() {
            Some(ErrorCode::None) => write!(f, "the driver failed the request {request}: NTSTATUS {status}"),
            Some(ErrorCode::VersionMismatch) => {
                write!(f, "this client has protocol version {first}, and the driver has version {second}")
            }
            Some(ErrorCode::UnknownSource) => write!(f, "the driver knows no source {source}"),
            Some(ErrorCode::UnsupportedSource) => {
                let why = support::sentence(u32::try_from(first).unwrap_or(u32::MAX));
                match second {
                    1 => write!(f, "{source} is not supported on CPU {processor}, but is on others")?,
                    _ => write!(f, "{source} is not supported on this machine")?,
                }
                write!(f, "\n  because: {why}")
            }
            Some(ErrorCode::NoFreeCounter) => self.write_no_counter(f),
            Some(ErrorCode::GroupTooLarge) => self.write_group_too_large(f),
            Some(ErrorCode::NoMemory) if first == 0 => f.write_str("the driver is short of memory"),
            Some(ErrorCode::NoMemory) => write!(f, "the driver could not get {} bytes of memory", grouped(first)),
            Some(ErrorCode::NoSuchSession) if first == protocol::DETACHED => f.write_str("no detached session runs"),
            Some(ErrorCode::NoSuchSession) => write!(f, "session {first} does not exist, or is another client's"),
            Some(ErrorCode::NotStarted) if first == protocol::DETACHED => write!(f, "{source} does not run detached"),
            Some(ErrorCode::NotStarted) => write!(f, "{source} does not run in session {first}"),
            Some(ErrorCode::NoProcessor) => write!(f, "none of the requested CPUs is active ({})", active(first)),
            Some(ErrorCode::NoSuchProcessor) => write!(f, "CPU {processor} is not active ({})", active(first)),
            Some(ErrorCode::BadModes) => {
                write!(f, "{source} cannot be counted in one mode alone: a timer counts it in both")
            }
            Some(ErrorCode::AlreadyStarted) => write!(f, "{source} already runs detached, in session {first}"),
            Some(ErrorCode::BadFlags) => write!(f, "the driver does not know the flags {first:#x}"),
            Some(ErrorCode::CountersDoNotWork) => self.write_not_working(f),
            Some(ErrorCode::NoCounterCounts) => {
                write!(f, "no counter of CPU {processor} counts: a hypervisor keeps their values only")
            }
            Some(ErrorCode::CountersNotEnumerated) => f.write_str(
                "a hypervisor is present, and CPUID does not enumerate its counters (PerfCtrExtCore);\n  \
                 if they do not exist, the first access would stop the machine",
            ),
            Some(ErrorCode::RegisterFault) => f.write_str(&register_fault::sentence(&self.header, source)),
            Some(ErrorCode::BadInterval) => write!(f, "the interval of {source} must be from {first} to {second}"),
            Some(ErrorCode::RingsTooLarge) => f.write_str(&rings_too_large(first, second)),
            Some(ErrorCode::BadRing) if first == 0 => f.write_str("a ring was requested, but nothing is sampled"),
            Some(ErrorCode::BadRing) => {
                write!(f, "a ring has room for a power of two from {first} to {second} records")
            }
            Some(ErrorCode::BadFrequency) if first == 0 => {
                f.write_str("a frequency or a budget was requested, but nothing is sampled")
            }
            Some(ErrorCode::BadFrequency) => write!(f, "the frequency or the budget is above {first}"),
            Some(ErrorCode::NotSampled) => write!(
                f,
                "{source} can be counted but not sampled\n  because: the counters of this processor do not interrupt"
            ),
            Some(ErrorCode::HandlerRefused | ErrorCode::InterruptNotEnabled) => self.write_no_interrupt(f),
            Some(ErrorCode::NothingSampled) => write!(f, "session {first} samples nothing"),
            Some(ErrorCode::CountersTaken) => {
                write!(f, "another driver has the counters: HalAllocateHardwareCounters returned\n  NTSTATUS {told}")
            }
            Some(ErrorCode::ForeignUse) => {
                let RegisterInUse { number, counter, interface } = RegisterInUse::from_detail(first);
                let register = register::named(interface.into(), number);
                write!(
                    f,
                    "counter {counter} on CPU {processor} is in use by another program that did not reserve it\n  \
                     because: {register} holds {second:#x}"
                )
            }
            Some(ErrorCode::ApicNotReached) => {
                write!(f, "the local APIC cannot be accessed: NTSTATUS {told}")
            }
            Some(ErrorCode::NoInterval) => {
                write!(f, "{source} is a raw event, and raw events have no stored interval")
            }
            Some(ErrorCode::TooManyRawEvents) => {
                write!(f, "{first} different raw events are in use, which is the maximum")
            }
            Some(ErrorCode::BadCounters) => f.write_str(&self.why_bad_counters()),
            Some(ErrorCode::OtherThread) => write!(
                f,
                "no free counter for {source} on CPU {processor} beside those of CPU {first}\n  \
                 because: the two are threads of a core, and events 0xd0 to 0xd3 of one\n  \
                 can count on the other (errata BJ122, BV98, HSD29)"
            ),
            Some(ErrorCode::Asleep) => f.write_str(
                "the machine is going to sleep, or has not woken up yet\n  \
                 because: this has to read registers that lose their contents during sleep",
            ),
            Some(ErrorCode::TooManySessions) => write!(f, "there are {first} sessions, which is the maximum"),
            Some(cause @ (ErrorCode::CoreTypeNeeded | ErrorCode::NoSuchCoreType)) => {
                f.write_str(&core_type::sentence(cause, source, &self.header, &self.core_types))
            }
            Some(cause) => f.write_str(&self.of_facility(cause)),
            None => write!(
                f,
                "the driver failed the request {request} for the reason {cause}, which this client\n  \
                 (protocol version {PROTOCOL_VERSION}) does not know: NTSTATUS {status}"
            ),
        }
    }
}

fn active(number: u64) -> String {
    if number == 1 { "1 CPU is active".to_owned() } else { format!("{number} CPUs are active") }
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    #[test]
    fn no_text_names_an_option_of_the_command_line() {
        for (cause, first, second) in ErrorCode::ALL
            .into_iter()
            .flat_map(|cause| (0..16).flat_map(move |first| (0..3).map(move |second| (cause, first, second))))
        {
            let header = ReplyHeader { cause: cause as u32, detail: [first, second], ..ReplyHeader::new_zeroed() };
            let (part, sessions, core_types) = (Vec::new(), Vec::new(), Vec::new());
            let source = "TotalIssues".to_owned();
            let refusal = Refusal { request: "Start", header, source, sessions, part, core_types, is_root: false };
            let text = format!("{refusal} {}", refusal.remedy().unwrap_or_default());
            let text = text.replace(".\\client list --all", ""); // a whole command
            for option in [" -C", "-e ", " -F", " --", ".\\client stat ", ".\\client record"] {
                assert!(!format!(" {text}").contains(option), "{cause:?}: {text}");
            }
        }
    }
}
