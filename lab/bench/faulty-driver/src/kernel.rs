//! The kernel functions that the faulty driver calls, and the layouts (wdm.h, x64) that it needs.

use core::{cell::UnsafeCell, ffi::c_void, ptr};

pub type Pointer = *mut c_void;
pub type NtStatus = i32;

pub const STATUS_SUCCESS: NtStatus = 0;
pub const STATUS_PENDING: NtStatus = 0x103;
pub const STATUS_UNSUCCESSFUL: NtStatus = 0xC000_0001_u32.cast_signed();

/// UNICODE_STRING.
#[repr(C)]
pub struct Text {
    length: u16,
    maximum: u16,
    buffer: *const u16,
}

impl Text {
    /// Returns the counted string of a text that ends with NUL.
    pub fn new(text: &'static [u16]) -> Self {
        let length = u16::try_from(2 * (text.len() - 1)).unwrap_or_default();
        Self { length, maximum: length, buffer: text.as_ptr() }
    }
}

/// Converts a text to UTF-16.
#[expect(clippy::indexing_slicing, reason = "const evaluation: an index out of bounds does not compile")]
pub const fn wide<const N: usize>(text: &[u8; N]) -> [u16; N] {
    let mut wide = [0; N];
    let mut at = 0;
    while at < N {
        wide[at] = text[at] as u16;
        at += 1;
    }
    wide
}

/// OBJECT_ATTRIBUTES.
#[repr(C)]
pub struct ObjectAttributes<'a> {
    length: u32,
    root: Pointer,
    name: &'a Text,
    attributes: u32,
    security: [Pointer; 2],
}

impl<'a> ObjectAttributes<'a> {
    /// Returns the attributes of an object with this name. Letter case is ignored (OBJ_CASE_INSENSITIVE).
    pub const fn new(name: &'a Text) -> Self {
        Self { length: 0x30, root: ptr::null_mut(), name, attributes: 0x40, security: [ptr::null_mut(); 2] }
    }
}

/// HARDWARE_COUNTER.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct HardwareCounter {
    kind: u32,
    reserved: u32,
    pub index: u64,
}

impl HardwareCounter {
    /// Counter 0, of the only type.
    pub const ZERO: Self = Self { kind: 0, reserved: 0, index: 0 };
}

/// KE_PROCESSOR_CHANGE_NOTIFY_CONTEXT.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Change {
    pub stage: u32,
    pub index: u32,
    pub status: NtStatus,
    pub number: [u8; 4],
}

pub type Dispatch = unsafe extern "system" fn(Pointer, *mut Irp) -> NtStatus;
pub type Unload = unsafe extern "system" fn(Pointer);

/// DRIVER_OBJECT. This and the following structures have only the fields that are needed here.
#[repr(C)]
struct Driver {
    head: u64,
    device: Pointer,
    rest: [u64; 11],
    unload: Unload,
    major: [Dispatch; 28],
}

const _: () = assert!(core::mem::offset_of!(Driver, unload) == 0x68);

/// IRP_MJ_CREATE, IRP_MJ_CLOSE, IRP_MJ_DEVICE_CONTROL, IRP_MJ_CLEANUP.
const SERVED: [usize; 4] = [0, 2, 14, 18];
const DEVICE_CONTROL: u8 = 14;

/// Sets the dispatch routines and the unload routine.
///
/// # Safety
/// `driver` must be the DRIVER_OBJECT, and no other code may use it during the call.
pub unsafe fn set_routines(driver: Pointer, dispatch: Dispatch, unload: Unload) {
    // SAFETY: guaranteed by the caller.
    let driver = unsafe { &mut *driver.cast::<Driver>() };
    driver.unload = unload;
    for number in SERVED {
        if let Some(routine) = driver.major.get_mut(number) {
            *routine = dispatch;
        }
    }
}

/// Returns the first device of a driver.
///
/// # Safety
/// `driver` must be the DRIVER_OBJECT.
pub unsafe fn device_of(driver: Pointer) -> Pointer {
    // SAFETY: guaranteed by the caller.
    unsafe { (*driver.cast::<Driver>()).device }
}

/// Returns the driver of a device.
///
/// # Safety
/// `device` must be a DEVICE_OBJECT.
pub unsafe fn driver_of(device: Pointer) -> Pointer {
    // SAFETY: DriverObject is at offset 8.
    unsafe { device.cast::<Pointer>().wrapping_add(1).read() }
}

/// IO_STACK_LOCATION of a device control request.
#[repr(C)]
struct Stack {
    major: u8,
    minor: u8,
    flags: u8,
    control: u8,
    output: u64,
    input: u64,
    code: u64,
}

