//! Tests of `record`.

mod file;
mod last_branches;
mod stacks;
mod tasks;

use std::collections::VecDeque;
use std::path::PathBuf;

use protocol::{
    Event, EventRequest, LostRecord, PauseKind, PauseRecord, PreciseKind, SampleRecord, SamplesRequest, StartHeader,
    StopKind, StopRecord, UNKNOWN, event_flags,
};
use recording::{Block, Count, KERNEL, Process, Reader, RecordedSession, Summary};
use zerocopy::FromBytes;

use super::*;
use fake_system::{CLOCK, module, precise_sample, sample};
use terminal::format::{real, seconds};

/// A driver with samples, and the path of a recording.
struct Bench {
    system: FakeSystem,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(batches: &[&[SampleRecord]]) -> Self {
        let driver = FakeDriver::default();
        driver.samples.replace(batches.iter().map(|batch| batch.to_vec()).collect::<VecDeque<_>>());
        driver.counts.replace(vec![
            CountRecord { samples: 3, ..count(0x13, 0, 200_000, SECOND) },
            CountRecord { samples: 2, ..count(0x13, 1, 100_000, SECOND) },
        ]);
        Self { system: FakeSystem::running(driver), folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("app.rec")
    }

    fn record(&self, options: &str) -> Run {
        let file = self.file();
        let words = ["record", "-o", file.to_str().unwrap()].into_iter().chain(options.split_whitespace());
        run_words(&self.system, &words.collect::<Vec<_>>())
    }

    /// Runs `record` with a command that exits with code 3, and records all processes.
    fn record_command(&self, options: &str) -> Run {
        self.record_exit_3(&format!("-a {options}"))
    }

    /// Runs `record` with a command that exits with code 3.
    fn record_exit_3(&self, options: &str) -> Run {
        let file = self.file();
        let words = ["record", "-o", file.to_str().unwrap()].into_iter().chain(options.split_whitespace());
        run_words(&self.system, &words.chain(["--"]).chain(EXIT_3.split(' ')).chain(["exit 3"]).collect::<Vec<_>>())
    }

    fn recording(&self) -> LoadedRecording {
        LoadedRecording(Reader::new(fs::File::open(self.file()).unwrap()).unwrap().map(Result::unwrap).collect())
    }

    fn start(&self) -> (StartHeader, Vec<EventRequest>) {
        let [input] = &self.system.driver.inputs(Code::Start)[..] else { panic!() };
        let (header, rest) = StartHeader::read_from_prefix(input).unwrap();
        (
            header,
            rest.chunks_exact(size_of::<EventRequest>())
                .map(|bytes| EventRequest::read_from_bytes(bytes).unwrap())
                .collect(),
        )
    }
}

/// Returns the blocks of a complete file.
struct LoadedRecording(Vec<Block>);

impl LoadedRecording {
    fn session(&self) -> &RecordedSession {
        let Some(Block::Session(session)) = self.0.first() else { panic!("{:?}", self.0) };
        session
    }

    fn summary(&self) -> &Summary {
        let Some(Block::Summary(summary)) = self.0.last() else { panic!("{:?}", self.0) };
        summary
    }

    fn samples(&self) -> Vec<SampleRecord> {
        let samples = self.0.iter().filter_map(|block| match block {
            Block::Samples(samples) => Some(samples),
            _ => None,
        });
        samples.flatten().copied().collect()
    }

