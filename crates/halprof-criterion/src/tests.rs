use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter};
use criterion::{Criterion, Throughput};
use halprof::Error;

use crate::exact::{ATTEMPTS, ExactBencher, count};
use crate::formatter::EventFormatter;
use crate::measurement::Events;
use crate::regions::{Region, Regions};

/// A thread whose routine adds its events to `now`.
#[derive(Default)]
struct Thread {
    now: u64,
    begun: Option<u64>,
    /// Which of the next regions are disturbed, and by how much.
    disturbed: VecDeque<Option<u64>>,
    lengths: Vec<u64>,
}

struct FakeRegions(Rc<RefCell<Thread>>);

impl Regions for FakeRegions {
    fn begin(&mut self) -> Result<(), Error> {
        let mut thread = self.0.borrow_mut();
        let now = thread.now;
        assert_eq!(thread.begun.replace(now), None);
        Ok(())
    }

    fn end(&mut self) -> Result<Region, Error> {
        let mut thread = self.0.borrow_mut();
        let count = thread.now - thread.begun.take().unwrap();
        thread.lengths.push(count);
        // Each event takes 100 ns.
        let time = Duration::from_nanos(count * 100);
        let more = thread.disturbed.pop_front().flatten();
        let disturbance = more.map(|_| "the thread was switched out once".to_owned());
        Ok(Region { count: count + more.unwrap_or_default(), disturbance, time })
    }
}

fn events(thread: &Rc<RefCell<Thread>>) -> Events {
    Events::of("instructions", Box::new(FakeRegions(Rc::clone(thread))))
}

#[test]
fn regions_grow_to_a_millisecond_and_a_disturbed_one_is_repeated() {
    let thread = Rc::new(RefCell::new(Thread::default()));
    let events = events(&thread);
    let inner = crate::current::get().unwrap();
    let mut slice = 1;
    let mut work = || thread.borrow_mut().now += 10;
    assert_eq!(count(&inner, 10_000, &mut slice, &mut work), 100_000);
    let longest = *thread.borrow().lengths.iter().max().unwrap();
    assert!((5_000..=20_000).contains(&longest), "{longest} events of 100 ns");

    thread.borrow_mut().disturbed = VecDeque::from([Some(777), None, Some(5), Some(6)]);
    assert_eq!(count(&inner, 10_000, &mut slice, &mut work), 100_000, "without the events of disturbed regions");
    assert_eq!(inner.summary(), None);

    thread.borrow_mut().disturbed = std::iter::repeat_n(Some(3), ATTEMPTS).collect();
    assert_eq!(count(&inner, 1, &mut slice, &mut work), 13, "a value all the same");
    let summary = inner.summary().unwrap();
    assert!(summary.starts_with("halprof: 1 of "), "{summary}");
    assert!(summary.ends_with("measured regions are not exact:\n  1 times the thread was switched out once"));
    drop(events);
}

#[test]
fn criterions_own_functions_report_disturbed_samples() {
    let thread = Rc::new(RefCell::new(Thread::default()));
    let events = events(&thread);
    thread.borrow_mut().disturbed = VecDeque::from([None, Some(1), Some(2)]);
    for wanted in [5, 6, 7] {
        events.start();
        thread.borrow_mut().now += 5;
        assert_eq!(events.end(()), wanted);
    }
    let summary = crate::current::get().unwrap().summary().unwrap();
    assert_eq!(summary, "halprof: 2 of 3 measured regions are not exact:\n  2 times the thread was switched out once");
}

#[test]
#[should_panic(expected = "halprof: a count is not exact: the thread was switched out once")]
fn strict_measurements_refuse_a_disturbed_sample() {
    let thread = Rc::new(RefCell::new(Thread::default()));
    let events = events(&thread).strict();
    thread.borrow_mut().disturbed = VecDeque::from([Some(1)]);
    events.start();
    events.end(());
}

