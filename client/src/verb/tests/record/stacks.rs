//! Tests of `record -g`, with a fake Event Tracing for Windows.

use protocol::{CounterKind, CounterSample, Mode, trace};
use recording::{CallStack, MissingStack, SampleStack, StackEnd, StackTree};
use zerocopy::IntoBytes;

use super::*;
use fake_system::FakeEvent;
use fake_system::payloads::{image, method, process};
use system::trace::raw::{DOTNET, HALPROF, IMAGE, PROCESS};
use system::trace::{TraceLosses, TracePlan};
use user_error::win32;

const KERNEL_CODE: u64 = 0xFFFF_F800_0000_1000;

/// Returns a sample of process 12 and thread 8 on CPU 0, at a time that is its cookie.
fn stacked(cookie: u32, mode: Mode) -> CounterSample {
    let ip = if mode == Mode::Kernel { KERNEL_CODE } else { 0x40_1000 };
    CounterSample {
        time: cookie.into(),
        ip,
        process: 12,
        thread: 8,
        processor: 0,
        event: 0,
        interval: 1_000,
        kind: CounterKind::Sample,
        mode,
        pebs_sequence: 0,
        cookie,
    }
}

/// Returns the driver's event for a sample, with a stack.
fn event_of(sample: &CounterSample, match_id: u64, frames: &[u64]) -> FakeEvent {
    let cookie = trace::cookie(sample.processor, sample.cookie);
    let payload = trace::Sample {
        time: sample.time,
        ip: sample.ip,
        weight: 1_000,
        cookie,
        first: cookie,
        count: 1,
        source: 0x13,
        extra: 0,
        cpu: sample.processor,
        mode: u32::from(sample.mode == Mode::Kernel),
    };
    FakeEvent {
        provider: HALPROF,
        number: 1,
        task: [12, 8],
        time: sample.time,
        payload: payload.as_bytes().to_vec(),
        stacks: vec![(match_id, frames.to_vec())],
        ..FakeEvent::default()
    }
}

/// Returns an event of another provider with the frames in user mode of an earlier event.
fn user_part(match_id: u64, time: u64, frames: &[u64]) -> FakeEvent {
    FakeEvent { provider: 1, task: [12, 8], time, stacks: vec![(match_id, frames.to_vec())], ..FakeEvent::default() }
}

impl LoadedRecording {
    /// Returns the call stack of each sample.
    fn stacks(&self) -> Vec<SampleStack> {
        let (mut tree, mut stacks) = (StackTree::default(), Vec::new());
        for block in &self.0 {
            match block {
                Block::Stacks(nodes) => tree.add(nodes),
                Block::StackedSamples(samples) => stacks.extend(samples.iter().map(|(_, stack)| tree.stack(*stack))),
                _ => {}
            }
        }
        stacks
    }
}

fn complete(callers: &[u64]) -> SampleStack {
    SampleStack::Stack(CallStack { callers: callers.to_vec(), end: StackEnd::Complete })
}

/// Returns a bench with samples, and events at the start and at the stop of the trace session.
fn bench(samples: &[CounterSample], events: [Vec<FakeEvent>; 2]) -> Bench {
    let records: Vec<SampleRecord> = samples.iter().map(|sample| (*sample).into()).collect();
    let bench = Bench::new(&[&records]);
    bench.system.trace.events.replace(events);
    bench
}

