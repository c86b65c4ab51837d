//! Call stacks: the unmodified client records them with the stand-in for Event Tracing for Windows, whose stacks the
//! test knows.

use std::collections::BTreeMap;
use std::fs::{self, File};

use bench_protocol::{Disorder, InterruptSite, Refusal, SiteStack, SystemEvent, TraceReport, TraceScript, UserParts};
use recording::{SampleStack, StackEnd};
use report::{Column, Contents, Detail, Filter, SymbolFinder, SymbolIndex, Table};
use tests::{Lab, Workload, artifacts};

/// TotalIssues.
const EVENT: u32 = 0;

const RECORDING: &str = "C:\\stacks.rec";
const RECORD: [&str; 9] = ["record", "-g", "-a", "--duration", "0.5s", "-e", "TotalIssues@4M", "-o", RECORDING];

/// Code at DISPATCH_LEVEL, of which no event has the stack.
const RAISED: u64 = 0xFFFF_F800_0002_0000;

/// The sites below each caller, by their places in [`Workload::traced_sites`]: four each in alpha, beta and gamma,
/// and one in the kernel.
const BELOW: [(&str, &[usize]); 4] = [
    ("run", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
    ("forward", &[0, 1, 2, 4, 5, 12]),
    ("backward", &[3, 6, 7]),
    ("descend", &[8, 9, 10, 11]),
];

/// Boots a machine whose processors execute the functions of workload.exe, and code at DISPATCH_LEVEL in a tenth of the
/// interrupts. Returns the stacks, too.
fn boot(identity: &str) -> (Lab, Workload, Vec<SiteStack>) {
    let mut lab = Lab::boot(identity).unwrap();
    lab.install().unwrap();
    let workload = lab.workload().unwrap();
    let (mut sites, mut stacks): (Vec<_>, Vec<_>) = workload.description.traced_sites().unwrap().into_iter().unzip();
    let process = workload.description.process;
    sites.push(InterruptSite { ip: RAISED, user: false, process, thread: workload.description.thread, weight: 44 });
    stacks.push(SiteStack { ip: RAISED, process, kernel: vec![RAISED], user: Vec::new(), raised: true });
    for processor in 0..2 {
        lab.wire.set_interrupt_sites(processor, &sites).unwrap();
    }
    lab.wire.set_stacks(stacks.clone()).unwrap();
    (lab, workload, stacks)
}

fn contents(lab: &Lab, file: &str) -> Contents {
    let detail = Detail { stacks: true, ..Detail::default() };
    let contents = Contents::read(&mut File::open(lab.wine().drive_c(file)).unwrap(), detail).unwrap();
    assert!(contents.damage.is_none(), "{:?}", contents.damage);
    contents
}

/// Checks that each stack is that of its sample, and returns the number of samples by what is known of their stacks.
fn check_stacks(contents: &Contents, stacks: &[SiteStack]) -> BTreeMap<String, u64> {
    let mut outcomes = BTreeMap::new();
    for (location, weight) in contents.sample_counts.locations() {
        let site = stacks.iter().find(|stack| stack.ip == location.ip);
        let site = site.unwrap_or_else(|| panic!("nothing was interrupted at {:#x}", location.ip));
        let found = contents.stacks.stack(location.stack);
        let outcome = match &found {
            SampleStack::Stack(stack) => {
                let all = [&site.kernel[..], &site.user].concat();
                let known = match stack.end {
                    StackEnd::Complete => &all[1..],
                    StackEnd::UserLost => &site.kernel[1..],
                    StackEnd::Truncated => &all[1..=stack.callers.len()],
                };
                assert_eq!(stack.callers, known, "{site:?}");
                format!("{:?}", stack.end)
            }
            SampleStack::Missing(reason) => format!("{reason:?}"),
            SampleStack::NotRecorded => panic!("{location:?} has neither a stack nor a reason"),
        };
        assert!(!site.raised || matches!(found, SampleStack::Missing(_)), "{found:?}");
        *outcomes.entry(outcome).or_default() += weight.samples;
    }
    outcomes
}

#[test]
fn each_caller_has_its_true_share_and_each_sample_its_own_stack() {
    for identity in ["haswell-4710mq", "zen4-7700x"] {
        let (mut lab, workload, stacks) = boot(identity);
        let script = TraceScript {
            disorder: Disorder {
                seed: 7,
                user_parts: UserParts::Mixed,
                user_delay: 400,
                user_first: 10,
                delay: 50,
                shuffle: 20,
                duplicates: 10,
                ..Disorder::default()
            },
            ..TraceScript::default()
        };
        lab.run_in_real_time().unwrap();
        let ran = lab.traced_client(&script, &RECORD).unwrap().success().unwrap();
        lab.run_by_script().unwrap();
        let contents = contents(&lab, "stacks.rec");
        let outcomes = check_stacks(&contents, &stacks);
        let samples = contents.sample_counts.total(EVENT).weight.samples;
        let complete = outcomes.get("Complete").copied().unwrap_or_default();
        // An interrupt that comes while a DPC runs finds code at DISPATCH_LEVEL on a real processor.
        assert!(samples > 200 && complete > samples / 2, "{identity}: {outcomes:?}\n{}", ran.err);
        assert!(outcomes.contains_key("TakenElsewhere"), "{outcomes:?}");
        assert!(contents.sample_counts.locations().any(|(one, _)| one.kernel && one.stack.node().is_some()));
        assert_eq!(outcomes.values().sum::<u64>(), samples);

        // Each caller has the samples of the sites below it, apart from those without a stack.
        let whole = |ip| {
            let locations = contents.sample_counts.locations();
            let whole = locations.filter(|(location, _)| location.ip == ip && location.stack.node().is_some());
            whole.map(|(_, weight)| weight.samples).sum::<u64>()
        };
        let finder = SymbolFinder::new(vec![artifacts().unwrap()], None, None).unwrap();
        let filter = Filter::default();
        let index = SymbolIndex::new(&contents, &filter, &finder);
        let rows = Table::with_children(&contents, &index, EVENT, &[Column::Symbol], &filter).sorted_rows();
        for (name, places) in BELOW {
            let named = |symbol: &str| symbol.rsplit("::").next() == Some(&format!("{name}()"));
            let row = rows.iter().find(|row| row.symbol.as_deref().is_some_and(named));
            let row = row.unwrap_or_else(|| panic!("no {name} in {rows:#?}"));
            let wanted = places.iter().map(|place| whole(stacks[*place].ip)).sum::<u64>();
            assert_eq!(row.total.unwrap().weight.samples, wanted, "{identity}: {name}");
        }
        drop(workload);
        lab.finish().unwrap();
    }
}

/// The first interval is near the one that the frequency needs: with a short one, interrupts would come faster than the
/// events of the trace session are written, and half of the samples had no stack.
#[test]
fn a_short_recording_has_the_stacks_of_its_samples() {
    let (mut lab, workload, stacks) = boot("skylake-6600k");
    lab.run_in_real_time().unwrap();
    let record = ["record", "-g", "-a", "--duration", "0.3s", "-o", RECORDING];
    let ran = lab.traced_client(&TraceScript::default(), &record).unwrap().success().unwrap();
    lab.run_by_script().unwrap();
    let contents = contents(&lab, "stacks.rec");
    let outcomes = check_stacks(&contents, &stacks);
    let samples = contents.sample_counts.total(EVENT).weight.samples;
    // The others are those of code at DISPATCH_LEVEL.
    let missing = samples - outcomes.get("Complete").copied().unwrap_or_default();
    assert!(samples > 100 && missing * 5 < samples, "{outcomes:?}\n{}", ran.err);
    drop(workload);
    lab.finish().unwrap();
}

#[test]
fn losses_have_a_reason_and_are_told() {
    let (mut lab, workload, mut stacks) = boot("skylake-6600k");
    // A recursion that is deeper than the frames of an item.
    let outer = stacks[0].user.last().copied();
    stacks[0].user.extend(outer.into_iter().cycle().take(300));
    lab.wire.set_stacks(stacks.clone()).unwrap();
    let script = TraceScript {
        disorder: Disorder {
            seed: 3,
            user_parts: UserParts::Mixed,
            user_delay: 300,
            lost_user_parts: 10,
            lost_events: 10,
            buffer: 8,
            lost_buffers: 10,
            ..Disorder::default()
        },
        report: Some("C:\\trace.json".into()),
        ..TraceScript::default()
    };
    lab.run_in_real_time().unwrap();
    let ran = lab.traced_client(&script, &RECORD).unwrap().success().unwrap();
    lab.run_by_script().unwrap();
    let outcomes = check_stacks(&contents(&lab, "stacks.rec"), &stacks);
    for expected in ["Complete", "Truncated", "EventLost", "UserLost"] {
        assert!(outcomes.contains_key(expected), "{outcomes:?}");
    }
    let report = fs::read_to_string(lab.wine().drive_c("trace.json")).unwrap();
    let TraceReport { lost_events, lost_buffers, cut, .. } = serde_json::from_str(&report).unwrap();
    let told = format!("warning: Windows lost {lost_events} events and {lost_buffers} buffers of the trace session\n");
    assert!(ran.err.contains(&told) && cut > 0, "{report}\n{}", ran.err);
    drop(workload);
    lab.finish().unwrap();
}

#[test]
fn a_refused_trace_session_costs_the_stacks_and_a_trace_file_has_them() {
    let (mut lab, workload, _) = boot("haswell-4710mq");
    let refused = |function: &str, error| TraceScript {
        refusals: vec![Refusal { function: function.to_owned(), error, times: 9 }],
        ..TraceScript::default()
    };
    lab.run_in_real_time().unwrap();
    for (function, error, step) in
        [("StartTraceW", 5, "StartTrace"), ("OpenTraceW", 1_450, "OpenTrace"), ("EnableTraceEx2", 5, "EnableTraceEx2")]
    {
        let ran = lab.traced_client(&refused(function, error), &RECORD).unwrap().success().unwrap();
        let told = "warning: samples are recorded without call stacks: Windows refuses the trace session\n  because: ";
        assert!(ran.err.contains(&format!("{told}{step} failed: ")), "{}", ran.err);
        let contents = contents(&lab, "stacks.rec");
        let stats = contents.sample_counts.stack_stats(EVENT);
        assert!(contents.sample_counts.total(EVENT).weight.samples > 100 && !stats.are_recorded(), "{function}");
        assert!(lab.wire.providers().unwrap().iter().all(|provider| !provider.enabled), "{function}");
    }
    // Without the stand-in, the functions of Wine refuse.
    let ran = lab.client(&RECORD).unwrap().success().unwrap();
    assert!(ran.err.contains("warning: samples are recorded without call stacks"), "{}", ran.err);

    let traced =
        ["record", "--etl", "C:\\trace.etl", "-a", "--duration", "0.3s", "-e", "TotalIssues@4M", "-o", RECORDING];
    let ran = lab.traced_client(&TraceScript::default(), &traced).unwrap().success().unwrap();
    lab.run_by_script().unwrap();
    assert!(
        ran.err.contains("[ the call stacks are in C:\\trace.etl, for Windows Performance Analyzer ]"),
        "{}",
        ran.err
    );
    let file = fs::read_to_string(lab.wine().drive_c("trace.etl")).unwrap();
    assert!(file.lines().count() > 100, "{file}");
    drop(workload);
    lab.finish().unwrap();
}

/// A process that has ended before the client could query it, and an image of it.
#[test]
fn a_process_that_lives_shortly_is_known_by_the_trace_session() {
    const PROCESS: u32 = 9_996;
    const BASE: u64 = 0x2_4000_0000;
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    let site = InterruptSite { ip: BASE + 0x1010, user: true, process: PROCESS, thread: 9_997, weight: 1 };
    let user = vec![site.ip, BASE + 0x2020];
    for processor in 0..2 {
        lab.wire.set_interrupt_sites(processor, &[site]).unwrap();
    }
    let (kernel, raised) = (Vec::new(), false);
    lab.wire.set_stacks(vec![SiteStack { ip: site.ip, process: PROCESS, kernel, user, raised }]).unwrap();
    let path = r"\Device\HarddiskVolume9\tools\short.exe".to_owned();
    let system_events = vec![
        SystemEvent::ProcessStart { process: PROCESS, name: "short.exe".to_owned() },
        SystemEvent::ImageLoad { process: PROCESS, base: BASE, size: 0x1_0000, path },
    ];
    let script = TraceScript { system_events, ..TraceScript::default() };
    lab.run_in_real_time().unwrap();
    lab.traced_client(&script, &RECORD).unwrap().success().unwrap();
    lab.run_by_script().unwrap();
    let folded = lab.client(&["export", RECORDING, "--format", "folded", "--pid"]).unwrap().success().unwrap();
    let stack = format!("short.exe ({PROCESS});short.exe+0x2020;short.exe+0x1010 ");
    assert!(folded.out.lines().any(|line| line.starts_with(&stack)), "{}", folded.out);
    lab.finish().unwrap();
}
