//! Events of the driver for Event Tracing for Windows: a TraceLogging provider.
//!
//! The payload of an event is its structure here, followed by [`name`](SessionStart) where it has one: two bytes with
//! the length and then UTF-8. The metadata describes the payload to programs that do not know it, in the format of
//! TraceLoggingProvider.h.

pub mod security;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::layout::Event;

/// Name of the provider. Tools that enable providers by name take it as `*Halprof`.
pub const PROVIDER_NAME: &str = "Halprof";

/// GUID of the provider, {1e73bb95-d033-5693-4748-a63e860b83c2}, as it is in memory. Tools derive it from the name, as
/// System.Diagnostics.Tracing.EventSource does.
pub const PROVIDER_ID: [u8; 16] =
    [0x95, 0xBB, 0x73, 0x1E, 0x33, 0xD0, 0x93, 0x56, 0x47, 0x48, 0xA6, 0x3E, 0x86, 0x0B, 0x83, 0xC2];

/// Metadata of the provider: its size in bytes, and its name.
pub const PROVIDER_METADATA: &[u8] = b"\x0A\0Halprof\0";

/// Channel of TraceLogging events.
pub const CHANNEL: u8 = 11;

/// Level of all events: informational.
pub const LEVEL: u8 = 4;

/// Version of all events.
pub const VERSION: u8 = 1;

/// Keywords, by which a trace session selects events.
pub mod keywords {
    /// [`Sample`](super::EventId::Sample).
    pub const SAMPLES: u64 = 1;
    /// [`Lost`](super::EventId::Lost) and [`Throttled`](super::EventId::Throttled).
    pub const LOSSES: u64 = 2;
    /// [`SessionStart`](super::EventId::SessionStart) and [`SessionStop`](super::EventId::SessionStop).
    pub const SESSIONS: u64 = 4;
}

/// Event of the provider, by its ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum EventId {
    /// A counter overflowed: [`Sample`].
    Sample = 1,
    /// Samples were lost: [`Loss`].
    Lost = 2,
    /// Overflows had no samples because interrupts had used up their share of the time: [`Loss`].
    Throttled = 3,
    /// A session samples an event: [`SessionStart`].
    SessionStart = 4,
    /// A session no longer samples an event: [`SessionStop`].
    SessionStop = 5,
}

impl EventId {
    /// Every event, in the order of the IDs.
    pub const ALL: [Self; 5] = [Self::Sample, Self::Lost, Self::Throttled, Self::SessionStart, Self::SessionStop];

    /// Returns the event with this ID.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|event| *event as u16 == number)
    }

    /// Returns the keyword of the event.
    #[must_use]
    pub const fn keyword(self) -> u64 {
        match self {
            Self::Sample => keywords::SAMPLES,
            Self::Lost | Self::Throttled => keywords::LOSSES,
            Self::SessionStart | Self::SessionStop => keywords::SESSIONS,
        }
    }

    /// Returns the metadata of the event: its size in bytes, no tags, the name, and each field as its name and type.
    #[must_use]
    pub const fn metadata(self) -> &'static [u8] {
        match self {
            Self::Sample => {
                b"\x4C\0\0Sample\0Time\0\x0AIP\0\x15Weight\0\x0ACookie\0\x15First\0\x15Source\0\x15Extra\0\x15Count\0\x0A\
                  Cpu\0\x08Mode\0\x08"
            }
            Self::Lost => b"\x23\0\0Lost\0Source\0\x15Extra\0\x15Count\0\x08Cpu\0\x08",
            Self::Throttled => b"\x28\0\0Throttled\0Source\0\x15Extra\0\x15Count\0\x08Cpu\0\x08",
            Self::SessionStart => {
                b"\x54\0\0SessionStart\0Session\0\x0ASource\0\x15Extra\0\x15Counters\0\x14CoreType\0\x08Interval\0\x08\
                  Modes\0\x08Name\0\x97\x23"
            }
            Self::SessionStop => {
                b"\x55\0\0SessionStop\0Session\0\x0ASource\0\x15Extra\0\x15Counters\0\x14CoreType\0\x08Samples\0\x0A\
                  Lost\0\x0AThrottled\0\x0A"
            }
        }
    }
}

macro_rules! payload {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(C)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }
    )*};
}

payload! {
    /// Payload of [`EventId::Sample`]: the samples of a counter since the last such event of the same source on the
    /// same CPU. Usually this is one. The driver writes the event after the interrupt, on the same CPU: the stack that
    /// Windows adds to it is that of the interrupted code if it contains `ip`.
    Sample {
        /// Time of the last sample, in units of the performance counter.
        time: u64,
        /// Instruction pointer of the last sample.
        ip: u64,
        /// Number of events that the samples represent: the sum of their intervals.
        weight: u64,
        /// Cookie of the last sample.
        cookie: u64,
        /// Cookie of the first sample.
        first: u64,
        /// [`Event::source`].
        source: u64,
        /// [`Event::extra`].
        extra: u64,
        /// Number of samples.
        count: u64,
        /// CPU.
        cpu: u32,
        /// Mode of the last sample: 0 user, 1 kernel.
        mode: u32,
    }

    /// Payload of [`EventId::Lost`] and [`EventId::Throttled`].
    Loss {
        /// [`Event::source`].
        source: u64,
        /// [`Event::extra`].
        extra: u64,
        /// Number of overflows without a sample since the last such event of the same source on the same CPU.
        count: u32,
        /// CPU.
        cpu: u32,
    }

    /// Payload of [`EventId::SessionStart`], without the name of the event that follows.
    SessionStart {
        /// Number of the session.
        session: u64,
        /// The event.
        event: Event,
        /// Events between two samples, or units of 100 ns; 0 if the event is only counted.
        interval: u32,
        /// Bits of [`modes`](crate::modes).
        modes: u32,
    }

    /// Payload of [`EventId::SessionStop`].
    SessionStop {
        /// Number of the session.
        session: u64,
        /// The event.
        event: Event,
        /// Number of samples on all CPUs.
        samples: u64,
        /// Number of lost samples.
        lost: u64,
        /// Number of overflows dropped because interrupts had used up their share of the time.
        throttled: u64,
    }
}

/// Returns the cookie of an event from the number of the sample's interrupt on its CPU, which is the cookie of the
/// sample's record.
#[must_use]
pub const fn cookie(cpu: u32, number: u32) -> u64 {
    (cpu as u64) << u32::BITS | number as u64
}