#[test]
fn samples_are_recorded_with_the_stacks_of_their_events() {
    let [user, kernel, alone, eventless] = [(1, Mode::User), (2, Mode::Kernel), (3, Mode::Kernel), (4, Mode::User)]
        .map(|(cookie, mode)| stacked(cookie, mode));
    let first = vec![
        event_of(&user, 0, &[KERNEL_CODE + 7, 0x40_1000, 0x40_2000]),
        event_of(&kernel, 9, &[KERNEL_CODE + 7, KERNEL_CODE, KERNEL_CODE + 1]),
    ];
    let last = vec![user_part(9, 5, &[0x7FF0, 0x40_3000]), event_of(&alone, 0, &[KERNEL_CODE + 7])];
    let bench = bench(&[user, kernel, alone, eventless], [first, last]);
    let ran = bench.record_command("-g");
    assert_eq!(ran.outcome.unwrap(), 3);
    let wanted = [
        complete(&[0x40_2000]),
        complete(&[KERNEL_CODE + 1, 0x7FF0, 0x40_3000]),
        SampleStack::Missing(MissingStack::TakenElsewhere),
        SampleStack::Missing(MissingStack::EventLost),
    ];
    assert_eq!(bench.recording().stacks(), wanted);
    let said = "\
[ stacks: 50.0 % of samples; 0.0 % truncated; 50.0 % missing ]
warning: 2 samples have no call stack
  because: 25.0 %: Windows walked other code: the sampled code ran at DISPATCH_LEVEL, or the walk ended before it
  because: 25.0 %: Windows delivered no stack for the sample
  try: -e SOURCE:u, or .\\client branches
";
    assert!(ran.err.contains(said), "{}", ran.err);
    let plan = TracePlan { samples_per_second: 2_000, processors: 2, off_cpu: false, file: None };
    assert_eq!((bench.system.trace.started.take(), bench.system.trace.stopped.take()), (vec![plan], 1));
}

#[test]
fn samples_of_two_values_of_one_event_have_their_own_stacks() {
    let names = ["0x10001", "0x10002"].map(|value| format!("cpu/event=0xb7,umask=0x01,offcore_rsp={value}/"));
    let samples = [0, 1].map(|event| CounterSample { event, ..stacked(1, Mode::User) });
    let events = [(0x1_0001, 0x40_2000), (0x1_0002, 0x40_3000)].map(|(extra, caller)| {
        let mut event = event_of(&samples[0], 0, &[KERNEL_CODE + 7, 0x40_1000, caller]);
        let mut payload = trace::Sample::read_from_bytes(&event.payload).unwrap();
        (payload.source, payload.extra) = (1 << 63 | 1 << 40 | 0x1_0B7, extra);
        event.payload = payload.as_bytes().to_vec();
        event
    });
    let bench = bench(&samples, [events.into(), Vec::new()]);
    let ran = bench.record_command(&format!("-g -e {},{}", names[0], names[1]));
    assert_eq!(bench.recording().stacks(), [complete(&[0x40_2000]), complete(&[0x40_3000])], "{}", ran.err);
}

#[test]
fn callers_of_one_mode_are_recorded_alone() {
    for (mode, wanted) in [
        ("kernel", [complete(&[]), complete(&[KERNEL_CODE + 1])]),
        ("user", [complete(&[0x40_2000]), complete(&[0x7FF0])]),
    ] {
        let [user, kernel] = [stacked(1, Mode::User), stacked(2, Mode::Kernel)];
        let events = vec![
            event_of(&user, 0, &[0x40_1000, 0x40_2000]),
            event_of(&kernel, 0, &[KERNEL_CODE, KERNEL_CODE + 1, 0x7FF0]),
        ];
        let bench = bench(&[user, kernel], [events, Vec::new()]);
        let ran = bench.record_command(&format!("--call-graph {mode}"));
        assert_eq!(bench.recording().stacks(), wanted, "{mode}: {}", ran.err);
    }
}

#[test]
fn samples_are_recorded_without_stacks_if_the_session_is_refused() {
    for (code, remedy) in [
        (win32::ERROR_ACCESS_DENIED, "an elevated prompt"),
        (win32::ERROR_NO_SYSTEM_RESOURCES, "logman query -ets, then end a session"),
        (win32::ERROR_DISK_FULL, "--etl with a file on another drive"),
    ] {
        let bench = bench(&[stacked(1, Mode::User)], <[_; 2]>::default());
        bench.system.trace.refusal.set(Some(code));
        let ran = bench.record_command("-g");
        assert_eq!(ran.outcome.unwrap(), 3);
        assert!(ran.err.starts_with("[ sampling"), "{}", ran.err);
        let said = "warning: samples are recorded without call stacks: Windows refuses the trace session\n  \
                    because: StartTrace failed: ";
        assert!(ran.err.contains(said) && ran.err.contains(&format!("\n  try: {remedy}")), "{}", ran.err);
        assert!(!ran.err.contains("[ stacks") && bench.recording().stacks().is_empty());
        assert_eq!(bench.recording().samples().len(), 1);
    }
}

