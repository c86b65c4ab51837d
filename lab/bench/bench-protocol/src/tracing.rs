//! Event Tracing for Windows: what the lab's kernel side and its stand-in for the functions of user mode exchange.

use serde::{Deserialize, Serialize};

/// GUID of a provider, as it is in memory.
pub type ProviderId = [u8; 16];

/// The call stack of the code at an interrupt site. An event that a driver writes on a processor gets the stack of the
/// site at which the processor was interrupted last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteStack {
    /// Instruction pointer of the site.
    pub ip: u64,
    /// Process of the site.
    pub process: u32,
    /// Frames in kernel mode, from the innermost; the first is `ip` if the site is in kernel mode.
    pub kernel: Vec<u64>,
    /// Frames in user mode, from the innermost; the first is `ip` if the site is in user mode.
    pub user: Vec<u64>,
    /// Whether the code runs at DISPATCH_LEVEL or above: DPCs run later, and the stack of an event is that of the idle
    /// loop.
    pub raised: bool,
}

/// A provider that a driver has registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisteredProvider {
    /// GUID.
    pub provider: ProviderId,
    /// Name from the traits (EventProviderSetTraits); empty if they were not set.
    pub name: String,
    /// Whether it is enabled.
    pub enabled: bool,
}

/// An event that a driver has written while its provider was enabled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenEvent {
    /// GUID of the provider.
    pub provider: ProviderId,
    /// EVENT_DESCRIPTOR.Id.
    pub id: u16,
    /// EVENT_DESCRIPTOR.Version.
    pub version: u8,
    /// EVENT_DESCRIPTOR.Channel.
    pub channel: u8,
    /// EVENT_DESCRIPTOR.Level.
    pub level: u8,
    /// EVENT_DESCRIPTOR.Keyword.
    pub keyword: u64,
    /// Processor.
    pub processor: u32,
    /// Process of the interrupted code.
    pub process: u32,
    /// Thread of the interrupted code.
    pub thread: u32,
    /// Performance counter.
    pub time: u64,
    /// Metadata of the event (EVENT_DATA_DESCRIPTOR_TYPE_EVENT_METADATA).
    pub metadata: Vec<u8>,
    /// Payload.
    pub payload: Vec<u8>,
    /// Frames in kernel mode, from the innermost: those of the DPC, then those of the interrupted code.
    pub kernel: Vec<u64>,
    /// Frames in user mode, from the innermost.
    pub user: Vec<u64>,
}
