//! `events import` and `events update`, and what the other verbs do with imported events.

use std::sync::Arc;

use halprof::event::event_cache::EventCache;

use super::*;
use fake_system::FakeVolume;
use user_error::exit::Exit;

const MAP: &str = "Family-model,Version,Filename,EventType,Core Type,Native Model ID,Core Role Name\n\
                   GenuineIntel-6-[45]E,V99,/SKL/events/skylake_core.json,core,,,\n\
                   GenuineIntel-6-[45]E,V99,/SKL/metrics/skylake_metrics.json,metrics,,,\n";

const CORE: &str = r#"{ "Events": [
  { "EventCode": "0xD1", "UMask": "0x20", "EventName": "MEM_LOAD_RETIRED.L3_MISS", "Counter": "0,1,2,3",
    "BriefDescription": "Loads that no cache of this socket could serve, one for each retired load of the program." },
  { "EventCode": "0xA1", "UMask": "0x7F", "EventName": "NEWER.THAN_THIS", "Counter": "0,1",
    "BriefDescription": "An event of a later file." }
] }"#;

const METRICS: &str = r#"{ "Metrics": [ { "MetricName": "IPC", "Formula": "a / b" } ] }"#;

/// A checkout of perfmon, and a cache.
struct PerfmonFolder {
    folder: tempfile::TempDir,
}

impl PerfmonFolder {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        place.write("mapfile.csv", MAP);
        place.write("SKL/events/skylake_core.json", CORE);
        place.write("SKL/metrics/skylake_metrics.json", METRICS);
        place
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn cache(&self) -> std::path::PathBuf {
        self.folder.path().join("cache")
    }

    /// Returns the events of the account alone, as on a system without a folder for the machine.
    fn own(&self) -> EventCache {
        EventCache::new(None, Some(self.cache()))
    }

    fn stored(&self) -> Option<Vec<u8>> {
        let files: Vec<_> = fs::read_dir(self.cache()).ok()?.map(|entry| entry.unwrap().path()).collect();
        assert!(files.len() <= 1, "{files:?}");
        files.first().map(|path| fs::read(path).unwrap())
    }

    fn run(&self, words: &[&str], input: &[u8]) -> Run {
        Self::run_with(self.own(), words, input)
    }

    fn run_with(cache: EventCache, words: &[&str], mut input: &[u8]) -> Run {
        let cli = Cli::try_parse_from(["client"].iter().chain(words)).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut context = Context::new(None, &mut input, &mut out, &mut err);
        context.cache = cache;
        let outcome = super::super::run(&cli.verb, &mut context);
        Run { out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap(), outcome }
    }

    fn import(&self) -> Run {
        let folder = self.folder.path().to_str().unwrap().to_owned();
        self.run(&["events", "import", &folder], &[])
    }

    fn on_skylake(&self, line: &str) -> Run {
        let dump = cpuid_dumps::find("skylake-u-6500u").unwrap().dump();
        let words: Vec<&str> = line.split_whitespace().chain(["--cpuid", "-"]).collect();
        self.run(&words, dump.as_bytes())
    }
}

#[test]
fn imported_events_have_descriptions_and_newer_ones_can_be_named() {
    let place = PerfmonFolder::new();
    assert!(place.on_skylake("list socket").outcome.is_err(), "nothing is imported yet");
    let imported = place.import();
    assert!(
        imported.out.starts_with("imported 2 events and 1 metric of 2 files for this account into\n"),
        "{}",
        imported.out
    );
    let update = place.run(&["events", "update", "--json"], &[]).json();
    assert_eq!(update, json!({ "files": 2, "events": 2, "metrics": 1, "cache": null }));
    assert_eq!(
        place.on_skylake("list socket").out,
        "Name                                           Cores         Counters   Precise\n\
         ---------------------------------------------  ------------  ---------  -------\n\
         MEM_LOAD_RETIRED.L3_MISS                       cpu           0-3        0-3\n    \
         Loads that no cache of this socket could serve, one for each retired load of\n    the program.\n"
    );
    let encoded = place.on_skylake("encode newer.than_this").out;
    assert_eq!(
        encoded,
        "Cores     cpu\nEvent     NEWER.THAN_THIS\nSelect    0x00037fa1\nCounters  0-1\nPrecise   none\n\
         About     An event of a later file.\n"
    );
    let keys = place.on_skylake("encode MEM_LOAD_RETIRED.L3_MISS --json").json();
    let keys: Vec<_> = keys["cores"][0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["core_type", "counters", "errata", "error", "event", "extra", "pebs_counters", "select"]);
}

#[test]
fn a_driver_counts_a_newer_event_on_the_counters_of_its_file() {
    let place = PerfmonFolder::new();
    place.import().outcome.unwrap();
    let mut driver = FakeDriver::default();
    driver.info.signature = 0x0005_06E3;
    let system = FakeSystem { cache: place.own(), ..FakeSystem::running(driver) };
    assert!(run(&system, "start newer.than_this").out.contains(": NEWER.THAN_THIS\n"));
    let input = &system.driver.inputs(Code::Start)[0][size_of::<protocol::StartHeader>()..];
    let [event] = <[protocol::EventRequest]>::ref_from_bytes(input).unwrap() else { panic!() };
    let SourceName::Raw(raw) = "cpu/event=0xa1,umask=0x7f/".parse().unwrap() else { panic!() };
    assert_eq!((event.event.source, event.event.counters), (raw.source, 0x3));
}

