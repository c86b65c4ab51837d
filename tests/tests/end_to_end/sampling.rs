//! Sampling with the shipped driver: the interrupt handler, the rings, and the requests that fetch samples.

use std::thread::sleep;
use std::time::Duration;

use protocol::{
    Code, Event, EventRequest, InfoReply, Mode, Record, ReplyHeader, SampleRecord, SamplesRequest, SessionRequest,
    StartHeader, StopRequest, modes,
};
use tests::{Lab, Probe, Reply, hex, is_soak, rounds, thousands, wait_until};
use zerocopy::{FromBytes, IntoBytes};

use crate::counts::SOME;
use crate::life::{connect_with, header};

/// Returns event select and unit mask of TotalIssues: INSTR_RETIRED on NetBurst, otherwise the same for all vendors.
fn total_issues(identity: &str) -> (u16, u16) {
    if identity.starts_with("netburst") { (0x02, 0x01) } else { (0xC0, 0) }
}

const PROCESSORS: u32 = 2;

/// TotalIssues.
const SOURCE: u64 = 2;

/// The Win32 error for STATUS_CANCELLED.
const ERROR_OPERATION_ABORTED: u32 = 995;

/// The error that Wine returns for a removed device.
const ERROR_ACCESS_DENIED: u32 = 5;

const INTERVAL: u32 = 10_000;

/// Returns a start request that samples TotalIssues on every processor, in the format of the probe.
pub fn start_sampling(ring: u32, interval: u32, budget: u32) -> String {
    start_sampling_source(SOURCE, ring, interval, budget)
}

/// Returns a start request that samples a source on every processor.
pub fn start_sampling_source(source: u64, ring: u32, interval: u32, budget: u32) -> String {
    let header = StartHeader { ring, budget, ..StartHeader::EMPTY };
    let event = EventRequest { event: Event::of(source), modes: modes::BOTH, interval, ..EventRequest::EMPTY };
    hex(&[header.as_bytes(), event.as_bytes()].concat())
}

/// A client with a session that samples TotalIssues on every processor.
pub struct Sampler {
    pub probe: Probe,
    pub handle: u32,
    pub session: u64,
}

impl Sampler {
    pub fn start(lab: &Lab, ring: u32, interval: u32, budget: u32) -> Self {
        Self::start_with(lab, "", ring, interval, budget)
    }

    /// Starts sampling another source.
    pub fn start_source(lab: &Lab, source: u64, ring: u32, interval: u32, budget: u32) -> Self {
        let mut probe = lab.probe().unwrap();
        let handle = connect_with(&mut probe, "");
        let input = start_sampling_source(source, ring, interval, budget);
        let (header, _) = ask(&mut probe, handle, Code::Start, &input, 4_096);
        assert_eq!((header.status, header.cause), (0, 0));
        Self { probe, handle, session: header.detail[0] }
    }

    /// Starts sampling with another kind of handle.
    pub fn start_with(lab: &Lab, kind: &str, ring: u32, interval: u32, budget: u32) -> Self {
        let (probe, handle, header) = Self::ask(lab, kind, ring, interval, budget);
        assert_eq!((header.status, header.cause), (0, 0));
        Self { probe, handle, session: header.detail[0] }
    }

    /// Requests a session from a new client and returns the answer.
    pub fn ask(lab: &Lab, kind: &str, ring: u32, interval: u32, budget: u32) -> (Probe, u32, ReplyHeader) {
        let mut probe = lab.probe().unwrap();
        let handle = connect_with(&mut probe, kind);
        let (header, _) = ask(&mut probe, handle, Code::Start, &start_sampling(ring, interval, budget), 4_096);
        (probe, handle, header)
    }

    fn wanted(&self, wait: u32) -> String {
        hex(SamplesRequest { session: self.session, wait, reserved: 0 }.as_bytes())
    }

    /// Fetches the available records without waiting. Returns them and whether they were the last.
    pub fn fetch(&mut self, room: usize) -> (Vec<Record>, bool) {
        let input = self.wanted(0);
        let (header, bytes) = ask(&mut self.probe, self.handle, Code::Samples, &input, 48 + 40 * room);
        assert_eq!((header.status, header.cause), (0, 0));
        (records(header, &bytes), header.detail[0] == 1)
    }

