//! The other way to install: halprof.inf.

use std::path::Path;

use tests::{Lab, Ran, artifacts};

fn setup(lab: &Lab, section: &str) -> Ran {
    let argument = "C:\\package\\halprof.inf";
    lab.wine().run("rundll32", &["setupapi,InstallHinfSection", section, "132", argument]).unwrap()
}

#[test]
fn the_inf_installs_starts_stops_and_removes_the_driver() {
    let lab = Lab::boot("amd-legacy").unwrap();
    let inf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../inf/halprof.inf");
    lab.wine().copy(&inf, "package/halprof.inf").unwrap();
    lab.wine().copy(&artifacts().unwrap().join("halprof.sys"), "package/halprof.sys").unwrap();
    let installed = lab.wine().drive_c("windows/system32/drivers/halprof.sys");

    setup(&lab, "DefaultInstall");
    let info = lab.client(&["info", "--json"]).unwrap().json().unwrap();
    assert_eq!(info["interface"], "Amd64");
    // Installed this way or by the client is the same to the client.
    let again = lab.client(&["install"]).unwrap().success().unwrap();
    assert!(again.out.contains("already"), "{}", again.out);

    lab.wine().run("sc", &["stop", "halprof"]).unwrap().success().unwrap();
    setup(&lab, "DefaultUninstall");
    assert_eq!(lab.client(&["status"]).unwrap().code, 3);
    assert!(!installed.exists());
    lab.finish().unwrap();
}
