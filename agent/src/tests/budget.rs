//! What counting and sampling cost, by the accesses that the model counts.

use std::time::Duration;

use cpuid_dumps::CpuIdentity;
use halprof::Driver;
use halprof::event::role::Role;
use model::Mode;
use pmu::Source;
use protocol::{Event, EventRequest, StartHeader, flags, modes};

use super::super::costs::{Costs, INTERRUPT, PAUSE};
use super::super::counting::Counting;
use super::{Scene, config, events, raw_name};
use terminal::format::real;

fn is_soak() -> bool {
    std::env::var_os("HALPROF_SOAK").is_some()
}

#[test]
fn an_hour_on_64_cpus_stays_within_the_budget() {
    const PROCESSORS: u32 = 64;
    let seconds = if is_soak() { 3_600 } else { 60 };
    for (identity, accesses, interrupts) in [("haswell-4710mq", 1_000, 100), ("zen4-7700x", 300, 10)] {
        let events: Vec<String> = (0x90..0xA0).map(raw_name).collect();
        let config = config(&format!(
            "[counting]\nevents = {events:?}\n[budget]\nregister-accesses-per-second = {accesses}\n\
             interrupts-per-second = {interrupts}\n"
        ));
        let scene = Scene::new(identity, PROCESSORS);
        let mut counting = Counting::new(&config, &scene.system).unwrap();
        for second in 0..seconds {
            let (before, expiries) = (scene.accesses(), scene.expiries());
            counting.attend(scene.now()).unwrap();
            if second % 10 == 0 {
                counting.read(scene.now());
            }
            scene.pass(Duration::from_secs(1));
            let spent = scene.accesses() - before;
            // The first start initializes the counters.
            assert!(second == 0 || spent <= accesses * u64::from(PROCESSORS), "{identity}, second {second}: {spent}");
            assert!(scene.expiries() - expiries <= interrupts * u64::from(PROCESSORS), "{identity}, second {second}");
        }
        counting.finish(scene.now());
        let (spent, reported) = (scene.accesses(), counting.spent);
        assert!(spent <= reported.accesses, "{identity}: {spent} accesses, {} reported", reported.accesses);
        assert!(spent > reported.accesses / 4, "{identity}: {spent} accesses, {} reported", reported.accesses);
        assert!(scene.expiries() <= reported.interrupts, "{identity}: {} expiries, {reported:?}", scene.expiries());
        assert!(
            counting
                .totals
                .iter()
                .all(|(_, total)| total.times.running > 0 && total.times.running < total.times.enabled)
        );
    }
}

#[test]
fn a_profile_by_a_counter_stays_within_the_budget() {
    const PROCESSORS: u64 = 4;
    let seconds = if is_soak() { 600 } else { 10 };
    for (identity, accesses, interrupts) in [("haswell-4710mq", 3_000, 220), ("zen4-7700x", 2_900, 220)] {
        let config = config(&format!(
            "[counting]\nevents = [\"cycles\", \"instructions\"]\n[budget]\nregister-accesses-per-second = \
             {accesses}\ninterrupts-per-second = {interrupts}\n[profiles]\nevent = \"cycles\"\nfolder.path = \"x\"\n"
        ));
        let profiles = config.profiles.as_ref().unwrap();
        let scene = Scene::new(identity, PROCESSORS.try_into().unwrap());
        let mut counting = Counting::new(&config, &scene.system).unwrap();
        counting.attend(scene.now()).unwrap();
        let profile = scene.other();
        let cycles = profile.sources().unwrap().with_role(Role::Cycles).unwrap().clone();
        let event = EventRequest {
            event: cycles.event,
            modes: modes::BOTH,
            interval: cycles.interval,
            frequency: profiles.frequency,
            ..EventRequest::EMPTY
        };
        let header = StartHeader { flags: flags::YIELDS, ring: 1 << 12, ..StartHeader::EMPTY };
        let started = profile.start(&header, &[event]).unwrap();
        let mut random = bench_protocol::Random::new(25, 0);
        let (mut spent, mut interrupted) = (0, 0);
        for second in 0..seconds {
            let before = scene.accesses();
            counting.attend(scene.now()).unwrap();
            if second % 10 == 0 {
                counting.read(scene.now());
            }
            let interrupts_now = scene.pass_unsteadily(&mut random);
            let accesses_now = scene.accesses() - before;
            assert!(accesses_now <= accesses * PROCESSORS, "{identity}, second {second}: {accesses_now} accesses");
            assert!(
                interrupts_now <= interrupts * PROCESSORS,
                "{identity}, second {second}: {interrupts_now} interrupts"
            );
            spent += accesses_now;
            interrupted += interrupts_now;
        }
        let info = profile.info().unwrap();
        let counts = profile.stop_all(started.session).unwrap();
        let overflows: u64 = counts.iter().map(|count| count.samples + count.lost + count.throttled).sum();
        let (per_cpu, time) = (real(overflows) / real(PROCESSORS), Duration::from_secs(seconds));
        let cost = Costs::of(&info, 1).profile(super::super::profiling::sampling(profiles), per_cpu, time);
        let (accesses, interrupts) = (cost.accesses * real(PROCESSORS), cost.interrupts * real(PROCESSORS));
        assert!(real(spent) <= accesses + real(counting.spent.accesses), "{identity}: {spent} of {cost:?}");
        assert!(real(interrupted) <= interrupts, "{identity}: {interrupted} of {cost:?}");
        assert!(overflows > 10 * seconds * PROCESSORS, "{identity}: {overflows}");
    }
}

