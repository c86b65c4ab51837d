//! The restriction of the driver's events to SYSTEM and Administrators.
//!
//! It is the security descriptor of the provider's GUID. Windows keeps the descriptor in the registry, whether or not
//! the driver is installed. A descriptor that an administrator or another program has set is neither replaced nor
//! removed.

use std::io;

use halprof::OpenError;
use protocol::trace::security::{REGISTRY_KEY, VALUE_NAME, descriptor, is_restriction};
use thiserror::Error;

use system::System;
use user_error::UserError;
use user_error::exit::Exit;

/// Why the access to the driver's events cannot be changed.
#[derive(Debug, Error)]
pub enum ProviderSecurityError {
    /// The descriptor cannot be read or written.
    #[error("cannot restrict the driver's events to SYSTEM and Administrators")]
    Restrict(#[source] io::Error),
    /// The descriptor cannot be read or removed.
    #[error("cannot remove the restriction of the driver's events")]
    Remove(#[source] io::Error),
}

impl ProviderSecurityError {
    fn cause(&self) -> &io::Error {
        match self {
            Self::Restrict(cause) | Self::Remove(cause) => cause,
        }
    }
}

impl UserError for ProviderSecurityError {
    fn exit(&self) -> Exit {
        if OpenError::is_denied(self.cause()) { Exit::Denied } else { Exit::Failure }
    }

    fn remedy(&self) -> Option<String> {
        let text = if OpenError::is_denied(self.cause()) {
            "run from an elevated prompt".to_owned()
        } else {
            format!("let Administrators write to this key, then repeat the command:\n       HKLM\\{REGISTRY_KEY}")
        };
        Some(text)
    }
}

/// What an installation finds and does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restriction {
    /// The events are restricted already.
    Present,
    /// The events were not restricted, and are now.
    Added,
    /// Another descriptor is set, and stays.
    OtherKept,
}

impl Restriction {
    /// Returns the lines for the user.
    pub fn lines(self, driver_runs: bool) -> Vec<String> {
        let text = match self {
            Self::Present => return Vec::new(),
            Self::Added => "events restricted to SYSTEM and Administrators".to_owned(),
            Self::OtherKept => {
                return vec![format!(
                    "events keep the security descriptor that was set before, the value\n  {VALUE_NAME} of\n  \
                     HKLM\\{REGISTRY_KEY}\n  to restrict them, remove it, then repeat the command"
                )];
            }
        };
        let later =
            "the running driver needs a restart for this: sc.exe stop halprof, then: sc.exe start halprof".to_owned();
        [text].into_iter().chain(driver_runs.then_some(later)).collect()
    }
}

/// Restricts the events, unless a descriptor is set. Windows reads the descriptor when the driver registers its
/// provider, so this comes before the driver is started.
///
/// # Errors
/// If the registry cannot be read or written.
pub fn restrict(system: &dyn System) -> Result<Restriction, ProviderSecurityError> {
    match system.provider_descriptor().map_err(ProviderSecurityError::Restrict)? {
        Some(found) if is_restriction(&found) => Ok(Restriction::Present),
        Some(_) => Ok(Restriction::OtherKept),
        None => {
            system.set_provider_descriptor(descriptor()).map_err(ProviderSecurityError::Restrict)?;
            Ok(Restriction::Added)
        }
    }
}

/// Removes the restriction, and no other descriptor. Returns whether it was there.
///
/// # Errors
/// If the registry cannot be read or written.
pub fn remove(system: &dyn System) -> Result<bool, ProviderSecurityError> {
    let found = system.provider_descriptor().map_err(ProviderSecurityError::Remove)?;
    let is_ours = found.is_some_and(|found| is_restriction(&found));
    if is_ours {
        system.remove_provider_descriptor().map_err(ProviderSecurityError::Remove)?;
    }
    Ok(is_ours)
}
