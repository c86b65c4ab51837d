//! Hygon's processors, without and with the driver's option for them.

use model::Mode;
use pmu::state::{self, CounterSet};
use pmu::{Hal, Kind, Options, ProcessorIndex, Reason, Selection, Source};
use simulation::{SimMachine, boot};

const ON: Options = Options { hygon_as_amd: true };
const HYGON: [&str; 2] = ["hygon-c86-7185", "hygon-dhyana-3185"];

#[test]
fn hygon_has_no_counters_unless_the_option_says_so() {
    for name in HYGON {
        let machine = SimMachine::named(name, 1);
        let selection = |options| Selection::with_options(machine.processor(0), options);
        let off = selection(Options::default());
        assert_eq!((off.interface, off.reason), (Kind::Default, Reason::OtherVendor), "{name}");
        assert_eq!(Selection::of_boot_processor(machine.processor(0)), off);
        let on = selection(ON);
        assert_eq!((on.windows10, on.interface, on.reason), (Kind::Default, Kind::Amd64, Reason::Hygon), "{name}");
    }
}

#[test]
fn the_option_changes_no_other_processor() {
    for identity in cpuid_dumps::all().iter().filter(|identity| !HYGON.contains(&identity.name)) {
        let machine = SimMachine::named(identity.name, 1);
        let cpu = machine.processor(0);
        assert_eq!(Selection::with_options(cpu, ON), Selection::of_boot_processor(cpu), "{}", identity.name);
    }
}

#[test]
fn a_hygon_taken_for_amd_has_the_events_of_family_17_and_six_counters() {
    let zen = SimMachine::named("zen-1800x", 1);
    let zen = Hal::new(zen.processor(0), 1).unwrap();
    for name in HYGON {
        let machine = SimMachine::named(name, 1);
        let hal = Hal::with_states(machine.processor(0), ON, 1, 0, state::allocate).unwrap();
        let sources = |hal: &Hal| hal.source_list().map(|of| (of.source, of.support)).collect::<Vec<_>>();
        assert_eq!(sources(&hal), sources(&zen), "{name}");
        assert_eq!(hal.interface().kind(), Kind::Amd64);
    }
}

#[test]
fn a_hygon_taken_for_amd_counts() {
    let machine = SimMachine::named("hygon-dhyana-3185", 1);
    let hal = <Hal>::with_states(machine.processor(0), ON, 1, 0, state::allocate).unwrap();
    let cpu = machine.processor(0);
    simulation::access_first(&hal, cpu, 0);
    assert!(hal.initialize(boot(cpu)));
    let state = hal.state_for(Source(2), 0, false).unwrap().with_owner(1).with_user(true);
    let counter = hal.reserve(ProcessorIndex::BOOT, state).unwrap();
    hal.start(boot(cpu), CounterSet::NONE.with(counter));
    machine.run(0, Mode::User, &|selected| if selected.event == 0xC0 { 700 } else { 1 });
    assert_eq!(hal.count(boot(cpu), counter), 700);
}
