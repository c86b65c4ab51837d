//! The agent on the model of a machine: the engine of the driver, with the model of its processors.

mod budget;

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use agent::config::Config;
use agent::{Family, ServerError, Snapshot, Value};
use halprof::{Driver, ServiceState};
use model::{Accesses, Mode, Selected};
use protocol::{Event, EventRequest, StartHeader, flags, modes};

use super::counting::Counting;
use super::gap::GapReason;
use super::outputs::OutputsError;
use super::points::{Begun, snapshot};
use super::profiling::Profiled;
use super::profiling::Profiling;
use fake_system::{FakeDriver, FakeSystem, ModelMachine};
use terminal::format::real;
use user_error::UserError;
use user_error::exit::Exit;

/// Events of every kind in a second on a CPU.
const RATE: u64 = 1_000_000;

/// Units of 100 ns in a second.
const SECOND: u64 = 10_000_000;

fn config(text: &str) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.toml");
    std::fs::write(&path, text).unwrap();
    Config::read(&path).unwrap()
}

/// A machine that counts, with a simulated clock.
struct Scene {
    machine: Arc<ModelMachine>,
    system: FakeSystem,
    processors: u32,
    /// Units of 100 ns that have passed.
    units: Cell<u64>,
    expiries: Cell<u64>,
}

impl Scene {
    fn new(identity: &str, processors: u32) -> Self {
        let machine = ModelMachine::new(identity, processors, 1_000);
        let mut system = FakeSystem::running(FakeDriver::default());
        system.model = Some(Arc::clone(&machine));
        Self { machine, system, processors, units: Cell::default(), expiries: Cell::default() }
    }

    fn other(&self) -> Driver {
        Driver::over(self.machine.open()).unwrap()
    }

    fn units(&self) -> u64 {
        self.units.get()
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(100 * self.units())
    }

    fn expiries(&self) -> u64 {
        self.expiries.get()
    }

    /// Returns how often each event has occurred on a CPU.
    fn occurred(&self) -> u64 {
        self.units() * RATE / SECOND
    }

    /// Lets time pass, in which each event occurs at the rate on each CPU and the timers expire.
    fn pass(&self, time: Duration) {
        let sim = self.machine.sim();
        let mut left = u64::try_from(time.as_nanos() / 100).unwrap();
        while left > 0 {
            let step = sim.timer().map_or(left, u64::from).min(left);
            sim.pass(step);
            for processor in 0..self.processors {
                sim.run(processor, Mode::User, &|_| RATE * step / SECOND);
            }
            // A timer that did not run to its end expires in the next step.
            if Some(step) == sim.timer().map(u64::from) {
                for processor in sim.timed() {
                    self.machine.expire(processor);
                    self.expiries.set(self.expiries() + 1);
                }
            }
            self.units.set(self.units() + step);
            left -= step;
        }
    }

    /// Begins the next round of events that take turns.
    fn turn(&self) {
        let sim = self.machine.sim();
        sim.pass(sim.timer().map_or(0, u64::from));
        sim.timed().into_iter().for_each(|processor| self.machine.expire(processor));
    }

    /// Lets the CPUs tick that do.
    fn tick(&self) {
        self.machine.sim().ticking().into_iter().for_each(|processor| self.machine.tick(processor));
    }

    /// Lets a second pass, in which the rate of all events on a CPU changes at random every 50 ms. Returns how often a
    /// counter interrupted and a CPU ticked.
    fn pass_unsteadily(&self, random: &mut bench_protocol::Random) -> u64 {
        const STEP: u64 = SECOND / 2_000;
        let sim = self.machine.sim();
        let (mut interrupts, mut rates) = (0, vec![0; self.processors as usize]);
        for step in 1..=SECOND / STEP {
            if step % 100 == 1 {
                rates.fill_with(|| 100 * 100_u64.pow(u32::try_from(random.up_to(2)).unwrap()));
            }
            sim.pass(STEP);
            for (processor, rate) in (0..).zip(&rates) {
                sim.run(processor, Mode::User, &|_| rate * 50 / 1_000);
                interrupts += self.machine.deliver(processor);
                if step % 20 == 0 && sim.ticking().contains(&processor) {
                    self.machine.tick(processor);
                    interrupts += 1;
                }
            }
            self.units.set(self.units() + STEP);
        }
        interrupts
    }

