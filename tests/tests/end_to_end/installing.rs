//! `client install` with a file that is not the driver, or with a driver that does not work: the old one runs on.

use std::fs;

use object::LittleEndian as LE;
use object::read::pe::{ImageOptionalHeader, PeFile64};
use protocol::trace::security::descriptor;
use tests::{Machine, ProgramOutput, checksum_place, package};

fn packaged() -> Vec<u8> {
    fs::read(package().unwrap().join("halprof.sys")).unwrap()
}

/// Boots a machine on which the packaged driver is installed and a detached session runs.
fn boot() -> Machine {
    let machine = Machine::boot().unwrap();
    machine.client(&["install"]).unwrap().success().unwrap();
    machine.client(&["start", "Time"]).unwrap().success().unwrap();
    machine
}

fn install(machine: &Machine, file: &str, options: &[&str]) -> ProgramOutput {
    machine.client(&[&["install", "--driver", file], options].concat()).unwrap()
}

/// Checks that the old driver is in place, runs, and answers.
fn check_old_driver(machine: &Machine, what: &str) {
    assert!(fs::read(machine.driver().unwrap()).unwrap() == packaged(), "{what}: another file is installed");
    assert_eq!(machine.driver_files().unwrap(), ["halprof.sys"], "{what}");
    let status = machine.client(&["status"]).unwrap();
    assert_eq!(status.code, 0, "{what}: {}{}", status.out, status.err);
}

/// Returns the packaged driver with other instructions at its entry point.
fn with_entry(code: &[u8]) -> Vec<u8> {
    let mut file = packaged();
    let pe = PeFile64::parse(&*file).unwrap();
    let entry = pe.nt_headers().optional_header.address_of_entry_point();
    let (at, _) = pe.section_table().pe_file_range_at(entry).unwrap();
    let at = at as usize;
    file[at..at + code.len()].copy_from_slice(code);
    file
}

/// Returns the packaged driver with a SizeOfImage of one page, into which its sections do not fit.
fn with_small_image() -> Vec<u8> {
    let mut file = packaged();
    let at = checksum_place(&file).unwrap() - 8; // before SizeOfHeaders and CheckSum
    file[at..at + 4].copy_from_slice(&0x1000_u32.to_le_bytes());
    file
}

/// Returns the packaged driver with another protocol version in its identity.
fn with_protocol(version: u8) -> Vec<u8> {
    let mut file = packaged();
    let pe = PeFile64::parse(&*file).unwrap();
    let section = pe.section_table().iter().find(|section| section.raw_name() == b".halprof").unwrap();
    let at = section.pointer_to_raw_data.get(LE) as usize + 12;
    file[at] = version;
    file
}

/// mov eax, STATUS_UNSUCCESSFUL; ret
const FAILING: [u8; 6] = [0xB8, 0x01, 0x00, 0x00, 0xC0, 0xC3];

/// lea rax, [unload]; mov [rcx + DriverUnload], rax; xor eax, eax; ret; unload: ret
///
/// It returns STATUS_SUCCESS without a device.
const MUTE: [u8; 15] = [0x48, 0x8D, 0x05, 0x07, 0, 0, 0, 0x48, 0x89, 0x41, 0x68, 0x31, 0xC0, 0xC3, 0xC3];

#[test]
fn a_file_that_is_not_the_driver_changes_nothing() {
    let machine = boot();
    let whole = packaged();
    let truncated = machine.write_file("truncated.sys", &whole[..whole.len() / 2]).unwrap();
    let signature_cut_off = machine.write_file("unfinished.sys", &whole[..whole.len() - 8]).unwrap();
    let version_5 = machine.write_file("version5.sys", &with_protocol(5)).unwrap();
    for (file, code, because) in [
        ("C:\\windows\\system32\\notepad.exe", 15, "it is a program or library, not a driver"),
        ("C:\\windows\\system32\\ntdll.dll", 15, "it is a program or library, not a driver"),
        ("C:\\windows\\system32\\drivers\\http.sys", 15, "it is a driver, but not that of halprof"),
        (&truncated, 15, "it is truncated: it has"),
        (&signature_cut_off, 15, "it is truncated: it has"),
        (&version_5, 9, "this client has protocol version"),
    ] {
        // No option makes the client install what is not its driver.
        let refused = install(&machine, file, &["--any-signature", "--end-sessions"]);
        assert_eq!(refused.code, code, "{file}: {}{}", refused.out, refused.err);
        assert!(refused.err.contains(&format!("because: {because}")), "{file}: {}", refused.err);
        assert!(refused.err.contains("; nothing was changed\n"), "{file}: {}", refused.err);
        check_old_driver(&machine, file);
    }
    machine.client(&["stop", "Time"]).unwrap().success().unwrap(); // which still runs
    machine.finish().unwrap();
}

