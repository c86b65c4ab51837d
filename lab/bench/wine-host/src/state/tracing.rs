//! Event Tracing for Windows: providers of drivers, and the events that they wrote.

use crate::{lock::lock, state::registry::Registry};
use bench_protocol::{ProviderId, RegisteredProvider, SiteStack, WrittenEvent};
use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    sync::Mutex,
};

/// The list of events stops growing here, so that a test that takes none does not fill the memory.
const MAX_EVENTS: usize = 1_000_000;

/// Frames of the kernel under a DPC that runs after an interrupt, from the innermost: the routine's caller, and the
/// interrupt.
const DPC_FRAMES: [u64; 3] = [0xFFFF_F801_0000_1230, 0xFFFF_F801_0000_2340, 0xFFFF_F801_0000_3450];

/// The frame of the idle loop, where a DPC runs that had to wait.
const IDLE_FRAME: u64 = 0xFFFF_F801_0000_4560;

/// What trace sessions want of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Highest level; 0 for every level.
    pub level: u8,
    /// Keywords of which an event has at least one; 0 for every event.
    pub keywords: u64,
}

impl Wanted {
    /// Returns whether an event is wanted.
    #[must_use]
    pub const fn includes(self, level: u8, keyword: u64) -> bool {
        (self.level == 0 || level <= self.level) && (self.keywords == 0 || self.keywords & keyword != 0)
    }
}

/// ETWENABLECALLBACK.
pub type EnableCallback = unsafe extern "system" fn(*const ProviderId, u32, u8, u64, u64, usize, usize);

/// A registration with EtwRegister.
#[derive(Clone, Copy)]
pub struct ProviderRegistration {
    /// GUID.
    pub provider: ProviderId,
    /// The enable callback.
    pub callback: Option<EnableCallback>,
    /// A pointer of the driver, which the lab does not dereference.
    pub context: usize,
    /// An address in the driver, or 0.
    pub driver: usize,
}

impl ProviderRegistration {
    /// Returns whether the driver is at these addresses.
    #[must_use]
    pub fn is_in(&self, addresses: &Range<usize>) -> bool {
        addresses.contains(&self.driver)
    }
}

/// The providers of drivers and their events.
#[derive(Default)]
pub struct Tracing {
    /// The registrations; a handle is a REGHANDLE.
    pub registry: Registry<ProviderRegistration>,
    /// The providers by handle.
    handles: Mutex<BTreeMap<usize, (ProviderId, Option<String>)>>,
    wanted: Mutex<BTreeMap<ProviderId, Wanted>>,
    written: Mutex<Vec<WrittenEvent>>,
    stacks: Mutex<HashMap<(u64, u32), SiteStack>>,
}

impl Tracing {
    /// Adds a registration.
    pub fn register(&self, registration: ProviderRegistration) -> usize {
        let handle = self.registry.add(registration);
        lock(&self.handles).insert(handle, (registration.provider, None));
        handle
    }

    /// Removes the name of a registration.
    pub fn forget(&self, handle: usize) {
        lock(&self.handles).remove(&handle);
    }

    /// Sets the name of a provider from its traits: their size in two bytes, the name, and a zero. Returns false if
    /// they are not that, or the handle is unknown.
    pub fn set_traits(&self, handle: usize, traits: &[u8]) -> bool {
        let Some((size, name)) = traits.split_first_chunk() else { return false };
        let Some((0, name)) = name.split_last() else { return false };
        let name = str::from_utf8(name).ok().filter(|name| !name.contains('\0'));
        let mut handles = lock(&self.handles);
        match (handles.get_mut(&handle), name) {
            (Some((_, known)), Some(name)) if usize::from(u16::from_le_bytes(*size)) == traits.len() => {
                *known = Some(name.to_owned());
                true
            }
            _ => false,
        }
    }

    /// Returns the provider of a handle, and whether its traits were set.
    pub fn provider(&self, handle: usize) -> Option<(ProviderId, bool)> {
        lock(&self.handles).get(&handle).map(|(provider, name)| (*provider, name.is_some()))
    }

    /// Returns the providers that are registered.
    pub fn providers(&self) -> Vec<RegisteredProvider> {
        let handles = lock(&self.handles);
        let each = handles.values().map(|(provider, name)| RegisteredProvider {
            provider: *provider,
            name: name.clone().unwrap_or_default(),
            enabled: self.wanted(*provider).is_some(),
        });
        each.collect()
    }

