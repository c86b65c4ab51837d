//! The sessions that a request addresses.

use crate::clients::ClientId;
use crate::session::Session;

/// The sessions that are to stop. A value, not a closure, so that the code that stops them is compiled once.
#[derive(Debug, Clone, Copy)]
pub enum Addressed {
    /// Those that a request of this client addresses by this number.
    Requested(u64, ClientId),
    /// Those that the client owns.
    Owned(ClientId),
    /// The one with this number.
    Numbered(u64),
    /// Those that yield.
    Yielding,
    /// All.
    Every,
}

impl Addressed {
    /// Returns whether a session is one of them.
    pub fn has(self, session: &Session) -> bool {
        match self {
            Self::Requested(number, client) => session.is_meant(number, client),
            Self::Owned(client) => session.owner == Some(client),
            Self::Numbered(number) => session.number == number,
            Self::Yielding => session.yields,
            Self::Every => true,
        }
    }
}
