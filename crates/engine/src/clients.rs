//! The clients that have opened the device.

use alloc::vec::Vec;

use crate::reply::Refusal;
use crate::try_vec::TryPush;

/// An open handle, by a number that is unique among open handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientId(pub usize);

/// A client: an open handle.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    id: ClientId,
    /// The process that opened it.
    pub process: u32,
    /// Whether the versions agreed in Hello.
    pub greeted: bool,
}

/// All open handles.
#[derive(Debug, Default)]
pub struct Clients(Vec<Client>);

impl Clients {
    pub fn open(&mut self, id: ClientId, process: u32) -> Result<(), Refusal> {
        self.close(id);
        self.0.try_push(Client { id, process, greeted: false })
    }

    pub fn close(&mut self, id: ClientId) {
        self.0.retain(|client| client.id != id);
    }

    pub fn get_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        self.0.iter_mut().find(|client| client.id == id)
    }
}
