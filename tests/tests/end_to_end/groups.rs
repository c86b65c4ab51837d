//! Reads of the counters of one processor, and thread profiling, through the driver.

use bench_protocol::CounterOwner;
use protocol::status::STATUS_WMI_ALREADY_ENABLED;
use protocol::{
    ALL_SOURCES, Code, ErrorCode, Event, EventRequest, GroupReply, GroupRequest, ReplyHeader, StartHeader, StopRequest,
    flags, group_flags, modes,
};
use tests::{Lab, Probe, Reply, hex};
use zerocopy::{FromBytes, IntoBytes};

use crate::life::{connect, header};

fn ask(probe: &mut Probe, handle: u32, code: Code, input: &[u8], output: usize) -> Vec<u8> {
    match probe.control(handle, code as u32, &hex(input), &output.to_string()).unwrap() {
        Reply::Done(bytes) => bytes,
        Reply::Failed(error) => panic!("{code:?} failed: {error}"),
    }
}

pub fn start(probe: &mut Probe, handle: u32, flags: u32, sources: &[u64]) -> ReplyHeader {
    let header_in = StartHeader { flags, ..StartHeader::EMPTY };
    let event = |source: &u64| EventRequest { event: Event::of(*source), modes: modes::BOTH, ..EventRequest::EMPTY };
    let events: Vec<EventRequest> = sources.iter().map(event).collect();
    header(&ask(probe, handle, Code::Start, &[header_in.as_bytes(), events.as_bytes()].concat(), 4_096))
}

pub fn stop(probe: &mut Probe, handle: u32, session: u64) -> ReplyHeader {
    let request = StopRequest { session, source: ALL_SOURCES, core_type: 0, reserved: 0 };
    header(&ask(probe, handle, Code::Stop, request.as_bytes(), 4_096))
}

fn read(probe: &mut Probe, handle: u32, session: u64, flags: u32) -> Result<GroupReply, ReplyHeader> {
    let request = GroupRequest { session, flags, reserved: 0 };
    let bytes = ask(probe, handle, Code::ReadGroup, request.as_bytes(), size_of::<GroupReply>());
    let header = header(&bytes);
    if header.cause == 0 { Ok(GroupReply::read_from_bytes(&bytes).unwrap()) } else { Err(header) }
}

#[test]
fn a_group_is_read_with_one_rdpmc_for_each_counter_and_touches_no_other_processor() {
    for (name, compared) in [("amd-legacy", 2), ("haswell-4710mq", 4)] {
        let mut lab = Lab::boot(name).unwrap();
        lab.install().unwrap();
        let mut probe = lab.probe().unwrap();
        let handle = connect(&mut probe);
        let session = start(&mut probe, handle, 0, &[6, 2]).detail[0];
        let mut before = None;
        for (flags, rdmsr) in [(0, 0), (group_flags::COMPARE, compared), (0, 0)] {
            let accesses = lab.wire.accesses().unwrap();
            let group = read(&mut probe, handle, session, flags).unwrap();
            let after = lab.wire.accesses().unwrap();
            let spent = |place: usize| {
                let (now, then) = (&after[place], &accesses[place]);
                [now.rdmsr - then.rdmsr, now.wrmsr - then.wrmsr, now.rdpmc - then.rdpmc]
            };
            let here = group.header.processor as usize;
            assert_eq!(spent(here), [rdmsr, 0, 2], "{name}");
            assert_eq!(spent(1 - here), [0; 3], "{name}");
            assert_eq!(group.header.count, 2, "{name}");
            assert!(before <= Some(group.time_before) && group.time_before <= group.time_after, "{name}");
            before = Some(group.time_after);
        }
        let refused = read(&mut probe, handle, session + 1, 0).unwrap_err();
        assert_eq!(refused.cause, ErrorCode::NoSuchSession as u32, "{name}");
        assert_eq!(stop(&mut probe, handle, session).cause, 0, "{name}");
        drop(probe);
        lab.finish().unwrap();
    }
}

#[test]
fn thread_profiling_is_configured_while_its_session_runs() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    let handle = connect(&mut probe);
    let started = start(&mut probe, handle, flags::THREADS, &[6, 2]);
    assert_eq!(started.cause, 0);
    let configured = lab.wire.hardware_counters().unwrap();
    assert_eq!((configured.owner, configured.counters), (Some(CounterOwner::Driver), vec![0, 1]));
    assert!(read(&mut probe, handle, started.detail[0], 0).is_ok());
    // A thread profiles: the stop is refused, and the counters go on.
    lab.wire.pretend_profiling(true).unwrap();
    let refused = stop(&mut probe, handle, started.detail[0]);
    assert_eq!(
        (refused.cause, refused.detail[0]),
        (ErrorCode::ThreadProfilingTaken as u32, u64::from(STATUS_WMI_ALREADY_ENABLED))
    );
    drop(probe); // its process ends, and closes the handle
    let mut probe = lab.probe().unwrap();
    let handle = connect(&mut probe);
    assert_eq!(lab.wire.hardware_counters().unwrap().counters, [0, 1]);
    assert!(lab.enabled_counters().unwrap() > 0);
    // The next session ends it first.
    lab.wire.pretend_profiling(false).unwrap();
    let next = start(&mut probe, handle, flags::THREADS, &[2]);
    assert_eq!(next.cause, 0);
    assert_eq!(lab.wire.hardware_counters().unwrap().counters, [0]);
    assert_eq!(stop(&mut probe, handle, next.detail[0]).cause, 0);
    assert_eq!(lab.wire.hardware_counters().unwrap().owner, None);
    // Another driver has configured counters.
    lab.wire.configure_hardware_counters(&[3]).unwrap();
    let refused = start(&mut probe, handle, flags::THREADS, &[2]);
    assert_eq!(refused.cause, ErrorCode::ThreadProfilingTaken as u32);
    assert_eq!(lab.enabled_counters().unwrap(), 0);
    lab.wire.configure_hardware_counters(&[]).unwrap();
    drop(probe);
    lab.finish().unwrap();
}
