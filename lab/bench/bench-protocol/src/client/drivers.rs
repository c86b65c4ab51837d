//! What drivers did and hold.

use crate::{Answer, Command, Descriptor, Pool, Violation};

use super::{Client, Error, ask};

/// Every method also fails if [`ask`](Self::ask) does.
impl Client {
    /// Sends [`Command::Violations`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn violations(&mut self) -> Result<Vec<Violation>, Error> {
        ask!(self, Command::Violations, Answer::Violations(violations) => violations)
    }

    /// Sends [`Command::Pool`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn pool(&mut self) -> Result<Pool, Error> {
        ask!(self, Command::Pool, Answer::Pool(pool) => pool)
    }

    /// Sends [`Command::PendingRequests`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn pending_requests(&mut self) -> Result<usize, Error> {
        ask!(self, Command::PendingRequests, Answer::PendingRequests(requests) => requests)
    }

    /// Sends [`Command::SystemThreads`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn threads(&mut self) -> Result<usize, Error> {
        ask!(self, Command::SystemThreads, Answer::SystemThreads(threads) => threads)
    }

    /// Sends [`Command::Descriptor`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn descriptor(&mut self) -> Result<Option<Descriptor>, Error> {
        ask!(self, Command::Descriptor, Answer::Descriptor(descriptor) => descriptor)
    }

    /// Sends [`Command::Images`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn images(&mut self) -> Result<Vec<String>, Error> {
        ask!(self, Command::Images, Answer::Names(names) => names)
    }
}
