//! The restriction of the driver's events: `install` adds it before the driver runs, `uninstall` removes it, and
//! neither touches a security descriptor of others.

use super::*;

const ADDED: &str = "events restricted to SYSTEM and Administrators\n";

/// A descriptor that is not that of an installation: its first entry has other rights.
fn other() -> Vec<u8> {
    let mut other = descriptor().to_vec();
    other[32] ^= 1;
    other
}

#[test]
fn events_are_restricted_before_the_driver_is_started_and_until_it_is_uninstalled() {
    let machine = Machine::new(None);
    let installed = machine.install(&[]);
    assert!(installed.out.starts_with(ADDED), "{}", installed.out);
    assert_eq!(machine.descriptor().as_deref(), Some(descriptor()));
    let calls = machine.system.calls.take();
    let place = |what| calls.iter().position(|call| *call == what).unwrap();
    assert!(place("write the descriptor") < place("start"), "{calls:?}");

    machine.install(&[]);
    assert!(!machine.system.calls.take().contains(&"write the descriptor"), "it is there");

    let uninstalled = run(&machine.system, "uninstall");
    assert!(uninstalled.out.ends_with("removed the restriction of the driver's events\n"), "{}", uninstalled.out);
    assert_eq!(machine.descriptor(), None);
    let calls = machine.system.calls.take();
    let place = |what| calls.iter().position(|call| *call == what).unwrap();
    assert!(place("delete") < place("remove the descriptor"), "{calls:?}");
}

#[test]
fn without_a_start_the_events_are_restricted_for_a_later_one() {
    let machine = Machine::new(None);
    assert!(machine.install(&["--no-start"]).out.starts_with(ADDED));
    assert_eq!(machine.descriptor().as_deref(), Some(descriptor()));
}

#[test]
fn a_descriptor_of_others_is_kept_and_told() {
    let machine = Machine::new(None);
    machine.system.provider_descriptor.replace(Some(other()));
    let installed = machine.install(&[]);
    assert!(installed.outcome.is_ok());
    assert!(
        installed.out.starts_with(
            "events keep the security descriptor that was set before, the value\n  \
             1e73bb95-d033-5693-4748-a63e860b83c2 of\n  HKLM\\SYSTEM\\CurrentControlSet\\Control\\WMI\\Security\n  \
             to restrict them, remove it, then repeat the command\n"
        ),
        "{}",
        installed.out
    );
    assert!(installed.out.lines().take(4).all(|line| line.len() <= 80));
    assert_eq!(machine.descriptor(), Some(other()));
    assert!(run(&machine.system, "uninstall").outcome.is_ok());
    assert_eq!(machine.descriptor(), Some(other()));
}

#[test]
fn if_the_same_driver_runs_without_the_restriction_it_is_not_stopped_and_a_restart_is_advised() {
    let machine = Machine::new(Some(ServiceState::Running));
    machine.put("halprof.sys", &driver("new"));
    let later = "the running driver needs a restart for this: sc.exe stop halprof, then: sc.exe start halprof\n";
    let running = "already installed, with the same file, and running\n";
    assert_eq!(machine.install(&[]).out, format!("{ADDED}{later}{running}"));
    assert_eq!(machine.done(), ["register"]);
    assert_eq!(machine.install(&[]).out, running);
}

#[test]
fn if_the_events_cannot_be_restricted_nothing_is_changed() {
    for (service, before) in [(None, None), (Some(ServiceState::Running), Some("old"))] {
        for failing in ["read the descriptor", "write the descriptor"] {
            let machine = Machine::new(service);
            if let Some(before) = before {
                machine.put("halprof.sys", &driver(before));
            }
            machine.install(&[]);
            let number = machine.system.calls.borrow().iter().position(|call| *call == failing).unwrap();

            let machine = Machine::new(service);
            if let Some(before) = before {
                machine.put("halprof.sys", &driver(before));
            }
            machine.system.failing.replace(vec![number]);
            let (exit, report) = machine.install(&[]).failure();
            assert_eq!(exit, Exit::Failure, "{report}");
            assert_eq!(
                report,
                format!(
                    "error: cannot restrict the driver's events to SYSTEM and Administrators\n  \
                     because: the call {failing} failed\n  \
                     now: nothing was changed\n  \
                     try: let Administrators write to this key, then repeat the command:\n       \
                     HKLM\\SYSTEM\\CurrentControlSet\\Control\\WMI\\Security"
                )
            );
            assert_eq!((machine.done(), machine.descriptor()), (vec![], None), "the old driver is not even stopped");
            assert_eq!((machine.system.service.get(), machine.installed()), (service, before.map(driver)));
            assert_eq!(machine.leftovers(), [""; 0]);
        }
    }
}

#[test]
fn a_driver_of_the_inf_is_started_after_its_events_are_restricted() {
    let machine = Machine::new(Some(ServiceState::Stopped));
    let packaged = machine.folder.path().join("packaged.sys");
    fs::write(&packaged, driver("new")).unwrap();
    machine.system.image.replace(Some(format!("\\??\\{}", packaged.display())));
    let found = "already installed, by halprof.inf, with the same file";
    assert_eq!(machine.install(&[]).out, format!("{ADDED}{found}\nservice halprof started\n"));
    let calls = machine.system.calls.take();
    let place = |what| calls.iter().position(|call| *call == what).unwrap();
    assert!(place("write the descriptor") < place("start"), "{calls:?}");

    // pnputil removes the service and the file, and leaves the restriction.
    machine.system.service.set(None);
    machine.system.image.replace(None);
    let out = run(&machine.system, "uninstall").out;
    assert_eq!(out, "removed the restriction of the driver's events\n");
    assert_eq!(machine.descriptor(), None);
    assert_eq!(run(&machine.system, "uninstall").out, "not installed; nothing to do\n");
}