    /// Requests samples and leaves the request pending.
    pub fn wait(&mut self, milliseconds: u32, room: usize) {
        let input = self.wanted(milliseconds);
        self.probe.send_request(self.handle, Code::Samples as u32, &input, &(48 + 40 * room).to_string()).unwrap();
    }

    /// Waits for the result of the pending request.
    pub fn waited(&mut self) -> Vec<Record> {
        match self.probe.wait_for_result().unwrap() {
            Reply::Done(bytes) => records(header(&bytes), &bytes),
            Reply::Failed(code) => panic!("the request that waited failed: {code}"),
        }
    }

    /// Returns the driver's own account.
    pub fn info(&mut self) -> InfoReply {
        let input = self.probe.control(self.handle, Code::Info as u32, "-", &size_of::<InfoReply>().to_string());
        let Reply::Done(bytes) = input.unwrap() else { panic!("Info failed") };
        InfoReply::read_from_bytes(&bytes).unwrap()
    }

    /// Stops the session. Returns samples, lost samples and throttled samples of each processor.
    pub fn stop(&mut self) -> Vec<[u64; 3]> {
        let input =
            hex(StopRequest { session: self.session, source: protocol::ALL_SOURCES, core_type: 0, reserved: 0 }
                .as_bytes());
        let (header, bytes) = ask(&mut self.probe, self.handle, Code::Stop, &input, 4_096);
        assert_eq!((header.status, header.cause), (0, 0));
        let counts: Vec<protocol::CountRecord> = all(header, &bytes);
        counts.iter().map(|count| [count.samples, count.lost, count.throttled]).collect()
    }
}

fn ask(probe: &mut Probe, handle: u32, code: Code, input: &str, room: usize) -> (ReplyHeader, Vec<u8>) {
    match probe.control(handle, code as u32, input, &room.to_string()).unwrap() {
        Reply::Done(bytes) => (header(&bytes), bytes),
        Reply::Failed(error) => panic!("{code:?} failed: {error}"),
    }
}

fn all<T: FromBytes>(header: ReplyHeader, bytes: &[u8]) -> Vec<T> {
    let records = bytes[48..].chunks_exact(size_of::<T>()).map(|bytes| T::read_from_bytes(bytes).unwrap());
    records.take(header.count as usize).collect()
}

fn records(header: ReplyHeader, bytes: &[u8]) -> Vec<Record> {
    all::<SampleRecord>(header, bytes).iter().map(|record| record.parse().unwrap()).collect()
}

pub const fn is_sample(record: &Record) -> bool {
    matches!(record, Record::Sample(_))
}

/// Returns the overflows of each processor in the model's ledger.
pub fn overflows(lab: &mut Lab) -> Vec<u64> {
    let ledger = lab.wire.ledger().unwrap();
    ledger.iter().map(|entries| entries.iter().map(|entry| entry.overflows).sum()).collect()
}

#[test]
fn every_overflow_becomes_a_sample_on_its_processor() {
    for identity in cpuid_dumps::GENERATIONS.into_iter().filter(|identity| is_soak() || SOME.contains(identity)) {
        let (event, umask) = total_issues(identity);
        let mut lab = Lab::boot(identity).unwrap();
        lab.install().unwrap();
        let mut sampler = Sampler::start(&lab, 64, INTERVAL, 900);
        let registration = lab.wire.handler().unwrap().registration.expect("the handler is registered");
        assert!(registration.system, "{identity}: from the System process");
        for processor in 0..PROCESSORS {
            for _ in 0..5 * (processor + 1) {
                lab.wire.run(processor, &[(event, umask, INTERVAL.into())], &[]).unwrap();
            }
        }
        let (records, last) = sampler.fetch(100);
        assert!(!last);
        let on = |processor| {
            records.iter().filter(|record| record.processor() == processor).filter(|record| is_sample(record)).count()
        };
        assert_eq!((on(0), on(1), records.len()), (5, 10, 15), "{identity}");
        let of_source = |record: &Record| {
            record.sample().is_some_and(|sample| (sample.event, sample.events) == (0, INTERVAL.into()))
        };
        assert!(records.iter().all(of_source), "{identity}");
        assert!(records.is_sorted_by_key(|record| (record.processor(), record.time())), "{identity}");
        assert_eq!(sampler.stop(), [[5, 0, 0], [10, 0, 0]], "{identity}");
        assert_eq!(overflows(&mut lab), [5, 10], "{identity}");
        assert!(lab.wire.handler().unwrap().registration.is_none(), "{identity}: given back");
        assert_eq!(sampler.fetch(100), (vec![], true), "{identity}");
        drop(sampler);
        lab.finish().unwrap();
    }
}

