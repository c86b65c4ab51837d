//! Tests of `install` and `uninstall`.

mod failures;
mod restriction;

use super::*;
use crate::machine::driver_file;
use crate::machine::driver_file::tests::{
    IDENTITY, MACHINE, MAGIC, SECOND_SECTION, SECURITY_DIRECTORY, SIZE_OF_OPTIONAL_HEADER, SUBSYSTEM, driver, sign,
};
use protocol::trace::security::descriptor;
use protocol::{Event, PROTOCOL_VERSION, flags};
use system::CodeIntegrity;

struct Machine {
    system: FakeSystem,
    folder: tempfile::TempDir,
}

impl Machine {
    fn new(service: Option<ServiceState>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("new.sys"), driver("new")).unwrap();
        let path = folder.path().join("halprof.sys");
        let system = FakeSystem { path, ..FakeSystem::running(FakeDriver::default()) };
        system.service.set(service);
        Self { system, folder }
    }

    fn install(&self, options: &[&str]) -> Run {
        let file = self.folder.path().join("new.sys");
        let words = ["install", "--driver", file.to_str().unwrap()];
        self.system.done.borrow_mut().clear();
        run_words(&self.system, &[&words, options].concat())
    }

    /// Restricts the driver's events, as an earlier installation does.
    fn restrict(&self) {
        self.system.provider_descriptor.replace(Some(descriptor().to_vec()));
    }

    /// Returns the security descriptor of the driver's events.
    fn descriptor(&self) -> Option<Vec<u8>> {
        self.system.provider_descriptor.borrow().clone()
    }

    fn done(&self) -> Vec<&'static str> {
        self.system.done.borrow().clone()
    }

    fn installed(&self) -> Option<Vec<u8>> {
        fs::read(&self.system.path).ok()
    }

    /// Puts a file into the folder.
    fn put(&self, name: &str, file: &[u8]) {
        fs::write(self.folder.path().join(name), file).unwrap();
    }

    /// Returns the names of the files that a finished installation does not leave.
    fn leftovers(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !["halprof.sys", "new.sys"].contains(&name.as_str())).collect()
    }
}

/// Checks that docs/windows.md quotes this output.
fn assert_quoted(out: &str) {
    let document = include_str!("../../../../docs/windows.md");
    assert!(document.contains(&format!("`{}`", out.trim_end())), "docs/windows.md does not quote {out}");
}

#[test]
fn installing_twice_is_installing_once() {
    let machine = Machine::new(None);
    assert!(machine.install(&[]).outcome.is_ok());
    assert_eq!(machine.done(), ["register", "start"]);
    assert_eq!(machine.installed(), Some(driver("new")));
    let again = machine.install(&[]);
    assert_eq!(again.out, "already installed, with the same file, and running\n");
    assert_quoted(&again.out);
    assert_eq!(machine.done(), ["register"]);
}

#[test]
fn another_file_replaces_that_of_the_running_driver() {
    let machine = Machine::new(Some(ServiceState::Running));
    fs::write(&machine.system.path, driver("old")).unwrap();
    assert!(machine.install(&[]).outcome.is_ok());
    assert_eq!(machine.done(), ["stop", "register", "start"]);
    assert_eq!(machine.installed(), Some(driver("new")));
}

#[test]
fn install_starts_a_stopped_service_unless_no_start_is_given() {
    let machine = Machine::new(Some(ServiceState::Stopped));
    machine.restrict();
    fs::write(&machine.system.path, driver("new")).unwrap();
    assert_eq!(machine.install(&["--no-start"]).out, "already installed, with the same file\n");
    assert_eq!(machine.done(), ["register"]);
    assert!(machine.install(&[]).outcome.is_ok());
    assert_eq!(machine.done(), ["register", "start"]);
}

#[test]
fn a_missing_file_changes_nothing() {
    let machine = Machine::new(None);
    fs::remove_file(machine.folder.path().join("new.sys")).unwrap();
    let (exit, report) = machine.install(&[]).failure();
    assert_eq!(exit, Exit::DriverFile);
    assert!(report.contains(".\\client install --driver PATH"), "{report}");
    assert!(machine.done().is_empty());
}

const OTHER_DRIVER: &str = "it is a driver, but not that of halprof (it has no section .halprof)";

