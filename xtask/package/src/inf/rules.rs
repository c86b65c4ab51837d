//! The documented requirements of InfVerif and the driver store for the INF file (WDK, "Creating a primitive driver",
//! "Driver package isolation", and the page of each directive).

use std::collections::BTreeSet;
use std::time::UNIX_EPOCH;

use protocol::trace::security::{VALUE_NAME, descriptor};

use super::super::{CATALOG, DRIVER};
use super::sddl::self_relative;
use super::text::Inf;
use super::{TEMPLATE, stamp};

/// Section names that Windows defines.
const KNOWN: [&str; 8] = [
    "version",
    "destinationdirs",
    "sourcedisksnames",
    "sourcedisksfiles",
    "defaultinstall.ntamd64",
    "defaultinstall.ntamd64.services",
    "defaultinstall.ntamd64.wmi",
    "strings",
];

/// Returns every violation of a rule.
fn violations(text: &str) -> Vec<String> {
    let inf = Inf::parse(text);
    let parts = [version(&inf), entry_points(&inf), references(&inf), strings(text, &inf), files(&inf), service(&inf)];
    [parts.concat(), registry(&inf), event_access(&inf)].concat()
}

fn violation_if(wrong: bool, text: impl Into<String>) -> Vec<String> {
    if wrong { vec![text.into()] } else { Vec::new() }
}

fn version(inf: &Inf) -> Vec<String> {
    let value = |key: &str| inf.values("version", key).join(",");
    let mut found = Vec::new();
    for (key, wanted) in [
        ("signature", "$WINDOWS NT$"),
        ("class", "System"),
        ("classguid", "{4D36E97D-E325-11CE-BFC1-08002BE10318}"), // GUID_DEVCLASS_SYSTEM, devguid.h
        ("provider", "%Provider%"),
        ("catalogfile", CATALOG),
        ("pnplockdown", "1"),
    ] {
        found.extend(violation_if(value(key) != wanted, format!("[Version] {key} is {:?}", value(key))));
    }
    let stamp = value("driverver");
    let numbers: Vec<Option<u32>> = stamp.split(['/', ',', '.']).map(|number| number.parse().ok()).collect();
    let good = match numbers.as_slice() {
        [Some(1..=12), Some(1..=31), Some(1970..=9999), version @ ..] => {
            version.len() == 4 && version.iter().all(|part| part.is_some_and(|part| part <= u16::MAX.into()))
        }
        _ => false,
    };
    found.extend(violation_if(!good, format!("DriverVer is {stamp:?}")));
    found
}

fn entry_points(inf: &Inf) -> Vec<String> {
    let mut found = violation_if(inf.0.contains_key("manufacturer"), "[Manufacturer] is for devices");
    for name in inf.0.keys() {
        let entry = name.trim_end_matches(".services").trim_end_matches(".wmi");
        // "Creating a primitive driver" prohibits it, except for Windows before 10 version 1903.
        let undone = entry.starts_with("defaultuninstall");
        found.extend(violation_if(undone, format!("[{name}]: no Windows that can load the driver uses it")));
        if entry.starts_with("defaultinstall") {
            let decorated = entry == "defaultinstall.ntamd64";
            found.extend(violation_if(!decorated, format!("[{name}] is not decorated with the architecture")));
        }
    }
    found.extend(violation_if(!inf.0.contains_key("defaultinstall.ntamd64"), "no [DefaultInstall.NTamd64]"));
    found
}

/// Directives that name a section, each with the index of the value that names it.
const REFERENCES: [(&str, usize); 3] = [("copyfiles", 0), ("addservice", 2), ("wmiinterface", 2)];

fn references(inf: &Inf) -> Vec<String> {
    let mut found = Vec::new();
    let mut named: BTreeSet<String> = KNOWN.iter().map(|name| (*name).to_owned()).collect();
    for line in inf.0.values().flatten() {
        let place = REFERENCES.iter().find(|(key, _)| line.key.as_deref() == Some(key)).map(|(_, place)| *place);
        if let Some(name) = place.and_then(|place| line.values.get(place)) {
            found.extend(violation_if(!inf.0.contains_key(&name.to_lowercase()), format!("[{name}] is missing")));
            named.insert(name.to_lowercase());
        }
    }
    found.extend(inf.0.keys().filter(|name| !named.contains(*name)).map(|name| format!("[{name}] is not used")));
    found
}

