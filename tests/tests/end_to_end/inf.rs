//! Installing with halprof.inf from the package.

use protocol::trace::security::is_restriction;
use tests::Machine;

/// What a test prints on a machine that does not trust the package.
const UNTRUSTED: &str = "skipped: this machine does not trust the certificate of the package (docs/windows.md)";

/// Adds the driver package and returns the name under which Windows stores it.
fn add(machine: &Machine) -> String {
    let inf = machine.package_file("halprof.inf").unwrap();
    if cfg!(windows) {
        let added = machine.run("pnputil", &["/add-driver", &inf, "/install"]).unwrap().success().unwrap();
        let name = added.out.split_whitespace().find(|word| word.starts_with("oem") && word.contains(".inf"));
        return name.expect("pnputil says the name").to_owned();
    }
    // Wine has no driver store, so the section of the INF is run directly.
    machine.run("rundll32", &["setupapi,InstallHinfSection", "DefaultInstall", "132", &inf]).unwrap();
    inf
}

fn remove(machine: &Machine, name: &str) {
    if cfg!(windows) {
        machine.run("pnputil", &["/delete-driver", name, "/uninstall"]).unwrap().success().unwrap();
    } else {
        machine.run("sc", &["delete", "halprof"]).unwrap().success().unwrap();
    }
}

/// Returns whether Windows trusts the signer, which it requires to add a package. A test must not change that.
fn is_trusted(machine: &Machine) -> bool {
    let stores = ["Root", "TrustedPublisher"];
    !cfg!(windows)
        || stores.iter().all(|store| {
            machine.run("certutil", &["-verifystore", store, "halprof test signing"]).is_ok_and(|ran| ran.code == 0)
        })
}

#[test]
fn the_inf_installs_and_removes_the_driver_and_the_client_starts_it() {
    let machine = Machine::boot().unwrap();
    if !is_trusted(&machine) {
        println!("{UNTRUSTED}");
        return;
    }
    let name = add(&machine);
    let status = machine.client(&["status"]).unwrap();
    assert_eq!(status.code, 4, "it starts before its events are restricted: {}{}", status.out, status.err);

    // The client does not change a driver that the INF installed: install starts it, and uninstall is refused. Wine
    // does not know the INF's section about the events, so there the client restricts them.
    let installed = machine.client(&["install"]).unwrap().success().unwrap();
    let started = "already installed, by halprof.inf, with the same file\nservice halprof started\n";
    let restricted = if cfg!(windows) { "" } else { "events restricted to SYSTEM and Administrators\n" };
    assert_eq!(installed.out, format!("{restricted}{started}"));
    assert!(machine.event_descriptor().unwrap().is_some_and(|found| is_restriction(&found)));
    let info = machine.client(&["info", "--json"]).unwrap().json().unwrap();
    assert!(info["interface"].is_string(), "{info}");
    assert!(!machine.driver().unwrap().exists(), "it runs from where the package lies");
    let again = machine.client(&["install"]).unwrap().success().unwrap();
    assert_eq!(again.out, "already installed, by halprof.inf, with the same file, and running\n");
    let refused = machine.client(&["uninstall"]).unwrap();
    assert_eq!(refused.code, 15, "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("pnputil /delete-driver"), "{}", refused.err);
    machine.client(&["status"]).unwrap().success().unwrap();

    machine.run("sc", &["stop", "halprof"]).unwrap().success().unwrap();
    remove(&machine, &name);
    // What is left of the restriction, `client uninstall` removes.
    machine.finish().unwrap();
}

/// Wine does not know the INF's section about the events.
#[cfg(windows)]
#[test]
fn the_inf_restricts_the_events() {
    let machine = Machine::boot().unwrap();
    if !is_trusted(&machine) {
        println!("{UNTRUSTED}");
        return;
    }
    let name = add(&machine);
    let found = machine.event_descriptor().unwrap();
    remove(&machine, &name);
    let left = machine.event_descriptor().unwrap();
    println!("after pnputil /delete-driver the descriptor is {}", if left.is_some() { "left" } else { "gone" });
    machine.finish().unwrap();
    let found = found.expect("Windows sets a descriptor");
    assert!(is_restriction(&found), "Windows sets {found:02x?}");
}
