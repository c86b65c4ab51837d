//! The unmodified client without the driver: samples of Windows' own HAL, with stacks, of a scheduler that knows what
//! it has sampled.

use std::collections::BTreeMap;
use std::fs::{self, File};

use bench_protocol::{Disorder, HalScript, Refusal, TraceScript};
use protocol::UNKNOWN;
use recording::{SampleStack, StackEnd};
use report::{Contents, Detail};
use tests::{Lab, ProgramOutput};

use crate::own_hal::{COMMAND, SESSIONS, ledger, script};

const INTERVALS: &str = "lab/intervals.txt";
const RECORDING: &str = "C:\\hal.rec";
const EVENTS: [&str; 2] = ["-e", "TotalIssues@100k,TotalCycles@200k,cpu/event=0xc2,umask=1/@300k"];
/// Their sources; the third one is added.
const SOURCES: [u32; 3] = [2, 0x13, 0x200];

fn record(lab: &Lab, script: &TraceScript, options: &[&str]) -> ProgramOutput {
    lab.traced_client(script, &[&["record", "-a", "-o", RECORDING], options, &COMMAND].concat()).unwrap()
}

fn contents(lab: &Lab) -> Contents {
    let detail = Detail { stacks: true, ..Detail::default() };
    let contents = Contents::read(&mut File::open(lab.wine().drive_c("hal.rec")).unwrap(), detail).unwrap();
    assert!(contents.damage.is_none(), "{:?}", contents.damage);
    contents
}

/// Number of samples, those without a stack, and events, by process, source and address.
type Sums = BTreeMap<(u32, u32, u64), (u64, u64, u64)>;

/// Sums the samples of a recording, and checks that each stack is that of its address.
fn recorded(lab: &Lab, contents: &Contents, with_stacks: bool) -> Sums {
    let ledger = ledger(lab);
    let mut sums = Sums::new();
    for (location, weight) in contents.sample_counts.locations() {
        let key = (location.process.id, SOURCES[location.event as usize], location.ip);
        let sum = sums.entry(key).or_default();
        sum.0 += weight.samples;
        sum.2 += weight.events;
        match contents.stacks.stack(location.stack) {
            SampleStack::Stack(stack) => {
                let truth = ledger.samples.iter().find(|one| (one.source, one.ip) == (key.1, key.2)).unwrap();
                assert_eq!((stack.callers, stack.end), (truth.callers.clone(), StackEnd::Complete));
            }
            SampleStack::Missing(_) => sum.1 += weight.samples,
            SampleStack::NotRecorded => assert!(!with_stacks),
        }
    }
    sums
}

fn truth(lab: &Lab) -> Sums {
    let samples = ledger(lab).samples.into_iter();
    samples.map(|one| ((one.process, one.source, one.ip), (one.samples, one.stackless, one.events))).collect()
}

#[test]
fn every_sample_has_its_process_weight_and_stack_and_intervals_are_put_back() {
    let lab = Lab::boot("haswell-4710mq").unwrap();
    let file = lab.wine().drive_c(INTERVALS);
    let disorder = Disorder { seed: 5, delay: 100, shuffle: 30, duplicates: 10, ..Disorder::default() };
    let intervals = Some(format!("C:\\{INTERVALS}").into());
    let hal = HalScript { stackless: 5, foreign: 5, intervals, ..HalScript::default() };
    let leftover = HalScript { sessions: Some(format!("C:\\{SESSIONS}").into()), ..hal.clone() };
    fs::write(lab.wine().drive_c(SESSIONS), "halprof-counts").unwrap();
    for (hal, with_stacks) in [(hal, true), (leftover, false)] {
        let script = script(hal, disorder.clone());
        let options = if with_stacks { &["-g"][..] } else { &[] };
        let ran = record(&lab, &script, &[options, &EVENTS].concat()).success().unwrap();
        assert!(ran.err.contains("samples of another session were left out"), "{}", ran.err);
        let contents = contents(&lab);
        let mut truth = truth(&lab);
        if !with_stacks {
            for sum in truth.values_mut() {
                sum.1 = 0;
            }
        }
        assert_eq!(recorded(&lab, &contents, with_stacks), truth, "{}", ran.err);
        assert!(truth.len() > 8 && truth.keys().all(|(process, ..)| *process != UNKNOWN), "{truth:?}");
        let counts: u64 = contents.summary.unwrap().counts.iter().map(|count| count.samples).sum();
        assert_eq!(counts, truth.values().map(|sum| sum.0).sum::<u64>());
        assert_eq!(fs::read_to_string(&file).unwrap(), "", "intervals that were not put back");
    }
    for line in [&["report", RECORDING][..], &["script", RECORDING]] {
        let ran = lab.client(line).unwrap().success().unwrap();
        assert!(ran.out.contains("TotalCycles") && ran.out.contains("TotalIssues"), "{}", ran.out);
    }
    lab.finish().unwrap();
}