#[test]
fn an_invalid_driver_is_rejected_before_the_running_one_is_stopped() {
    let with = |offset: usize, bytes: &[u8]| {
        let mut file = driver("new");
        file[offset..offset + bytes.len()].copy_from_slice(bytes);
        file
    };
    let as_32_bit = {
        let mut file = with(MACHINE, &[0x4C, 0x01]);
        file[MAGIC..MAGIC + 2].copy_from_slice(&[0x0B, 0x01]);
        file[SIZE_OF_OPTIONAL_HEADER] = 0xE0;
        file
    };
    let with_identity = |at: usize, byte: u8| with(IDENTITY + at, &[byte]);
    let signature_behind_the_end = with(SECURITY_DIRECTORY, &[0x00, 0x04, 0, 0, 0x00, 0x10, 0, 0]);
    for (file, because) in [
        (b"".to_vec(), "it is not a program, library or driver of Windows (PE)"),
        (b"#!/bin/sh\n".to_vec(), "it is not a program, library or driver of Windows (PE)"),
        (b"\x7FELF\x02\x01\x01".to_vec(), "it is not a program, library or driver of Windows (PE)"),
        (as_32_bit, "it is not for x86-64 (machine type 0x014C)"),
        (with(MACHINE, &[0x64, 0xAA]), "it is not for x86-64 (machine type 0xAA64)"),
        (with(SUBSYSTEM, &[2]), "it is a program or library, not a driver (subsystem 2)"),
        (with(SUBSYSTEM, &[3]), "it is a program or library, not a driver (subsystem 3)"),
        (driver("")[..0x5FF].to_vec(), "it is truncated: it has 1,535 bytes, and its headers describe 1,536"),
        (driver("")[..0x200].to_vec(), "it is truncated: it has 512 bytes, and its headers describe 1,536"),
        (with(SECOND_SECTION, b".another"), OTHER_DRIVER),
        (with_identity(0, b'H'), OTHER_DRIVER),
        (signature_behind_the_end, "it is truncated: it has 1,539 bytes, and its headers describe 5,120"),
    ] {
        let machine = Machine::new(Some(ServiceState::Running));
        fs::write(&machine.system.path, driver("old")).unwrap();
        fs::write(machine.folder.path().join("new.sys"), &file).unwrap();
        let (exit, report) = machine.install(&[]).failure();
        assert_eq!(exit, Exit::DriverFile, "{report}");
        let path = machine.folder.path().join("new.sys");
        assert_eq!(
            report,
            format!(
                "error: cannot install {}; nothing was changed\n  because: {because}\n  \
                 try: .\\client install --driver PATH, with the path of halprof.sys",
                path.display()
            )
        );
        assert_eq!((machine.done(), machine.installed()), (vec![], Some(driver("old"))), "{because}");
        assert_eq!(machine.system.service.get(), Some(ServiceState::Running), "{because}");
    }
}

#[test]
fn a_truncated_driver_is_rejected_and_a_complete_one_is_not() {
    let whole = driver("");
    assert!(driver_file::check(&whole).is_ok());
    for length in 0..whole.len() {
        assert!(driver_file::check(&whole[..length]).is_err(), "{length}");
    }
}

#[test]
fn a_folder_is_rejected_with_the_path_of_the_driver_in_it() {
    let machine = Machine::new(Some(ServiceState::Running));
    let folder = machine.folder.path();
    let (exit, report) = run_words(&machine.system, &["install", "--driver", folder.to_str().unwrap()]).failure();
    assert_eq!(exit, Exit::DriverFile);
    assert_eq!(
        report,
        format!(
            "error: cannot install {}; nothing was changed\n  because: it is a folder\n  \
             try: .\\client install --driver {}",
            folder.display(),
            folder.join("halprof.sys").display()
        )
    );
    assert!(machine.done().is_empty());
}

#[test]
fn a_driver_that_is_held_open_is_neither_replaced_nor_removed() {
    let holder = SessionEvent {
        event: Event::of(2),
        session: 3,
        modes: 3,
        process: 12,
        flags: 0,
        processors: 2,
        first_processor: 0,
        ..SessionEvent::new_zeroed()
    };
    let session_events = vec![holder, SessionEvent { session: 4, flags: 1, ..holder }];
    let mut machine = Machine::new(Some(ServiceState::Running));
    machine.system.busy = true;
    machine.system.driver = Arc::new(FakeDriver { session_events, ..FakeDriver::default() });
    fs::write(&machine.system.path, driver("old")).unwrap();
    let (exit, report) = machine.install(&[]).failure();
    assert_eq!(exit, Exit::Busy);
    assert!(report.contains("held by: session 3 (process 12): TotalIssues\n  try"), "{report}");
    assert_eq!((machine.done(), machine.leftovers()), (vec![], vec![]), "a known session is not even asked to end");

    // The handle of a client without a session is found only when the driver does not stop.
    machine.system.driver = Arc::default();
    let (exit, report) = machine.install(&[]).failure();
    assert_eq!((exit, machine.done()), (Exit::Busy, vec!["stop"]));
    assert!(report.contains("\n  now: the old driver is in place; the service halprof is stopping\n"), "{report}");
    assert_eq!((machine.installed(), machine.leftovers()), (Some(driver("old")), vec![]));

    machine.system.service.set(Some(ServiceState::Running));
    assert_eq!(run(&machine.system, "uninstall").failure().0, Exit::Busy);
    assert_eq!(machine.installed(), Some(driver("old")));
}