/// IRP.
#[repr(C)]
pub struct Irp {
    head: u64,
    /// The pages of a request with direct output (MdlAddress).
    pub pages: Pointer,
    flags: u64,
    buffer: *mut u32,
    links: [u64; 2],
    status: NtStatus,
    fill: u32,
    information: u64,
    middle: [u64; 5],
    cancel_routine: Pointer,
    tail: [u64; 9],
    stack: *mut Stack,
}

const _: () = assert!(core::mem::offset_of!(Irp, cancel_routine) == 0x68);
const _: () = assert!(core::mem::offset_of!(Irp, stack) == 0xB8);

impl Irp {
    fn stack(&mut self) -> &mut Stack {
        // SAFETY: the current location belongs to this driver as long as the request does.
        unsafe { &mut *self.stack }
    }

    /// Returns the code of a device control request and the first two numbers of its input, each 0 if missing.
    pub fn control(&mut self) -> Option<(u32, [u32; 2])> {
        let Stack { major, input, code, .. } = *self.stack();
        if major != DEVICE_CONTROL {
            return None;
        }
        let number = |place: u64| {
            if 4 * (place + 1) > input {
                return 0;
            }
            let at = self.buffer.wrapping_add(usize::try_from(place).unwrap_or_default());
            // SAFETY: the system buffer contains that much input.
            unsafe { at.read() }
        };
        Some((u32::try_from(code & 0xFFFF_FFFF).unwrap_or_default(), [number(0), number(1)]))
    }

    /// IoMarkIrpPending.
    pub fn mark_pending(&mut self) {
        self.stack().control |= 1;
    }

    /// Sets a cancel routine, which a completed request must not have.
    pub fn leave_cancel_routine(&mut self) {
        self.cancel_routine = ptr::dangling_mut();
    }

    /// Completes the request with as many of the output numbers as fit, and returns the status.
    pub fn complete(&mut self, status: NtStatus, output: &[u32]) -> NtStatus {
        let mut written = 0;
        if self.stack().major == DEVICE_CONTROL {
            let room = self.stack().output;
            for (place, number) in (0..room / 4).zip(output) {
                let at = self.buffer.wrapping_add(usize::try_from(place).unwrap_or_default());
                // SAFETY: the system buffer has room for that much output.
                unsafe { at.write(*number) };
                written += 4;
            }
        }
        (self.status, self.information) = (status, written);
        // SAFETY: this driver owns the request and does not use it afterwards.
        unsafe { IofCompleteRequest(self, 0) };
        status
    }
}

/// The beginning of HAL_DISPATCH.
#[repr(C)]
pub struct HalDispatch {
    version: u32,
    query: Pointer,
    pub set: unsafe extern "system" fn(u32, u32, Pointer) -> NtStatus,
}

/// Room for a KDPC, a KEVENT, a FAST_MUTEX or a spin lock.
#[repr(C, align(16))]
struct Object([u64; 8]);

/// An object that lives as long as the driver.
pub struct Shared(UnsafeCell<Object>);

// SAFETY: once initialized, only the kernel accesses the object, and it synchronizes its accesses.
unsafe impl Sync for Shared {}

impl Shared {
    pub const fn new() -> Self {
        Self(UnsafeCell::new(Object([0; 8])))
    }

    pub const fn address(&self) -> Pointer {
        self.0.get().cast()
    }
}

