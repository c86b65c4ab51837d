//! Installing with halprof.inf from the package.

use tests::Machine;

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
    machine.run("sc", &["stop", "halprof"]).unwrap().success().unwrap();
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
fn the_inf_installs_starts_stops_and_removes_the_driver() {
    let machine = Machine::boot().unwrap();
    if !is_trusted(&machine) {
        println!("skipped: this machine does not trust the certificate of the package (docs/windows.md)");
        return;
    }
    let name = add(&machine);
    let info = machine.client(&["info", "--json"]).unwrap().json().unwrap();
    assert!(info["interface"].is_string(), "{info}");
    assert!(!machine.driver().unwrap().exists(), "it runs from where the package lies");

    // The client does not change a driver that the INF installed: install reports it, and uninstall is refused.
    let again = machine.client(&["install"]).unwrap().success().unwrap();
    assert_eq!(again.out, "already installed, by halprof.inf, with the same file, and running\n");
    let refused = machine.client(&["uninstall"]).unwrap();
    assert_eq!(refused.code, 15, "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("pnputil /delete-driver"), "{}", refused.err);
    machine.client(&["status"]).unwrap().success().unwrap();

    remove(&machine, &name);
    machine.finish().unwrap();
}
