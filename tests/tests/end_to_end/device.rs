//! Access to the device, and invalid requests.

use protocol::{Code, ErrorCode, Hello, HelloReply, InfoReply, PROTOCOL_VERSION, REQUESTS, Size};
use tests::{Lab, Reply, hex};
use zerocopy::{FromBytes, IntoBytes};

use crate::life::{connect, start, start_request};

/// Win32 errors to which NTSTATUS values are mapped (RtlNtStatusToDosError, ntstatus.h).
const ERROR_INVALID_FUNCTION: u32 = 1;
const ERROR_BAD_LENGTH: u32 = 24;
const ERROR_INSUFFICIENT_BUFFER: u32 = 122;
const ERROR_BAD_COMMAND: u32 = 22;
const ERROR_PRIVILEGE_NOT_HELD: u32 = 1314;

/// D:P(A;;FA;;;SY)(A;;FA;;;BA) in self-relative form (MS-DTYP 2.4.6).
const DESCRIPTOR: &str = "01000490000000000000000000000000 14000000
    0200340002000000
    00001400ff011f00 010100000000000512000000
    00001800ff011f00 01020000000000052000000020020000";

#[test]
fn only_system_and_administrators_can_open_the_device() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.install().unwrap();
    let descriptor = lab.wire.descriptor().unwrap().expect("the driver sets one");
    let wanted: String = DESCRIPTOR.split_whitespace().collect();
    let [revision, _, control @ ..] = &descriptor.bytes[..4] else { panic!("a descriptor") };
    assert_eq!((*revision, u16::from_le_bytes(control.try_into().unwrap())), (1, 0x9004));
    assert_eq!(hex(&descriptor.bytes), wanted);
    // DACL_SECURITY_INFORMATION and PROTECTED_DACL_SECURITY_INFORMATION
    assert_eq!((descriptor.information, descriptor.status), (0x8000_0004, 0));
    lab.finish().unwrap();
}

#[test]
fn opening_the_device_requires_the_privilege() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.install().unwrap();
    lab.wire.deny_privilege(true).unwrap();
    let mut probe = lab.probe().unwrap();
    match probe.open("").unwrap() {
        Err(code) => assert_eq!(code, ERROR_PRIVILEGE_NOT_HELD),
        // Wine returns a handle although the driver failed IRP_MJ_CREATE.
        Ok(handle) => {
            let hello = hex(Hello { version: PROTOCOL_VERSION, reserved: 0 }.as_bytes());
            let reply = probe.control(handle, Code::Hello as u32, &hello, "72").unwrap();
            assert_eq!(reply, Reply::Failed(ERROR_PRIVILEGE_NOT_HELD));
        }
    }
    let ran = lab.client(&["list"]).unwrap();
    assert_eq!(ran.code, 5, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("SeSystemProfilePrivilege"), "{}", ran.err);
    lab.wire.deny_privilege(false).unwrap();
    connect(&mut probe);
    drop(probe);
    lab.finish().unwrap();
}

fn right_lengths(size: Size) -> usize {
    match size {
        Size::Exactly(length) | Size::AtLeast(length) => length,
        Size::Entries { head, entry, .. } => head + entry,
    }
}

#[test]
fn invalid_requests_fail_and_change_nothing() {
    let mut lab = Lab::boot("intel-v1").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    let handle = connect(&mut probe);
    assert_eq!(start(&mut probe, handle, &[2]).status, 0);
    let before =
        (lab.wire.enabled_counters().unwrap(), lab.wire.accesses().unwrap(), lab.wire.pool().unwrap().allocations);
    let failed = |reply: Reply, wanted: &[u32], what: &str| match reply {
        Reply::Failed(code) => assert!(wanted.contains(&code), "{what}: error {code}"),
        Reply::Done(bytes) => panic!("{what}: {} bytes", bytes.len()),
    };
    for spec in &REQUESTS {
        let (code, input, output) = (spec.code as u32, right_lengths(spec.input), right_lengths(spec.output));
        let right = vec![0; input];
        let wrong = [ERROR_BAD_LENGTH, ERROR_INSUFFICIENT_BUFFER];
        if input > 0 {
            let short = hex(&right[1..]);
            failed(probe.control(handle, code, &short, &output.to_string()).unwrap(), &wrong, "short input");
            for absent in ["null".to_owned(), format!("null:{input}")] {
                failed(probe.control(handle, code, &absent, &output.to_string()).unwrap(), &wrong, &absent);
            }
        }
        let long = hex(&vec![0; input + 3]);
        failed(probe.control(handle, code, &long, &output.to_string()).unwrap(), &wrong, "long input");
        let right = if right.is_empty() { "-".to_owned() } else { hex(&right) };
        failed(probe.control(handle, code, &right, &(output - 1).to_string()).unwrap(), &wrong, "short output");
        failed(probe.control(handle, code, &right, "null").unwrap(), &wrong, "no output");
        for code in [code + 4 * 0x100, code ^ 1 << 31, code | 3] {
            failed(probe.control(handle, code, &right, "4096").unwrap(), &[ERROR_INVALID_FUNCTION], "unknown code");
        }
    }
    let after =
        (lab.wire.enabled_counters().unwrap(), lab.wire.accesses().unwrap(), lab.wire.pool().unwrap().allocations);
    assert_eq!(before, after);
    drop(probe);
    lab.finish().unwrap();
}