#[test]
fn no_processor_accesses_more_registers_than_is_computed() {
    let mut tested = 0;
    for CpuIdentity { name, .. } in cpuid_dumps::all() {
        let scene = Scene::new(name, 2);
        let driver = scene.other();
        let events = more_than_fit(&driver);
        let costs = Costs::of(&driver.info().unwrap(), events.len());
        if events.is_empty() {
            continue;
        }
        tested += 1;
        let config = config(&format!("[counting]\nevents = {events:?}\n"));
        let mut counting = Counting::new(&config, &scene.system).unwrap();
        // The first start initializes the counters.
        counting.attend(scene.now()).unwrap();
        counting.finish(scene.now());
        scene.pass(PAUSE);
        let start = most(&scene, || counting.attend(scene.now()).unwrap());
        scene.pass(Duration::from_millis(300));
        let read = most(&scene, || counting.read(scene.now()));
        let round = most(&scene, || scene.turn());
        let stop = most(&scene, || counting.finish(scene.now()));
        let bounds = (costs.switch().into(), costs.reading().into());
        assert!(start <= costs.start().into(), "{name}: {start} of {}", costs.start());
        assert!(round.max(stop) <= bounds.0, "{name}: {round}, {stop} of {}", bounds.0);
        assert!(read <= bounds.1, "{name}: {read} of {}", bounds.1);

        // A counter that samples is beside those that count.
        let header = StartHeader { ring: 1 << 12, ..StartHeader::EMPTY };
        let Some(Ok(_)) = sampled(&driver).map(|event| driver.start(&header, &[event])) else { continue };
        scene.pass(PAUSE);
        counting.attend(scene.now()).unwrap();
        let tick = most(&scene, || scene.tick());
        assert!(tick <= costs.tick().into(), "{name}: {tick} of {}", costs.tick());
        let mut served = 0;
        for _ in 0..20 {
            scene.machine.sim().pass(100_000);
            scene.machine.sim().run(0, Mode::User, &|_| 5_000);
            let serve = most(&scene, || served += scene.machine.deliver(0));
            assert!(serve <= INTERRUPT.into(), "{name}: {serve}");
        }
        assert!(served > 10, "{name}: {served}");
    }
    assert!(tested > 35, "{tested}");
}

#[test]
fn samples_by_time_access_no_register_and_do_not_tick() {
    for identity in ["haswell-4710mq", "zen4-7700x"] {
        let scene = Scene::new(identity, 2);
        let driver = scene.other();
        let time = EventRequest { event: Event::TIME, modes: modes::BOTH, interval: 210_000, ..EventRequest::EMPTY };
        driver.start(&StartHeader { ring: 1 << 12, ..StartHeader::EMPTY }, &[time]).unwrap();
        let accesses = most(&scene, || scene.pass(Duration::from_secs(1)));
        assert_eq!((accesses, scene.machine.sim().ticking().len()), (0, 0), "{identity}");
        assert_eq!(scene.expiries(), 2 * 47, "{identity}");
    }
}

/// Returns the most accesses that an operation makes on a CPU.
fn most(scene: &Scene, operation: impl FnOnce()) -> u64 {
    let before = scene.accesses_by_cpu();
    operation();
    scene.accesses_by_cpu().iter().zip(before).map(|(after, before)| after - before).max().unwrap_or_default()
}

/// Returns events that the processor counts, more than it has counters for; none if it counts nothing.
fn more_than_fit(driver: &Driver) -> Vec<String> {
    let is_counted = |event: EventRequest| {
        let started = driver.start(&StartHeader::EMPTY, &[event]);
        started.map(|started| driver.stop_all(started.session)).is_ok()
    };
    let by_source = |source| EventRequest { event: Event::of(source), modes: modes::BOTH, ..EventRequest::EMPTY };
    let sources = driver.sources().unwrap();
    let of_counters = sources.iter().filter(|source| source.supported && source.event.source != Source::TIME.0);
    let all: Vec<_> = of_counters.filter(|source| is_counted(by_source(source.event.source))).collect();
    let named = all.iter().step_by(all.len() / 30 + 1).map(|source| source.name.clone());
    let numbers = 0x90..0xA0_u8;
    let raw = numbers.clone().zip(events(numbers)).filter(|(_, event)| is_counted(*event));
    named.chain(raw.map(|(number, _)| raw_name(number))).collect()
}

/// Returns an event to sample with a short interval.
fn sampled(driver: &Driver) -> Option<EventRequest> {
    let sources = driver.sources().unwrap();
    let source = [Role::Cycles, Role::Instructions].into_iter().find_map(|role| sources.with_role(role))?;
    let interval = source.minimum;
    Some(EventRequest { event: source.event, modes: modes::BOTH, interval, frequency: 1_000, ..EventRequest::EMPTY })
}
