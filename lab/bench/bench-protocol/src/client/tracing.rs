//! Event Tracing for Windows.

use crate::{Answer, Command, ProviderId, RegisteredProvider, SiteStack, WrittenEvent};

use super::{Client, Error, ask};

/// Every method also fails if [`ask`](Self::ask) does.
impl Client {
    /// Sends [`Command::SetStacks`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn set_stacks(&mut self, stacks: Vec<SiteStack>) -> Result<(), Error> {
        ask!(self, Command::SetStacks(stacks), Answer::Done => ())
    }

    /// Sends [`Command::EnableProvider`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn enable_provider(&mut self, provider: ProviderId, level: u8, keywords: u64) -> Result<(), Error> {
        ask!(self, Command::EnableProvider { provider, level, keywords, enabled: true }, Answer::Done => ())
    }

    /// Sends [`Command::EnableProvider`], to disable it.
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn disable_provider(&mut self, provider: ProviderId) -> Result<(), Error> {
        ask!(self, Command::EnableProvider { provider, level: 0, keywords: 0, enabled: false }, Answer::Done => ())
    }

    /// Sends [`Command::Providers`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn providers(&mut self) -> Result<Vec<RegisteredProvider>, Error> {
        ask!(self, Command::Providers, Answer::Providers(providers) => providers)
    }

    /// Sends [`Command::TakeEvents`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn take_events(&mut self) -> Result<Vec<WrittenEvent>, Error> {
        ask!(self, Command::TakeEvents, Answer::Events(events) => events)
    }
}