#[test]
fn a_full_ring_reports_its_lost_samples() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.install().unwrap();
    let mut sampler = Sampler::start(&lab, 64, INTERVAL, 900);
    for _ in 0..100 {
        lab.wire.run(1, &[(0xC0, 0, INTERVAL.into())], &[]).unwrap();
    }
    let (records, _) = sampler.fetch(200);
    let delivered = records.iter().filter(|record| is_sample(record)).count();
    let lost = |record: &Record| if let Record::Lost(lost) = record { lost.count } else { 0 };
    let lost: u64 = records.iter().map(lost).sum();
    assert_eq!((delivered, lost), (64, 36));
    assert_eq!(sampler.stop(), [[0, 0, 0], [64, 36, 0]]);
    assert_eq!(overflows(&mut lab), [0, 100]);
    drop(sampler);
    lab.finish().unwrap();
}

#[test]
fn a_request_waits_for_half_a_ring_its_timeout_or_the_unload() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let mut sampler = Sampler::start(&lab, 64, INTERVAL, 900);
    sampler.wait(60_000, 100);
    let overflow = |lab: &mut Lab| lab.wire.run(0, &[(0xC0, 0, INTERVAL.into())], &[]).unwrap();
    for _ in 0..32 {
        overflow(&mut lab);
    }
    assert_eq!(sampler.waited().len(), 32, "half of 64");

    overflow(&mut lab);
    lab.wire.hold_clocks(true).unwrap();
    let pends = |lab: &mut Lab| wait_until("no request waits", || lab.wire.pending_requests().unwrap() == 1);
    sampler.wait(200, 100);
    pends(&mut lab);
    lab.wire.advance(200).unwrap();
    assert_eq!(sampler.waited().len(), 1);
    lab.wire.hold_clocks(false).unwrap();

    // Another handle cannot stop the session, and this test uses only one thread of the probe, so unloading the driver
    // ends the wait.
    sampler.wait(60_000, 100);
    pends(&mut lab);
    lab.stop().unwrap();
    // The driver completes the request with STATUS_CANCELLED, unless Wine ends it first.
    let ended = sampler.probe.wait_for_result().unwrap();
    assert!(matches!(ended, Reply::Failed(ERROR_OPERATION_ABORTED | ERROR_ACCESS_DENIED)), "{ended:?}");
    drop(sampler);
    lab.finish().unwrap();
}

#[test]
fn killing_a_waiting_client_leaves_nothing_behind() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.install().unwrap();
    for round in 0..rounds(3, 10) {
        let mut sampler = Sampler::start(&lab, 64, INTERVAL, 900);
        sampler.wait(60_000, 100);
        lab.wire.run(0, &[(0xC0, 0, INTERVAL.into())], &[]).unwrap();
        sampler.probe.kill().unwrap();
        wait_until(&format!("round {round}"), || lab.enabled_counters().unwrap() == 0);
        wait_until(&format!("round {round}"), || lab.wire.handler().unwrap().registration.is_none());
    }
    let json = lab.client(&["info", "--json"]).unwrap().json().unwrap();
    assert_eq!(json["sessions"], 0);
    lab.finish().unwrap();
}

