//! Layouts of requests and replies.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Range of the number of records in a ring.
pub const RING: core::ops::RangeInclusive<u32> = 64..=1 << 20;

/// Maximum size of the rings of all sessions together in bytes. They are in memory that is never paged out: with the
/// client's default, the rings of 2,048 processors take three quarters of this.
pub const MAX_RING_BYTES: u64 = 1 << 30;

/// Default budget of interrupts, in thousandths of a processor's time.
pub const DEFAULT_BUDGET: u32 = 250;

/// Maximum budget of interrupts, in thousandths of a processor's time.
pub const MAX_BUDGET: u32 = 900;

/// Maximum of [`EventRequest::frequency`], in samples per second and processor.
pub const MAX_FREQUENCY: u32 = 100_000;

/// Range of the number of branch records that a processor writes before it interrupts.
pub const BRANCH_BUFFER: core::ops::RangeInclusive<u32> = 64..=1 << 16;

/// Maximum number of precise records that a processor writes before it interrupts.
pub const MAX_BATCH: u32 = 1024;

/// Maximum number of events that a [`GroupReply`] has counts of.
pub const MAX_GROUP: usize = 16;

/// Range of the duration of a round, in units of 100 ns: 4 ms, as in Linux perf (`perf_event_mux_interval_ms`), to 1 s.
pub const ROUND: core::ops::RangeInclusive<u32> = 40_000..=10_000_000;

/// Number of 64-bit words in a [`ProcessorSet`]: 2,048 processors, the maximum of Windows.
pub const PROCESSOR_WORDS: usize = 32;

/// Length of the name in a [`SourceRecord`], in bytes.
pub const NAME_LENGTH: usize = 80;