fn strings(text: &str, inf: &Inf) -> Vec<String> {
    let code = text.lines().map(|line| line.split(';').next().unwrap_or_default());
    let used: BTreeSet<String> =
        code.flat_map(|line| line.split('%').skip(1).step_by(2)).map(str::to_lowercase).collect();
    let used: BTreeSet<String> = used.into_iter().filter(|token| token.parse::<u32>().is_err()).collect();
    let defined: BTreeSet<String> = inf.section("strings").iter().filter_map(|line| line.key.clone()).collect();
    let undefined = used.difference(&defined).map(|token| format!("%{token}% is not defined"));
    undefined.chain(defined.difference(&used).map(|token| format!("%{token}% is not used"))).collect()
}

fn files(inf: &Inf) -> Vec<String> {
    let mut found = Vec::new();
    let disks: Vec<_> = inf.section("sourcedisksnames").iter().filter_map(|line| line.key.clone()).collect();
    let listed = inf.section("sourcedisksfiles");
    let sources: BTreeSet<String> = listed.iter().filter_map(|line| line.key.clone()).collect();
    found.extend(violation_if(sources.len() != listed.len(), "a file is listed twice"));
    for line in listed {
        found.extend(violation_if(!disks.contains(&line.values.join(",")), format!("{:?} is on no disk", line.key)));
    }
    for source in &sources {
        found.extend(violation_if(source != DRIVER, format!("{source} is installed, which is not the driver")));
    }
    let sections = inf.0.keys().flat_map(|section| inf.values(section, "copyfiles"));
    let names = sections.flat_map(|section| inf.section(&section).to_vec()).flat_map(|line| line.values);
    let names: BTreeSet<String> = names.map(|name| name.to_lowercase()).collect();
    let wrong = names != sources;
    found.extend(violation_if(wrong, format!("copyfiles lists {names:?}, the package contains {sources:?}")));
    let places = inf.section("destinationdirs");
    let isolated = !places.is_empty() && places.iter().all(|line| line.values == ["13"]);
    found.extend(violation_if(!isolated, format!("files leave the driver store: {places:?}")));
    found
}

fn service(inf: &Inf) -> Vec<String> {
    let added = inf.values("defaultinstall.ntamd64.services", "addservice");
    let [name, flags, section] = added.as_slice() else { return vec![format!("AddService is {added:?}")] };
    // With SPSVCINST_STARTSERVICE, Windows might start the driver before its events are restricted.
    let mut found = violation_if(!flags.is_empty(), format!("the service has the flags {flags}"));
    found.extend(violation_if(name != "halprof", format!("the service is {name}")));
    for (key, wanted) in
        [("servicetype", "1"), ("starttype", "3"), ("errorcontrol", "1"), ("servicebinary", "%13%\\halprof.sys")]
    {
        let value = inf.values(section, key).join(",");
        found.extend(violation_if(value != wanted, format!("{key} is {value:?}")));
    }
    found
}

/// "Using a Universal INF File" allows HKR and some keys of HKLM, and HKR has no meaning in DefaultInstall ("INF AddReg
/// Directive").
fn registry(inf: &Inf) -> Vec<String> {
    let added = inf.values("defaultinstall.ntamd64", "addreg");
    violation_if(!added.is_empty(), format!("{added:?} would be written to a key that a universal INF may not change"))
}

/// The events have the same descriptor as after `client install` ("INF DDInstall.WMI Section").
fn event_access(inf: &Inf) -> Vec<String> {
    let interface = inf.values("defaultinstall.ntamd64.wmi", "wmiinterface");
    let [guid, flags, section] = interface.as_slice() else { return vec![format!("WMIInterface is {interface:?}")] };
    let mut found = violation_if(*guid != format!("{{{VALUE_NAME}}}"), format!("{guid} is not the driver's provider"));
    found
        .extend(violation_if(!flags.is_empty(), format!("with the flags {flags}, a descriptor of others is replaced")));
    let security = inf.values(section, "security");
    let [text] = security.as_slice() else { return vec![format!("Security is {security:?}")] };
    let same = self_relative(text).is_some_and(|made| made == descriptor());
    found.extend(violation_if(!same, format!("{text} is not the descriptor of client install")));
    found
}