#[test]
fn a_failed_import_changes_nothing() {
    let place = PerfmonFolder::new();
    place.import().outcome.unwrap();
    let stored = place.stored().unwrap();
    place.write("mapfile.csv", "a\nGenuineIntel-6-5E,V1,/../../x,core\n");
    let (exit, report) = place.import().failure();
    let position = "mapfile.csv, line 2: \"../../x\" is no file";
    assert!(exit == Exit::Failure && report.contains(position), "{report}");
    assert!(report.contains("cannot be imported; nothing was changed\n  because: "), "{report}");
    assert_eq!(place.stored().as_ref(), Some(&stored));
    fs::remove_file(place.folder.path().join("mapfile.csv")).unwrap();
    assert!(place.import().failure().1.contains("try: .\\client events update"));
}

#[test]
fn a_malformed_file_is_left_out_and_told_with_its_place() {
    for (file, text, position) in [
        ("SKL/events/skylake_core.json", "{ \"Events\": [\n{]}", "skylake_core.json, line 2: "),
        ("SKL/metrics/skylake_metrics.json", "[", "skylake_metrics.json, line 1: EOF"),
    ] {
        let place = PerfmonFolder::new();
        place.write(file, text);
        let run = place.import();
        assert!(run.outcome.is_ok() && place.stored().is_some(), "{}", run.err);
        assert!(run.err.contains("warning: 1 malformed part left out\n  because: "), "{}", run.err);
        assert!(run.err.contains(position), "{}", run.err);
    }
}

#[test]
fn columns_that_are_not_known_are_told() {
    let place = PerfmonFolder::new();
    assert!(!place.import().err.contains("not known"), "the usual ones are known");
    place.write("SKL/events/skylake_core.json", r#"[{ "EventName": "A", "EventCode": "0x1", "Zone": "3" }]"#);
    let run = place.import();
    assert!(
        run.outcome.is_ok() && run.err.contains("warning: events were imported without columns that are not known")
    );
    assert!(run.err.contains("skylake_core.json: Zone\n"), "{}", run.err);
}

#[test]
fn a_damaged_cache_is_reported_with_what_to_do() {
    let place = PerfmonFolder::new();
    place.import().outcome.unwrap();
    let file = fs::read_dir(place.cache()).unwrap().next().unwrap().unwrap().path();
    fs::write(&file, "{\"format\": 1,\n!").unwrap();
    let (_, report) = place.on_skylake("list l3").failure();
    assert!(report.contains("is damaged\n  because: key must be a string at line 2 column 1"), "{report}");
    assert!(report.ends_with("try: .\\client events import DIR   (writes it again)"), "{report}");
}

/// Returns the events of an account and of the machine in the folders `account` and `machine` of a place.
fn both(place: &PerfmonFolder, volume: &FakeVolume, account: &str) -> EventCache {
    let machine = place.folder.path().join("machine");
    EventCache::new(Some((machine, Arc::new(volume.clone()))), Some(place.folder.path().join(account)))
}

/// Reproduces the service of the agent and the elevated account of Administrator Protection, which have other profiles.
#[test]
fn an_elevated_import_is_for_every_account_and_another_for_this_one_alone() {
    let (place, volume) = (PerfmonFolder::new(), FakeVolume::default());
    let folder = place.folder.path().to_str().unwrap();
    let import = |account| PerfmonFolder::run_with(both(&place, &volume, account), &["events", "import", folder], &[]);
    let finds = |account| {
        let update = PerfmonFolder::run_with(both(&place, &volume, account), &["events", "update", "--json"], &[]);
        update.json()["events"] == 2
    };

    volume.state().is_limited = true;
    let limited = import("alice");
    assert!(
        limited.out.contains("for this account into\n") && limited.err.is_empty(),
        "{}{}",
        limited.out,
        limited.err
    );
    assert!(finds("alice") && !finds("service"));

    volume.state().is_limited = false;
    let elevated = import("elevated");
    assert!(elevated.out.contains("for every account into\n") && elevated.err.is_empty(), "{}", elevated.out);
    assert!(finds("alice") && finds("service") && finds("elevated"));
    assert!(!place.folder.path().join("elevated").exists());

    // A later import of an account is not used, and a warning says so.
    volume.state().is_limited = true;
    let hidden = import("alice");
    assert!(hidden.err.starts_with("warning: the events of the whole machine are used instead: "), "{}", hidden.err);
}

#[test]
fn events_of_the_machine_that_a_user_could_have_written_are_not_used() {
    let (place, volume) = (PerfmonFolder::new(), FakeVolume::default());
    let folder = place.folder.path().to_str().unwrap();
    let import = || PerfmonFolder::run_with(both(&place, &volume, "alice"), &["events", "import", folder], &[]);
    import().outcome.unwrap();
    let finds = |account: &str| both(&place, &volume, account).load().unwrap().is_some();
    assert!(finds("service"));
    let machine = place.folder.path().join("machine");
    let file = fs::read_dir(&machine).unwrap().next().unwrap().unwrap().path();
    for path in [&machine, &file] {
        volume.state().of_user.insert(path.clone());
        assert!(!finds("service"));
        volume.state().of_user.clear();
        volume.state().links.insert(path.clone());
        assert!(!finds("service"));
        volume.state().links.clear();
    }
    assert!(finds("service"));
    // The folder of another is not taken over: the account has its own, with a warning.
    let before = fs::read(&file).unwrap();
    volume.state().of_user.insert(machine);
    let own = import();
    assert!(own.err.starts_with("warning: imported for this account only, so the agent's service does not find it\n"));
    assert!(own.err.contains("S-1-5-21-1001"), "{}", own.err);
    assert_eq!(fs::read(&file).unwrap(), before);
    assert!(finds("alice") && !finds("service"));
}
