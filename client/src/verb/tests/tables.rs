//! Tests of `list --interface`.

use super::*;

const TABLES: [(&str, &str, usize); 3] = [("default", "Default", 1), ("emon", "Emon", 13), ("AMD64", "Amd64", 176)];

#[test]
fn each_table_is_complete_without_a_driver() {
    for (given, name, rows) in TABLES {
        let table = run_anywhere(&format!("list --interface {given} --json"), b"").json();
        assert_eq!(table["interface"], name);
        let sources = table["sources"].as_array().unwrap();
        assert_eq!(sources.len(), rows);
        assert!(sources.is_sorted_by_key(|source| source["id"].as_u64()), "{name}");
        for source in sources {
            let bit = source["ebx_bit"].is_u64();
            assert_eq!(bit, name == "Emon" && source["id"] != 0, "{source}");
        }

        let text = run_anywhere(&format!("list --interface {given}"), b"").out;
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let tables: Vec<&str> = text.split("\n\n").collect();
        assert_eq!(tables[0].lines().count(), 2 + rows, "{text}");
        for (line, source) in tables[0].lines().skip(2).zip(sources) {
            let [id, name, select] = line.split_whitespace().take(3).collect::<Vec<_>>()[..] else { panic!("{line}") };
            assert_eq!((id, name), (&*source["id"].to_string(), source["name"].as_str().unwrap()));
            assert_eq!(select.to_lowercase(), source["select"].as_str().unwrap());
        }
    }
}

#[test]
fn json_has_the_interval_range_and_the_names_of_list() {
    let table = run_anywhere("list --interface emon --json", b"").json();
    assert_eq!(
        table["sources"][0],
        json!({
            "id": 0, "name": "Time", "select": "0x0003003c", "ebx_bit": null, "interval": 10000, "minimum": 1221,
            "maximum": 1_000_000
        })
    );
    assert_eq!(
        table["sources"][3],
        json!({
            "id": 10, "name": "CacheMisses", "select": "0x0003412e", "ebx_bit": 4, "interval": 65536, "minimum": 4096,
            "maximum": 2_147_483_647
        })
    );
    let records: Vec<_> =
        pmu::Kind::Amd64.sources().iter().map(|source| record(source.source.0, source.name, 0)).collect();
    let system = FakeSystem::running(FakeDriver { sources: records, ..FakeDriver::default() });
    let (listed, table) =
        (run(&system, "list --json").json(), run_anywhere("list --interface amd64 --json", b"").json());
    for index in 0..176 {
        assert_eq!(table["sources"][index]["name"], listed["sources"][index]["name"]);
    }
}

#[test]
fn text_has_the_intervals_once() {
    assert_eq!(
        run_anywhere("list --interface default", b"").out,
        "Id  Name  Select\n\
         --  ----  ----------\n \
          0  Time  0x00000000\n\
         \n\
         Intervals                    Default   Min      Max\n\
         ---------------------------  -------  ----  -------\n\
         of Time, in units of 100 ns    10000  1221  1000000\n"
    );
}
