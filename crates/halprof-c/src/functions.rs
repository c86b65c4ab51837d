//! The functions of the ABI. Their comments are those of the header.
#![expect(unsafe_code, reason = "functions for C: pointers from the caller, and names without mangling")]

use std::ffi::{CStr, c_char};
use std::mem::size_of;
use std::ptr;

use crate::calls;
use crate::failure::{Failure, last_text};
use crate::group::Region;
use crate::library::{self, Modes};
use crate::open_groups::{self, OpenGroup};
use crate::outcome::{
    GroupHandle, HALPROF_ABI_VERSION, HALPROF_ALL_CPUS, HALPROF_BAD_VERSION, HALPROF_KERNEL, HALPROF_USER, Outcome,
    Status,
};

/// Returns the version of the library: the highest one that halprof_open() accepts.
///
/// Threads: any thread can call this.
#[unsafe(no_mangle)]
pub const extern "C" fn halprof_version() -> u32 {
    HALPROF_ABI_VERSION
}

/// Opens a group that counts for the calling thread, and stores its handle in `group`.
///
/// `version` is HALPROF_ABI_VERSION. `events` are names as `.\client stat -e` accepts them, with commas
/// between them: "instructions,cycles". `flags` are HALPROF_USER, HALPROF_KERNEL or both; 0 is
/// HALPROF_USER. Counts of a thread that include kernel mode are never exact.
///
/// Errors: HALPROF_BAD_VERSION, HALPROF_BAD_ARGUMENT, HALPROF_NO_DRIVER, HALPROF_BAD_EVENT,
/// HALPROF_REFUSED, HALPROF_FAILED. `group` is 0 then.
///
/// Threads: the group belongs to the calling thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halprof_open(
    version: u32,
    events: *const c_char,
    flags: u32,
    group: *mut GroupHandle,
) -> Status {
    calls::status(|| {
        // SAFETY: The caller's obligation is that of `open`.
        unsafe { open(version, events, flags, group, library::open_for_thread) }
    })
}

/// Opens a group that counts everything that runs on a CPU, and stores its handle in `group`.
///
/// `cpu` is the number of the CPU, counted over all processor groups, or HALPROF_ALL_CPUS. The other
/// arguments are those of halprof_open().
///
/// Errors: HALPROF_BAD_ARGUMENT and those of halprof_open(). `group` is 0 then.
///
/// Threads: the group belongs to the calling thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halprof_open_cpu(
    version: u32,
    events: *const c_char,
    flags: u32,
    cpu: u32,
    group: *mut GroupHandle,
) -> Status {
    let cpu = (cpu != HALPROF_ALL_CPUS).then_some(cpu);
    calls::status(|| {
        // SAFETY: The caller's obligation is that of `open`.
        unsafe { open(version, events, flags, group, |events, modes| library::open_for_cpu(events, modes, cpu)) }
    })
}

/// Stores the best quality that regions of the group can have in `quality`: HALPROF_VIRTUALIZED or
/// HALPROF_UNDISTURBED, or HALPROF_DISTURBED if no region of the group is exact. Stores the reason why
/// it is no better one in `reason`: an empty string if there is no better one. `reason` can be NULL.
/// The string is valid until halprof_close().
///
/// Errors: HALPROF_BAD_HANDLE, HALPROF_WRONG_THREAD, HALPROF_BAD_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halprof_availability(
    group: GroupHandle,
    quality: *mut u32,
    reason: *mut *const c_char,
) -> Status {
    calls::status(|| {
        let (grade, text) = open_groups::with(group, |open| {
            let (grade, text) = open.availability();
            Ok((grade, text.as_ptr()))
        })?;
        // SAFETY: The caller's obligation.
        unsafe { store(quality, grade.quality(), "quality") }?;
        if !reason.is_null() {
            // SAFETY: The caller's obligation.
            unsafe { store(reason, text, "reason") }?;
        }
        Ok(())
    })
}