    fn processes(&self) -> Vec<&Process> {
        let processes = self.0.iter().filter_map(|block| match block {
            Block::Process(process) => Some(process),
            _ => None,
        });
        processes.collect()
    }
}

#[test]
fn record_writes_the_samples_and_exits_with_the_code_of_the_command() {
    let batches: [&[SampleRecord]; 3] = [&[sample(12, 1)], &[sample(0, 2)], &[sample(12, 3), sample(4, 4)]];
    let bench = Bench::new(&batches);
    bench.system.processes.replace(vec![(4, "System".into()), (12, "app.exe".into())]);
    bench.system.modules.borrow_mut().insert(12, vec![module(0x40_0000, "C:\\app.exe")]);
    bench.system.kernel.replace(vec![module(0xF000_0000, "C:\\ntoskrnl.exe")]);
    let ran = bench.record_command("");
    assert_eq!(ran.outcome.unwrap(), 3);
    assert!(ran.out.is_empty(), "standard output is the command's");

    let recorded = bench.recording();
    assert_eq!(recorded.samples(), batches.concat());
    let session = recorded.session();
    assert_eq!((session.client.as_str(), session.driver.as_str()), (env!("CARGO_PKG_VERSION"), "1.2.3"));
    assert_eq!((session.processor.as_str(), session.clock), ("Some CPU", CLOCK));
    assert_eq!(session.command, EXIT_3.split(' ').chain(["exit 3"]).collect::<Vec<_>>());
    assert_eq!(session.processors, [0, 1]);
    let event = recording::RecordedEvent {
        source: 0x13,
        name: "TotalCycles".into(),
        modes: 3,
        interval: 3_000_000, // the clock of the fake has 3 GHz
        frequency: 1_000,
        core_type: 0,
    };
    assert_eq!(session.events, [event]);
    assert!(session.created_unix_ms > 1_700_000_000_000);

    let summary = recorded.summary();
    let of = |processor, count, samples| Count {
        event: 0,
        processor,
        count,
        samples,
        lost: 0,
        throttled: 0,
        unmet: 0,
        filtered: 0,
        disturbed: None,
        recorder: 0,
    };
    assert_eq!(summary.counts, [of(0, 200_000, 3), of(1, 100_000, 2)]);
    assert_eq!((summary.interrupted_by_user, summary.exit_code), (false, Some(3)));
    assert!(summary.elapsed > 0);

    let processes = recorded.processes();
    let named = |name: &str| processes.iter().find(|process| process.name == name).unwrap();
    assert_eq!(processes.len(), 5, "each once, and the command's, though the kernel is looked at twice");
    assert_eq!((named("kernel").id, named("kernel").modules[0].base), (KERNEL, 0xF000_0000));
    assert_eq!((named("app.exe").id, named("app.exe").modules[0].path.as_str()), (12, "C:\\app.exe"));
    assert_eq!(
        (named("System").modules.len(), named("Idle").id),
        (0, 0),
        "processes that cannot be opened have their names"
    );
    let last = ran.err.lines().last().unwrap();
    assert_eq!(ran.err.lines().next(), Some("[ sampling TotalCycles, about 1,000 samples a second on each CPU ]"));
    assert!(
        last.starts_with("[ recorded 4 samples (0 lost, paused 0.0 % of the time) in ")
            && last.ends_with(" wakeups/s ]"),
        "{last}"
    );
}

#[test]
fn when_gives_each_event_the_condition_and_counts_the_ratio_in_its_modes_beside_the_events() {
    const CYCLES: u64 = 0x8000_0000_0000_003C;
    let bench = Bench::new(&[&[sample(12, 1)]]);
    for count in &mut *bench.system.driver.counts.borrow_mut() {
        (count.samples, count.unmet) = (u64::from(count.processor == 0), 499);
    }
    let ran = bench.record_command("-e cycles:u@1M,BranchInstructions@100k --when IPC<0.5");
    let event =
        |source, modes, interval| EventRequest { event: Event::of(source), modes, interval, ..EventRequest::EMPTY };
    let below = |ratio, event| EventRequest { flags: event_flags::BELOW, ratio, limit: [5, 10], ..event };
    // The cycles of perf are those of an event, and not of the source.
    let sampled = [below([2, 0], event(CYCLES, 1, 1_000_000)), below([3, 4], event(6, 3, 100_000))];
    let beside = [event(2, 1, 0), event(2, 3, 0), event(CYCLES, 3, 0)];
    let beside = beside.map(|event| EventRequest { flags: event_flags::BESIDE, ..event });
    assert_eq!(bench.start().1, [&sampled[..], &beside].concat());
    assert_eq!(bench.recording().session().condition.as_deref(), Some("IPC<0.5"));
    assert!(ran.err.lines().any(|line| line == "[ 1 of 999 windows met IPC<0.5 ]"), "{}", ran.err);
}

#[test]
fn windows_that_counters_chose_are_told_without_the_others() {
    let bench = Bench::new(&[&[sample(12, 1)]]);
    for count in &mut *bench.system.driver.counts.borrow_mut() {
        count.samples = u64::from(count.processor == 0);
        count.recorder = pmu::Recorder::Reloaded as u32;
    }
    let ran = bench.record_command("-e cycles@1M --when IPC<0.5");
    let line = "[ 1 windows met IPC<0.5; counters chose them, and tell of no others ]";
    assert!(ran.err.lines().any(|one| one == line), "{}", ran.err);
}

#[test]
fn a_condition_that_no_interrupt_can_decide_is_refused_before_anything_starts() {
    for (line, text) in [
        ("-e Time --when IPC<1", "Time is sampled by a timer"),
        ("-e TotalIssues:p@1M --when IPC<1", "the processor records TotalIssues:p itself"),
        ("--when Frequency<1", "\"Frequency<1\" does not compare one event divided by another"),
        ("--when TotalIssues/Nonsense<1", "Nonsense"),
    ] {
        let bench = Bench::new(&[]);
        let error = bench.record_command(line).outcome.unwrap_err().report();
        assert!(error.contains(text), "{line}: {error}");
        assert!(bench.system.driver.inputs(Code::Start).is_empty(), "{line}");
    }
}

/// The numbers of both events are the same, so only the index distinguishes the samples.
#[test]
fn samples_of_two_values_of_one_event_are_recorded_apart() {
    let batch = [0, 1, 1, 0, 1].map(|index| sample(12, 1 + u64::from(index)).with_event(index));
    let bench = Bench::new(&[&batch]);
    let names = ["0x10001", "0x10002"].map(|value| format!("cpu/event=0xb7,umask=0x01,offcore_rsp={value}/"));
    bench.record_command(&format!("-e {},{}", names[0], names[1]));
    let recorded = bench.recording();
    let events = &recorded.session().events;
    assert_eq!(events.iter().map(|event| &event.name).collect::<Vec<_>>(), names.iter().collect::<Vec<_>>());
    let of = |index: u32| recorded.samples().iter().filter(|one| one.event() == index).count();
    assert_eq!([of(0), of(1)], [2, 3]);
}

#[test]
fn record_requests_each_named_event_once_with_a_valid_interval() {
    let bench = Bench::new(&[]);
    let ran = bench.record_command("-e 2:u@10k,6@10,6@11,2:u@10000,TotalCycles,11 -F 2k -C 0,2 --ring 64 --budget 50");
    let (header, events) = bench.start();
    assert_eq!((header.flags, header.ring, header.budget), (0, 64, 500));
    assert!(header.processors.iter().eq([0, 2]));
    let event = |source, modes, interval, frequency| EventRequest {
        event: Event::of(source),
        modes,
        interval,
        frequency,
        ..EventRequest::EMPTY
    };
    // The clock of the fake has 3 GHz, and nothing says how often a branch is mispredicted.
    let adjusted = [event(0x13, 3, 1_500_000, 2_000), event(11, 3, 65_536, 2_000)];
    assert_eq!(events, [&[event(2, 1, 10_000, 0), event(6, 3, 4_096, 0)][..], &adjusted].concat());
    assert_eq!(
        ran.err.lines().take(2).collect::<Vec<_>>(),
        [
            "BranchInstructions: 10 is out of the range from 4096 to 2147483647; 4096 is used",
            "BranchInstructions: 11 is out of the range from 4096 to 2147483647; 4096 is used",
        ]
    );
    assert_eq!(bench.recording().session().processors, [0, 2]);
    assert_eq!(bench.recording().session().events[2].frequency, 2_000);
}

#[test]
fn precise_events_are_requested_and_recorded_with_their_batch() {
    for (options, batch, told, modes) in [
        ("-e 2:p@10k,6:up --batch 64", 64, 64, [7, 5]),
        ("-e 2:kpp,6 --batch 1", 1, 1, [6, 3]),
        ("-e 2:p,6:k", 0, 1, [7, 2]),
        ("-e 2,6", 0, 0, [3, 3]),
    ] {
        let bench = Bench::new(&[]);
        bench.record(&format!("{options} --duration 0.001s")).outcome.unwrap();
        let (header, events) = bench.start();
        assert_eq!((header.batch, events[0].modes, events[1].modes), (batch, modes[0], modes[1]), "{options}");
        let recorded = bench.recording();
        let session = recorded.session();
        assert_eq!((session.batch, session.events[0].modes, session.events[1].modes), (told, modes[0], modes[1]));
    }
}

#[test]
fn a_batch_without_a_precise_event_is_rejected_before_the_start() {
    for options in ["-a --batch 4", "-e 2,6:k -a --batch 4"] {
        let bench = Bench::new(&[]);
        let (exit, report) = bench.record(options).failure();
        assert_eq!(exit, Exit::Usage);
        assert!(report.ends_with("none of the events is precise\n  try: -e SOURCE:p"), "{report}");
        assert!(bench.system.driver.inputs(Code::Start).is_empty() && !bench.file().exists());
    }
}

#[test]
fn precise_records_count_as_samples_and_can_have_no_process() {
    let of = precise_sample;
    let records = [of(12, PreciseKind::Precise), of(UNKNOWN, PreciseKind::PreciseNext), sample(12, 1)];
    let bench = Bench::new(&[&records]);
    bench.system.processes.replace(vec![(12, "app.exe".into())]);
    let ran = bench.record("-e 0x13:p -a --duration 0.001s");
    assert!(ran.err.starts_with("[ recorded 3 samples (0 lost, paused 0.0 % of the time) in 0."), "{}", ran.err);
    let recorded = bench.recording();
    let processes: Vec<u32> = recorded.processes().iter().map(|process| process.id).collect();
    assert_eq!((recorded.samples(), processes), (records.to_vec(), vec![KERNEL, 12]));
}

#[test]
fn record_without_events_samples_cycles_or_instructions_and_reports_it() {
    let bench = Bench::new(&[]);
    let ran = bench.record("-a --duration 0.001s");
    assert!(ran.err.starts_with("[ sampling TotalCycles, about 1,000 samples a second on each CPU ]\n"), "{}", ran.err);
    assert!(ran.outcome.is_ok());
    let (header, events) = bench.start();
    assert_eq!((header.ring, header.budget, header.processors.is_empty()), (2_048, 0, true));
    assert_eq!(
        events,
        [EventRequest {
            event: Event::of(0x13),
            modes: 3,
            interval: 3_000_000,
            frequency: 1_000,
            ..EventRequest::EMPTY
        }]
    );

    for (sources, outcome) in [
        (vec![record(0x13, "TotalCycles", 1), record(2, "TotalIssues", 0)], Ok(2)),
        (vec![record(0, "Time", 0), record(6, "BranchInstructions", 0)], Ok(0)),
        (vec![record(6, "BranchInstructions", 0)], Err(Exit::UnsupportedSource)),
    ] {
        let system = FakeSystem::running(FakeDriver { sources, ..FakeDriver::default() });
        let bench = Bench { system, ..Bench::new(&[]) };
        let ran = bench.record("-a --duration 0.001s");
        let asked = ran.outcome.map(|_| bench.start().1[0].event.source).map_err(|error| error.exit());
        assert_eq!(asked, outcome);
    }
}

#[test]
fn record_samples_by_time_where_the_counters_are_masked_and_says_why() {
    let info = InfoReply {
        interface: pmu::Kind::Default as u32,
        reason: pmu::Reason::MaskedByHypervisor as u32,
        hypervisor: pmu::Hypervisor::Guest as u32,
        ..FakeDriver::default().info
    };
    let time =
        || protocol::SourceRecord { minimum: 1_221, maximum: 1_000_000, interval: 10_000, ..record(0, "Time", 0) };
    for (options, interval, told) in [
        (
            "",
            10_000,
            "[ sampling by time, 1,000 times a second on each CPU at most:\n  \
             Hyper-V masks the counters of this virtual machine ]\n",
        ),
        ("-F 300", 40_000, "[ sampling by time, 250 times a second on each CPU at most:\n"),
        ("-e ProfileTime", 10_000, "[ recorded "),
        ("-e Timer@20000", 20_000, "[ recorded "),
        ("-e Time@15000", 20_000, "Time: 15000 is no multiple of a millisecond (units of 100 ns); 20000 is used\n"),
        ("-e Time@5", 10_000, "Time: 5 is out of the range from 1221 to 1000000 (units of 100 ns); 10000 is used\n"),
    ] {
        let driver = FakeDriver { sources: vec![time()], info, ..FakeDriver::default() };
        let bench = Bench { system: FakeSystem::running(driver), ..Bench::new(&[]) };
        let ran = bench.record(&format!("-a --duration 0.001s {options}"));
        assert!(ran.outcome.is_ok() && ran.err.starts_with(told), "{options}: {}", ran.err);
        assert_eq!(bench.start().1, [EventRequest { modes: 3, interval, ..EventRequest::EMPTY }], "{options}");
    }
}

#[test]
fn samples_after_the_stop_are_fetched_without_waiting() {
    let many: Vec<SampleRecord> = (0..20_000).map(|time| sample(12, time)).collect();
    // So many replies that most of them are fetched after the stop.
    let replies: Vec<&[SampleRecord]> = many.chunks(40).collect();
    let bench = Bench::new(&replies);
    let ran = bench.record("-a --duration 0.000001s --ring 16384");
    ran.outcome.unwrap();
    assert_eq!(bench.recording().samples(), many);
    let asked = bench.system.driver.asked.borrow();
    let wait = |(code, input): &(Code, Vec<u8>)| {
        (*code == Code::Samples).then(|| SamplesRequest::read_from_bytes(input).unwrap().wait)
    };
    let after = asked.iter().skip_while(|(code, _)| *code != Code::Stop).filter_map(wait);
    // The first can have been sent before the stop was known; the driver answers it at the stop.
    let after: Vec<u32> = after.skip(1).collect();
    assert!(!after.is_empty() && after.iter().all(|wait| *wait == 0), "{after:?}");
    let wakeups = asked.iter().filter_map(wait).filter(|wait| *wait > 0).count() as u64;
    let elapsed = seconds(bench.recording().summary().elapsed);
    let told = format!("{:.0} wakeups/s ]\n", real(wakeups) / elapsed);
    assert!(ran.err.ends_with(&told), "{wakeups} in {elapsed} s: {}", ran.err);
}

#[test]
fn lost_and_throttled_samples_are_reported_with_a_remedy() {
    let lost = LostRecord::new(9, 0, 0, 40).into();
    let throttled = StopRecord::new(StopKind::Throttled, 9, 0).into();
    let paused = PauseRecord::new(PauseKind::Resumed, 9, 0, 1_000 * CLOCK).into();
    let bench = Bench::new(&[&[sample(12, 1), lost, throttled, paused]]);
    bench.system.driver.counts.replace(vec![
        CountRecord { samples: 1, lost: 1_000, full: 1_000, throttled: 0, ..count(0x13, 0, 9, SECOND) },
        CountRecord { samples: 0, lost: 234, throttled: 5_678, ..count(0x13, 1, 9, SECOND) },
    ]);
    let ran = bench.record("-e 0x13 -a --duration 0.001s --ring 256");
    assert_eq!(ran.outcome.unwrap(), 0);
    let lines: Vec<&str> = ran.err.lines().collect();
    let shares = "(1,234 lost, 99.9 %; paused 100.0 % of the time)";
    assert!(lines[0].starts_with(&format!("[ recorded 1 samples {shares} in 0.")), "{}", ran.err);
    assert_eq!(
        lines[1..],
        [
            "warning: 1,234 samples were lost, 1,000 because a ring was full, and the shares in the report are of the others",
            "  try: --ring 512, a larger interval (-e SOURCE@INTERVAL) or a lower -F",
            "warning: 5,678 samples were not taken: interrupts had 25 % of a processor's time",
            "  try: a larger interval (-e SOURCE@INTERVAL), a lower -F, or a larger --budget",
        ]
    );
    assert_eq!(bench.recording().summary().counts.iter().map(|count| count.lost).sum::<u64>(), 1_234);
    assert_eq!(bench.recording().samples().len(), 4, "what befell the sampling is in the file");
}

/// While the counters pause, nothing overflows, so that no sample is missing.
#[test]
fn long_pauses_without_missing_samples_are_reported_with_a_remedy() {
    for (duration, warns) in [(1, false), (1_000 * CLOCK, true)] {
        let bench = Bench::new(&[&[sample(12, 1), PauseRecord::new(PauseKind::Resumed, 9, 0, duration).into()]]);
        let ran = bench.record("-e 0x13 -a --duration 0.001s");
        let warning =
            "warning: the counters paused 100.0 % of the time: interrupts had 25 % of a processor's time\n  try: ";
        assert_eq!(ran.err.contains(warning), warns, "{}", ran.err);
        assert_eq!(ran.err.contains("counters paused"), warns, "{}", ran.err);
    }
}

#[test]
fn processors_that_an_interrupt_storm_silenced_are_reported_with_a_remedy() {
    let silenced = StopRecord::new(StopKind::Silenced, 9, 0).into();
    for (records, processors) in [(&[sample(12, 1), silenced][..], "1 CPU"), (&[silenced, silenced], "2 CPUs")] {
        let bench = Bench::new(&[records]);
        let ran = bench.record("-e 0x13 -a --duration 0.001s");
        let lines: Vec<&str> = ran.err.lines().skip(1).collect();
        let first = format!("warning: sampling stopped early on {processors}: an interrupt storm, that is");
        assert_eq!(
            lines,
            [
                &first,
                "  interrupts in a row that no counter explains",
                "  try: end other programs that use the performance counters, then record again",
            ]
        );
        assert!(lines.iter().all(|line| line.len() <= 80));
    }
}

#[test]
fn processors_whose_counters_interrupted_nobody_are_reported_with_a_remedy() {
    let gone = StopRecord::new(StopKind::Disconnected, 9, 0).into();
    let back = PauseRecord::new(PauseKind::Reconnected, 9, 0, 5).into();
    for (records, times, ended) in [
        (
            &[sample(12, 1), gone, back][..],
            "1 time",
            &["  interrupt of the counters was not that of Windows, as after a sleep"][..],
        ),
        (
            &[gone, back, gone],
            "2 times",
            &[
                "  interrupt of the counters was not that of Windows, as after a sleep; that lasted until",
                "  the end 1 time",
            ],
        ),
    ] {
        let bench = Bench::new(&[records]);
        let ran = bench.record("-e 0x13 -a --duration 0.001s");
        let lines: Vec<&str> = ran.err.lines().skip(1).collect();
        let first = format!("warning: no samples came from a CPU, {times}, because its entry (LVT) for the");
        let last = "  try: record again; if that recurs, restart Windows";
        let expected: Vec<&str> = [first.as_str()].into_iter().chain(ended.iter().copied()).chain([last]).collect();
        assert_eq!(lines, expected);
    }
}

#[test]
fn a_larger_ring_is_suggested_if_one_was_full_and_can_be_larger() {
    for (lost, full, ring, because, larger) in [
        (2, 0, 256, "none because a ring was full", ""),
        (2, 1, 256, "1 because a ring was full", "--ring 512, "),
        (1, 1, 256, "all because a ring was full", "--ring 512, "),
        (2, 2, 1_048_576, "all because a ring was full", ""),
    ] {
        let bench = Bench::new(&[]);
        bench.system.driver.counts.replace(vec![CountRecord { lost, full, ..count(0x13, 0, 9, SECOND) }]);
        let ran = bench.record(&format!("-a --duration 0.001s --ring {ring}"));
        let advice = format!("  try: {larger}a larger interval (-e SOURCE@INTERVAL) or a lower -F\n");
        assert!(ran.err.ends_with(&advice), "{}", ran.err);
        assert!(ran.err.contains(&format!("lost, {because}, and the shares")), "{}", ran.err);
    }
}

#[test]
fn one_lost_sample_per_counter_causes_no_warning() {
    let bench = Bench::new(&[]);
    let lost = |processor| CountRecord { lost: 1, ..count(0x13, processor, 9, SECOND) };
    bench.system.driver.counts.replace(vec![lost(0), lost(1)]);
    let ran = bench.record("-e 0x13 -a --duration 0.001s");
    assert!(ran.err.starts_with("[ recorded 0 samples (2 lost, 100.0 %; paused 0.0 % of "), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
}

#[test]
fn ctrl_c_ends_the_recording_with_a_complete_file() {
    let bench = Bench::new(&[&[sample(12, 1)], &[sample(12, 2)], &[sample(12, 3)]]);
    bench.system.until_interrupt.set(Some(1));
    let ran = bench.record("-a");
    assert_eq!(ran.outcome.unwrap(), 0);
    assert_eq!(bench.recording().samples().len(), 3);
    let Summary { interrupted_by_user, exit_code, .. } = *bench.recording().summary();
    assert_eq!((interrupted_by_user, exit_code), (true, None));
    assert_eq!(*bench.system.done.borrow(), ["note interrupts"]);
    assert_eq!(bench.system.driver.inputs(Code::Stop).len(), 1);
}

#[cfg(unix)]
#[test]
fn a_command_that_ignores_ctrl_c_is_left_running() {
    let bench = Bench::new(&[&[sample(12, 1)]]);
    bench.system.until_interrupt.set(Some(0));
    let file = bench.file();
    let ran = run_words(&bench.system, &["record", "-o", file.to_str().unwrap(), "--", "sleep", "5"]);
    assert_eq!(ran.outcome.unwrap(), Exit::Failure.code());
    let Summary { interrupted_by_user, exit_code, .. } = *bench.recording().summary();
    assert_eq!((interrupted_by_user, exit_code), (true, None));
}

#[test]
fn a_refused_start_creates_no_file_and_keeps_an_old_one() {
    for old in [None, Some("old")] {
        let refuse = Some((Code::Start, ErrorCode::HandlerRefused, [0xC000_0001, 0]));
        let system = FakeSystem::running(FakeDriver { refuse, ..FakeDriver::default() });
        let bench = Bench { system, ..Bench::new(&[]) };
        if let Some(old) = old {
            fs::write(bench.file(), old).unwrap();
        }
        assert_eq!(bench.record("-- app").failure().0, Exit::InterruptTaken);
        assert_eq!(fs::read_to_string(bench.file()).ok().as_deref(), old);
        assert!(bench.system.driver.inputs(Code::Stop).is_empty());
    }
}

#[test]
fn a_command_that_cannot_be_run_leaves_no_file_and_no_session() {
    for old in [None, Some("old")] {
        let bench = Bench::new(&[]);
        if let Some(old) = old {
            fs::write(bench.file(), old).unwrap();
        }
        assert_eq!(bench.record("-- no-such-command-anywhere").failure().0, Exit::Command);
        assert_eq!(fs::read_to_string(bench.file()).ok().as_deref(), old);
        assert_eq!(bench.system.driver.inputs(Code::Stop).len(), 1);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_stops_the_session_and_is_reported() {
    let bench = Bench::new(&[]);
    let (exit, report) = run(&bench.system, "record -o /dev/full -a --duration 1s").failure();
    assert_eq!(exit, Exit::Unwritten);
    assert!(report.starts_with("error: the recording could not be written to its end\n  because: "), "{report}");
    assert!(report.contains("\n  because: No space left on device"), "{report}");
    assert!(report.ends_with("\n       .\\client report /dev/full"), "{report}");
    assert_eq!(bench.system.driver.inputs(Code::Stop).len(), 1);
}

#[test]
fn earlier_samples_are_kept_if_the_driver_fails_later() {
    let bench = Bench::new(&[&[sample(12, 1)], &[sample(12, 2)]]);
    bench.system.driver.fail_samples_after.set(Some(1));
    let (exit, report) = bench.record("-a --duration 5s").failure();
    assert_eq!(exit, Exit::Failure);
    assert!(report.starts_with("error: the driver did not answer the request Samples"), "{report}");
    let blocks: Vec<_> = Reader::new(fs::File::open(bench.file()).unwrap()).unwrap().collect();
    assert!(blocks.iter().any(|block| matches!(block, Ok(Block::Samples(samples)) if *samples == [sample(12, 1)])));
    assert!(matches!(blocks.last(), Some(Err(recording::ReadError::CutOff { .. }))));
    assert_eq!(bench.system.driver.inputs(Code::Stop).len(), 1);
}

#[test]
fn a_stopped_session_returns_no_more_samples_than_its_rings_can_hold() {
    let batch = vec![sample(12, 1); 64];
    // Far more than are fetched until the stop, also on a busy machine.
    let bench = Bench::new(&vec![batch.as_slice(); 2_000]);
    let (exit, report) = bench.record("-C 0 -a --duration 0.000001s --ring 64").failure();
    assert_eq!(exit, Exit::Failure);
    assert!(report.contains("because: there are more samples in it than the driver can have kept"), "{report}");
}

/// Windows 11 24H2 tells where the kernel's modules are only if SeDebugPrivilege is enabled: every address is 0.
#[test]
fn hidden_addresses_of_the_kernel_give_a_warning_and_no_module_at_address_0() {
    let batches: [&[SampleRecord]; 1] = [&[sample(12, 1), sample(4, 2)]];
    let warning = "the kernel's code has no names: Windows hides its addresses from this account";
    for is_hidden in [true, false] {
        let mut bench = Bench::new(&batches);
        bench.system.kernel.replace(vec![module(0xF000_0000, "C:\\ntoskrnl.exe")]);
        bench.system.is_kernel_hidden = is_hidden;
        let ran = bench.record_command("");
        assert_eq!(ran.outcome.unwrap(), 3, "{}", ran.err);
        assert_eq!(ran.err.contains(warning), is_hidden, "{}", ran.err);
        let recording = bench.recording();
        let kernel = recording.processes().into_iter().filter(|process| process.id == KERNEL);
        let bases: Vec<u64> = kernel.flat_map(|process| &process.modules).map(|module| module.base).collect();
        assert_eq!(bases, if is_hidden { vec![] } else { vec![0xF000_0000] });
    }
}