    /// Returns the accesses of performance registers on each CPU.
    fn accesses_by_cpu(&self) -> Vec<u64> {
        let of = |Accesses { rdmsr, wrmsr, rdpmc, .. }: Accesses| rdmsr + wrmsr + rdpmc;
        self.machine.sim().all().map(|cpu| of(cpu.model().accesses())).collect()
    }

    fn accesses(&self) -> u64 {
        self.accesses_by_cpu().iter().sum()
    }
}

fn value(snapshot: &Snapshot, family: Family, label: &str) -> Value {
    let is_it = |point: &&agent::Point| {
        point.family == family && (label.is_empty() || point.labels.iter().any(|(_, value)| value == label))
    };
    snapshot.points.iter().find(is_it).unwrap().value
}

fn published(counting: &Counting, config: &Config) -> Snapshot {
    let begun = Begun { agent: SystemTime::UNIX_EPOCH, driver: SystemTime::UNIX_EPOCH };
    snapshot(counting, config, &Profiled::default(), begun, None)
}

/// Returns the name of a raw event with this number, as [`events`] has it.
fn raw_name(event: u8) -> String {
    format!("cpu/event={event:#x},umask=0x81/")
}

fn events(numbers: std::ops::Range<u8>) -> Vec<EventRequest> {
    let raw = |number: u8| pmu::source::RawEvent::new().with_event(u16::from(number)).with_umask(0x81);
    let event =
        |number| EventRequest { event: Event::of(raw(number).source().0), modes: modes::BOTH, ..EventRequest::EMPTY };
    numbers.map(event).collect()
}

#[test]
fn counts_are_those_that_occurred_and_turns_are_extrapolated() {
    let events: Vec<String> = ["instructions".to_owned()].into_iter().chain((0x90..0x9C).map(raw_name)).collect();
    let config = config(&format!("[counting]\nevents = {events:?}\n"));
    let scene = Scene::new("haswell-4710mq", 2);
    let mut counting = Counting::new(&config, &scene.system).unwrap();
    for _ in 0..30 {
        counting.attend(scene.now()).unwrap();
        counting.read(scene.now());
        scene.pass(Duration::from_secs(10));
    }
    counting.finish(scene.now());
    let expected = real(2 * 300 * RATE);
    for (key, total) in counting.totals.iter() {
        let share = real(total.times.running) / real(total.times.enabled);
        assert_eq!(total.times.enabled, 2 * 300 * SECOND, "{key:?}");
        assert!((total.scaled / expected - 1.0).abs() < 0.01, "{key:?}: {total:?}");
        assert!((real(total.count) / expected / share - 1.0).abs() < 0.01, "{key:?}: {total:?}");
        assert!(share < 1.0, "{key:?}");
    }
    assert_eq!(counting.totals.iter().count(), 13);
}

/// In every second turn, 100 times as many events occur. The misses of each are 5 per thousand instructions, and so are
/// those of a metric whose events had counters in the same turns.
#[test]
fn the_events_of_a_metric_are_those_of_one_group() {
    let config = config("[counting]\nmetrics = [\"IPC\", \"TopdownL1\", \"Cache_MPKI\"]\n");
    let scene = Scene::new("skylake-u-6500u", 1);
    let mut counting = Counting::new(&config, &scene.system).unwrap();
    counting.attend(scene.now()).unwrap();
    counting.read(scene.now());
    for turn in 0..40 {
        let of_event = |selected: Selected| if (selected.event, selected.umask) == (0x2E, 0x41) { 5 } else { 1_000 };
        let times = if turn % 2 == 0 { 1 } else { 100 };
        scene.machine.sim().run(0, Mode::User, &|selected| times * of_event(selected));
        scene.turn();
    }
    counting.read(Duration::from_secs(10));
    assert!(counting.totals.iter().any(|(_, total)| total.times.running < total.times.enabled), "no events take turns");
    let misses = counting.metrics.iter().find(|metric| metric.name == "Cache_MPKI").unwrap().value.unwrap();
    assert!((misses - 5.0).abs() < 0.01, "{misses} misses in 1,000 instructions");
}

