//! Layouts of requests and answers.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Records that a ring can have room for, from the least to the most.
pub const RING: core::ops::RangeInclusive<u32> = 64..=1 << 20;

/// Thousandths of a processor's time that its interrupts may take, unless something else is asked for.
pub const DEFAULT_BUDGET: u32 = 250;

/// The most of a processor's time that its interrupts may take, in thousandths.
pub const MAX_BUDGET: u32 = 900;

/// The most samples per second and processor that [`EventRequest::frequency`] can ask for.
pub const MAX_FREQUENCY: u32 = 100_000;

/// Records that a processor can write into its branch buffer before it interrupts, from the least to the most.
pub const BRANCH_BUFFER: core::ops::RangeInclusive<u32> = 64..=1 << 16;

/// The most precise records that a processor can write before it interrupts.
pub const MAX_BATCH: u32 = 1024;

/// Words of 64 bits in a [`ProcessorSet`]: 2,048 processors, the most that Windows registers.
pub const PROCESSOR_WORDS: usize = 32;

/// Bytes of a name in a [`SourceRecord`].
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
    /// In: what the client speaks.
    8 Hello {
        /// [`PROTOCOL_VERSION`](crate::PROTOCOL_VERSION) of the client.
        version: u32,
        /// Zero.
        reserved: u32,
    }

    /// Out: the beginning of every answer.
    48 ReplyHeader {
        /// NTSTATUS of the operation; see [`status`](crate::status).
        status: u32,
        /// A [`ErrorCode`](crate::ErrorCode).
        cause: u32,
        /// The source that the cause is about.
        source: u32,
        /// The processor that the cause is about.
        processor: u32,
        /// More about the cause, or about the success.
        detail: [u64; 2],
        /// Records that follow.
        count: u32,
        /// Records there are; more than `count` when the buffer was too short for all.
        total: u32,
        /// Zero.
        reserved: u64,
    }

    /// Out: both versions.
    72 HelloReply {
        /// As ever.
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
    264 InfoReply {
        /// As ever.
        header: ReplyHeader,
        /// Version of the driver: major, minor, patch, zero.
        driver: [u16; 4],
        /// [`PROTOCOL_VERSION`](crate::PROTOCOL_VERSION) of the driver.
        protocol: u32,
        /// Profile interface in use: 0 Default, 1 Emon, 2 Amd64, 3 NetBurst, 4 P6, 5 Pentium.
        interface: u32,
        /// Profile interface that the HAL of Windows 10 chooses, by the same numbers.
        windows10: u32,
        /// Why, by the number of the reason in `pmu::Reason`.
        reason: u32,
        /// Counters of the processor that has most.
        counters: u32,
        /// Bits of a counter.
        width: u32,
        /// Version of architectural performance monitoring (leaf 0xA), or 0.
        pmu_version: u32,
        /// Active processors.
        processors: u32,
        /// Processors there can ever be.
        maximum_processors: u32,
        /// Counters in use on the processor that has most in use.
        counters_in_use: u32,
        /// Sessions that run.
        sessions: u32,
        /// EAX of CPUID leaf 1: family, model, stepping.
        signature: u32,
        /// Vendor string of CPUID leaf 0.
        vendor: [u8; 16],
        /// Brand string of CPUID leaves 0x80000002 to 0x80000004, or zeros.
        brand: [u8; 48],
        /// Bytes of counter state: 8 per counter per processor.
        state_bytes: u64,
        /// Performance monitor interrupts served since the driver was loaded.
        interrupts: u64,
        /// Those in which no counter of ours had overflowed: another's, or late.
        spurious: u64,
        /// Samples given to clients since the driver was loaded.
        delivered: u64,
        /// Samples for which a ring had no room, or whose interrupt did not come before the counter was stopped or a tick recovered it.
        lost: u64,
        /// Overflows that were dropped because their processor had spent its budget.
        throttled: u64,
        /// Samples that nobody had fetched when their session ended.
        discarded: u64,
        /// How often a processor had spent its budget.
        throttles: u64,
        /// How often the machine slept.
        sleeps: u64,
        /// For how long in all, units of 100 ns.
        asleep: u64,
        /// What is between the system and the processor, by the number of `pmu::Hypervisor`.
        hypervisor: u32,
        /// 1 while the counters are reserved with the HAL.
        reserved: u32,
        /// Counters of the processor that has fewest.
        least_counters: u32,
        /// How many of the boot processor's count one event each.
        fixed_counters: u32,
    }

    /// In: which source.
    8 SourceRequest {
        /// KPROFILE_SOURCE.
        source: u32,
        /// Zero.
        reserved: u32,
    }

    /// In: the interval wanted.
    8 IntervalRequest {
        /// KPROFILE_SOURCE.
        source: u32,
        /// Events between two interrupts; for ProfileTime units of 100 ns. Clamped to the source's range.
        interval: u32,
    }

    /// Out: a source.
    128 SourceRecord {
        /// KPROFILE_SOURCE.
        source: u32,
        /// A [`Support`](crate::Support).
        support: u32,
        /// The interval in force.
        interval: u32,
        /// The smallest interval.
        minimum: u32,
        /// The largest interval.
        maximum: u32,
        /// The interval before this request, in the answer to [`Code::SetInterval`](crate::Code::SetInterval).
        previous_interval: u32,
        /// What the profile interface loads into the event select register, without enable and interrupt bits.
        select: u64,
        /// Bytes of `name` in use.
        name_length: u32,
        /// Processors on which it runs now.
        running: u32,
        /// Name in the HAL, ASCII, without `Profile`.
        name: [u8; NAME_LENGTH],
        /// Bit n is counter n: those that can count it. Zero: it needs none.
        counters: u32,
        /// Zero.
        reserved: u32,
    }

    /// Processors by number; all zero asks for every active one.
    256 ProcessorSet {
        /// Bit n % 64 of word n / 64 is processor n.
        words: [u64; PROCESSOR_WORDS],
    }

    /// In: what begins a [`Code::Start`](crate::Code::Start); [`EventRequest`]s follow to the end of the buffer.
    272 StartHeader {
        /// [`flags`].
        flags: u32,
        /// Records that the ring of each processor has room for: a power of two of [`RING`]; zero where no event is
        /// sampled.
        ring: u32,
        /// Thousandths of a processor's time that its interrupts may take, at most [`MAX_BUDGET`]; zero for
        /// [`DEFAULT_BUDGET`].
        budget: u32,
        /// Precise records that a processor writes before it interrupts, at most [`MAX_BATCH`]; zero for one. Where it is
        /// more than one the process of a record is not known. Zero where no event is [precise](modes::PRECISE).
        batch: u32,
        /// Where.
        processors: ProcessorSet,
    }

    /// In: one event of a session.
    16 EventRequest {
        /// KPROFILE_SOURCE.
        source: u32,
        /// [`modes`].
        modes: u32,
        /// Events between two samples; zero: it is counted only. Of [`BRANCHES`](crate::BRANCHES): records of
        /// [`BRANCH_BUFFER`] before an interrupt.
        interval: u32,
        /// Samples per second and processor towards which the interval is moved while it runs; zero: it stays.
        frequency: u32,
    }

    /// In: which session; [`DETACHED`](crate::DETACHED) for all detached ones.
    8 SessionRequest {
        /// The number that [`Code::Start`](crate::Code::Start) answered.
        session: u64,
    }

    /// In: what to stop.
    16 StopRequest {
        /// The number that [`Code::Start`](crate::Code::Start) answered; [`DETACHED`](crate::DETACHED) for all detached.
        session: u64,
        /// KPROFILE_SOURCE, or [`ALL_SOURCES`](crate::ALL_SOURCES).
        source: u32,
        /// Zero.
        reserved: u32,
    }

    /// Out: the count of one event on one processor.
    72 CountRecord {
        /// Session.
        session: u64,
        /// KPROFILE_SOURCE.
        source: u32,
        /// [`modes`].
        modes: u32,
        /// Processor.
        processor: u32,
        /// Counter on it, or [`TIMER`](crate::TIMER).
        counter: u32,
        /// Events counted since the start.
        count: u64,
        /// Time since the start, or since the processor was added, units of 100 ns.
        enabled: u64,
        /// Of this the time in which the machine slept, and nothing was counted.
        asleep: u64,
        /// Of a sampled event: samples written to the ring.
        samples: u64,
        /// Samples for which the ring had no room, or whose interrupt did not come before the counter was stopped or a tick recovered it.
        lost: u64,
        /// Overflows that were dropped because the processor had spent its budget.
        throttled: u64,
    }

    /// In: samples of which session, and how long to wait for them.
    16 SamplesRequest {
        /// The number that [`Code::Start`](crate::Code::Start) answered.
        session: u64,
        /// Milliseconds to wait until the ring of a processor is half full; zero does not wait.
        wait: u32,
        /// Zero.
        reserved: u32,
    }

    /// Out: a sample, or what befell the sampling.
    48 Sample {
        /// When, in units of the clock that [`Code::Start`](crate::Code::Start) told.
        time: u64,
        /// Of a sample the instruction pointer; of other kinds what [`SampleKind`](crate::SampleKind) says.
        ip: u64,
        /// Process that was interrupted; 0 is the idle process.
        process: u32,
        /// Thread that was interrupted.
        thread: u32,
        /// Processor.
        processor: u32,
        /// KPROFILE_SOURCE; [`ALL_SOURCES`](crate::ALL_SOURCES) where all that are sampled there are meant.
        source: u32,
        /// Events that the sample stands for.
        interval: u32,
        /// A [`SampleKind`](crate::SampleKind).
        kind: u16,
        /// Of a sample the mode that was interrupted, one of [`modes`].
        modes: u16,
        /// Of a sample: how many precise records the processor had written by then (PebsIndex), which puts it between
        /// them; of a precise one its own number, from 0. Of a branch where it went.
        pebs_sequence: u64,
    }

    /// In: control areas of which processors, and what is to become of them.
    272 AreaRequest {
        /// One of [`area`].
        operation: u32,
        /// 1: of the processor on which the request comes; then `processors` is empty.
        current: u32,
        /// Zero.
        reserved: u64,
        /// Of which.
        processors: ProcessorSet,
    }

    /// Out: the PROCESSOR_PROFILE_CONTROL_AREA of a processor, and what its Debug Store has.
    32 AreaRecord {
        /// Processor.
        processor: u32,
        /// The kernel's NTSTATUS to the last operation there; of an area of the driver's own, why the kernel made none.
        status: u32,
        /// Its linear address; zero: there is none that the driver knows.
        address: u64,
        /// Its bytes: 0x60 or 0xA0.
        size: u32,
        /// [`area`], of whom it is and what there is.
        flags: u32,
        /// Format of PEBS records.
        format: u32,
        /// Zero, or why there is no Debug Store: one more than the number of a [`MissingFeature`](crate::MissingFeature).
        missing_feature: u32,
    }

    /// Out: one event of a session, and whose it is.
    32 SessionEvent {
        /// Session.
        session: u64,
        /// KPROFILE_SOURCE.
        source: u32,
        /// [`modes`].
        modes: u32,
        /// Process that started it.
        process: u32,
        /// [`flags`] of the session.
        flags: u32,
        /// Processors on which it runs.
        processors: u32,
        /// The first of them.
        first_processor: u32,
    }
}

