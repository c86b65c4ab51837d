//! The hardware counters that a driver configured for thread profiling (KeSetHardwareCounterConfiguration).

use std::fmt;

/// MAX_HW_COUNTERS (winnt.h).
pub const MAX_COUNTERS: usize = 16;

/// The reason why the configuration cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigureError {
    /// There are too many counters: STATUS_INVALID_PARAMETER.
    TooMany,
    /// Counters are configured, or a thread profiles: STATUS_WMI_ALREADY_ENABLED.
    AlreadyEnabled,
}

impl fmt::Display for ConfigureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooMany => "there are too many counters",
            Self::AlreadyEnabled => "counters are configured, or a thread profiles",
        })
    }
}

impl std::error::Error for ConfigureError {}

/// The configured counters. Windows has one configuration, whoever set it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration(Vec<u64>);

impl Configuration {
    /// Sets the indexes of the counters, or clears them if there are none.
    ///
    /// # Errors
    /// There are too many counters, a thread profiles, or other counters are configured.
    pub fn set(&mut self, counters: &[u64], is_profiling: bool) -> Result<(), ConfigureError> {
        if counters.len() > MAX_COUNTERS {
            return Err(ConfigureError::TooMany);
        }
        if is_profiling || !self.0.is_empty() && !counters.is_empty() {
            return Err(ConfigureError::AlreadyEnabled);
        }
        self.0 = counters.to_vec();
        Ok(())
    }

    /// Returns the indexes of the counters for RDPMC.
    #[must_use]
    pub fn counters(&self) -> &[u64] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_configuration_stands_until_it_is_cleared() {
        let mut configuration = Configuration::default();
        assert_eq!(configuration.set(&[0; MAX_COUNTERS + 1], false), Err(ConfigureError::TooMany));
        assert_eq!(configuration.set(&[0, 5], false), Ok(()));
        assert_eq!(configuration.set(&[1], false), Err(ConfigureError::AlreadyEnabled));
        assert_eq!(configuration.counters(), [0, 5]);
        assert_eq!(configuration.set(&[], false), Ok(()));
        assert_eq!(configuration.set(&[], false), Ok(()), "there is nothing to clear");
        assert_eq!(configuration.set(&[0; MAX_COUNTERS], false), Ok(()));
    }

    #[test]
    fn no_configuration_changes_while_a_thread_profiles() {
        let mut configuration = Configuration::default();
        assert_eq!(configuration.set(&[3], true), Err(ConfigureError::AlreadyEnabled));
        assert_eq!(configuration.set(&[3], false), Ok(()));
        for change in [&[][..], &[4]] {
            assert_eq!(configuration.set(change, true), Err(ConfigureError::AlreadyEnabled));
        }
        assert_eq!(configuration.counters(), [3]);
    }
}
