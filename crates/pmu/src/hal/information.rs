//! The profiling classes of HalSetSystemInformation and HalQuerySystemInformation, by class number and buffer (HAL PMU
//! design, section 2).

use core::num::NonZeroU64;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Hal, HalError};
use crate::interface::Support;
use crate::source::Source;

/// HAL_SET_INFORMATION_CLASS: takes a [`HalProfileSourceIntervalBuffer`].
pub const HAL_PROFILE_SOURCE_INTERVAL: u32 = 0;

/// HAL_SET_INFORMATION_CLASS: takes the address of a handler in 8 bytes; zero removes the handler.
pub const HAL_PROFILE_SOURCE_INTERRUPT_HANDLER: u32 = 1;

/// HAL_QUERY_INFORMATION_CLASS: takes and returns a [`HalProfileSourceInformationBuffer`].
pub const HAL_PROFILE_SOURCE_INFORMATION: u32 = 1;

/// HAL_QUERY_INFORMATION_CLASS: returns a [`HalProfileSourceInformationBuffer`] for each source.
pub const HAL_QUERY_PROFILE_SOURCE_LIST: u32 = 20;

/// HAL_PROFILE_SOURCE_INTERVAL on x64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HalProfileSourceIntervalBuffer {
    /// KPROFILE_SOURCE.
    pub profile_source: u32,
    /// Padding.
    pub reserved: u32,
    /// The requested interval (a ULONG_PTR).
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
    /// Out: whether the source is supported, 0 or 1 (a BOOLEAN).
    pub supported: u8,
    /// Padding.
    pub reserved: [u8; 3],
    /// Out: the current interval.
    pub interval: u32,
}

const _: () = assert!(size_of::<HalProfileSourceInformationBuffer>() == 12);
const _: () = assert!(core::mem::offset_of!(HalProfileSourceInformationBuffer, supported) == 4);
const _: () = assert!(core::mem::offset_of!(HalProfileSourceInformationBuffer, interval) == 8);

impl<E> Hal<E> {
    /// Implements HalSetSystemInformation for the profiling classes. `owner` identifies the calling process, which owns
    /// the handler that it registers; it must not be zero.
    ///
    /// # Errors
    /// [`HalError::InvalidClass`], [`HalError::LengthMismatch`]; for an interval the errors of
    /// [`set_interval`](Self::set_interval); for a handler [`HalError::HandlerTaken`].
    pub fn set_system_information(&self, class: u32, buffer: &[u8], owner: u64) -> Result<(), HalError> {
        match class {
            HAL_PROFILE_SOURCE_INTERVAL => {
                let wanted: HalProfileSourceIntervalBuffer = exactly(buffer)?;
                let interval = u32::try_from(wanted.interval).unwrap_or(u32::MAX);
                self.set_interval(Source(wanted.profile_source.into()), interval).map(|_| ())
            }
            HAL_PROFILE_SOURCE_INTERRUPT_HANDLER => self.handler.set(NonZeroU64::new(exactly(buffer)?), owner),
            class => Err(HalError::InvalidClass(class)),
        }
    }

    /// Implements HalQuerySystemInformation for the profiling classes. Returns the number of bytes written. For a list
    /// it returns the number of bytes needed; if the buffer is shorter, only whole entries are written.
    ///
    /// # Errors
    /// [`HalError::InvalidClass`], [`HalError::LengthMismatch`], [`HalError::UnknownSource`].
    pub fn query_system_information(&self, class: u32, buffer: &mut [u8]) -> Result<usize, HalError> {
        match class {
            HAL_PROFILE_SOURCE_INFORMATION => {
                let asked: HalProfileSourceInformationBuffer = exactly(buffer)?;
                let written = to_buffer(&self.source_information(Source(asked.profile_source.into()))?);
                buffer.copy_from_slice(written.as_bytes());
                Ok(buffer.len())
            }
            HAL_QUERY_PROFILE_SOURCE_LIST => {
                let entries = buffer.chunks_exact_mut(size_of::<HalProfileSourceInformationBuffer>());
                for (entry, source) in entries.zip(self.source_list()) {
                    entry.copy_from_slice(to_buffer(&source).as_bytes());
                }
                Ok(self.source_list().count() * size_of::<HalProfileSourceInformationBuffer>())
            }
            class => Err(HalError::InvalidClass(class)),
        }
    }

    /// Implements HalSetProfileInterval: sets the interval of ProfileTime, in units of 100 ns. Returns the interval
    /// that applies from the next start on.
    ///
    /// # Errors
    /// [`HalError::Unsupported`].
    pub fn set_profile_interval(&self, wanted: u32) -> Result<u32, HalError> {
        self.set_interval(Source::TIME, wanted).map(|(_, interval)| interval)
    }
}

fn to_buffer(source: &super::SourceInformation) -> HalProfileSourceInformationBuffer {
    HalProfileSourceInformationBuffer {
        profile_source: source.source.source.number().unwrap_or(u32::MAX),
        supported: u8::from(source.support == Support::Supported),
        reserved: [0; 3],
        interval: source.interval,
    }
}

fn exactly<T: FromBytes>(buffer: &[u8]) -> Result<T, HalError> {
    let mismatch = HalError::LengthMismatch { wanted: size_of::<T>(), found: buffer.len() };
    T::read_from_bytes(buffer).map_err(|_| mismatch)
}