#[test]
fn a_driver_that_does_not_start_is_replaced_by_the_old_one() {
    let machine = boot();
    machine.client(&["stop", "Time"]).unwrap().success().unwrap();
    let file = machine.write_file("fails.sys", &with_small_image()).unwrap();
    let failed = install(&machine, &file, &["--any-signature"]);
    assert_ne!(failed.code, 0, "{}{}", failed.out, failed.err);
    assert!(failed.err.contains("\n  now: the old driver is in place, and runs\n"), "{}", failed.err);
    check_old_driver(&machine, "after a driver that fails");
    machine.client(&["info"]).unwrap().success().unwrap();

    machine.run("sc", &["stop", "halprof"]).unwrap().success().unwrap();
    let failed = install(&machine, &file, &["--any-signature"]);
    assert!(
        failed.err.contains("\n  now: the old driver is in place, and does not run, as before\n"),
        "{}",
        failed.err
    );
    assert_eq!(machine.client(&["status"]).unwrap().code, 4);
    machine.client(&["install"]).unwrap().success().unwrap();
    check_old_driver(&machine, "after a second driver that fails");

    machine.client(&["uninstall"]).unwrap().success().unwrap();
    let failed = install(&machine, &file, &["--any-signature"]);
    assert!(failed.err.contains("\n  now: the driver is not installed, as before\n"), "{}", failed.err);
    assert_eq!(machine.client(&["status"]).unwrap().code, 3);
    machine.finish().unwrap();
}

#[test]
fn after_a_driver_entry_that_fails_the_old_file_is_back() {
    let machine = boot();
    machine.client(&["stop", "Time"]).unwrap().success().unwrap();
    let file = machine.write_file("fails.sys", &with_entry(&FAILING)).unwrap();
    let failed = install(&machine, &file, &["--any-signature"]);
    assert_ne!(failed.code, 0, "{}{}", failed.out, failed.err);
    assert!(fs::read(machine.driver().unwrap()).unwrap() == packaged(), "{}", failed.err);
    if cfg!(windows) {
        check_old_driver(&machine, "after a driver that fails");
        machine.finish().unwrap();
    } else {
        // Wine keeps the image of a driver after a failed DriverEntry, and calls it again instead of the old driver's.
        let text = "\n  now: the installation could not be undone: cannot start the service halprof: ";
        assert!(failed.err.contains(text) && failed.err.contains("halprof.sys is the old driver\n"), "{}", failed.err);
    }
}

#[test]
fn a_driver_that_starts_but_does_not_answer_is_replaced_by_the_old_one() {
    let machine = boot();
    machine.client(&["stop", "Time"]).unwrap().success().unwrap();
    let file = machine.write_file("mute.sys", &with_entry(&MUTE)).unwrap();
    let failed = install(&machine, &file, &["--any-signature"]);
    assert_ne!(failed.code, 0, "{}{}", failed.out, failed.err);
    if !cfg!(windows) {
        // Windows does not even load it, because its signature is not valid any more.
        assert!(failed.err.contains("error: the driver was started, but does not answer\n"), "{}", failed.err);
    }
    assert!(failed.err.contains("\n  now: the old driver is in place, and runs\n"), "{}", failed.err);
    check_old_driver(&machine, "after a mute driver");
    machine.client(&["info"]).unwrap().success().unwrap();
    machine.finish().unwrap();
}

#[test]
fn detached_sessions_are_ended_only_if_that_is_requested() {
    let machine = boot();
    // Another file, but the same driver: zeros behind the signature.
    let file = machine.write_file("other.sys", &[packaged(), vec![0; 8]].concat()).unwrap();
    let refused = install(&machine, &file, &["--any-signature"]);
    assert_eq!(refused.code, 14, "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("detached): Time\n"), "{}", refused.err);
    check_old_driver(&machine, "while a session runs");
    machine.client(&["read", "Time"]).unwrap().success().unwrap();
    if !cfg!(windows) {
        install(&machine, &file, &["--any-signature", "--end-sessions"]).success().unwrap();
        assert_eq!(machine.client(&["read", "Time"]).unwrap().code, 10, "the session has ended");
    }
    machine.finish().unwrap();
}

#[test]
fn events_are_restricted_while_the_driver_is_installed() {
    let machine = Machine::boot().unwrap();
    assert_eq!(machine.event_descriptor().unwrap(), None);
    let installed = machine.client(&["install"]).unwrap().success().unwrap();
    assert!(installed.out.starts_with("events restricted to SYSTEM and Administrators\n"), "{}", installed.out);
    assert_eq!(machine.event_descriptor().unwrap().as_deref(), Some(descriptor()));
    let again = machine.client(&["install"]).unwrap().success().unwrap();
    assert_eq!(again.out, "already installed, with the same file, and running\n");
    let removed = machine.client(&["uninstall"]).unwrap().success().unwrap();
    assert!(removed.out.ends_with("removed the restriction of the driver's events\n"), "{}", removed.out);
    assert_eq!(machine.event_descriptor().unwrap(), None);

    // A failed installation removes it as well.
    let file = machine.write_file("fails.sys", &with_small_image()).unwrap();
    assert_ne!(install(&machine, &file, &["--any-signature"]).code, 0);
    assert_eq!(machine.event_descriptor().unwrap(), None);
    machine.finish().unwrap();
}