#[test]
fn a_trace_file_is_written_by_windows_or_nothing_is_recorded() {
    let refused = bench(&[stacked(1, Mode::User)], <[_; 2]>::default());
    refused.system.trace.refusal.set(Some(win32::ERROR_ACCESS_DENIED));
    let error = refused.record_command("--etl x.etl").outcome.unwrap_err();
    assert_eq!(error.exit(), Exit::Denied);
    assert!(error.report().contains("because: StartTrace failed\n  because: "), "{}", error.report());
    assert!(!refused.file().exists());

    let bench = bench(&[stacked(1, Mode::User)], <[_; 2]>::default());
    let ran = bench.record_command("--etl x.etl");
    let said =
        "[ the call stacks are in x.etl, for Windows Performance Analyzer ]\n  try: wpr -merge x.etl merged.etl ";
    assert!(ran.err.contains(said), "{}", ran.err);
    assert_eq!(bench.system.trace.started.take()[0].file, Some("x.etl".into()));
    assert_eq!(bench.system.trace.stopped.take(), 1);
    assert_eq!((bench.recording().samples().len(), bench.recording().stacks().len()), (1, 0));
}

#[test]
fn what_the_session_lost_is_told_with_a_remedy() {
    let bench = bench(&[stacked(1, Mode::User)], <[_; 2]>::default());
    bench.system.trace.losses.set(TraceLosses { events: 1_234, buffers: 2 });
    let ran = bench.record_command("-g");
    let said = "warning: Windows lost 1,234 events and 2 buffers of the trace session\n  try: a lower -F";
    assert!(ran.err.contains(said), "{}", ran.err);
}

#[test]
fn a_refused_start_stops_the_trace_session() {
    let bench = bench(&[stacked(1, Mode::User)], <[_; 2]>::default());
    let ran = bench.record("-g -e 6@1 -- no-such-command-anywhere");
    assert!(ran.outcome.is_err());
    assert_eq!(bench.system.trace.stopped.take(), 1);
    let ran = bench.record("-g -e 2:p --duration 1ms");
    assert_eq!(ran.outcome.unwrap_err().exit(), Exit::Usage);
    assert_eq!(bench.system.trace.started.take().len(), 1, "no second session was started");
}

#[test]
fn a_process_that_ended_has_the_name_the_images_and_the_methods_of_the_trace() {
    let code = |provider, number, version, time, payload| FakeEvent {
        provider,
        number,
        version,
        time,
        payload,
        task: [12, 8],
        ..FakeEvent::default()
    };
    let events = vec![
        code(PROCESS, 1, 4, 1, process(4, 12, "short.exe")),
        code(IMAGE, 10, 3, 2, image(12, 0x40_0000, 0x3000, "C:\\short.exe")),
        code(DOTNET, 143, 1, 3, method(0x7FF8_0000, 0x40, ["App", "Main", "void ()"])),
    ];
    let bench = bench(&[stacked(9, Mode::User)], [events, Vec::new()]);
    let ran = bench.record_command("-g");
    let recording = bench.recording();
    let found: Vec<_> = recording.processes().into_iter().filter(|process| process.id == 12).collect();
    let modules: Vec<_> = found.iter().flat_map(|process| &process.modules).map(|one| (one.base, &*one.path)).collect();
    assert_eq!(modules, [(0x40_0000, "C:\\short.exe")], "{}", ran.err);
    let last = found.last().unwrap();
    assert_eq!((last.created, last.name.as_str()), (Some(1), "short.exe"));
    let methods = recording.0.iter().find_map(|block| match block {
        Block::Methods(methods) => Some(methods),
        _ => None,
    });
    let methods = methods.unwrap();
    assert_eq!((methods.id, methods.created, &*methods.methods[0].name), (12, Some(1), "App.Main()"));
}