/// Measures how many events an empty region has, in some hundred regions. Later counts of this group
/// are without them. Does nothing for a group of halprof_open_cpu(): it counts everything.
///
/// Errors: HALPROF_BAD_HANDLE, HALPROF_WRONG_THREAD, HALPROF_BAD_ORDER between begin and end,
/// HALPROF_REFUSED, HALPROF_FAILED.
#[unsafe(no_mangle)]
pub extern "C" fn halprof_calibrate(group: GroupHandle) -> Status {
    // SAFETY: NULL is allowed.
    let end = || unsafe { end(group, ptr::null_mut()) };
    calls::status(|| OpenGroup::calibrate(group, || begin(group), end))
}

/// Begins a region: the events from here on are counted.
///
/// Errors: HALPROF_BAD_HANDLE, HALPROF_WRONG_THREAD, HALPROF_BAD_ORDER if a region is open,
/// HALPROF_REFUSED, HALPROF_FAILED. No region is open then.
#[unsafe(no_mangle)]
pub extern "C" fn halprof_begin(group: GroupHandle) -> Status {
    calls::status(|| begin(group))
}

/// Ends one part of the region and begins the next. The counts of the parts are added at the end; what
/// happens between two parts does not count.
///
/// Windows may keep only 32 bits of what a counter counts between two context switches. A region in
/// which more is possible is HALPROF_DISTURBED unless it has parts. 50 milliseconds are short enough.
///
/// Errors: HALPROF_BAD_HANDLE, HALPROF_WRONG_THREAD, HALPROF_BAD_ORDER if no region is open,
/// HALPROF_REFUSED, HALPROF_FAILED. The part goes on then.
#[unsafe(no_mangle)]
pub extern "C" fn halprof_checkpoint(group: GroupHandle) -> Status {
    calls::status(|| open_groups::with(group, OpenGroup::checkpoint))
}

/// Ends the region, and stores how exact its counts are in `result`, which can be NULL.
///
/// Errors: HALPROF_BAD_HANDLE, HALPROF_WRONG_THREAD, HALPROF_BAD_ORDER if no region is open,
/// HALPROF_BAD_ARGUMENT if `size` of the result is too small, HALPROF_REFUSED, HALPROF_FAILED. The
/// region goes on then, and another call can end it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halprof_end(group: GroupHandle, result: *mut Outcome) -> Status {
    calls::status(|| {
        // SAFETY: The caller's obligation.
        unsafe { end(group, result) }
    })
}

/// Stores how often the event `index` occurred in the last region in `count`. The first event has the
/// index 0.
///
/// Errors: HALPROF_BAD_HANDLE, HALPROF_WRONG_THREAD, HALPROF_BAD_ARGUMENT, HALPROF_BAD_ORDER if no
/// region has ended, or the last one failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halprof_count(group: GroupHandle, index: u32, count: *mut u64) -> Status {
    calls::status(|| {
        let found = open_groups::with(group, |open| open.count(place(index)))?;
        // SAFETY: The caller's obligation.
        unsafe { store(count, found, "count") }
    })
}

/// Returns the name of the event `index`, as it was opened. The string is valid until halprof_close().
/// Returns NULL behind the last event, and where halprof_count() would fail with HALPROF_BAD_HANDLE or
/// HALPROF_WRONG_THREAD.
#[unsafe(no_mangle)]
pub extern "C" fn halprof_name(group: GroupHandle, index: u32) -> *const c_char {
    calls::value(ptr::null(), || open_groups::with(group, |open| Ok(open.name(place(index))?.as_ptr())))
}

/// Returns why the last region is HALPROF_DISTURBED: an empty string if it is not. The string is valid
/// until the next halprof_end(), halprof_calibrate() or halprof_close() of the group. Returns NULL
/// where halprof_count() would fail with HALPROF_BAD_HANDLE or HALPROF_WRONG_THREAD.
#[unsafe(no_mangle)]
pub extern "C" fn halprof_reason(group: GroupHandle) -> *const c_char {
    calls::value(ptr::null(), || open_groups::with(group, |open| Ok(open.reason().as_ptr())))
}

/// Returns what went wrong in the last call of this thread that failed: an empty string if none has.
/// The text says what happened, why, and what you can do. It is valid until the next call of this
/// thread that fails. Never returns NULL.
#[unsafe(no_mangle)]
pub extern "C" fn halprof_error_text() -> *const c_char {
    const NONE: &CStr = c"";
    calls::value(NONE.as_ptr(), || Ok(last_text(CStr::as_ptr).unwrap_or(NONE.as_ptr())))
}

