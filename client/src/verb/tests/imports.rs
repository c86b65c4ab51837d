//! `events import` and `events update`, and what the other verbs do with imported events.

use std::path::Path;

use super::*;

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
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
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

    fn stored(&self) -> Option<Vec<u8>> {
        let files: Vec<_> = fs::read_dir(self.cache()).ok()?.map(|entry| entry.unwrap().path()).collect();
        assert!(files.len() <= 1, "{files:?}");
        files.first().map(|path| fs::read(path).unwrap())
    }

    fn run(&self, words: &[&str], mut input: &[u8]) -> Run {
        let cli = Cli::try_parse_from(["client"].iter().chain(words)).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut context = Context::new(None, &mut input, &mut out, &mut err);
        context.cache = Some(self.cache());
        let outcome = super::super::run(&cli.verb, &mut context);
        Run { out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap(), outcome }
    }

    fn import(&self) -> Run {
        let folder = self.folder.path().to_str().unwrap().to_owned();
        self.run(&["events", "import", &folder], &[])
    }

    fn on_skylake(&self, line: &str) -> Run {
        let dump = cpuid_dumps::find("skylake-u-6500u").unwrap().dump;
        let words: Vec<&str> = line.split_whitespace().chain(["--cpuid", "-"]).collect();
        self.run(&words, dump.as_bytes())
    }
}

#[test]
fn imported_events_have_descriptions_and_newer_ones_can_be_named() {
    let place = Place::new();
    assert!(place.on_skylake("list socket").outcome.is_err(), "nothing is imported yet");
    let imported = place.import();
    assert!(imported.out.starts_with("imported 2 events and 1 metric of 2 files into\n"), "{}", imported.out);
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
    assert_eq!(keys, ["core_type", "counters", "error", "event", "extra", "pebs_counters", "select"]);
}

#[test]
fn a_driver_counts_a_newer_event_on_the_counters_of_its_file() {
    let place = Place::new();
    place.import().outcome.unwrap();
    let mut driver = FakeDriver::default();
    driver.info.signature = 0x0005_06E3;
    let system = FakeSystem { cache: Some(place.cache()), ..FakeSystem::running(driver) };
    assert!(run(&system, "start newer.than_this").out.contains(": NEWER.THAN_THIS\n"));
    let input = &system.driver.inputs(Code::Start)[0][size_of::<protocol::StartHeader>()..];
    let [event] = <[protocol::EventRequest]>::ref_from_bytes(input).unwrap() else { panic!() };
    let SourceName::Raw(raw) = "cpu/event=0xa1,umask=0x7f/".parse().unwrap() else { panic!() };
    assert_eq!((event.source, event.counters), (raw.source().0, 0x3));
}

#[test]
fn a_failed_import_changes_nothing() {
    let place = Place::new();
    place.import().outcome.unwrap();
    let stored = place.stored().unwrap();
    for (file, text, position) in [
        ("SKL/events/skylake_core.json", "{ \"Events\": [\n{]}", "skylake_core.json, line 2: "),
        ("SKL/metrics/skylake_metrics.json", "[", "skylake_metrics.json, line 1: EOF"),
        ("mapfile.csv", "a\nGenuineIntel-6-5E,V1,/../../x,core\n", "mapfile.csv, line 2: \"../../x\" is no file"),
    ] {
        let place_of = Path::new(file).file_name().unwrap().to_str().unwrap();
        let before = fs::read_to_string(place.folder.path().join(file)).unwrap();
        place.write(file, text);
        let (exit, report) = place.import().failure();
        assert_eq!(exit, Exit::Failure, "{place_of}");
        assert!(
            report.contains("cannot be imported; nothing was changed\n  because: ") && report.contains(position),
            "{report}"
        );
        assert_eq!(place.stored().as_ref(), Some(&stored), "{place_of}");
        place.write(file, &before);
    }
    fs::remove_file(place.folder.path().join("mapfile.csv")).unwrap();
    assert!(place.import().failure().1.contains("try: client events update"));
}

#[test]
fn a_damaged_cache_is_reported_with_what_to_do() {
    let place = Place::new();
    place.import().outcome.unwrap();
    let file = fs::read_dir(place.cache()).unwrap().next().unwrap().unwrap().path();
    fs::write(&file, "{\"format\": 1,\n!").unwrap();
    let (_, report) = place.on_skylake("list l3").failure();
    assert!(report.contains("is damaged\n  because: key must be a string at line 2 column 1"), "{report}");
    assert!(report.ends_with("try: client events import DIR   (writes it again)"), "{report}");
}