macro_rules! layout {
    ($($(#[$doc:meta])* $size:literal $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(C)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }
        const _: () = assert!(size_of::<$name>() == $size && size_of::<$name>() % 8 == 0);
    )*};
}

layout! {
    /// In: the client's version.
    8 Hello {
        /// [`PROTOCOL_VERSION`](crate::PROTOCOL_VERSION) of the client.
        version: u32,
        /// Zero.
        reserved: u32,
    }

    /// Out: the beginning of every reply.
    48 ReplyHeader {
        /// NTSTATUS of the operation; see [`status`](crate::status).
        status: u32,
        /// An [`ErrorCode`](crate::ErrorCode).
        cause: u32,
        /// The [source](Event::source) to which the error refers.
        source: u64,
        /// Details of the error or of the result.
        detail: [u64; 2],
        /// The processor to which the error refers.
        processor: u32,
        /// Number of records that follow.
        count: u32,
        /// Number of records available; more than `count` if the buffer was too short.
        total: u32,
        /// Zero.
        reserved: u32,
    }

    /// Out: the versions of the driver.
    72 HelloReply {
        /// Common header.
        header: ReplyHeader,
        /// [`PROTOCOL_VERSION`](crate::PROTOCOL_VERSION) of the driver.
        protocol: u32,
        /// Zero.
        reserved: u32,
        /// Version of the driver: major, minor, patch, zero.
        driver: [u16; 4],
        /// Zero.
        reserved2: u64,
    }

    /// Out: the profile interface, why it was chosen, and what it offers.
    304 InfoReply {
        /// Common header.
        header: ReplyHeader,
        /// Version of the driver: major, minor, patch, zero.
        driver: [u16; 4],
        /// [`PROTOCOL_VERSION`](crate::PROTOCOL_VERSION) of the driver.
        protocol: u32,
        /// Profile interface in use: 0 Default, 1 Emon, 2 Amd64, 3 NetBurst, 4 P6, 5 Pentium.
        interface: u32,
        /// Profile interface that the HAL of Windows 10 selects, by the same numbers.
        windows10: u32,
        /// Reason of the selection, a number of `pmu::Reason`.
        reason: u32,
        /// Number of counters of the processor with the most counters.
        counters: u32,
        /// Width of a counter, in bits.
        width: u32,
        /// Version of architectural performance monitoring (leaf 0xA), or 0.
        pmu_version: u32,
        /// Active processors.
        processors: u32,
        /// Maximum number of processors.
        maximum_processors: u32,
        /// Number of counters in use on the processor with the most in use.
        counters_in_use: u32,
        /// Number of running sessions.
        sessions: u32,
        /// EAX of CPUID leaf 1: family, model, stepping.
        signature: u32,
        /// Vendor string of CPUID leaf 0.
        vendor: [u8; 16],
        /// Brand string of CPUID leaves 0x80000002 to 0x80000004, or zeros.
        brand: [u8; 48],
        /// Size of the counter state, in bytes: 8 per counter per processor.
        state_bytes: u64,
        /// Number of performance monitor interrupts since the driver was loaded.
        interrupts: u64,
        /// Number of interrupts in which none of the driver's counters had overflowed: late, or caused by other
        /// software.
        spurious: u64,
        /// Number of samples delivered to clients since the driver was loaded.
        delivered: u64,
        /// Number of samples lost because the ring was full, or because their interrupt did not arrive before the
        /// counter was stopped or a tick recovered it.
        lost: u64,
        /// Number of overflows dropped because the processor had used up its budget.
        throttled: u64,
        /// Number of samples that no client had fetched when their session ended.
        discarded: u64,
        /// Number of times a processor used up its budget.
        throttles: u64,
        /// Number of times the machine slept.
        sleeps: u64,
        /// Total time asleep, in units of 100 ns.
        asleep: u64,
        /// The hypervisor, a number of `pmu::Hypervisor`.
        hypervisor: u32,
        /// 1 while the counters are reserved with the HAL, otherwise 0; or the NTSTATUS with which the HAL refused to
        /// reserve them again for sessions that run, or to free them after the last session.
        reserved: u32,
        /// Number of counters of the processor with the fewest counters.
        least_counters: u32,
        /// Number of fixed counters of the boot processor.
        fixed_counters: u32,
        /// The workarounds that the boot processor needs: bit n stands for number n of
        /// `pmu::errata::workarounds::WORKAROUNDS`.
        workarounds: u64,
        /// Whether the counts of some processor include System Management Mode: 1 no, 2 yes, 0 not known before the
        /// first session.
        smm: u32,
        /// What Instruction-Based Sampling of the boot processor samples: the number of a `pmu::ibs::Summary`.
        ibs: u32,
        /// Mask of the counters (bit n is counter n) on which a known loop ran, on some processor: before the sessions
        /// that use them, under a hypervisor only.
        tried: u32,
        /// Those that counted nothing of their last loop on some processor.
        still: u32,
        /// Those that counted a part of it on some processor.
        partial: u32,
        /// Vendor string of CPUID leaf 0x40000000, or zeros without a hypervisor.
        hypervisor_vendor: [u8; 12],
    }

    /// What is counted, and where. It says all that selects an event; what is done with it (modes, interval, group) is
    /// said beside it.
    ///
    /// Events that live elsewhere than on general counters fit once the driver has them. One that fixed counter 0 alone
    /// records has its bit in `counters`, which number fixed counters behind general ones. The ops of AMD's IBS are
    /// sampled at an event of a counter that is [precise](crate::modes::PRECISE). OMR is selected by unit mask and
    /// value, as off-core responses are. Last branches belong to the session: [`StartHeader::last_branches`].
    #[derive(PartialOrd, Ord, Hash)]
    24 Event {
        /// KPROFILE_SOURCE of the HAL, [`BRANCHES`](crate::BRANCHES), or a raw event: the bits of
        /// `pmu::source::RawEvent`, which has bit 63 set.
        source: u64,
        /// Value of the extra register of a raw event, which the driver checks; its bits say which kind of register.
        /// Zero without one.
        extra: u64,
        /// Mask of the counters that may count it (bit n is counter n): it narrows the constraints of the driver, and
        /// never widens them. Zero for every counter that the driver knows to count it.
        counters: u32,
        /// Core type (CPUID leaf 0x1A, EAX\[31:24\]) of the processors on which the event is counted; zero for all.
        core_type: u32,
    }

    /// In: a source.
    16 SourceRequest {
        /// [`Event::source`].
        source: u64,
        /// Core type (CPUID leaf 0x1A, EAX\[31:24\]) of the processors that the reply describes; zero for all.
        core_type: u32,
        /// Zero.
        reserved: u32,
    }

    /// In: a new interval of a source.
    16 IntervalRequest {
        /// [`Event::source`].
        source: u64,
        /// Events between two interrupts; for ProfileTime, units of 100 ns. Clamped to the range of the source.
        interval: u32,
        /// Zero.
        reserved: u32,
    }

    /// Out: a source.
    144 SourceRecord {
        /// [`Event::source`].
        source: u64,
        /// Value of the event select register, without enable and interrupt bits.
        select: u64,
        /// A number of `pmu::Support`.
        support: u32,
        /// The current interval.
        interval: u32,
        /// The smallest interval.
        minimum: u32,
        /// The largest interval.
        maximum: u32,
        /// The previous interval, in the reply to [`Code::SetInterval`](crate::Code::SetInterval).
        previous_interval: u32,
        /// Length of `name`, in bytes.
        name_length: u32,
        /// Number of processors that currently count it.
        running: u32,
        /// Name in the HAL without `Profile`, in ASCII.
        name: [u8; NAME_LENGTH],
        /// Mask of the counters that can count it (bit n is counter n); zero if it needs none.
        counters: u32,
        /// 1 if no table lists the event, so that it may count nothing on some of these counters.
        unlisted: u32,
        /// Mask of the counters that record it precisely (PEBS), by the tables of the driver.
        precise: u32,
        /// Core type that the record describes, as in the [`SourceRequest`].
        core_type: u32,
        /// Zero.
        reserved: u32,
    }

    /// Out: the processors of a core type. Only hybrids have them.
    280 CoreTypeRecord {
        /// Core type (CPUID leaf 0x1A, EAX\[31:24\]).
        core_type: u32,
        /// Number of counters, including fixed ones.
        counters: u32,
        /// Number of fixed counters.
        fixed_counters: u32,
        /// Width of a general counter, in bits.
        width: u32,
        /// Width of a fixed counter, in bits.
        fixed_width: u32,
        /// Version of architectural performance monitoring (leaf 0xA).
        pmu_version: u32,
        /// The active processors of the type.
        processors: ProcessorSet,
    }

    /// A set of processors by index; in a request, the empty set selects every active one.
    256 ProcessorSet {
        /// Bit n % 64 of word n / 64 stands for processor n.
        words: [u64; PROCESSOR_WORDS],
    }

    /// In: the beginning of a [`Code::Start`](crate::Code::Start); [`EventRequest`]s follow to the end of the buffer.
    280 StartHeader {
        /// Bits of [`flags`](crate::flags).
        flags: u32,
        /// Number of records in the ring of each processor: a power of two in [`RING`]; zero if no event is sampled.
        ring: u32,
        /// Maximum share of interrupts in a processor's time, in thousandths, up to [`MAX_BUDGET`]; zero selects
        /// [`DEFAULT_BUDGET`].
        budget: u32,
        /// Number of precise records that a processor writes before it interrupts, up to [`MAX_BATCH`]; zero selects
        /// one. With more than one, the process of a record is unknown. Zero if no event is
        /// [precise](crate::modes::PRECISE).
        batch: u32,
        /// Duration of a round with [`MULTIPLEX`](crate::flags::MULTIPLEX), in units of 100 ns and in [`ROUND`]; zero
        /// selects the shortest.
        round: u32,
        /// Bits of [`last_branches`](crate::last_branches): a [`LastBranch`](crate::RecordKind::LastBranch) record for
        /// each branch that the processor keeps then follows a sample of a counter. Zero for none.
        last_branches: u32,
        /// Processors on which the session runs.
        processors: ProcessorSet,
    }

    /// In: one event of a session.
    56 EventRequest {
        /// The event.
        event: Event,
        /// Bits of [`modes`](crate::modes).
        modes: u32,
        /// Number of events between two samples; zero if the event is only counted. For [`BRANCHES`](crate::BRANCHES):
        /// number of branch records before an interrupt, in [`BRANCH_BUFFER`].
        interval: u32,
        /// Target number of samples per second and processor, to which the driver adjusts the interval; zero for a
        /// fixed interval.
        frequency: u32,
        /// Group of the event, a number of the client's choice: the events of a group are counted at the same time or
        /// not at all. Zero for an event by itself.
        group: u32,
        /// Bits of [`event_flags`](crate::event_flags).
        flags: u32,
        /// With [`BELOW`](crate::event_flags::BELOW) or [`ABOVE`](crate::event_flags::ABOVE): indexes in the request of
        /// two events that are counted on each processor of this one. Zeros without a condition.
        ratio: [u16; 2],
        /// With a condition: the ratio of these events is compared with the first of these numbers, divided by the
        /// second. Zeros without one.
        limit: [u32; 2],
    }

    /// In: a session; [`DETACHED`](crate::DETACHED) selects all detached sessions.
    8 SessionRequest {
        /// The number that [`Code::Start`](crate::Code::Start) returned.
        session: u64,
    }

    /// In: a session of which to read the counters of the processor on which the request arrives.
    16 GroupRequest {
        /// The number that [`Code::Start`](crate::Code::Start) returned. [`DETACHED`](crate::DETACHED) selects none.
        session: u64,
        /// Bits of [`group_flags`](crate::group_flags).
        flags: u32,
        /// Zero.
        reserved: u32,
    }

    /// Out: what the counters of a session have counted on one processor, read one after the other without an interrupt
    /// in between. A refusal is the header alone.
    336 GroupReply {
        /// Common header: `processor` is the processor, `count` the number of counts.
        header: ReplyHeader,
        /// Time right before the first counter was read, by QueryPerformanceCounter.
        time_before: u64,
        /// Time right after the last counter was read.
        time_after: u64,
        /// Changes whenever the counts of the processor were interrupted, or cannot be trusted across: sleep and wake,
        /// a register that another program changed, counters stopped and started again. Two replies of a processor
        /// with the same value bracket an exact count.
        generation: u64,
        /// Number of events since the session began on the processor, for each event in the order of the request that
        /// started the session. Zero for an event of another core type, and beyond `count`.
        counts: [u64; MAX_GROUP],
        /// Value of each counter, as RDPMC returned it at the same time; zero for an event that `counted` lacks.
        values: [u64; MAX_GROUP],
        /// Bits of [`group_state`](crate::group_state).
        state: u32,
        /// Events that have a counter on the processor: bit n is element n of `counts`.
        counted: u32,
    }

    /// In: the session and the source to stop.
    24 StopRequest {
        /// The number that [`Code::Start`](crate::Code::Start) returned; [`DETACHED`](crate::DETACHED) selects all
        /// detached sessions.
        session: u64,
        /// [`Event::source`], or [`ALL_SOURCES`](crate::ALL_SOURCES).
        source: u64,
        /// [Core type](Event::core_type) of the events to stop; zero for all.
        core_type: u32,
        /// Zero.
        reserved: u32,
    }

    /// Out: the count of one event on one processor.
    216 CountRecord {
        /// Session.
        session: u64,
        /// The event. Its core type is that of the processor, if the machine is a hybrid and a counter serves the
        /// event; otherwise zero.
        event: Event,
        /// Bits of [`modes`](crate::modes).
        modes: u32,
        /// Processor.
        processor: u32,
        /// Index of the counter, [`TIMER`](crate::TIMER) or [`BRANCH_STORE`](crate::BRANCH_STORE).
        counter: u32,
        /// Index of the event in the request that started the session.
        index: u32,
        /// Number of events since the start.
        count: u64,
        /// Time since the start, or since the processor was added, in units of 100 ns.
        enabled: u64,
        /// Part of `enabled` in which the machine slept and nothing was counted.
        asleep: u64,
        /// Number of samples written to the ring, for a sampled event.
        samples: u64,
        /// Number of samples lost because the ring was full, or because their interrupt did not arrive before the
        /// counter was stopped or a tick recovered it.
        lost: u64,
        /// Number of overflows dropped because the processor had used up its budget.
        throttled: u64,
        /// Number of overflows whose windows did not meet the [condition](crate::event_flags::BELOW) of the event;
        /// zero if counters [decided](crate::event_flags::BESIDE), which count none of them. For ops of AMD: overflows
        /// without an op of those that were [asked](crate::event_flags::LOADS) for.
        unmet: u64,
        /// Zero, or the address of the first register of the count that another program changed: the count is
        /// disturbed.
        disturbed_register: u32,
        /// Profile interface, as in [`InfoReply`]: the same address names different registers.
        interface: u32,
        /// Value of that register when it was found changed.
        disturbed_found: u64,
        /// Value that was expected; of a counter, the smallest possible one.
        disturbed_expected: u64,
        /// Time from the start until the change was found, in units of 100 ns.
        disturbed_at: u64,
        /// Part of `enabled`, without `asleep`, in which the event had a counter; less than the rest of `enabled` only
        /// if events take turns.
        running: u64,
        /// Number of turns that the event has had, if events take turns; otherwise zero.
        turns: u64,
        /// Sums over these turns, each as bits 63:0 and 127:64: the squares of the counts; the products of a count and
        /// its duration in units of 100 ns; the squares of the durations. They tell how well the turns stand for the
        /// time between them.
        squares: [u64; 2],
        /// See `squares`.
        products: [u64; 2],
        /// See `squares`.
        durations: [u64; 2],
        /// Those of the `lost` samples that found the ring full: their number falls with a larger ring.
        full: u64,
        /// How much the counter counted of a known loop before the session began, a number of
        /// `pmu::hal::movement::Movement`: 0 as far as can be told everything, 1 nothing, 2 a part. Tried under a
        /// hypervisor only.
        movement: u32,
        /// Which kind of counter made the precise records or decided on the condition, a number of `pmu::Recorder`;
        /// zero if none did.
        recorder: u32,
    }

    /// In: the session to fetch samples from, and how long to wait for them.
    16 SamplesRequest {
        /// The number that [`Code::Start`](crate::Code::Start) returned.
        session: u64,
        /// Milliseconds to wait until the ring of a processor is half full; zero returns at once.
        wait: u32,
        /// Zero.
        reserved: u32,
    }

    /// In: an operation on control areas, and the processors that it concerns.
    272 AreaRequest {
        /// One of [`area`](crate::area).
        operation: u32,
        /// 1: the processor on which the request arrives; `processors` is then empty.
        current: u32,
        /// Zero.
        reserved: u64,
        /// The processors.
        processors: ProcessorSet,
    }

    /// Out: the PROCESSOR_PROFILE_CONTROL_AREA of a processor, and its Debug Store features.
    32 AreaRecord {
        /// Processor.
        processor: u32,
        /// NTSTATUS of the kernel's last operation on it; for an area of the driver's own, why the kernel did not
        /// allocate one.
        status: u32,
        /// Linear address; zero if the driver knows of no area.
        address: u64,
        /// Size in bytes: 0x60 or 0xA0.
        size: u32,
        /// Flags of [`area`](crate::area).
        flags: u32,
        /// Format of the PEBS records.
        format: u32,
        /// Zero, or why the Debug Store is unavailable: one more than the number of a
        /// `pmu::debug_store::MissingFeature`.
        missing_feature: u32,
    }

    /// In: a processor.
    8 RegistersRequest {
        /// Processor.
        processor: u32,
        /// Zero.
        reserved: u32,
    }

    /// Out: a register of a processor as it is, or that it cannot be read.
    16 RegisterRecord {
        /// Address of the register, index of the counter, or offset in the page of the local APIC.
        number: u32,
        /// A number of [`ReadBy`](crate::ReadBy).
        read_by: u16,
        /// 1 if the access faulted or, in the page of the local APIC, if there is no access to it; else 0.
        failed: u16,
        /// What it contains; zero after a fault, the NTSTATUS if there is no access to the page.
        value: u64,
    }

    /// Out: what the HAL of Windows says about a source.
    16 HalSourceRecord {
        /// KPROFILE_SOURCE.
        source: u32,
        /// NTSTATUS of HalQuerySystemInformation.
        status: u32,
        /// 1 if the HAL supports it, else 0.
        supported: u32,
        /// Its interval in the HAL.
        interval: u32,
    }

    /// Out: one event of a session, and the process that started it.
    56 SessionEvent {
        /// Session.
        session: u64,
        /// The event.
        event: Event,
        /// Bits of [`modes`](crate::modes).
        modes: u32,
        /// Process that started the session.
        process: u32,
        /// [`flags`](crate::flags) of the session.
        flags: u32,
        /// Number of processors on which it runs.
        processors: u32,
        /// The first of these processors.
        first_processor: u32,
        /// Zero.
        reserved: u32,
    }
}

impl StartHeader {
    /// A session on all processors that only counts, for struct update syntax.
    pub const EMPTY: Self =
        Self { flags: 0, ring: 0, budget: 0, batch: 0, round: 0, last_branches: 0, processors: ProcessorSet::EMPTY };
}

impl Event {
    /// ProfileTime, for struct update syntax.
    pub const TIME: Self = Self::of(0);

    /// An event by its source alone.
    #[must_use]
    pub const fn of(source: u64) -> Self {
        Self { source, extra: 0, counters: 0, core_type: 0 }
    }
}

impl EventRequest {
    /// A request that counts ProfileTime in no mode, for struct update syntax.
    pub const EMPTY: Self = Self {
        event: Event::TIME,
        modes: 0,
        interval: 0,
        frequency: 0,
        group: 0,
        flags: 0,
        ratio: [0; 2],
        limit: [0; 2],
    };
}

impl SourceRecord {
    /// Returns the name of the source; a name that is not valid UTF-8 is returned as the empty string.
    #[must_use]
    pub fn name(&self) -> &str {
        let bytes = self.name.get(..self.name_length as usize).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_length_beyond_the_record_gives_no_name() {
        let mut record = SourceRecord::read_from_bytes(&[0; size_of::<SourceRecord>()]).unwrap();
        record.name[..3].copy_from_slice(b"abc");
        for (length, name) in [(0, ""), (3, "abc"), (80, "abc"), (81, ""), (u32::MAX, "")] {
            record.name_length = length;
            assert_eq!(record.name().trim_end_matches('\0'), name, "{length}");
        }
    }
}
