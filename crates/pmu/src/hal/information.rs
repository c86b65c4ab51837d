//! HalSetSystemInformation and HalQuerySystemInformation, by class number and buffer, as far as they have to do with
//! profiling (seed 003, section 2).

use core::num::NonZeroU64;
use core::sync::atomic::Ordering;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Hal, HalError};
use crate::interface::Support;
use crate::source::Source;

/// HAL_SET_INFORMATION_CLASS: [`HalProfileSourceIntervalBuffer`] in.
pub const HAL_PROFILE_SOURCE_INTERVAL: u32 = 0;

/// HAL_SET_INFORMATION_CLASS: the address of a handler in, 8 bytes; zero takes it away.
pub const HAL_PROFILE_SOURCE_INTERRUPT_HANDLER: u32 = 1;

/// HAL_QUERY_INFORMATION_CLASS: [`HalProfileSourceInformationBuffer`] in and out.
pub const HAL_PROFILE_SOURCE_INFORMATION: u32 = 1;

/// HAL_QUERY_INFORMATION_CLASS: a [`HalProfileSourceInformationBuffer`] for each source out.
pub const HAL_QUERY_PROFILE_SOURCE_LIST: u32 = 20;

/// HAL_PROFILE_SOURCE_INTERVAL on x64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HalProfileSourceIntervalBuffer {
    /// KPROFILE_SOURCE.
    pub profile_source: u32,
    /// Padding.
    pub reserved: u32,
    /// The interval wanted (a ULONG_PTR).
    pub interval: u64,
}

const _: () = assert!(size_of::<HalProfileSourceIntervalBuffer>() == 16);
const _: () = assert!(core::mem::offset_of!(HalProfileSourceIntervalBuffer, interval) == 8);

/// HAL_PROFILE_SOURCE_INFORMATION.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HalProfileSourceInformationBuffer {
    /// In and out: KPROFILE_SOURCE.
    pub profile_source: u32,
    /// Out: whether it can be had, 0 or 1 (a BOOLEAN).
    pub supported: u8,
    /// Padding.
    pub reserved: [u8; 3],
    /// Out: the interval in force.
    pub interval: u32,
}

const _: () = assert!(size_of::<HalProfileSourceInformationBuffer>() == 12);
const _: () = assert!(core::mem::offset_of!(HalProfileSourceInformationBuffer, supported) == 4);
const _: () = assert!(core::mem::offset_of!(HalProfileSourceInformationBuffer, interval) == 8);

impl Hal {
    /// HalSetSystemInformation for the profiling classes. `owner` stands for the calling process, which owns the
    /// handler that it registers; it must not be zero.
    ///
    /// # Errors
    /// [`HalError::InvalidClass`], [`HalError::LengthMismatch`]; for an interval what
    /// [`set_interval`](Self::set_interval) says; for a handler [`HalError::HandlerTaken`].
    pub fn set_system_information(&self, class: u32, buffer: &[u8], owner: u64) -> Result<(), HalError> {
        match class {
            HAL_PROFILE_SOURCE_INTERVAL => {
                let wanted: HalProfileSourceIntervalBuffer = exactly(buffer)?;
                let interval = u32::try_from(wanted.interval).unwrap_or(u32::MAX);
                self.set_interval(Source(wanted.profile_source), interval).map(|_| ())
            }
            HAL_PROFILE_SOURCE_INTERRUPT_HANDLER => self.set_interrupt_handler(exactly(buffer)?, owner),
            class => Err(HalError::InvalidClass(class)),
        }
    }

    /// HalQuerySystemInformation for the profiling classes; answers the bytes that were written, or for a list those
    /// that it needs if the buffer is shorter: then only whole entries are written.
    ///
    /// # Errors
    /// [`HalError::InvalidClass`], [`HalError::LengthMismatch`], [`HalError::UnknownSource`].
    pub fn query_system_information(&self, class: u32, buffer: &mut [u8]) -> Result<usize, HalError> {
        match class {
            HAL_PROFILE_SOURCE_INFORMATION => {
                let asked: HalProfileSourceInformationBuffer = exactly(buffer)?;
                let told = tell(&self.source_information(Source(asked.profile_source))?);
                buffer.copy_from_slice(told.as_bytes());
                Ok(buffer.len())
            }
            HAL_QUERY_PROFILE_SOURCE_LIST => {
                let entries = buffer.chunks_exact_mut(size_of::<HalProfileSourceInformationBuffer>());
                for (entry, source) in entries.zip(self.source_list()) {
                    entry.copy_from_slice(tell(&source).as_bytes());
                }
                Ok(self.source_list().count() * size_of::<HalProfileSourceInformationBuffer>())
            }
            class => Err(HalError::InvalidClass(class)),
        }
    }

    /// HalSetProfileInterval: ProfileTime's interval, in units of 100 ns; answers the one in force from the next
    /// start on.
    ///
    /// # Errors
    /// [`HalError::Unsupported`].
    pub fn set_profile_interval(&self, wanted: u32) -> Result<u32, HalError> {
        self.set_interval(Source::TIME, wanted).map(|(_, interval)| interval)
    }

    /// The address that was registered for performance monitor interrupts.
    #[must_use]
    pub fn interrupt_handler(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.handler.load(Ordering::Acquire))
    }

    /// One slot; the owner may replace its handler, and has to take it away itself.
    fn set_interrupt_handler(&self, address: u64, owner: u64) -> Result<(), HalError> {
        let taken = self.handler_owner.compare_exchange(0, owner, Ordering::AcqRel, Ordering::Acquire);
        if taken.is_err_and(|other| other != owner) {
            return Err(HalError::HandlerTaken);
        }
        self.handler.store(address, Ordering::Release);
        if address == 0 {
            self.handler_owner.store(0, Ordering::Release);
        }
        Ok(())
    }
}

fn tell(source: &super::SourceInformation) -> HalProfileSourceInformationBuffer {
    HalProfileSourceInformationBuffer {
        profile_source: source.source.source.0,
        supported: u8::from(source.support == Support::Supported),
        reserved: [0; 3],
        interval: source.interval,
    }
}

fn exactly<T: FromBytes>(buffer: &[u8]) -> Result<T, HalError> {
    let mismatch = HalError::LengthMismatch { wanted: size_of::<T>(), found: buffer.len() };
    T::read_from_bytes(buffer).map_err(|_| mismatch)
}
