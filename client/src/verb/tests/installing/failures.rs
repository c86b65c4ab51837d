//! `install` when a step fails, or when the client crashes in it: afterwards the machine has the new driver or the old
//! one, wholly, and the service runs if it ran before or if the installation succeeded. The driver's events are
//! restricted if they were before or if the installation succeeded.

use super::*;

/// A machine before an installation of the driver "new".
#[derive(Debug, Clone, Copy)]
struct Before {
    service: Option<ServiceState>,
    /// Names of the drivers in halprof.sys and in halprof.sys.old.
    current: Option<&'static str>,
    previous: Option<&'static str>,
    /// The driver to return to.
    old: Option<&'static str>,
    /// Whether the driver's events are restricted.
    restricted: bool,
}

const fn before(
    service: Option<ServiceState>,
    current: Option<&'static str>,
    previous: Option<&'static str>,
    old: Option<&'static str>,
) -> Before {
    Before { service, current, previous, old, restricted: false }
}

const RUNNING: Option<ServiceState> = Some(ServiceState::Running);
const STOPPED: Option<ServiceState> = Some(ServiceState::Stopped);

/// Every combination that an installation can find.
const MACHINES: [Before; 10] = [
    before(None, None, None, None),
    before(RUNNING, Some("old"), None, Some("old")),
    before(STOPPED, Some("old"), None, Some("old")),
    before(STOPPED, Some("new"), None, Some("new")),
    before(STOPPED, None, None, None),
    // The last installation did not finish: before the new driver was started, or after that.
    before(STOPPED, Some("new"), Some("old"), Some("old")),
    before(STOPPED, Some("half tried"), Some("old"), Some("old")),
    before(RUNNING, Some("old"), Some("older"), Some("old")),
    before(RUNNING, Some("new"), Some("old"), Some("new")),
    before(STOPPED, None, Some("old"), Some("old")),
];

/// Returns every combination, with the events restricted and not.
fn machines() -> impl Iterator<Item = Before> {
    [false, true].into_iter().flat_map(|restricted| MACHINES.map(|before| Before { restricted, ..before }))
}

impl Before {
    fn machine(self) -> Machine {
        let machine = Machine::new(self.service);
        for (name, file) in [("halprof.sys", self.current), ("halprof.sys.old", self.previous)] {
            if let Some(file) = file {
                machine.put(name, &driver(file));
            }
        }
        if self.restricted {
            machine.restrict();
        }
        machine
    }

    /// Returns the number of calls of an installation.
    fn calls(self, failing: &[usize]) -> usize {
        let machine = self.machine();
        machine.system.failing.replace(failing.to_vec());
        let _ = machine.install(&[]);
        machine.system.calls.borrow().len()
    }
}

impl Machine {
    fn service(&self) -> Option<ServiceState> {
        self.system.service.get()
    }

    fn is_restricted(&self) -> bool {
        self.descriptor().as_deref() == Some(descriptor())
    }

    fn has_new_driver_running(&self) -> bool {
        self.installed() == Some(driver("new")) && self.service() == RUNNING && self.is_restricted()
    }

    /// Checks that the machine is as it was before, or has the driver to which that leads.
    fn is_as_before(&self, before: Before) -> bool {
        let installed = self.installed();
        let same = installed == before.current.map(driver) || installed == before.old.map(driver);
        same && self.service() == before.service && self.is_restricted() == before.restricted
    }

    /// Checks that an installation without failures succeeds now and leaves nothing.
    fn check_repair(&self, what: &str) {
        self.system.failing.borrow_mut().clear();
        self.system.crash.set(None);
        let run = self.install(&[]);
        assert!(run.outcome.is_ok(), "{what}: {}", run.failure().1);
        assert!(self.has_new_driver_running(), "{what}");
        assert_eq!(self.leftovers(), [""; 0], "{what}");
    }
}

#[test]
fn if_any_step_fails_the_old_driver_is_back_or_the_new_one_runs() {
    let mut failures = 0;
    for before in machines() {
        for step in 0..before.calls(&[]) {
            let machine = before.machine();
            machine.system.failing.replace(vec![step]);
            let run = machine.install(&[]);
            let what = format!("{before:?}: {step} of {:?}", machine.system.calls.borrow());
            if run.outcome.is_ok() {
                assert!(machine.has_new_driver_running(), "{what}");
            } else {
                failures += 1;
                assert!(machine.is_as_before(before), "{what}: {:?} {}", machine.service(), run.failure().1);
                let kept = before.previous.map(|_| "halprof.sys.old".to_owned());
                let unexpected = machine.leftovers().into_iter().find(|name| kept.as_ref() != Some(name));
                assert_eq!(unexpected, None, "{what}");
                assert!(run.out.is_empty(), "{what}: {}", run.out);
            }
            machine.check_repair(&what);
        }
    }
    assert!(failures > 60, "{failures}");
}