/// Bits of [`StartHeader::flags`].
pub mod flags {
    /// The session outlives its handle: it runs until it is stopped or the driver unloads.
    pub const DETACHED: u32 = 1;
    /// Counters that somebody else has enabled are taken all the same; only in a request.
    pub const FORCE: u32 = 2;
    /// Every bit that means something.
    pub const ALL: u32 = DETACHED | FORCE;
}

/// Operations of an [`AreaRequest`], and bits of [`AreaRecord::flags`].
pub mod area {
    /// Operation: tell what there is.
    pub const QUERY: u32 = 0;
    /// Operation: allocate.
    pub const ALLOCATE: u32 = 1;
    /// Operation: free.
    pub const FREE: u32 = 2;
    /// Flag: the kernel made it.
    pub const OF_KERNEL: u32 = 1;
    /// Flag: a session uses it.
    pub const USED: u32 = 2;
    /// Flag: the processor has the Branch Trace Store.
    pub const BRANCHES: u32 = 4;
    /// Flag: the processor has PEBS, with a format that is known.
    pub const PRECISE: u32 = 8;
    /// Flag: branches of one mode alone can be had (DS-CPL).
    pub const MODES: u32 = 16;
}

/// Bits of [`EventRequest::modes`].
pub mod modes {
    /// Count in user mode.
    pub const USER: u32 = 1;
    /// Count in kernel mode.
    pub const KERNEL: u32 = 2;
    /// Both.
    pub const BOTH: u32 = USER | KERNEL;
    /// Of an event that is sampled: by the processor's own records (PEBS).
    pub const PRECISE: u32 = 4;
}

impl ProcessorSet {
    /// No processor; in a request, every active one.
    pub const EMPTY: Self = Self { words: [0; PROCESSOR_WORDS] };

    /// Whether no processor is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Whether processor `number` is in it.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        self.words.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Puts processor `number` in; false if it is beyond 2,047.
    pub fn insert(&mut self, number: u32) -> bool {
        match self.words.get_mut(number as usize / 64) {
            Some(word) => {
                *word |= 1 << (number % 64);
                true
            }
            None => false,
        }
    }

    /// The processors in it, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0_u32..).take(PROCESSOR_WORDS * 64).filter(|number| self.contains(*number))
    }
}

impl SourceRecord {
    /// The source's name; what is no UTF-8 is left off.
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
    fn a_processor_is_in_the_set_exactly_when_it_was_put_in() {
        let mut set = ProcessorSet::EMPTY;
        let members = [0, 1, 63, 64, 127, 2047];
        for number in members {
            assert!(set.insert(number));
        }
        assert!(!set.insert(2048));
        assert!(set.iter().eq(members));
        assert!(!set.contains(2048));
        assert!(!set.is_empty() && ProcessorSet::EMPTY.is_empty());
    }

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