/// Closes the group and ends its region, if one is open. Its counters are free afterwards. The handle
/// 0 is accepted and does nothing.
///
/// Errors: HALPROF_BAD_HANDLE, HALPROF_WRONG_THREAD.
#[unsafe(no_mangle)]
pub extern "C" fn halprof_close(group: GroupHandle) -> Status {
    calls::status(|| if group == 0 { Ok(()) } else { open_groups::remove(group) })
}

/// # Safety
/// `events` must be NULL or a string that ends with a zero byte, `group` NULL or valid for a write.
unsafe fn open(
    version: u32,
    events: *const c_char,
    flags: u32,
    group: *mut GroupHandle,
    make: impl FnOnce(&[&str], Modes) -> Result<Box<dyn crate::group::Group>, Failure>,
) -> Result<(), Failure> {
    // SAFETY: The caller's obligation.
    unsafe { store(group, 0, "group") }?;
    if version == 0 || version > HALPROF_ABI_VERSION {
        let text = format!("the library has version {HALPROF_ABI_VERSION}, and the program asks for version {version}");
        return Err(Failure::new(HALPROF_BAD_VERSION, text));
    }
    let modes = modes(flags)?;
    if events.is_null() {
        return Err(null("events"));
    }
    // SAFETY: The caller's obligation.
    let events = unsafe { CStr::from_ptr(events) };
    let events = events.to_str().map_err(|_| Failure::argument("the names of the events are not UTF-8"))?;
    let handle = open_groups::insert(make(&names(events), modes)?)?;
    // SAFETY: The caller's obligation.
    unsafe { store(group, handle, "group") }
}

fn begin(group: GroupHandle) -> Result<(), Failure> {
    open_groups::with(group, OpenGroup::begin)
}

/// # Safety
/// `result` must be NULL or point to a structure of the size that its field `size` states.
unsafe fn end(group: GroupHandle, result: *mut Outcome) -> Result<(), Failure> {
    const NEEDED: usize = size_of::<Outcome>();
    if !result.is_null() {
        // SAFETY: The caller's obligation. `size` is the first field.
        let size = place(unsafe { result.cast::<u32>().read_unaligned() });
        if size < NEEDED {
            let text = format!("the field `size` of the result is {size}; set it to sizeof(halprof_result), {NEEDED}");
            return Err(Failure::argument(text));
        }
    }
    let outcome = open_groups::with(group, |open| open.end().map(Region::outcome))?;
    if !result.is_null() {
        // SAFETY: The structure of the caller is at least as large.
        unsafe { store(result, outcome, "result") }?;
    }
    Ok(())
}

fn modes(flags: u32) -> Result<Modes, Failure> {
    let unknown = flags & !(HALPROF_USER | HALPROF_KERNEL);
    if unknown != 0 {
        return Err(Failure::argument(format!("the flags {unknown:#x} are not those of halprof_open()")));
    }
    Ok(match flags {
        HALPROF_KERNEL => Modes::Kernel,
        0 | HALPROF_USER => Modes::User,
        _ => Modes::Both,
    })
}

/// Splits names at commas, except those between slashes: `cpu/event=0xC0,umask=1/`.
fn names(events: &str) -> Vec<&str> {
    let mut slashes = 0;
    let split = events.split(|letter| {
        slashes += usize::from(letter == '/');
        letter == ',' && slashes % 2 == 0
    });
    split.map(str::trim).filter(|name| !name.is_empty()).collect()
}

/// An index that does not fit is behind the last event.
fn place(index: u32) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

fn null(argument: &str) -> Failure {
    Failure::argument(format!("the argument `{argument}` is NULL"))
}

/// Stores a value for the caller.
///
/// # Safety
/// `to` must be NULL or valid for a write.
unsafe fn store<T>(to: *mut T, value: T, argument: &str) -> Result<(), Failure> {
    if to.is_null() {
        return Err(null(argument));
    }
    // SAFETY: It is not NULL, and the caller guarantees the rest, except that it may be unaligned.
    unsafe { to.write_unaligned(value) };
    Ok(())
}
