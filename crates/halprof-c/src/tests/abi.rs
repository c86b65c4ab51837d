//! Each function: what it returns, and what it leaves alone if it fails.
#![expect(unsafe_code, reason = "calls the ABI as C does")]

use std::ffi::{CStr, c_char};
use std::mem::size_of;
use std::ptr;
use std::rc::Rc;
use std::thread;

use super::fake::{Script, open, region};
use crate::failure::Failure;
use crate::functions::{
    halprof_availability, halprof_begin, halprof_calibrate, halprof_checkpoint, halprof_close, halprof_count,
    halprof_end, halprof_error_text, halprof_name, halprof_open, halprof_open_cpu, halprof_reason, halprof_version,
};
use crate::group::Grade;
use crate::outcome::*;

const VERIFIED: Grade = Grade::Virtualized { verified: true };

fn text(text: *const c_char) -> Option<String> {
    // SAFETY: The pointers of the ABI are NULL or strings.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned())
}

fn error() -> String {
    text(halprof_error_text()).unwrap()
}

fn end(group: GroupHandle) -> (Status, Outcome) {
    let mut result = Outcome { size: 32, quality: 99, flags: 99, events: 99, time_enabled: 99, time_running: 99 };
    assert_eq!(size_of::<Outcome>(), 32);
    // SAFETY: The structure has the size that it states.
    (unsafe { halprof_end(group, &raw mut result) }, result)
}

fn count(group: GroupHandle, index: u32) -> (Status, u64) {
    let mut count = 99;
    // SAFETY: Valid for a write.
    (unsafe { halprof_count(group, index, &raw mut count) }, count)
}

#[test]
fn a_region_has_the_counts_times_and_quality_of_the_library() {
    let script = Rc::new(Script::default());
    script.ends.borrow_mut().push_back(Ok(region([1000, 500], VERIFIED, "")));
    script.ends.borrow_mut().push_back(Ok(region([7, 8], Grade::Disturbed, "the thread was switched out\0 once")));
    let group = open(&script);
    assert_eq!(halprof_begin(group), HALPROF_OK);
    let wanted = Outcome {
        size: 32,
        quality: HALPROF_VIRTUALIZED,
        flags: HALPROF_VERIFIED,
        events: 2,
        time_enabled: 70,
        time_running: 60,
    };
    assert_eq!(end(group), (HALPROF_OK, wanted));
    assert_eq!([count(group, 0), count(group, 1)], [(HALPROF_OK, 1000), (HALPROF_OK, 500)]);
    assert_eq!(text(halprof_reason(group)).unwrap(), "");

    assert_eq!(halprof_begin(group), HALPROF_OK);
    let (status, result) = end(group);
    assert_eq!((status, result.quality, result.flags), (HALPROF_OK, HALPROF_DISTURBED, 0));
    assert_eq!(text(halprof_reason(group)).unwrap(), "the thread was switched out once");
    assert_eq!(count(group, 1), (HALPROF_OK, 8));
    assert_eq!(halprof_close(group), HALPROF_OK);
    assert_eq!(*script.log.borrow(), ["begin", "end", "begin", "end", "close"]);
}

#[test]
fn names_and_availability_are_those_of_the_group() {
    let group = open(&Rc::default());
    assert_eq!(text(halprof_name(group, 0)).unwrap(), "instructions");
    assert_eq!(text(halprof_name(group, 1)).unwrap(), "cycles");
    assert_eq!(text(halprof_name(group, 2)), None);
    assert_eq!(error(), "no event 2: the group has 2, the first is 0");
    let (mut quality, mut reason) = (0, ptr::null());
    // SAFETY: Both are valid for a write.
    assert_eq!(unsafe { halprof_availability(group, &raw mut quality, &raw mut reason) }, HALPROF_OK);
    assert_eq!((quality, text(reason).unwrap().as_str()), (HALPROF_UNDISTURBED, "Windows has no thread profiling"));
    // SAFETY: NULL is allowed.
    assert_eq!(unsafe { halprof_availability(group, &raw mut quality, ptr::null_mut()) }, HALPROF_OK);
    // SAFETY: NULL is an error.
    assert_eq!(unsafe { halprof_availability(group, ptr::null_mut(), ptr::null_mut()) }, HALPROF_BAD_ARGUMENT);
    halprof_close(group);
}

/// Every function that takes a handle, for one that is not open.
fn each(group: GroupHandle) -> Vec<Status> {
    let mut quality = 99;
    vec![
        halprof_begin(group),
        end(group).0,
        count(group, 0).0,
        halprof_calibrate(group),
        halprof_checkpoint(group),
        // SAFETY: Valid for a write.
        unsafe { halprof_availability(group, &raw mut quality, ptr::null_mut()) },
        halprof_close(group),
    ]
}

#[test]
fn a_handle_that_is_not_open_is_refused_by_every_function() {
    let closed = open(&Rc::default());
    assert_eq!(halprof_close(closed), HALPROF_OK);
    for handle in [closed, u64::MAX] {
        assert_eq!(each(handle), [HALPROF_BAD_HANDLE; 7]);
        assert_eq!(error(), format!("no open group has the handle {handle}"));
        assert_eq!((text(halprof_name(handle, 0)), text(halprof_reason(handle))), (None, None));
    }
    assert_eq!(halprof_begin(0), HALPROF_BAD_HANDLE);
    assert_eq!(halprof_close(0), HALPROF_OK, "as free(NULL)");
}

