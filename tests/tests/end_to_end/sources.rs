//! Every source of both interfaces, with the shipped binary.

use protocol::{
    ALL_SOURCES, Code, CountRecord, DETACHED, ReplyHeader, SessionRequest, SourceRecord, StopRequest, TIMER,
};
use tests::{Lab, Probe, Reply, first_or_all, hex, rounds, thousands};
use zerocopy::{FromBytes, IntoBytes};

use crate::life::{connect, header, start};
use crate::sampling::Sampler;

/// ProfileTime.
const TIME: u64 = 0;

const PROCESSORS: u32 = 2;

/// Returns the records of an answer.
pub fn ask<T: FromBytes>(probe: &mut Probe, handle: u32, code: Code, input: &[u8]) -> Vec<T> {
    let input = if input.is_empty() { "-".to_owned() } else { hex(input) };
    let Reply::Done(bytes) = probe.control(handle, code as u32, &input, "32768").unwrap() else { panic!("{code:?}") };
    assert_eq!(header(&bytes).status, 0, "{code:?}");
    bytes[size_of::<ReplyHeader>()..].chunks_exact(size_of::<T>()).map(|one| T::read_from_bytes(one).unwrap()).collect()
}

#[test]
fn all_sources_of_both_interfaces_start_count_and_stop_four_at_a_time() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    for (identity, rows) in [("k8-clawhammer", 176), ("haswell-4710mq", 13)] {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        let mut probe = lab.probe().unwrap();
        let handle = connect(&mut probe);
        let sources: Vec<SourceRecord> = ask(&mut probe, handle, Code::ListSources, &[]);
        assert_eq!(sources.len(), rows, "{identity}");
        assert!(sources.iter().all(|source| source.support == 0), "{identity}");
        for (round, four) in (1_u64..).zip(sources[1..].chunks(4)) {
            lab.wire.clear_ledger().unwrap();
            let ids: Vec<u64> = four.iter().map(|source| source.source).collect();
            let [session, _] = start(&mut probe, handle, &ids).detail;
            // Sources with the same event count the same occurrences.
            let mut events: Vec<(u16, u16)> = four.iter().map(|source| event(source.select)).collect();
            events.sort_unstable();
            events.dedup();
            let happened: Vec<_> =
                (0_u64..).zip(&events).map(|(place, (e, u))| (*e, *u, 1_000 * (1_000 * round + place))).collect();
            for processor in 0..PROCESSORS {
                lab.wire.run(processor, &happened, &happened).unwrap();
            }
            let read: Vec<CountRecord> = ask(&mut probe, handle, Code::Read, SessionRequest { session }.as_bytes());
            let stop = StopRequest { session, source: ALL_SOURCES, core_type: 0, reserved: 0 };
            let stopped: Vec<CountRecord> = ask(&mut probe, handle, Code::Stop, stop.as_bytes());
            assert_eq!((read.len(), stopped.len()), (2 * four.len(), 2 * four.len()));
            for (read, stopped) in read.iter().zip(&stopped) {
                let select = four.iter().find(|source| source.source == read.event.source).unwrap().select;
                let place = events.iter().position(|known| *known == event(select)).unwrap();
                assert_eq!(thousands(read.count), 2 * thousands(happened[place].2), "{identity} {read:?}");
                assert_eq!(
                    (stopped.event.source, thousands(stopped.count)),
                    (read.event.source, thousands(read.count))
                );
            }
            assert_eq!(lab.enabled_counters().unwrap(), 0, "{identity}, round {round}");
        }
        drop(probe);
        lab.uninstall().unwrap();
    }
    lab.finish().unwrap();
}

fn event(select: u64) -> (u16, u16) {
    let [event, umask, ..] = select.to_le_bytes();
    (event.into(), umask.into())
}

#[test]
fn profile_time_counts_milliseconds_of_measured_time() {
    let mut lab = Lab::boot("intel-no-leaf-a").unwrap();
    for identity in first_or_all(&["intel-no-leaf-a", "haswell-4710mq", "amd-legacy", "amd-hyperv-masked"], 2) {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        lab.wire.hold_clocks(true).unwrap();
        lab.client(&["start", "Time"]).unwrap().success().unwrap();
        lab.wire.advance(12).unwrap();
        let mut probe = lab.probe().unwrap();
        let handle = connect(&mut probe);
        let read: Vec<CountRecord> =
            ask(&mut probe, handle, Code::Read, SessionRequest { session: DETACHED }.as_bytes());
        let read: Vec<_> = read.iter().map(|record| (record.processor, record.count, record.counter)).collect();
        assert_eq!(read, [(0, 12, TIMER), (1, 12, TIMER)], "{identity}");
        lab.wire.advance(5).unwrap();
        let stopped = lab.client(&["stop", "Timer", "--json"]).unwrap().json().unwrap();
        assert_eq!(stopped["events"][0]["count"], 34, "{identity}: {stopped}");
        assert_eq!(lab.wire.ticks().unwrap().set, 0, "{identity}: it needs no timer");
        lab.wire.hold_clocks(false).unwrap();
        drop(probe);
        lab.uninstall().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn timers_run_while_a_session_samples_by_time_and_an_unload_cancels_them() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.run_in_real_time().unwrap();
    for stops in [true, false].into_iter().cycle().take(rounds(2, 6)) {
        lab.install().unwrap();
        let mut sampler = Sampler::start_source(&lab, TIME, 64, 10_000, 900);
        assert_eq!(lab.wire.ticks().unwrap().set, 2, "one for each processor");
        std::thread::sleep(std::time::Duration::from_millis(30));
        if stops {
            sampler.stop();
            assert_eq!(lab.wire.ticks().unwrap().set, 0);
        }
        drop(sampler);
        lab.uninstall().unwrap();
        assert_eq!(lab.wire.ticks().unwrap().set, 0);
    }
    lab.finish().unwrap();
}