    /// Sets what trace sessions want of a provider.
    pub fn enable(&self, provider: ProviderId, wanted: Option<Wanted>) {
        match wanted {
            Some(wanted) => lock(&self.wanted).insert(provider, wanted),
            None => lock(&self.wanted).remove(&provider),
        };
    }

    /// Returns what trace sessions want of a provider.
    pub fn wanted(&self, provider: ProviderId) -> Option<Wanted> {
        lock(&self.wanted).get(&provider).copied()
    }

    /// Disables all providers, and removes the events and the stacks of sites.
    pub fn reset(&self) {
        lock(&self.wanted).clear();
        lock(&self.written).clear();
        lock(&self.stacks).clear();
    }

    /// Adds an event.
    pub fn add(&self, event: WrittenEvent) {
        let mut written = lock(&self.written);
        if written.len() < MAX_EVENTS {
            written.push(event);
        }
    }

    /// Removes and returns the events.
    pub fn take(&self) -> Vec<WrittenEvent> {
        std::mem::take(&mut lock(&self.written))
    }

    /// Sets the stacks of sites.
    pub fn set_stacks(&self, stacks: Vec<SiteStack>) {
        *lock(&self.stacks) = stacks.into_iter().map(|stack| ((stack.ip, stack.process), stack)).collect();
    }

    /// Returns the frames in kernel mode and in user mode of a DPC after an interrupt of code at `ip`, and whether the
    /// code runs in the process that was interrupted.
    pub fn frames(&self, ip: u64, process: u32, is_user: bool) -> (Vec<u64>, Vec<u64>, bool) {
        let mut kernel = DPC_FRAMES.to_vec();
        match lock(&self.stacks).get(&(ip, process)) {
            Some(stack) if stack.raised => {
                kernel.push(IDLE_FRAME);
                (kernel, Vec::new(), false)
            }
            Some(stack) => {
                kernel.extend(&stack.kernel);
                (kernel, stack.user.clone(), true)
            }
            None if is_user => (kernel, vec![ip], true),
            None => {
                kernel.push(ip);
                (kernel, Vec::new(), true)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ProviderId = [7; 16];

    fn registered(tracing: &Tracing) -> usize {
        tracing.register(ProviderRegistration { provider: ID, callback: None, context: 0, driver: 0x1000 })
    }

    #[test]
    fn traits_are_a_size_and_a_name() {
        let tracing = Tracing::default();
        let handle = registered(&tracing);
        for wrong in [&b""[..], b"\x05", b"\x05\0AB", b"\x04\0AB\0", b"\x07\0A\0BC\0", b"\x04\0\xFF\0"] {
            assert!(!tracing.set_traits(handle, wrong), "{wrong:?}");
        }
        assert_eq!(tracing.provider(handle), Some((ID, false)));
        assert!(tracing.set_traits(handle, b"\x05\0AB\0"));
        assert!(!tracing.set_traits(handle + 1, b"\x05\0AB\0"));
        assert_eq!(tracing.providers(), [RegisteredProvider { provider: ID, name: "AB".to_owned(), enabled: false }]);
    }

    #[test]
    fn events_are_wanted_by_level_and_keyword() {
        let wanted = |level, keywords| Wanted { level, keywords };
        assert!(wanted(0, 0).includes(5, 8));
        assert!(wanted(4, 6).includes(4, 2));
        assert!(!wanted(4, 6).includes(5, 2));
        assert!(!wanted(4, 6).includes(4, 1));
        let tracing = Tracing::default();
        tracing.enable(ID, Some(wanted(4, 6)));
        assert_eq!(tracing.wanted(ID), Some(wanted(4, 6)));
        tracing.enable(ID, None);
        assert_eq!(tracing.wanted(ID), None);
    }

    #[test]
    fn a_dpc_finds_the_interrupted_code_unless_it_had_to_wait() {
        let tracing = Tracing::default();
        let site = |ip, raised| SiteStack { ip, process: 4, kernel: vec![ip, 9], user: vec![5], raised };
        tracing.set_stacks(vec![site(1, false), site(2, true)]);
        let below = |frames: (Vec<u64>, Vec<u64>, bool)| (frames.0[DPC_FRAMES.len()..].to_vec(), frames.1, frames.2);
        assert_eq!(below(tracing.frames(1, 4, false)), (vec![1, 9], vec![5], true));
        assert_eq!(below(tracing.frames(2, 4, false)), (vec![IDLE_FRAME], vec![], false));
        assert_eq!(below(tracing.frames(1, 5, false)), (vec![1], vec![], true), "another process");
        assert_eq!(below(tracing.frames(3, 4, true)), (vec![], vec![3], true));
    }
}