#[test]
fn samples_of_other_processes_than_the_chosen_one_are_counted_as_filtered() {
    let lab = Lab::boot("haswell-4710mq").unwrap();
    let workload = lab.workload().unwrap();
    let process = workload.description.process;
    let script = script(HalScript::default(), Disorder::default());
    let options = ["-p", &process.to_string(), "--duration", "1s"];
    let line = [&["record", "--backend", "hal", "-o", RECORDING][..], &options, &EVENTS].concat();
    lab.traced_client(&script, &line).unwrap().success().unwrap();
    let contents = contents(&lab);
    let truth = truth(&lab);
    let own: Sums = truth.iter().filter(|((one, ..), _)| *one == process).map(|(key, sum)| (*key, *sum)).collect();
    let without_stacks: Sums = own.iter().map(|(key, sum)| (*key, (sum.0, 0, sum.2))).collect();
    assert!(!own.is_empty() && own.len() < truth.len(), "{truth:?}");
    assert_eq!(recorded(&lab, &contents, false), without_stacks);
    let samples = |sums: &Sums| sums.values().map(|sum| sum.0).sum::<u64>();
    let filtered: u64 = contents.summary.unwrap().counts.iter().map(|count| count.filtered).sum();
    assert_eq!(filtered, samples(&truth) - samples(&own));
    drop(workload);
    lab.finish().unwrap();
}

#[test]
fn what_is_lost_or_changed_or_never_sampled_is_told() {
    let lab = Lab::boot("haswell-4710mq").unwrap();
    let file = lab.wine().drive_c(INTERVALS);
    let intervals = Some(format!("C:\\{INTERVALS}").into());
    let lossy = Disorder { seed: 1, lost_events: 5, lost_buffers: 2, ..Disorder::default() };
    let ran = record(&lab, &script(HalScript::default(), lossy), &[&["-g"][..], &EVENTS].concat()).success().unwrap();
    assert!(ran.err.contains("Windows lost ") && ran.err.contains("count as lost samples"), "{}", ran.err);
    let lost: u64 = contents(&lab).summary.unwrap().counts.iter().map(|count| count.lost).sum();
    assert!(lost > 0);

    let changed = HalScript { changed_after: 100, still: vec![1], intervals, ..HalScript::default() };
    let ran = record(&lab, &script(changed, Disorder::default()), &EVENTS).success().unwrap();
    for told in [
        "changed the interval of TotalIssues from 100000 to 200000",
        "TotalIssues was never sampled on CPU 1",
        "TotalCycles was never sampled on CPU 1",
        "umask=0x01/ was never sampled on CPU 1",
    ] {
        assert!(ran.err.contains(told), "{told}: {}", ran.err);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "2 200000", "the other program's interval stays");

    let ran = record(&lab, &script(HalScript::default(), Disorder::default()), &["-e", "TotalCycles", "-F", "2k"]);
    let ran = ran.success().unwrap();
    assert!(ran.err.contains("the intervals were fixed (TotalCycles@"), "{}", ran.err);
    lab.finish().unwrap();
}

#[test]
fn what_the_hal_cannot_sample_is_refused_with_the_way_to_the_driver() {
    let lab = Lab::boot("haswell-4710mq").unwrap();
    let quiet = script(HalScript::default(), Disorder::default());
    for (options, code, reason) in [
        (&["-e", "TotalIssues:u"][..], 7, "a count in one mode alone needs the driver"),
        (&["-e", "TotalIssues:p"], 7, "a precise event needs the driver"),
        (
            &["-e", "TotalCycles@1M", "--when", "TotalIssues/TotalCycles<1"],
            7,
            "a condition of samples needs the driver",
        ),
        (&["-C", "0"], 7, "sampling on chosen CPUs needs the driver"),
        (&["--budget", "5"], 7, "a budget of interrupts needs the driver"),
        (&["--etl", "C:\\hal.etl"], 7, "a trace file of the samples needs the driver"),
        (&["-e", "2,6,0xa,0xb,0x13"], 8, "5 events need the 4 that can count them"),
    ] {
        let ran = record(&lab, &quiet, options);
        assert!(ran.code == code && ran.err.contains(reason), "{options:?} {}: {}", ran.code, ran.err);
        assert!(ran.err.contains("\n  try: "), "{}", ran.err);
    }
    for (function, code, reason) in [
        ("TraceSetInformation(6)", 24, "Windows does not give the counters"),
        ("TraceSetInformation(4)", 1, "TraceSystemTraceEnableFlagsInfo) failed"),
        ("TraceSetInformation(5)", 1, "for the interval failed"),
        ("StartTraceW", 1, "StartTrace failed"),
    ] {
        let refusal = Refusal { function: function.to_owned(), error: 1_450, times: 1 };
        let script = TraceScript { refusals: vec![refusal], ..quiet.clone() };
        let ran = record(&lab, &script, &[&["-g"][..], &EVENTS].concat());
        assert!(ran.code == code && ran.err.contains(reason), "{function} {}: {}", ran.code, ran.err);
    }
    lab.finish().unwrap();
}

#[test]
fn top_shows_samples_of_the_hal() {
    let lab = Lab::boot("haswell-4710mq").unwrap();
    let line = ["top", "--batch", "-n", "2", "-e", "TotalCycles@100k"];
    let script = script(HalScript::default(), Disorder::default());
    let ran = lab.traced_client(&script, &line).unwrap().success().unwrap();
    assert!(ran.out.contains("TotalCycles") && ran.out.contains('%'), "{} {}", ran.out, ran.err);
    lab.finish().unwrap();
}