pub type CallbackRoutine = unsafe extern "system" fn(Pointer, Pointer, Pointer);
pub type ChangeRoutine = unsafe extern "system" fn(Pointer, *const Change, *mut NtStatus);
pub type WorkRoutine = unsafe extern "system" fn(Pointer, Pointer);
pub type DpcRoutine = unsafe extern "system" fn(Pointer, Pointer, Pointer, Pointer);

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    pub static HalDispatchTable: HalDispatch;

    pub fn DbgPrint(format: *const u8, ...) -> u32;
    pub fn ExAcquireFastMutex(mutex: Pointer);
    pub fn ExAllocatePool2(flags: u64, size: usize, tag: u32) -> Pointer;
    pub fn ExCreateCallback(
        object: *mut Pointer,
        attributes: *const ObjectAttributes<'_>,
        create: u8,
        multiple: u8,
    ) -> NtStatus;
    pub fn ExFreePool(memory: Pointer);
    pub fn ExRegisterCallback(object: Pointer, routine: CallbackRoutine, context: Pointer) -> Pointer;
    pub fn ExReleaseFastMutex(mutex: Pointer);
    pub fn ExUnregisterCallback(registration: Pointer);
    pub fn IoAllocateWorkItem(device: Pointer) -> Pointer;
    pub fn IoCreateDevice(
        driver: Pointer,
        extension: u32,
        name: *const Text,
        kind: u32,
        characteristics: u32,
        exclusive: u8,
        device: *mut Pointer,
    ) -> NtStatus;
    pub fn IoCreateSymbolicLink(link: *const Text, name: *const Text) -> NtStatus;
    pub fn IoDeleteDevice(device: Pointer);
    pub fn IoDeleteSymbolicLink(link: *const Text) -> NtStatus;
    pub fn IoFreeWorkItem(item: Pointer);
    pub fn IoGetCurrentProcess() -> Pointer;
    pub fn IoQueueWorkItem(item: Pointer, routine: WorkRoutine, queue: u32, context: Pointer);
    pub fn IofCompleteRequest(irp: *mut Irp, boost: i8);
    pub fn KeAcquireSpinLockRaiseToDpc(lock: Pointer) -> u8;
    pub fn KeDeregisterProcessorChangeCallback(registration: Pointer);
    pub fn KeFlushQueuedDpcs();
    pub fn KeGetCurrentIrql() -> u8;
    pub fn KeGetCurrentProcessorNumberEx(number: Pointer) -> u32;
    pub fn KeGetProcessorNumberFromIndex(index: u32, number: *mut [u8; 4]) -> NtStatus;
    pub fn KeInitializeDpc(dpc: Pointer, routine: DpcRoutine, context: Pointer);
    pub fn KeInitializeEvent(event: Pointer, kind: u32, state: u8);
    pub fn KeInsertQueueDpc(dpc: Pointer, first: Pointer, second: Pointer) -> u8;
    pub fn KeIpiGenericCall(routine: unsafe extern "system" fn(usize) -> usize, argument: usize) -> usize;
    pub fn KeQueryActiveProcessorCountEx(group: u16) -> u32;
    pub fn KeQueryHardwareCounterConfiguration(counters: *mut HardwareCounter, most: u32, count: *mut u32) -> NtStatus;
    pub fn KeQueryInterruptTime() -> u64;
    pub fn KeQueryMaximumProcessorCountEx(group: u16) -> u32;
    pub fn KeRegisterProcessorChangeCallback(routine: ChangeRoutine, context: Pointer, flags: u32) -> Pointer;
    pub fn KeReleaseSpinLock(lock: Pointer, before: u8);
    pub fn KeSetEvent(event: Pointer, increment: i32, wait: u8) -> i32;
    pub fn KeSetHardwareCounterConfiguration(counters: *const HardwareCounter, count: u32) -> NtStatus;
    pub fn KeSetTargetProcessorDpcEx(dpc: Pointer, number: *const [u8; 4]) -> NtStatus;
    pub fn KeWaitForSingleObject(event: Pointer, reason: u32, mode: i8, alertable: u8, timeout: *const i64)
    -> NtStatus;
    #[expect(dead_code, reason = "called by code that the compiler generates")]
    fn memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8;
    #[expect(dead_code, reason = "called by code that the compiler generates")]
    fn memset(to: *mut u8, value: i32, length: usize) -> *mut u8;
    pub fn MmGetSystemRoutineAddress(name: *const Text) -> Pointer;
    pub fn MmMapIoSpaceEx(physical: u64, size: usize, protect: u32) -> Pointer;
    pub fn MmMapLockedPagesSpecifyCache(
        pages: Pointer,
        mode: i8,
        caching: i32,
        address: Pointer,
        bug_check: u32,
        priority: u32,
    ) -> Pointer;
    pub fn MmUnmapIoSpace(address: Pointer, size: usize);
    pub fn ObOpenObjectByPointer(
        object: Pointer,
        attributes: u32,
        state: Pointer,
        access: u32,
        kind: Pointer,
        mode: i8,
        handle: *mut Pointer,
    ) -> NtStatus;
    pub fn ObReferenceObjectByHandle(
        handle: Pointer,
        access: u32,
        kind: Pointer,
        mode: i8,
        object: *mut Pointer,
        information: Pointer,
    ) -> NtStatus;
    pub fn ObfDereferenceObject(object: Pointer) -> isize;
    pub fn PsCreateSystemThread(
        thread: *mut Pointer,
        access: u32,
        attributes: Pointer,
        process: Pointer,
        client: Pointer,
        routine: unsafe extern "system" fn(Pointer),
        context: Pointer,
    ) -> NtStatus;
    pub fn PsGetCurrentProcessId() -> Pointer;
    pub fn PsGetCurrentThreadId() -> Pointer;
    pub fn PsTerminateSystemThread(status: NtStatus) -> NtStatus;
    pub fn ZwClose(handle: Pointer) -> NtStatus;
    pub fn ZwSetSecurityObject(handle: Pointer, information: u32, descriptor: *const u8) -> NtStatus;
    pub fn ZwWaitForSingleObject(handle: Pointer, alertable: u8, timeout: *const i64) -> NtStatus;
}

#[link(name = "hal.dll", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    pub fn HalAllocateHardwareCounters(groups: Pointer, count: u32, list: Pointer, set: *mut Pointer) -> NtStatus;
    pub fn HalFreeHardwareCounters(set: Pointer) -> NtStatus;
    pub fn KeQueryPerformanceCounter(frequency: *mut i64) -> i64;
}