#[test]
fn another_thread_is_refused_and_changes_nothing() {
    let script = Rc::new(Script::default());
    script.ends.borrow_mut().push_back(Ok(region([3, 4], Grade::Undisturbed, "")));
    let group = open(&script);
    assert_eq!(halprof_begin(group), HALPROF_OK);
    thread::spawn(move || {
        assert_eq!(each(group), [HALPROF_WRONG_THREAD; 7]);
        assert_eq!(error(), "the group was opened by another thread; only that thread can use it");
        assert_eq!((text(halprof_name(group, 0)), text(halprof_reason(group))), (None, None));
    })
    .join()
    .unwrap();
    assert_eq!(*script.log.borrow(), ["begin"]);
    assert_eq!(end(group).0, HALPROF_OK);
    assert_eq!(count(group, 0), (HALPROF_OK, 3));
    halprof_close(group);
}

#[test]
fn a_thread_that_ends_closes_its_groups() {
    let group = thread::spawn(|| {
        let group = open(&Rc::default());
        halprof_begin(group);
        group
    })
    .join()
    .unwrap();
    assert_eq!(halprof_begin(group), HALPROF_BAD_HANDLE);
}

#[test]
fn calls_in_the_wrong_order_are_refused() {
    let script = Rc::new(Script::default());
    *script.always.borrow_mut() = Some(region([3, 4], Grade::Undisturbed, ""));
    let group = open(&script);
    assert_eq!(end(group).0, HALPROF_BAD_ORDER);
    assert_eq!(error(), "the group does not count: call halprof_begin() first");
    assert_eq!(count(group, 0), (HALPROF_BAD_ORDER, 99));
    assert_eq!(halprof_begin(group), HALPROF_OK);
    assert_eq!(halprof_begin(group), HALPROF_BAD_ORDER);
    assert_eq!(halprof_calibrate(group), HALPROF_BAD_ORDER);
    assert_eq!(end(group).0, HALPROF_OK, "the region went on");
    assert_eq!(count(group, 2), (HALPROF_BAD_ARGUMENT, 99));
    assert_eq!(count(group, u32::MAX), (HALPROF_BAD_ARGUMENT, 99));
    // SAFETY: NULL is an error.
    assert_eq!(unsafe { halprof_count(group, 0, ptr::null_mut()) }, HALPROF_BAD_ARGUMENT);
    assert_eq!(error(), "the argument `count` is NULL");
    halprof_close(group);
}

#[test]
fn a_result_of_another_size_is_refused_or_filled_as_far_as_it_is_known() {
    let script = Rc::new(Script::default());
    *script.always.borrow_mut() = Some(region([3, 4], Grade::Undisturbed, ""));
    let group = open(&script);
    assert_eq!(halprof_begin(group), HALPROF_OK);
    for size in [0, 4, 31] {
        let mut words = [size, 99, 99, 99, 99, 99, 99, 99];
        // SAFETY: The structure is larger than it states.
        assert_eq!(unsafe { halprof_end(group, words.as_mut_ptr().cast()) }, HALPROF_BAD_ARGUMENT);
        assert_eq!(words[1..], [99; 7]);
        assert!(error().contains(&format!("is {size}; set it to sizeof(halprof_result), 32")), "{}", error());
    }
    let mut words = [99_u32; 13]; // of a later version, and not aligned for 64 bits
    words[1] = 48;
    // SAFETY: The structure has the size that it states.
    assert_eq!(unsafe { halprof_end(group, words[1..].as_mut_ptr().cast()) }, HALPROF_OK);
    assert_eq!(words, [99, 32, HALPROF_UNDISTURBED, 0, 2, 70, 0, 60, 0, 99, 99, 99, 99]);
    assert_eq!(halprof_begin(group), HALPROF_OK);
    // SAFETY: NULL is allowed.
    assert_eq!(unsafe { halprof_end(group, ptr::null_mut()) }, HALPROF_OK);
    assert_eq!(count(group, 0), (HALPROF_OK, 3));
    halprof_close(group);
}

#[test]
fn a_region_that_cannot_be_ended_has_no_counts_and_goes_on() {
    let script = Rc::new(Script::default());
    *script.always.borrow_mut() = Some(region([3, 4], Grade::Undisturbed, ""));
    let group = open(&script);
    halprof_begin(group);
    assert_eq!(end(group).0, HALPROF_OK);
    script.ends.borrow_mut().push_back(Err(Failure::new(HALPROF_REFUSED, "the session was stopped")));
    halprof_begin(group);
    let (status, result) = end(group);
    assert_eq!((status, result.quality, result.size), (HALPROF_REFUSED, 99, 32), "not written");
    assert_eq!(error(), "the session was stopped");
    assert_eq!(count(group, 0), (HALPROF_BAD_ORDER, 99), "no counts of the earlier region");
    assert_eq!(end(group).0, HALPROF_OK);
    *script.refuse.borrow_mut() = Some(Failure::new(HALPROF_FAILED, "Windows"));
    assert_eq!(halprof_begin(group), HALPROF_FAILED);
    assert_eq!(end(group).0, HALPROF_BAD_ORDER);
    assert_eq!(halprof_begin(group), HALPROF_OK);
    assert_eq!(end(group).0, HALPROF_OK);
    halprof_close(group);
}

