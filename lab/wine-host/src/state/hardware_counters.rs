//! The hardware counters that a driver configured for thread profiling.

/// MAX_HW_COUNTERS (wdm.h).
pub const MAX_COUNTERS: usize = 16;

/// Who configured the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A driver of this lab.
    Driver,
    /// A driver that only the test knows.
    Another,
}

/// The reason why the configuration cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigureError {
    /// There are too many counters.
    TooMany,
    /// Counters are configured, or a thread profiles.
    AlreadyEnabled,
}

/// The configuration of the machine. Windows has one, whoever set it.
#[derive(Debug, Default)]
pub struct HardwareCounters {
    configured: Option<(Owner, Vec<u64>)>,
    /// Whether the test pretends that a thread profiles.
    pub pretends_profiling: bool,
}

impl HardwareCounters {
    /// Sets the indexes of the counters, or clears them if there are none. Returns the previous owner.
    ///
    /// # Errors
    /// There are too many counters, a thread profiles, or other counters are configured.
    pub fn configure(&mut self, owner: Owner, counters: &[u64]) -> Result<Option<Owner>, ConfigureError> {
        if counters.len() > MAX_COUNTERS {
            return Err(ConfigureError::TooMany);
        }
        if self.pretends_profiling || self.configured.is_some() && !counters.is_empty() {
            return Err(ConfigureError::AlreadyEnabled);
        }
        let before = self.owner();
        self.configured = (!counters.is_empty()).then(|| (owner, counters.to_vec()));
        Ok(before)
    }

    /// Returns the indexes of the configured counters.
    #[must_use]
    pub fn counters(&self) -> &[u64] {
        self.configured.as_ref().map_or(&[], |(_, counters)| counters)
    }

    /// Returns who configured the counters.
    #[must_use]
    pub fn owner(&self) -> Option<Owner> {
        self.configured.as_ref().map(|(owner, _)| *owner)
    }

    /// Removes the configuration of an unloaded driver. Returns whether there was one.
    pub fn forget_driver(&mut self) -> bool {
        self.configured.take_if(|(owner, _)| *owner == Owner::Driver).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_configuration_stands_until_it_is_cleared() {
        let mut counters = HardwareCounters::default();
        assert_eq!(counters.configure(Owner::Driver, &[0; MAX_COUNTERS + 1]), Err(ConfigureError::TooMany));
        assert_eq!(counters.configure(Owner::Driver, &[0, 5]), Ok(None));
        for owner in [Owner::Driver, Owner::Another] {
            assert_eq!(counters.configure(owner, &[1]), Err(ConfigureError::AlreadyEnabled));
        }
        assert_eq!((counters.counters(), counters.owner()), (&[0, 5][..], Some(Owner::Driver)));
        assert_eq!(counters.configure(Owner::Driver, &[]), Ok(Some(Owner::Driver)));
        assert_eq!(counters.configure(Owner::Driver, &[0; MAX_COUNTERS]), Ok(None));
        assert!(counters.forget_driver() && !counters.forget_driver());
        assert_eq!(counters.configure(Owner::Another, &[1]), Ok(None));
        assert!(!counters.forget_driver());
        assert_eq!(counters.configure(Owner::Driver, &[]), Ok(Some(Owner::Another)), "Windows does not know the owner");
    }

    #[test]
    fn no_configuration_changes_while_a_thread_profiles() {
        let mut counters = HardwareCounters::default();
        assert_eq!(counters.configure(Owner::Driver, &[3]), Ok(None));
        counters.pretends_profiling = true;
        for change in [&[][..], &[4]] {
            assert_eq!(counters.configure(Owner::Driver, change), Err(ConfigureError::AlreadyEnabled));
        }
        assert_eq!(counters.counters(), [3]);
        counters.pretends_profiling = false;
        assert_eq!(counters.configure(Owner::Driver, &[]), Ok(Some(Owner::Driver)));
    }
}