#[test]
fn another_session_gets_the_counters_at_once_and_each_gap_is_in_the_data() {
    const SESSIONS: u64 = 1_000;
    let config = config("[counting]\nevents = [\"{cycles,instructions,branches,branch-misses}\"]\ninterval = \"1s\"\n");
    let scene = Scene::new("amd-legacy", 2);
    let mut counting = Counting::new(&config, &scene.system).unwrap();
    let other = scene.other();
    let mut random = bench_protocol::Random::new(24, 0);
    let (mut counted, mut gaps, mut without) = (0, 0, 0);
    let second = |counting: &mut Counting| {
        counting.attend(scene.now()).unwrap();
        counting.read(scene.now());
    };
    for session in 0..SESSIONS {
        // The agent attends once in a second; the other session begins and ends at any moment.
        for _ in 0..random.up_to(4) {
            second(&mut counting);
            scene.pass(Duration::from_secs(1));
        }
        scene.pass(Duration::from_millis(random.up_to(999)));
        let was_counting = counting.is_counting();
        let before = scene.now();
        let started = other.start(&StartHeader::EMPTY, &events(0x90..0x94));
        assert_eq!(scene.now(), before, "the start does not wait");
        let started = started.unwrap_or_else(|error| panic!("session {session} is refused: {error}"));
        scene.pass(Duration::from_millis(1 + random.up_to(2_999)));
        second(&mut counting);
        assert!(!counting.is_counting(), "no counter is left for the agent");
        assert_eq!(counting.gaps.current().map(|gap| gap.reason), Some(GapReason::Yielded));
        let counts = other.stop_all(started.session).unwrap();
        counted += counts.iter().map(|count| count.count).sum::<u64>() / 8;
        gaps += u64::from(was_counting);
        without += u64::from(!was_counting);
    }
    let (count, time) = counting.gaps.of(GapReason::Yielded);
    assert_eq!(count, gaps);
    assert!(without < gaps, "{without} of {SESSIONS} sessions began in a gap");
    counting.finish(scene.now());
    let total = counting.totals.iter().next().unwrap().1;
    // What the agent did not count is what the other session counted, and what occurred until the agent came back.
    let missing = scene.occurred() * 2 - total.count;
    assert!(missing >= counted * 2, "{missing} {counted}");
    let gap = real(missing) / real(2 * RATE);
    assert!((time.as_secs_f64() - gap).abs() < 0.01, "{time:?} of gaps, {gap} s without counts");
    assert_eq!(total.times.enabled + missing * SECOND / RATE, 2 * scene.units());
}

#[test]
fn the_driver_can_stop_and_its_restart_is_a_reset() {
    let config = config("[counting]\nevents = [\"instructions\"]\n");
    let scene = Scene::new("zen4-7700x", 2);
    let mut counting = Counting::new(&config, &scene.system).unwrap();
    let steps = |counting: &mut Counting, seconds: u64| {
        for _ in 0..seconds {
            counting.attend(scene.now()).unwrap();
            counting.read(scene.now());
            scene.pass(Duration::from_secs(1));
        }
    };
    steps(&mut counting, 10);
    assert_eq!(value(&published(&counting, &config), Family::Events, ""), Value::Integer(2 * 9 * RATE));
    scene.system.service.set(Some(ServiceState::Stopping));
    steps(&mut counting, 1);
    assert!(counting.driver().is_none(), "an open handle keeps the driver loaded");
    scene.system.service.set(Some(ServiceState::Stopped));
    steps(&mut counting, 5);
    let snapshot = published(&counting, &config);
    assert_eq!(value(&snapshot, Family::Up, ""), Value::Integer(0));
    let gaps = (value(&snapshot, Family::Gaps, "driver"), value(&snapshot, Family::GapTime, "driver"));
    assert_eq!(gaps, (Value::Integer(1), Value::Real(5.0)));
    scene.system.service.set(Some(ServiceState::Running));
    steps(&mut counting, 3);
    let snapshot = published(&counting, &config);
    assert_eq!((counting.resets, value(&snapshot, Family::Up, "")), (2, Value::Integer(1)));
    assert_eq!(value(&snapshot, Family::Events, ""), Value::Integer(2 * 2 * RATE), "it begins at zero");
    assert_eq!(value(&snapshot, Family::Gaps, "driver"), Value::Integer(1));
}