#[test]
fn if_the_rollback_fails_as_well_both_causes_and_the_state_are_told() {
    let mut told = 0;
    for before in machines() {
        for first in 0..before.calls(&[]) {
            for second in first + 1..before.calls(&[first]) {
                let machine = before.machine();
                machine.system.failing.replace(vec![first, second]);
                let run = machine.install(&[]);
                let what = format!("{before:?}: {first} and {second} of {:?}", machine.system.calls.borrow());
                let files = [Some("new"), before.current, before.old].map(|name| name.map(driver));
                assert!(files.contains(&machine.installed()) || machine.installed().is_none(), "{what}");
                if run.outcome.is_ok() {
                    assert!(machine.has_new_driver_running(), "{what}");
                } else if !machine.is_as_before(before) {
                    let report = run.failure().1;
                    for number in [first, second] {
                        let call = machine.system.calls.borrow()[number];
                        assert!(report.contains(&format!("the call {call} failed")), "{what}: {report}");
                    }
                    assert!(report.contains("\n  now: the installation could not be undone: "), "{what}: {report}");
                    let service =
                        machine.service().map_or("does not exist".to_owned(), |state| format!("is {}", state.text()));
                    assert!(report.contains(&format!("the service halprof {service}")), "{what}: {report}");
                    told += 1;
                }
                machine.check_repair(&what);
            }
        }
    }
    assert!(told > 10, "{told}");
}

#[test]
fn a_crash_in_any_step_leaves_a_whole_driver_and_the_next_install_repairs_the_rest() {
    for before in machines() {
        for step in 0..before.calls(&[]) {
            for restarts in [false, true] {
                let machine = before.machine();
                machine.system.crash.set(Some(step));
                let _ = machine.install(&[]);
                let what = format!("{before:?}: {step} of {:?}, {restarts}", machine.system.calls.borrow());
                let files = [before.current, before.old, Some("new")].map(|name| name.map(driver));
                assert!(files.contains(&machine.installed()), "{what}");
                if restarts {
                    // A restart of Windows does not start the service.
                    machine.system.service.set(machine.service().map(|_| ServiceState::Stopped));
                }
                let service = machine.service();
                machine.system.crash.set(None);

                // The next driver does not start: the machine returns to one that did.
                machine.put("new.sys", &driver("unloadable"));
                machine.system.unloadable.replace(vec![(driver("unloadable"), win32::ERROR_DRIVER_BLOCKED)]);
                assert!(machine.install(&[]).outcome.is_err(), "{what}");
                let files = [before.current, before.previous, before.old, Some("new")].map(|name| name.map(driver));
                assert!(files.contains(&machine.installed()), "{what}");
                assert_eq!(machine.service(), service, "{what}");

                machine.put("new.sys", &driver("new"));
                machine.check_repair(&what);
            }
        }
    }
}

#[test]
fn a_crash_leaves_nothing_that_uninstall_does_not_remove() {
    for before in machines() {
        for step in 0..before.calls(&[]) {
            let machine = before.machine();
            machine.system.crash.set(Some(step));
            let _ = machine.install(&[]);
            machine.system.crash.set(None);
            assert!(run(&machine.system, "uninstall").outcome.is_ok(), "{before:?}: {step}");
            assert_eq!((machine.service(), machine.installed(), machine.leftovers()), (None, None, vec![]));
            assert_eq!(machine.descriptor(), None, "{before:?}: {step}");
        }
    }
}

#[test]
fn a_driver_that_does_not_start_is_rolled_back() {
    let refused = vec![(driver("new"), win32::ERROR_INVALID_IMAGE_HASH)];
    let machine = before(RUNNING, Some("old"), None, Some("old")).machine();
    machine.system.unloadable.replace(refused.clone());
    let (exit, report) = machine.install(&[]).failure();
    assert_eq!(exit, Exit::DriverFile);
    assert!(report.starts_with("error: Windows refuses to load the driver\n  because: "), "{report}");
    assert!(report.contains("\n  now: the old driver is in place, and runs\n  try: a signed halprof.sys"), "{report}");
    assert_eq!((machine.installed(), machine.service()), (Some(driver("old")), RUNNING));
    assert_eq!(machine.done(), ["stop", "register", "start", "start"]);

    for (before, outcome) in [
        (MACHINES[0], "the driver is not installed, as before"),
        (MACHINES[2], "the old driver is in place, and does not run, as before"),
        (MACHINES[5], "the old driver is in place, and does not run, as before"),
    ] {
        let machine = before.machine();
        machine.system.unloadable.replace(refused.clone());
        let report = machine.install(&[]).failure().1;
        assert!(report.contains(&format!("\n  now: {outcome}\n")), "{report}");
        assert_eq!((machine.installed(), machine.service()), (before.old.map(driver), before.service), "{before:?}");
        assert_eq!(machine.leftovers(), [""; 0], "{before:?}");
    }
}

