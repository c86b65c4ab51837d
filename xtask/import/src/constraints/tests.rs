//! Tests of the constraints, with small tables of events.

use events::row;

use super::*;

#[test]
fn the_tables_are_generated_from_the_facts() {
    let workspace = Workspace::find().unwrap();
    let committed = fs::read_to_string(workspace.root().join(TABLES)).unwrap();
    let generated = generated(&Facts::read(&workspace).unwrap()).unwrap();
    assert!(committed == generated, "{TABLES} is out of date: cargo xtask constraints");
}

const ONE: &str = "\
A.X,3C,01,0,0,0,0,0,F,0,,,,0,0,,100003
B.ANY,00,02,0,0,0,0,0,fixed1,1,fixed1,,,0,0,,100003
C.Y,C0,01,16,1,1,1,0,2,1,E,,,0,0,,100003
D.P,D1,04,0,0,0,0,0,F,1,F,,,0,0,,100003
D.W,D1,08,0,0,0,0,0,F,0,,,,0,0,,100003
OCR.HIT,B7|BB,01,0,0,0,0,0,F,1,F,1A6|1A7,10,0,0,,100003
G.P,D8,01,0,0,0,0,0,FF,1,F,,,0,0,,100003
";
const TWO: &str = "\
PERF_METRICS.RETIRING,00,80,0,0,0,0,0,fixed3,0,,,,0,0,,0
D.P,D1,04,0,0,0,0,0,F,0,,,,0,0,,100003
";
const FAMILY: &str = "\
FPU.ALL,00,0F,0,0,0,0,0,any,0,,,,0,0,,0
FPU.ONE,00,01,0,0,0,0,0,any,0,,,,0,0,,0
";

const TABLES_OF_TWO: &str = "lake,one\nlake,two\nmachine,amd_one\n";
const REPLACED: &str = "lake,*,*,F,FF\nlake,D1,*,F,F\nlake,D1,08,F,7\nlake,D1,04,F,3\npond,3C,*,F,1\n";
const OF_LINUX: &str = "lake,D8,D9,*,F,\nmachine,00,00,01|02,38,\nmachine,00,00,*,8,\npond,10,10,*,1,MUL\n";

/// Returns the facts of these tables.
fn facts_of(tables: &[(&str, &str)], tables_of: &str, replaced: &str, linux: &str) -> Result<Facts> {
    let events = |text: &str| text.lines().map(|line| row::parse(line).unwrap()).collect();
    let tables = tables.iter().map(|(name, text)| ((*name).to_owned(), events(text))).collect();
    let headed = |header: &str, text: &str| format!("{header}\n{text}");
    Facts::of(tables, &headed(TABLES_OF.1, tables_of), &headed(COUNTERS.1, replaced), &headed(LINUX.1, linux))
}

const ALL: [(&str, &str); 4] = [("amd_one", FAMILY), ("amd_other", FAMILY), ("one", ONE), ("two", TWO)];

fn facts() -> Facts {
    facts_of(&ALL, TABLES_OF_TWO, REPLACED, OF_LINUX).unwrap()
}

/// Returns the rows of a generation: encoding, counters, counters that record, and whether a second register is needed.
fn rows(generation: &str) -> Vec<(String, String, u16, u16, bool)> {
    let umask = |row: &Fact| row.umask.map_or_else(|| "*".to_owned(), |umask| format!("{umask:02X}"));
    let encoding = |row: &Fact| {
        let filters = [row.inv, row.edge, row.any].map(u8::from);
        format!("{:02X}/{} {} {filters:?}", row.event, umask(row), row.cmask)
    };
    let of = |row: Fact| (row.name.clone(), encoding(&row), row.counters, row.precise, row.second);
    facts().of_generation(generation).unwrap().into_iter().map(of).collect()
}

#[test]
fn a_generation_unites_its_tables_and_the_counters_that_they_lack() {
    let row = |name: &str, encoding: &str, counters, precise, second| {
        let filters = if encoding.contains('[') { "" } else { " 0 [0, 0, 0]" };
        (name.to_owned(), format!("{encoding}{filters}"), counters, precise, second)
    };
    assert_eq!(
        rows("lake"),
        [
            row("A.X", "3C/01", 0xFF, 0, false),
            row("B.ANY", "00/02", 0, 0, false),
            row("C.Y", "C0/01 16 [1, 1, 1]", 2, 0xE, false),
            row("D.P", "D1/04", 3, 3, false),
            row("D.W", "D1/08", 7, 0, false),
            row("OCR.HIT", "B7/01", 0xFF, 0, true),
            row("OCR.HIT", "BB/01", 0xFF, 0, true),
            row("G.P", "D8/01", 0xFF, 0xF, false),
            row("D.P", "D1/04", 3, 0, false),
            row("", "D8/*", 0xF, 0, false),
            row("", "D9/*", 0xF, 0, false),
        ]
    );
}

#[test]
fn an_event_without_counters_in_its_table_has_those_of_linux() {
    let named: Vec<_> = rows("machine").into_iter().map(|(name, _, counters, ..)| (name, counters)).collect();
    let named: Vec<_> = named.iter().map(|(name, counters)| (name.as_str(), *counters)).collect();
    assert_eq!(named, [("FPU.ALL", 8), ("FPU.ONE", 0x38), ("", 0x38), ("", 0x38), ("", 8)]);
    assert_eq!(rows("pond").len(), 1, "a generation without tables has the rows of Linux");
    assert_eq!(facts().generations(), BTreeSet::from(["lake", "machine", "pond"]));
}

#[test]
fn what_cannot_be_placed_is_refused() {
    let error = |tables, of, replaced, linux| {
        let facts = facts_of(tables, of, replaced, linux);
        format!("{:#}", facts.and_then(|facts| facts.of_generation("machine")).unwrap_err())
    };
    for (of, replaced, linux, wanted) in [
        (
            "lake,one\nmachine,amd_one\n",
            REPLACED,
            OF_LINUX,
            "[\"two\"] belong to no generation: add them to tables.csv",
        ),
        ("lake,three\n", REPLACED, OF_LINUX, "tables.csv: there is no table three"),
        ("lake,one,two\n", REPLACED, OF_LINUX, "tables.csv: line 2"),
        (TABLES_OF_TWO, "lake,3C,*,F\n", OF_LINUX, "counters.csv: line 2"),
        (TABLES_OF_TWO, "lake,3C,*,X,F\n", OF_LINUX, "counters.csv: line 2"),
        (TABLES_OF_TWO, REPLACED, "machine,00,00,01|X,38,\n", "linux.csv: line 2"),
        (TABLES_OF_TWO, REPLACED, "machine,00,00,01,38,\n", "FPU.ALL has no counters"),
    ] {
        let found = error(&ALL, of, replaced, linux);
        assert!(found.starts_with(wanted), "{found}");
    }
}
