//! Event Tracing for Windows: a TraceLogging provider.
//!
//! Not the crate `tracelogging`: it keeps what the enable callback stores in plain memory, which other processors read
//! meanwhile, and it panics if a provider is registered twice.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use protocol::trace::{CHANNEL, EventId, LEVEL, PROVIDER_ID, PROVIDER_METADATA, VERSION};
use wdk_sys::ntddk::{EtwRegister, EtwUnregister, EtwWriteTransfer};
use wdk_sys::{_EVENT_FILTER_DESCRIPTOR, EVENT_DESCRIPTOR, GUID, NTSTATUS, PVOID, ULONG};
use zerocopy::transmute;

use super::irp::check;

/// EVENT_DATA_DESCRIPTOR_TYPE_EVENT_METADATA (evntprov.h).
const EVENT_METADATA: u32 = 1;
/// EVENT_DATA_DESCRIPTOR_TYPE_PROVIDER_METADATA (evntprov.h).
const PROVIDER_METADATA_TYPE: u32 = 2;

/// EventProviderSetTraits of EVENT_INFO_CLASS (evntprov.h). From then on, ETW reads the types of data descriptors.
const SET_TRAITS: u32 = 2;

/// EVENT_CONTROL_CODE_DISABLE_PROVIDER (evntrace.h).
const DISABLE: ULONG = 0;
/// EVENT_CONTROL_CODE_ENABLE_PROVIDER (evntrace.h).
const ENABLE: ULONG = 1;

/// EVENT_DATA_DESCRIPTOR. Its last member has other names in the headers of mingw-w64.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct DataDescriptor {
    address: u64,
    size: u32,
    kind: u32,
}

const _: () = assert!(core::mem::offset_of!(DataDescriptor, address) == 0);
const _: () = assert!(core::mem::offset_of!(DataDescriptor, size) == 8);
const _: () = assert!(size_of::<DataDescriptor>() == 16);

/// Maximum number of parts of a payload.
const PARTS: usize = 3;

// wdm.h of the WDK declares it, the headers of mingw-w64 do not.
#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "C" {
    fn EtwSetInformation(handle: u64, class: u32, information: *const u8, length: u32) -> NTSTATUS;
}

/// The provider of the driver.
pub struct Provider {
    /// REGHANDLE, or 0.
    handle: AtomicU64,
    is_enabled: AtomicBool,
    level: AtomicU8,
    /// Keywords of which an event must have any, or 0 for every event; and keywords of which it must have all besides.
    any: AtomicU64,
    all: AtomicU64,
    /// Called after a change.
    changed: fn(),
}

impl Provider {
    /// Creates a provider that is not registered.
    pub const fn new(changed: fn()) -> Self {
        Self {
            handle: AtomicU64::new(0),
            is_enabled: AtomicBool::new(false),
            level: AtomicU8::new(0),
            any: AtomicU64::new(0),
            all: AtomicU64::new(0),
            changed,
        }
    }