#[test]
fn hello_is_required_and_a_version_mismatch_reports_both_versions() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    let handle = probe.open("").unwrap().unwrap();
    let refused = Reply::Failed(ERROR_BAD_COMMAND);
    assert_eq!(probe.control(handle, Code::Start as u32, &start_request(&[2]), "4096").unwrap(), refused);
    let hello = Hello { version: PROTOCOL_VERSION + 6, reserved: 0 };
    let reply = probe.control(handle, Code::Hello as u32, &hex(hello.as_bytes()), "72").unwrap();
    let Reply::Done(bytes) = reply else { panic!("{reply:?}") };
    let reply = HelloReply::read_from_bytes(&bytes).unwrap();
    assert_eq!(reply.header.detail, [u64::from(PROTOCOL_VERSION) + 6, u64::from(PROTOCOL_VERSION)]);
    assert_eq!(probe.control(handle, Code::Start as u32, &start_request(&[2]), "4096").unwrap(), refused);
    assert_eq!(lab.enabled_counters().unwrap(), 0);
    drop(probe);
    lab.finish().unwrap();
}

#[test]
fn a_read_only_handle_cannot_change_anything() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    let handle = probe.open("ro").unwrap().unwrap();
    let hello = Hello { version: PROTOCOL_VERSION, reserved: 0 };
    let reply = probe.control(handle, Code::Hello as u32, &hex(hello.as_bytes()), "72").unwrap();
    assert!(matches!(reply, Reply::Done(_)));
    let room = size_of::<InfoReply>().to_string();
    assert!(matches!(probe.control(handle, Code::Info as u32, "-", &room).unwrap(), Reply::Done(_)));
    let reply = probe.control(handle, Code::Start as u32, &start_request(&[2]), "4096").unwrap();
    assert!(matches!(reply, Reply::Failed(_)), "{reply:?}");
    assert_eq!(lab.enabled_counters().unwrap(), 0);
    drop(probe);
    lab.finish().unwrap();
}

#[test]
fn a_failed_allocation_is_reported_and_leaks_nothing() {
    let mut lab = Lab::boot("intel-v1").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    let handle = connect(&mut probe);
    let before = lab.wire.pool().unwrap().allocations;
    let mut refused = 0;
    for nth in 1.. {
        lab.wire.fail_allocation(Some(nth)).unwrap();
        let reply = probe.control(handle, Code::Start as u32, &start_request(&[2, 6]), "4096").unwrap();
        lab.wire.fail_allocation(None).unwrap();
        let Reply::Done(bytes) = reply else { panic!("allocation {nth}: {reply:?}") };
        let answer = crate::life::header(&bytes);
        if answer.status == 0 {
            break;
        }
        assert_eq!(answer.cause, ErrorCode::NoMemory as u32, "allocation {nth}");
        refused += 1;
        assert_eq!(lab.enabled_counters().unwrap(), 0, "allocation {nth}");
        assert!(nth < 100);
    }
    assert!(refused > 3, "{refused} allocations failed in turn");
    assert_eq!(lab.enabled_counters().unwrap(), 4);
    assert!(lab.wire.pool().unwrap().allocations > before);
    drop(probe);
    lab.finish().unwrap();
}

#[test]
fn a_driver_without_memory_fails_to_load_and_leaks_nothing() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    let mut refused = 0;
    for nth in 1.. {
        lab.wire.fail_allocation(Some(nth)).unwrap();
        let started = lab.install();
        lab.wire.fail_allocation(None).unwrap();
        if started.is_ok() {
            break;
        }
        refused += 1;
        let pool = lab.wire.pool().unwrap();
        assert_eq!(pool.allocations, 0, "allocation {nth}: {pool:?}");
        assert!(nth < 20);
    }
    assert!(refused > 1, "{refused} allocations failed in turn");
    lab.client(&["list"]).unwrap().success().unwrap();
    // Wine keeps the file of a driver that failed to load, so uninstall could not remove it.
    lab.stop().unwrap();
    lab.check_clean().unwrap();
}