#[test]
fn uninstalling_twice_is_uninstalling_once() {
    let machine = Machine::new(None);
    assert!(machine.install(&[]).outcome.is_ok());
    assert!(run(&machine.system, "uninstall").outcome.is_ok());
    assert_eq!((machine.system.service.get(), machine.installed()), (None, None));
    let out = run(&machine.system, "uninstall").out;
    assert_eq!(out, "not installed; nothing to do\n");
    assert_quoted(&out);
}

#[test]
fn a_driver_installed_by_the_inf_is_started_but_not_replaced_or_removed() {
    let machine = Machine::new(Some(ServiceState::Stopped));
    let packaged = machine.folder.path().join("packaged.sys");
    fs::write(&packaged, driver("new")).unwrap();
    machine.system.image.replace(Some(format!("\\??\\{}", packaged.display())));
    machine.restrict();

    let found = "already installed, by halprof.inf, with the same file";
    assert_eq!(machine.install(&["--no-start"]).out, format!("{found}\n"));
    assert_eq!(machine.install(&[]).out, format!("{found}\nservice halprof started\n"));
    assert_eq!(machine.done(), ["start"]);
    let out = machine.install(&[]).out;
    assert_eq!(out, format!("{found}, and running\n"));
    assert_quoted(&out);

    fs::write(&packaged, driver("old")).unwrap();
    for failure in [machine.install(&[]).failure(), run(&machine.system, "uninstall").failure()] {
        assert_eq!(failure.0, Exit::DriverFile);
        assert!(failure.1.contains("packaged.sys") && failure.1.contains("pnputil"), "{}", failure.1);
    }
    assert_eq!((machine.done(), machine.installed()), (vec![], None));
}

#[test]
fn a_kernel_path_of_the_own_image_is_recognized() {
    let mut machine = Machine::new(None);
    machine.system.path = ["System32", "drivers", "halprof.sys"]
        .iter()
        .fold(machine.folder.path().to_owned(), |path, part| path.join(part));
    fs::create_dir_all(machine.system.path.parent().unwrap()).unwrap();
    machine.system.image.replace(Some("\\SystemRoot\\System32\\drivers\\halprof.sys".to_owned()));
    assert!(machine.install(&[]).outcome.is_ok());
    assert!(run(&machine.system, "uninstall").outcome.is_ok());
    assert_eq!((machine.system.service.get(), machine.installed()), (None, None));
}

#[test]
fn a_driver_that_windows_refuses_has_its_own_code() {
    for (code, exit) in [
        (win32::ERROR_FILE_NOT_FOUND, Exit::DriverFile),
        (win32::ERROR_PATH_NOT_FOUND, Exit::DriverFile),
        (win32::ERROR_PROC_NOT_FOUND, Exit::DriverFile),
        (win32::ERROR_SYSTEM_INTEGRITY_POLICY_VIOLATION, Exit::DriverFile),
        (win32::ERROR_ACCESS_DENIED, Exit::Denied),
        (win32::ERROR_SERVICE_MARKED_FOR_DELETE, Exit::Busy),
        (win32::ERROR_INVALID_IMAGE_HASH, Exit::DriverFile),
        (win32::ERROR_BAD_EXE_FORMAT, Exit::DriverFile),
        (win32::ERROR_DRIVER_BLOCKED, Exit::DriverFile),
        (1, Exit::Failure),
    ] {
        let mut machine = Machine::new(None);
        machine.system.failure = Some(code);
        assert_eq!(machine.install(&[]).failure().0, exit, "{code}");
    }
}

#[test]
fn a_driver_of_another_protocol_version_is_refused_before_the_running_one_is_stopped() {
    let machine = Machine::new(Some(ServiceState::Running));
    machine.put("halprof.sys", &driver("old"));
    let mut file = driver("new");
    file[IDENTITY + 12] = 5;
    machine.put("new.sys", &file);
    let (exit, report) = machine.install(&["--any-signature", "--end-sessions"]).failure();
    assert_eq!(exit, Exit::VersionMismatch);
    let because =
        format!("\n  because: this client has protocol version {PROTOCOL_VERSION}, and that driver has version 5\n");
    assert!(report.contains(&because) && report.contains("; nothing was changed\n"), "{report}");
    assert_eq!((machine.done(), machine.installed()), (vec![], Some(driver("old"))));
}