#[test]
fn a_region_can_have_parts() {
    let script = Rc::new(Script::default());
    *script.always.borrow_mut() = Some(region([3, 4], Grade::Undisturbed, ""));
    let group = open(&script);
    assert_eq!(halprof_checkpoint(group), HALPROF_BAD_ORDER);
    halprof_begin(group);
    assert_eq!(halprof_checkpoint(group), HALPROF_OK);
    *script.refuse.borrow_mut() = Some(Failure::new(HALPROF_FAILED, "Windows"));
    assert_eq!(halprof_checkpoint(group), HALPROF_FAILED);
    assert_eq!(end(group).0, HALPROF_OK);
    assert_eq!(halprof_checkpoint(group), HALPROF_BAD_ORDER);
    assert_eq!(*script.log.borrow(), ["begin", "checkpoint", "checkpoint", "end"]);
    halprof_close(group);
}

#[test]
fn a_panic_is_an_error_and_the_group_can_only_be_closed() {
    let script = Rc::new(Script::default());
    let group = open(&script);
    halprof_begin(group);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    assert_eq!(end(group).0, HALPROF_DEFECT);
    std::panic::set_hook(hook);
    assert_eq!(error(), "halprof failed inside: a region");
    assert_eq!(halprof_begin(group), HALPROF_DEFECT);
    assert_eq!(end(group).0, HALPROF_DEFECT);
    assert_eq!(halprof_close(group), HALPROF_OK);
    assert_eq!(*script.log.borrow(), ["begin", "end", "close"]);
}

#[test]
fn calibration_subtracts_what_the_functions_of_the_abi_add() {
    let script = Rc::new(Script::default());
    // The least of each event counts, and disturbed regions do not.
    script.ends.borrow_mut().push_back(Ok(region([5, 5], Grade::Disturbed, "switched")));
    script.ends.borrow_mut().push_back(Ok(region([41, 20], VERIFIED, "")));
    script.ends.borrow_mut().push_back(Ok(region([40, 21], VERIFIED, "")));
    *script.always.borrow_mut() = Some(region([60, 60], VERIFIED, ""));
    let group = open(&script);
    assert_eq!(halprof_calibrate(group), HALPROF_OK);
    assert_eq!(count(group, 0).0, HALPROF_BAD_ORDER, "regions of the calibration are none of the program");
    assert_eq!(script.log.borrow()[0], "calibrate");
    *script.always.borrow_mut() = Some(region([1040, 15], VERIFIED, ""));
    halprof_begin(group);
    assert_eq!(end(group).0, HALPROF_OK);
    assert_eq!([count(group, 0), count(group, 1)], [(HALPROF_OK, 1000), (HALPROF_OK, 0)], "not below zero");
    halprof_close(group);
}

#[test]
fn opening_checks_its_arguments_before_it_opens_the_driver() {
    let open = |version, events: *const c_char, flags, write: bool| {
        let mut group = 99;
        let place = if write { &raw mut group } else { ptr::null_mut() };
        // SAFETY: The strings end with a zero byte; NULL is an error.
        let status = unsafe { halprof_open(version, events, flags, place) };
        // SAFETY: As before.
        assert_eq!(unsafe { halprof_open_cpu(version, events, flags, HALPROF_ALL_CPUS, place) }, status);
        (status, group)
    };
    let events = c"instructions".as_ptr();
    assert_eq!(open(1, events, 0, false), (HALPROF_BAD_ARGUMENT, 99));
    assert_eq!(open(0, events, 0, true), (HALPROF_BAD_VERSION, 0));
    assert_eq!(open(2, events, 0, true), (HALPROF_BAD_VERSION, 0));
    assert_eq!(error(), "the library has version 1, and the program asks for version 2");
    assert_eq!(open(1, events, 4, true), (HALPROF_BAD_ARGUMENT, 0));
    assert_eq!(open(1, ptr::null(), 0, true), (HALPROF_BAD_ARGUMENT, 0));
    assert_eq!(open(1, c"\xff".as_ptr(), 0, true), (HALPROF_BAD_ARGUMENT, 0));
    assert_eq!(open(1, c" , ".as_ptr(), 0, true), (HALPROF_BAD_ARGUMENT, 0));
    assert_eq!(error(), "no events: the string of names is empty");
    assert_eq!(halprof_version(), 1);
}

#[test]
fn the_error_text_is_empty_before_the_first_error_and_each_thread_has_its_own() {
    assert_eq!(thread::spawn(error).join().unwrap(), "");
    halprof_begin(u64::MAX);
    assert_ne!(error(), "");
    assert_eq!(thread::spawn(error).join().unwrap(), "");
}