#[test]
fn what_cannot_be_counted_here_is_an_error_and_what_is_in_use_is_a_gap() {
    let scene = Scene::new("amd-legacy", 1);
    let unknown = config("[counting]\nevents = [\"no_such_event\"]\n");
    let mut counting = Counting::new(&unknown, &scene.system).unwrap();
    assert!(counting.attend(scene.now()).is_err());
    drop(counting);
    let other = scene.other();
    other.start(&StartHeader::EMPTY, &events(0x90..0x94)).unwrap();
    let known = config("[counting]\nevents = [\"instructions\"]\n");
    let mut counting = Counting::new(&known, &scene.system).unwrap();
    counting.attend(scene.now()).unwrap();
    assert_eq!(counting.gaps.current().map(|gap| gap.reason), Some(GapReason::Refused));
    assert!(counting.describe().starts_with("waiting for counters: "), "{}", counting.describe());
    drop(other);
    scene.pass(Duration::from_secs(3));
    counting.attend(scene.now()).unwrap();
    assert!(counting.is_counting());
}

#[test]
fn a_profile_is_recorded_and_converted_and_leaves_no_file() {
    let driver = FakeDriver::default();
    driver.samples.borrow_mut().push_back(vec![fake_system::sample(0, 0x1234), fake_system::sample(1, 0x1234)]);
    let system = FakeSystem::running(driver);
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "[counting]\nevents = [\"cycles\"]\n[profiles]\nduration = \"1s\"\nfolder.path = '{}'\n",
        folder.path().display()
    );
    let profiles = config(&text).profiles.unwrap();
    let taken = Profiling::new(&profiles).unwrap().take(&|| false, &system).unwrap();
    assert!(taken.pprof.starts_with(&[0x1F, 0x8B]), "it is not compressed");
    assert_eq!((taken.profiled.samples, taken.profiled.lost), (2, 0));
    assert!(taken.ended > taken.begun && taken.profiled.interrupts > 0);
    assert_eq!(std::fs::read_dir(folder.path().join("taking")).unwrap().count(), 0);
    let starts = system.driver.inputs(protocol::Code::Start);
    let header = <StartHeader as zerocopy::FromBytes>::read_from_prefix(&starts[0]).unwrap().0;
    assert_eq!(header.flags, flags::YIELDS);
}

#[test]
fn an_event_whose_samples_nothing_bounds_is_refused() {
    for (event, expected) in [
        ("no such event", "`event` in [profiles] is \"no such event\""),
        ("cycles,instructions", "more than one event"),
        ("cycles@1000", "with an interval, but `frequency` says how often"),
        ("instructions:p", "which is precise"),
    ] {
        let text = format!("[counting]\nevents = [\"cycles\"]\n[profiles]\nevent = \"{event}\"\nfolder.path = \"x\"\n");
        let error = crate::verb::check_events(&config(&text)).unwrap_err();
        assert!(error.to_string().contains(expected), "{event}: {error}");
        assert_eq!(error.exit(), Exit::Usage);
    }
    let raw = "cpu/event=0x90,umask=0x81/u";
    let text = format!("[counting]\nevents = [\"cycles\"]\n[profiles]\nevent = \"{raw}\"\nfolder.path = \"x\"\n");
    crate::verb::check_events(&config(&text)).unwrap();
}

#[test]
fn a_port_that_is_taken_is_no_fault_of_the_configuration() {
    let (address, cause) = (([127, 0, 0, 1], 9_464).into(), std::io::ErrorKind::AddrInUse.into());
    let remedy = OutputsError::Prometheus(ServerError::Listen { address, cause }).remedy().unwrap();
    assert!(remedy.starts_with("another port in listen"), "{remedy}");
}