fn stamped() -> String {
    stamp(TEMPLATE, UNIX_EPOCH, env!("CARGO_PKG_VERSION")).unwrap()
}

#[test]
fn the_file_obeys_every_rule_for_a_primitive_driver() {
    assert_eq!(violations(&stamped()), [""; 0]);
}

#[test]
fn driverver_contains_the_version_of_the_workspace() {
    let version = Inf::parse(&stamped()).values("version", "driverver").join(",");
    assert_eq!(version, format!("01/01/1970,{}.0", env!("CARGO_PKG_VERSION")));
}

#[test]
fn every_violation_of_a_rule_is_reported() {
    let cases = [
        ("Class       = System", "Class       = Sample", "[Version] class is \"Sample\""),
        ("PnpLockdown = 1", "PnpLockdown = 0", "[Version] pnplockdown is \"0\""),
        ("halprof.cat", "other.cat", "[Version] catalogfile is \"other.cat\""),
        ("DriverVer   = 01/01", "DriverVer   = 13/01", "DriverVer is \"13/01/1970"),
        ("[DefaultInstall.NTamd64]", "[DefaultInstall]", "[defaultinstall] is not decorated"),
        ("[DestinationDirs]", "[Manufacturer]", "[Manufacturer] is for devices"),
        ("[DriverFiles]", "[DefaultUninstall.NTamd64]\r\n[DriverFiles]", "[defaultuninstall.ntamd64]: no Windows"),
        ("[DriverFiles]", "[DefaultUninstall]\r\n[DriverFiles]", "[defaultuninstall]: no Windows"),
        ("[DriverFiles]", "[DefaultUninstall.NTamd64.Services]\r\n[DriverFiles]", "ntamd64.services]: no Windows"),
        ("[DriverFiles]", "[Files]", "[DriverFiles] is missing"),
        ("[DriverFiles]", "[Files]", "[files] is not used"),
        ("Provider    = \"halprof\"", "Maker = \"halprof\"", "%provider% is not defined"),
        ("Provider    = \"halprof\"", "Maker = \"halprof\"", "%maker% is not used"),
        ("DefaultDestDir = 13", "DefaultDestDir = 12", "leave the driver store"),
        ("halprof.sys = 1", "halprof.sys = 2", "is on no disk"),
        ("halprof.sys = 1", "other.sys = 1", "other.sys is installed, which is not the driver"),
        ("halprof.sys = 1", "other.sys = 1", "copyfiles lists"),
        ("halprof,, Service", "halprof, 0x800, Service", "the service has the flags 0x800"),
        ("AddService = halprof", "AddService = other", "the service is other"),
        ("StartType      = 3", "StartType      = 0", "starttype is \"0\""),
        ("CopyFiles  = DriverFiles", "AddReg = DriverFiles", "would be written to a key"),
        ("{1e73bb95", "{1e73bb96", "is not the driver's provider"),
        (",, EventAccess", ",1, EventAccess", "with the flags 1, a descriptor of others is replaced"),
        (",, EventAccess", ",, Events", "[Events] is missing"),
        ("Security = ", "Safety = ", "Security is []"),
        (";;;BA)\"", ";;;BA)(A;;0x80;;;WD)\"", "is not the descriptor of client install"),
        ("0x120fff;;;SY", "0x120f7f;;;SY", "is not the descriptor of client install"),
        ("O:BAG:BA", "O:SYG:BA", "is not the descriptor of client install"),
        ("%13%\\halprof.sys", "%12%\\halprof.sys", "servicebinary is"),
    ];
    let good = stamped();
    for (from, to, wanted) in cases {
        assert!(good.contains(from), "{from}");
        let found = violations(&good.replace(from, to));
        assert!(found.iter().any(|violation| violation.contains(wanted)), "{from} -> {to}: {found:?}");
    }
}