#[test]
fn a_descriptor_of_others_is_neither_replaced_nor_removed() {
    let machine = Machine::boot().unwrap();
    // WMIGUID_QUERY is missing in the entry of SYSTEM.
    let other = [&descriptor()[..32], &[0xFE], &descriptor()[33..]].concat();
    machine.set_event_descriptor(Some(&other)).unwrap();
    let installed = machine.client(&["install"]).unwrap().success().unwrap();
    let told = "events keep the security descriptor that was set before, the value\n";
    assert!(installed.out.starts_with(told), "{}", installed.out);
    machine.client(&["uninstall"]).unwrap().success().unwrap();
    assert_eq!(machine.event_descriptor().unwrap(), Some(other));
    machine.set_event_descriptor(None).unwrap();
    machine.finish().unwrap();
}

#[test]
fn leftovers_of_a_crash_are_repaired_by_install_and_removed_by_uninstall() {
    let machine = boot();
    let driver = machine.driver().unwrap();
    let [old, temporary] = ["sys.old", "sys.tmp"].map(|extension| driver.with_extension(extension));
    let half = &packaged()[..4096];
    machine.client(&["stop", "Time"]).unwrap().success().unwrap();
    machine.run("sc", &["stop", "halprof"]).unwrap().success().unwrap();

    // A crash after the file was replaced by one that does not start.
    let failing = with_small_image();
    fs::rename(&driver, &old).unwrap();
    fs::write(&driver, &failing).unwrap();
    fs::write(&temporary, half).unwrap();
    let file = machine.write_file("fails.sys", &failing).unwrap();
    assert_ne!(install(&machine, &file, &["--any-signature"]).code, 0);
    assert!(fs::read(&driver).unwrap() == packaged(), "the last driver that started is back");

    fs::write(&old, packaged()).unwrap();
    fs::write(&temporary, half).unwrap();
    machine.client(&["install"]).unwrap().success().unwrap();
    check_old_driver(&machine, "after the repair");

    fs::write(&old, packaged()).unwrap();
    fs::write(&temporary, half).unwrap();
    machine.finish().unwrap();
}

/// On Windows a test must not change how the machine boots.
#[cfg(not(windows))]
#[test]
fn without_test_signing_a_driver_that_is_signed_for_tests_changes_nothing() {
    const KEY: &str = "HKLM\\System\\CurrentControlSet\\Control";
    let machine = boot();
    let unsigned = fs::read(tests::artifacts().unwrap().join("halprof.sys")).unwrap();
    let unsigned = machine.write_file("unsigned.sys", &unsigned).unwrap();
    let damaged = machine.write_file("damaged.sys", &with_entry(&MUTE)).unwrap();
    // Another file with a signature that fits.
    let signed = machine.write_file("signed.sys", &packaged()).unwrap();
    fs::remove_file(machine.driver().unwrap()).unwrap(); // the running driver keeps its file
    fs::write(machine.driver().unwrap(), [packaged(), vec![0; 8]].concat()).unwrap();
    let installed = fs::read(machine.driver().unwrap()).unwrap();

    machine.run("reg", &["delete", KEY, "/v", "SystemStartOptions", "/f"]).unwrap().success().unwrap();
    let refused = [&unsigned, &damaged, &signed].map(|file| install(&machine, file, &["--end-sessions"]));
    let options = ["add", KEY, "/v", "SystemStartOptions", "/d", "TESTSIGNING", "/t", "REG_SZ", "/f"];
    machine.run("reg", &options).unwrap().success().unwrap();

    for (refused, because) in refused.iter().zip([
        "it has no signature, and Windows requires one",
        "its signature is not valid: the file was changed after it was signed",
        "it is signed for tests, by \"halprof test signing\", and test signing is off",
    ]) {
        assert_eq!(refused.code, 15, "{}{}", refused.out, refused.err);
        assert!(refused.err.contains(&format!("because: {because}\n")), "{}", refused.err);
    }
    assert!(refused[2].err.contains("try: bcdedit /set testsigning on"), "{}", refused[2].err);
    assert!(fs::read(machine.driver().unwrap()).unwrap() == installed, "the file was replaced");
    machine.client(&["read", "Time"]).unwrap().success().unwrap(); // the driver was not stopped
    // With test signing it is installed.
    install(&machine, &signed, &["--end-sessions"]).success().unwrap();
    machine.finish().unwrap();
}