#[test]
fn a_driver_that_starts_but_does_not_answer_is_rolled_back() {
    let machine = MACHINES[1].machine();
    machine.system.unopenable.replace(vec![(driver("new"), win32::ERROR_FILE_NOT_FOUND)]);
    let (exit, report) = machine.install(&[]).failure();
    assert_eq!(exit, Exit::Failure);
    assert_eq!(
        report,
        "error: the driver was started, but does not answer\n  \
         because: the service halprof is running, but its device does not exist\n  \
         now: the old driver is in place, and runs\n  \
         try: sc.exe stop halprof, then: .\\client install"
    );
    assert_eq!((machine.installed(), machine.service()), (Some(driver("old")), RUNNING));

    // It does not stop either.
    let mut machine = MACHINES[2].machine();
    machine.system.busy = true;
    machine.system.unopenable.replace(vec![(driver("new"), win32::ERROR_FILE_NOT_FOUND)]);
    let report = machine.install(&[]).failure().1;
    assert!(report.contains("\n  now: the installation could not be undone: the driver does not stop"), "{report}");
    assert!(report.contains("\n       the service halprof is stopping; "), "{report}");
    assert!(report.contains("halprof.sys is the old driver\n"), "{report}");
}

#[test]
fn a_driver_that_answers_with_another_version_is_rolled_back() {
    let mut machine = MACHINES[1].machine();
    machine.system.driver = Arc::new(FakeDriver { protocol: 5, ..FakeDriver::default() });
    let (exit, report) = machine.install(&[]).failure();
    assert_eq!(exit, Exit::VersionMismatch);
    assert!(report.contains("and the driver has version 5\n  now: the old driver is in place, and runs"), "{report}");
    assert_eq!((machine.installed(), machine.service()), (Some(driver("old")), RUNNING));
}

#[test]
fn a_driver_that_denies_access_has_answered() {
    let machine = MACHINES[1].machine();
    machine.system.unopenable.replace(vec![(driver("new"), win32::ERROR_ACCESS_DENIED)]);
    let run = machine.install(&[]);
    assert!(run.outcome.is_ok() && machine.has_new_driver_running());
    assert!(run.out.contains("its protocol version was not checked: access to the driver was denied"), "{}", run.out);
}

#[test]
fn without_a_start_the_old_file_is_kept_until_the_new_driver_has_started() {
    let machine = MACHINES[1].machine();
    assert!(machine.install(&["--no-start"]).outcome.is_ok());
    assert_eq!((machine.installed(), machine.service()), (Some(driver("new")), STOPPED));
    assert_eq!(machine.leftovers(), ["halprof.sys.old"]);
    machine.system.unloadable.replace(vec![(driver("new"), win32::ERROR_DRIVER_BLOCKED)]);
    assert!(machine.install(&[]).outcome.is_err());
    assert_eq!((machine.installed(), machine.leftovers()), (Some(driver("old")), vec![]));
}

#[test]
fn a_new_driver_that_stays_loaded_is_moved_aside() {
    let machine = MACHINES[1].machine();
    machine.system.unloadable.replace(vec![(driver("new"), win32::ERROR_DRIVER_BLOCKED)]);
    machine.system.loaded.replace(vec![driver("new")]);
    assert!(machine.install(&[]).failure().1.contains("\n  now: the old driver is in place, and runs\n"));
    assert_eq!(
        (machine.installed(), machine.leftovers()),
        (Some(driver("old")), vec!["halprof.sys.loaded".to_owned()])
    );
    let uninstalled = run(&machine.system, "uninstall");
    assert!(uninstalled.outcome.is_ok() && machine.installed().is_none());
    assert!(uninstalled.out.contains("halprof.sys.loaded is still loaded; it can be removed after a restart\n"));
    machine.system.loaded.borrow_mut().clear();
    assert!(run(&machine.system, "uninstall").outcome.is_ok());
    assert_eq!(machine.leftovers(), [""; 0]);
}