#[test]
fn two_clients_share_a_counter_and_each_has_every_sample() {
    let mut lab = Lab::boot("intel-v1").unwrap();
    lab.install().unwrap();
    let mut samplers = [0; 2].map(|_| Sampler::start(&lab, 64, INTERVAL, 900));
    assert_eq!(lab.enabled_counters().unwrap(), 2, "one on each of two processors");
    for _ in 0..7 {
        lab.wire.run(1, &[(0xC0, 0, INTERVAL.into())], &[]).unwrap();
    }
    for sampler in &mut samplers {
        assert_eq!(sampler.fetch(100).0.len(), 7);
    }
    let [mut first, mut second] = samplers;
    first.stop();
    drop(first);
    lab.wire.run(1, &[(0xC0, 0, INTERVAL.into())], &[]).unwrap();
    assert_eq!(second.fetch(100).0.len(), 1);
    drop(second);
    lab.finish().unwrap();
}

#[test]
fn the_driver_unloads_while_sampling() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    lab.run_in_real_time().unwrap();
    for round in 0..rounds(2, 5) {
        let sampler = Sampler::start(&lab, 1 << 12, 100_000, 900);
        sleep(Duration::from_millis(100));
        lab.stop().unwrap();
        drop(sampler);
        lab.check_clean().unwrap_or_else(|error| panic!("round {round}: {error}"));
        lab.install().unwrap(); // starts what is installed
    }
    lab.run_by_script().unwrap();
    lab.finish().unwrap();
}

#[test]
fn a_sampling_session_can_be_read() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.install().unwrap();
    let mut sampler = Sampler::start(&lab, 64, INTERVAL, 900);
    for _ in 0..3 {
        lab.wire.run(0, &[(0xC0, 0, 8_000)], &[(0xC0, 0, 3_000)]).unwrap();
    }
    let input = hex(SessionRequest { session: sampler.session }.as_bytes());
    let (header, bytes) = ask(&mut sampler.probe, sampler.handle, Code::Read, &input, 4_096);
    let counts: Vec<protocol::CountRecord> = all(header, &bytes);
    let counts: Vec<_> = counts.iter().map(|count| (count.processor, thousands(count.count), count.samples)).collect();
    assert_eq!(counts, [(0, 33, 3), (1, 0, 0)]);
    drop(sampler);
    lab.finish().unwrap();
}

#[test]
fn an_interrupt_without_a_trap_frame_is_sampled_at_address_zero() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let mut sampler = Sampler::start(&lab, 64, INTERVAL, 900);
    for hidden in [true, true, false] {
        lab.wire.hide_frames(hidden).unwrap();
        lab.wire.run(0, &[(0xC0, 0, INTERVAL.into())], &[]).unwrap();
    }
    let (records, _) = sampler.fetch(10);
    let places = records.iter().filter_map(Record::sample).map(|sample| (sample.ip == 0, sample.mode));
    let places: Vec<_> = places.collect();
    assert_eq!(places, [(true, Mode::Kernel), (true, Mode::Kernel), (false, Mode::Kernel)]);
    assert_eq!(sampler.stop(), [[3, 0, 0], [0, 0, 0]]);
    drop(sampler);
    lab.finish().unwrap();
}

#[test]
fn each_ring_is_on_the_node_of_its_processor_where_windows_can_do_that() {
    const RING: u32 = 64;
    let of_a_node = 2 * u64::from(RING) * size_of::<SampleRecord>() as u64;
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.wire.set_processors(4, 4).unwrap();
    for (build, nodes) in [(19_045, vec![]), (20_348, vec![(0, of_a_node), (1, of_a_node)])] {
        lab.wire.set_windows(build).unwrap();
        lab.install().unwrap();
        let sampler = Sampler::start(&lab, RING, INTERVAL, 900);
        let pool = lab.wire.pool().unwrap();
        assert_eq!(pool.nodes.into_iter().collect::<Vec<_>>(), nodes, "build {build}");
        drop(sampler);
        lab.uninstall().unwrap();
        lab.check_clean().unwrap();
    }
    lab.finish().unwrap();
}