    /// Registers the provider. If a trace session has enabled it before, `changed` is called at once.
    ///
    /// # Errors
    /// The NTSTATUS of the call that failed; everything is undone.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn register(&'static self) -> Result<(), NTSTATUS> {
        let id: GUID = guid(PROVIDER_ID);
        let mut handle = 0;
        let context = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the kernel copies the GUID; `enable` expects a `Provider`, and a static lives as long as the image
        check(unsafe { EtwRegister(&raw const id, Some(enable), context, &raw mut handle) })?;
        self.handle.store(handle, Ordering::Release);
        let length = u32::try_from(PROVIDER_METADATA.len()).unwrap_or(0);
        // SAFETY: the kernel copies the traits
        let traits = unsafe { EtwSetInformation(handle, SET_TRAITS, PROVIDER_METADATA.as_ptr(), length) };
        check(traits).inspect_err(|_| self.unregister())
    }

    /// Unregisters the provider. Repeated calls do nothing.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn unregister(&self) {
        let handle = self.handle.swap(0, Ordering::AcqRel);
        self.is_enabled.store(false, Ordering::Release);
        if handle != 0 {
            // A failure means that the handle is not valid, which cannot be.
            // SAFETY: the handle from EtwRegister, once
            let _ = unsafe { EtwUnregister(handle) };
        }
    }

    /// Returns whether a trace session wants an event.
    ///
    /// # IRQL
    /// Any.
    pub fn wants(&self, event: EventId) -> bool {
        let keyword = event.keyword();
        let (any, all) = (self.any.load(Ordering::Relaxed), self.all.load(Ordering::Relaxed));
        self.is_enabled.load(Ordering::Acquire)
            && self.level.load(Ordering::Relaxed) >= LEVEL
            && (any == 0 || any & keyword != 0 && all & keyword == all)
    }

    /// Writes an event with a payload of at most [`PARTS`] parts, if a trace session wants it. All of the payload is in
    /// memory that is not paged.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    pub fn write(&self, event: EventId, payload: &[&[u8]]) {
        if !self.wants(event) {
            return;
        }
        let descriptor = EVENT_DESCRIPTOR {
            Id: event as u16,
            Version: VERSION,
            Channel: CHANNEL,
            Level: LEVEL,
            Opcode: 0,
            Task: 0,
            Keyword: event.keyword(),
        };
        let mut data = [DataDescriptor::default(); 2 + PARTS];
        let metadata = [(PROVIDER_METADATA, PROVIDER_METADATA_TYPE), (event.metadata(), EVENT_METADATA)];
        let parts = metadata.into_iter().chain(payload.iter().map(|part| (*part, 0)));
        let mut count = 0;
        for (descriptor, (bytes, kind)) in data.iter_mut().zip(parts) {
            let address = bytes.as_ptr().expose_provenance() as u64;
            *descriptor = DataDescriptor { address, size: u32::try_from(bytes.len()).unwrap_or(0), kind };
            count += 1;
        }
        let handle = self.handle.load(Ordering::Acquire);
        // A failure is a lost event, which the trace session counts.
        // SAFETY: the handle of this provider; the descriptors and what they describe outlive the call
        let _ = unsafe {
            EtwWriteTransfer(
                handle,
                &raw const descriptor,
                core::ptr::null(),
                core::ptr::null(),
                count,
                data.as_mut_ptr().cast(),
            )
        };
    }
}

/// Returns a GUID of its bytes in memory.
const fn guid(bytes: [u8; 16]) -> GUID {
    let [first, data4]: [[u8; 8]; 2] = transmute!(bytes);
    let [data1, second]: [[u8; 4]; 2] = transmute!(first);
    let [data2, data3]: [[u8; 2]; 2] = transmute!(second);
    GUID {
        Data1: u32::from_le_bytes(data1),
        Data2: u16::from_le_bytes(data2),
        Data3: u16::from_le_bytes(data3),
        Data4: data4,
    }
}

/// Enable callback: a trace session has enabled the provider, or none has it enabled any more. Level and keywords are
/// those of all sessions together.
///
/// # IRQL
/// PASSIVE_LEVEL.
unsafe extern "C" fn enable(
    _source: *const GUID,
    control: ULONG,
    level: u8,
    any: u64,
    all: u64,
    _filter: *mut _EVENT_FILTER_DESCRIPTOR,
    context: PVOID,
) {
    // SAFETY: `register` passed a static
    let provider = unsafe { &*context.cast::<Provider>() };
    match control {
        ENABLE => {
            provider.level.store(if level == 0 { u8::MAX } else { level }, Ordering::Relaxed);
            provider.any.store(any, Ordering::Relaxed);
            provider.all.store(all, Ordering::Relaxed);
            provider.is_enabled.store(true, Ordering::Release);
        }
        DISABLE => provider.is_enabled.store(false, Ordering::Release),
        // A request to report the state, of which there is none.
        _ => return,
    }
    (provider.changed)();
}
