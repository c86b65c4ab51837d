//! The contents of the package, and the life cycle of the driver installed from it.

use std::collections::BTreeSet;
use std::fs;

use object::pe::IMAGE_DIRECTORY_ENTRY_SECURITY;
use object::read::pe::PeFile64;
use object::{LittleEndian as LE, Object};
use sha2::{Digest, Sha256};
use tests::{Machine, checksum, checksum_place, package, rounds};

fn read_from_package(name: &str) -> Vec<u8> {
    fs::read(package().unwrap().join(name)).unwrap()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Only a package whose driver `cargo xtask proof` has checked has them.
const OF_PROOF: [&str; 3] = ["proof.cat", "proof.json", "proof.schema.json"];

#[test]
fn the_package_has_all_files_and_no_private_key() {
    // The system on which the package was made decides the format of the programs' debug information and of the static
    // library, and a package from Linux is tested on Windows too.
    const ON_LINUX: [&str; 3] = ["client.debug", "halprof-agent.debug", "libhalprof.a"];
    const ON_WINDOWS: [&str; 3] = ["client.pdb", "halprof-agent.pdb", "halprof_static.lib"];
    let wanted = BTreeSet::from(
        [
            "LICENSE-APACHE",
            "LICENSE-MIT",
            "THIRD-PARTY.md",
            "claims.md",
            "client-completion.bash",
            "client-completion.lua",
            "client-completion.ps1",
            "client.1",
            "client.exe",
            "halprof-agent.exe",
            "halprof.cat",
            "halprof.cer",
            "halprof.dll",
            "halprof.exe",
            "halprof.h",
            "halprof.inf",
            "halprof.json",
            "halprof.lib",
            "halprof.pdb",
            "halprof.rules.yml",
            "halprof.sys",
            "halprof.wprp",
            "windows.md",
        ]
        .map(str::to_owned),
    );
    let entries = fs::read_dir(package().unwrap()).unwrap();
    let names: BTreeSet<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let of_proof = OF_PROOF.iter().filter(|name| names.contains(**name)).count();
    assert!(of_proof == 0 || of_proof == OF_PROOF.len(), "{names:?}");
    let usual = names.iter().filter(|name| !OF_PROOF.contains(&name.as_str()));
    let is_special = |name: &String| ON_LINUX.iter().chain(&ON_WINDOWS).any(|other| other == name);
    let (special, others): (BTreeSet<_>, _) = usual.cloned().partition(is_special);
    assert_eq!(others, wanted);
    assert!([ON_LINUX, ON_WINDOWS].iter().any(|wanted| special.iter().eq(wanted)), "{special:?}");
    for name in names {
        assert!(!contains(&read_from_package(&name), b"-----BEGIN PRIVATE KEY"), "{name}");
    }
}

#[test]
fn the_signed_driver_has_a_valid_checksum_and_the_packaged_certificate() {
    let bytes = read_from_package("halprof.sys");
    let at = checksum_place(&bytes).unwrap();
    assert_eq!(bytes[at..at + 4], checksum(&bytes, at).to_le_bytes());
    // The linker leaves this table empty; the signature is at the end of the file.
    let pe = PeFile64::parse(&*bytes).unwrap();
    let table = pe.data_directory(IMAGE_DIRECTORY_ENTRY_SECURITY).unwrap();
    let [begin, length] = [table.virtual_address.get(LE), table.size.get(LE)].map(|number| number as usize);
    assert!(length > 0 && begin + length == bytes.len(), "no signature: {begin:#x} {length:#x} of {:#x}", bytes.len());
    assert!(contains(&bytes, &read_from_package("halprof.cer")), "signed by another");
}

/// Packaging has verified that the catalog has the hash of the driver.
#[test]
fn the_catalog_has_the_hash_of_the_inf_and_the_packaged_certificate() {
    let catalog = read_from_package("halprof.cat");
    assert!(contains(&catalog, &Sha256::digest(read_from_package("halprof.inf"))));
    assert!(contains(&catalog, &read_from_package("halprof.cer")), "signed by another");
}

#[test]
fn the_pdb_matches_the_driver() {
    let bytes = read_from_package("halprof.sys");
    let file = PeFile64::parse(&*bytes).unwrap();
    let wanted = file.pdb_info().unwrap().expect("the driver names its debug information");
    assert_eq!(String::from_utf8_lossy(wanted.path()), "halprof.pdb", "by its name alone");
    assert!(contains(&read_from_package("halprof.pdb"), &wanted.guid()), "of another build");
}

#[test]
fn the_inf_has_the_version_of_the_driver() {
    let text = String::from_utf8(read_from_package("halprof.inf")).unwrap();
    let stamp = text.lines().find_map(|line| line.strip_prefix("DriverVer")).expect("a stamp");
    assert!(stamp.ends_with(&format!(",{}.0", env!("CARGO_PKG_VERSION"))), "{stamp}");
}

#[test]
fn the_packaged_driver_installs_counts_and_uninstalls_cleanly() {
    let machine = Machine::boot().unwrap();
    let first = machine.client(&["install"]).unwrap().success().unwrap();
    assert!(first.out.contains("service halprof started"), "{}", first.out);
    assert_eq!(
        fs::read(machine.driver().unwrap()).unwrap(),
        read_from_package("halprof.sys"),
        "signed, as it lies in the package"
    );
    let again = machine.client(&["install"]).unwrap().success().unwrap();
    assert_eq!(again.out, "already installed, with the same file, and running\n");

    let info = machine.client(&["info", "--json"]).unwrap().json().unwrap();
    println!("{info:#}");
    let list = machine.client(&["list", "--json"]).unwrap().json().unwrap();
    let sources = list["sources"].as_array().unwrap();
    if info["interface"] == "Default" {
        println!("no counters here: {}", info["reason"]);
    } else {
        let name = sources.iter().find(|source| source["id"] != 0).expect("a counter counts something")["name"].clone();
        let name = name.as_str().unwrap();
        let stat = ["stat", "-a", "-e", name, "--json", "-o", "-", "--", "cmd", "/c", "ver >nul"];
        let counted = machine.client(&stat).unwrap().json().unwrap();
        assert!(counted["events"][0]["count"].as_u64().unwrap() > 0, "{counted}");
    }

    machine.client(&["uninstall"]).unwrap().success().unwrap();
    let again = machine.client(&["uninstall"]).unwrap().success().unwrap();
    assert_eq!(again.out, "not installed; nothing to do\n");
    machine.finish().unwrap();
}

#[test]
fn each_setup_mistake_is_reported_with_advice() {
    let machine = Machine::boot().unwrap();
    let says = |arguments: &[&str], code: i32, advice: &str| {
        let ran = machine.client(arguments).unwrap();
        assert_eq!(ran.code, code, "{}\n{}{}", ran.line, ran.out, ran.err);
        assert!(ran.err.contains(advice), "{}\n{}", ran.line, ran.err);
    };
    says(&["info"], 3, "try: .\\client install");
    says(&["install", "--driver", "C:\\nowhere\\halprof.sys"], 15, "try: .\\client install --driver PATH");
    machine.client(&["install", "--no-start"]).unwrap().success().unwrap();
    says(&["info"], 4, "try: .\\client install");
    machine.client(&["install"]).unwrap().success().unwrap();
    let program = machine.package_file("client.exe").unwrap();
    says(&["install", "--driver", &program], 15, "because: it is a program or library, not a driver (subsystem 3)");
    machine.client(&["status"]).unwrap().success().unwrap();
    says(&["query", "TotalCycels"], 6, "did you mean: TotalCycles");
    says(&["stop", "Time"], 10, "try: .\\client status");
    machine.finish().unwrap();
}

#[test]
fn the_service_stops_and_starts_with_sc() {
    let machine = Machine::boot().unwrap();
    machine.client(&["install"]).unwrap().success().unwrap();
    for _ in 0..rounds(2, 3) {
        machine.run("sc", &["stop", "halprof"]).unwrap().success().unwrap();
        assert_eq!(machine.client(&["status"]).unwrap().code, 4);
        machine.run("sc", &["start", "halprof"]).unwrap().success().unwrap();
        machine.client(&["status"]).unwrap().success().unwrap();
    }
    machine.finish().unwrap();
}

#[test]
fn the_driver_file_is_unchanged_after_its_life_cycle() {
    let before = read_from_package("halprof.sys");
    let machine = Machine::boot().unwrap();
    machine.client(&["install"]).unwrap().success().unwrap();
    let installed = machine.driver().unwrap();
    assert_eq!(fs::read(&installed).unwrap(), before, "as installed");
    machine.client(&["start", "Time"]).unwrap().success().unwrap();
    machine.client(&["stop", "Time"]).unwrap().success().unwrap();
    assert_eq!(fs::read(&installed).unwrap(), before, "after it ran");
    assert_eq!(read_from_package("halprof.sys"), before);
    machine.finish().unwrap();
}