#[test]
fn a_signature_that_windows_would_refuse_is_refused_before_the_running_driver_is_stopped() {
    let enforced = |accepts_test_signatures| Some(CodeIntegrity { is_enforced: true, accepts_test_signatures });
    let mut machine = Machine::new(Some(ServiceState::Running));
    machine.put("halprof.sys", &driver("old"));
    machine.system.integrity = enforced(false);
    for (file, because, remedy) in [
        (driver("new"), "it has no signature, and Windows requires one", "--any-signature"),
        (
            [sign(driver("new"), &[("me", "me")]), b"more....".to_vec()].concat(),
            "its signature is not valid: the file was changed after it was signed",
            "--any-signature",
        ),
        (
            sign(driver("new"), &[("me", "me")]),
            "it is signed for tests, by \"me\", and test signing is off",
            "bcdedit /set testsigning on   (Secure Boot off, then restart)",
        ),
    ] {
        machine.put("new.sys", &file);
        let (exit, report) = machine.install(&[]).failure();
        assert_eq!(exit, Exit::DriverFile, "{report}");
        assert!(report.contains(&format!("; nothing was changed\n  because: {because}\n  try: ")), "{report}");
        assert!(report.contains(remedy), "{report}");
        assert_eq!((machine.done(), machine.installed()), (vec![], Some(driver("old"))), "{because}");
    }
    assert!(machine.install(&["--any-signature"]).outcome.is_ok(), "Windows judges it");
    assert_eq!(machine.install(&[]).out, "already installed, with the same file, and running\n", "it was judged");
    assert_eq!(machine.install(&["--no-start"]).out, "already installed, with the same file, and running\n");

    machine.put("halprof.sys", &driver("old"));
    machine.system.integrity = enforced(true);
    assert!(machine.install(&[]).outcome.is_ok(), "test signing is on");
    machine.put("halprof.sys", &driver("old"));
    machine.system.integrity = None;
    machine.put("new.sys", &driver("new"));
    assert!(machine.install(&[]).outcome.is_ok(), "Windows does not say what it requires");
}

#[test]
fn detached_sessions_are_ended_only_if_that_is_requested() {
    let detached = SessionEvent {
        event: Event::of(2),
        session: 4,
        modes: 3,
        process: 12,
        flags: 1,
        processors: 2,
        ..FromZeros::new_zeroed()
    };
    let mut machine = Machine::new(Some(ServiceState::Running));
    machine.put("halprof.sys", &driver("old"));
    machine.system.driver = Arc::new(FakeDriver { session_events: vec![detached], ..FakeDriver::default() });
    let (exit, report) = machine.install(&[]).failure();
    assert_eq!(exit, Exit::Busy);
    assert!(report.contains("\n  running: session 4 (process 12, detached): TotalIssues\n  try"), "{report}");
    assert_eq!((machine.done(), machine.installed()), (vec![], Some(driver("old"))));
    assert!(machine.install(&["--end-sessions"]).outcome.is_ok());
    assert_eq!(machine.installed(), Some(driver("new")));
    assert!(machine.install(&[]).outcome.is_ok(), "the same file stops nothing");
}

/// Every kind of session: bound to a handle or detached, yielding or not.
#[test]
fn only_sessions_that_their_client_gives_up_are_ended() {
    let session = |number: u64, flags: u32| SessionEvent {
        event: Event::of(2),
        session: number,
        modes: 3,
        process: 12,
        flags,
        processors: 2,
        ..FromZeros::new_zeroed()
    };
    let (bound, detached, agent) = (session(3, 0), session(4, flags::DETACHED), session(5, flags::YIELDS));
    for (sessions, plain, ending) in [
        (vec![], true, true),
        (vec![agent], true, true),
        (vec![detached], false, true),
        (vec![agent, detached], false, true),
        (vec![bound], false, false),
        (vec![bound, agent], false, false),
        (vec![detached, bound], false, false),
        (vec![agent, detached, bound], false, false),
    ] {
        for (options, is_installed) in [(&[][..], plain), (&["--end-sessions"][..], ending)] {
            let mut machine = Machine::new(Some(ServiceState::Running));
            machine.put("halprof.sys", &driver("old"));
            machine.system.driver = Arc::new(FakeDriver { session_events: sessions.clone(), ..FakeDriver::default() });
            let run = machine.install(options);
            assert_eq!(run.outcome.is_ok(), is_installed, "{sessions:?} {options:?}");
            let file = driver(if is_installed { "new" } else { "old" });
            assert_eq!(machine.installed(), Some(file), "{sessions:?} {options:?}");
            if !is_installed {
                let (exit, report) = run.failure();
                let holder = if sessions.contains(&bound) { "session 3 " } else { "session 4 " };
                assert_eq!(exit, Exit::Busy);
                assert!(report.contains(holder) && !report.contains("session 5 "), "{report}");
                assert!(machine.done().is_empty(), "the running driver was touched: {:?}", machine.done());
            }
        }
    }
}