#[test]
fn criterion_runs_with_counts_that_never_vary() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        // The second run compares with the first.
        let thread = Rc::new(RefCell::new(Thread::default()));
        let criterion = Criterion::default().with_measurement(events(&thread)).output_directory(folder.path());
        let times = Duration::from_millis(20);
        let mut criterion = criterion.sample_size(10).warm_up_time(times).measurement_time(times).nresamples(100);
        let mut group = criterion.benchmark_group("constant");
        group.throughput(Throughput::Elements(4));
        group.bench_function("exact", |bencher| bencher.iter_exact(|| thread.borrow_mut().now += 40));
        group.bench_function("plain", |bencher| bencher.iter(|| thread.borrow_mut().now += 40));
        group.finish();
    }
    for name in ["exact", "plain"] {
        let file = folder.path().join("constant").join(name).join("new/estimates.json");
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains("\"point_estimate\":40.0"), "{text}");
    }
}

#[test]
fn criterion_accepts_samples_without_events() {
    let folder = tempfile::tempdir().unwrap();
    for nanoseconds in [100, 300] {
        // The second run has other numbers of iterations, and compares with the first.
        let thread = Rc::new(RefCell::new(Thread::default()));
        let criterion = Criterion::default().with_measurement(events(&thread)).output_directory(folder.path());
        let times = Duration::from_millis(10);
        let mut criterion = criterion.sample_size(10).warm_up_time(times).measurement_time(times).nresamples(100);
        let busy = || std::thread::sleep(Duration::from_nanos(nanoseconds));
        criterion.bench_function("exact", |bencher| bencher.iter_exact(busy));
        criterion.bench_function("plain", |bencher| bencher.iter(busy));
        let mut sample = 0;
        criterion.bench_function("seldom", |bencher| {
            sample += 1;
            bencher.iter_exact(|| thread.borrow_mut().now += sample % 2);
        });
        let summary = crate::current::get().unwrap().summary().unwrap();
        assert!(summary.contains(" samples have no events. Criterion "), "{summary}");
    }
    let point = |name: &str, kind: &str| -> f64 {
        let text = std::fs::read_to_string(folder.path().join(name).join(kind).join("estimates.json")).unwrap();
        let (_, mean) = text.split_once("\"mean\":").unwrap();
        let (_, value) = mean.split_once("\"point_estimate\":").unwrap();
        value.split_once(',').unwrap().0.parse().unwrap()
    };
    for name in ["exact", "plain"] {
        assert!((0.0..1e-20).contains(&point(name, "new")), "{}", point(name, "new"));
    }
    assert!(point("exact", "change").abs() < 1e-9, "{}", point("exact", "change"));
    assert!((0.3..0.7).contains(&point("seldom", "new")), "{}", point("seldom", "new"));
}

#[test]
fn a_bencher_with_several_measurements_is_ambiguous() {
    let thread = Rc::new(RefCell::new(Thread::default()));
    let one = events(&thread);
    assert!(crate::current::get().is_some());
    let other = events(&thread);
    assert!(crate::current::get().is_none());
    drop(one);
    assert!(crate::current::get().is_some());
    drop(other);
    assert!(crate::current::get().is_none());
}

#[test]
fn values_are_written_with_the_unit_of_the_event() {
    let text = |event, value| EventFormatter::of(event).format_value(value);
    assert_eq!(text("instructions", 12.0), "12.000 instr");
    assert_eq!(text("instructions", 9_999.0), "9999.0 instr");
    assert_eq!(text("cycles", 12_345.0), "12.345 K cycles");
    assert_eq!(text("branch-misses", 2.5e7), "25.000 M br.misses");
    assert_eq!(text("MEM_LOAD_RETIRED.L3_MISS", 1e11), "100.00 G events");
    let formatter = EventFormatter::of("instructions");
    assert_eq!(formatter.format_throughput(&Throughput::Bytes(100), 250.0), "2.5000 instr/byte");
    assert_eq!(formatter.format_throughput(&Throughput::Elements(0), 250.0), "250.00 instr/elem");
}
