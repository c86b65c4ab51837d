//! Every name of every table is found on the processors of the table, in any case of letters, with the facts of its
//! row.
#![cfg(test)]

use std::collections::BTreeSet;

use crate::common::{cells, core_type, identity};
use events::{CoreTable, Event, Identity, LookupError, Precision, Table, Vendor, core_tables, table, tables};

/// Tables for which the bench has no processor.
const WITHOUT_DUMP: [&str; 0] = [];

fn hexadecimal(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap()
}

/// Compares an event with the cells of its row.
fn compare(event: &Event, row: &[String]) {
    let name = &row[0];
    let first = |text: &str| hexadecimal(text.split('|').next().unwrap());
    let (number, umask) = (first(&row[1]), first(&row[2]));
    let bit = |index: usize, position: u32| u64::from(row[index] == "1") << position;
    let select = number & 0xFF
        | (number >> 8) << 32
        | (umask & 0xFF) << 8
        | (umask >> 8) << 40
        | row[3].parse::<u64>().unwrap() << 24
        | bit(4, 23)
        | bit(5, 18)
        | bit(6, 21)
        | bit(7, 36);
    assert_eq!(event.encoding.select(), select, "{name}");
    let general: Vec<u8> = match row[8].as_str() {
        "any" => (0..16).collect(),
        text if text.starts_with("fixed") => vec![],
        mask => (0..16).filter(|number| hexadecimal(mask) >> number & 1 == 1).collect(),
    };
    assert_eq!(event.counters.general().collect::<Vec<_>>(), general, "{name}");
    let fixed: Vec<String> = event.counters.fixed().map(|number| format!("fixed{number}")).collect();
    assert_eq!(
        fixed.first().map_or("", String::as_str),
        row[8].strip_prefix("fixed").map_or("", |_| &row[8]),
        "{name}"
    );
    let precision = [Precision::Imprecise, Precision::Precise, Precision::OnlyPrecise];
    assert_eq!(event.precision, precision[row[9].parse::<usize>().unwrap()], "{name}");
    assert_eq!(event.precise_counters.is_empty(), row[10].is_empty(), "{name}");
    if row[11].is_empty() {
        assert_eq!(event.extra, None, "{name}");
    } else {
        let extra = event.extra.as_ref().unwrap();
        let registers: Vec<u64> = row[11].split('|').map(hexadecimal).collect();
        assert_eq!(extra.registers.iter().map(|one| one.msr.into()).collect::<Vec<u64>>(), registers, "{name}");
        assert_eq!(extra.value, hexadecimal(&row[12]), "{name}");
        assert_eq!(
            (extra.registers[0].event, extra.registers[0].umask),
            (u16::try_from(number).unwrap(), u16::try_from(umask).unwrap()),
            "{name}"
        );
    }
    assert_eq!((event.alone, event.deprecated), (row[13] == "1", row[14] == "1"), "{name}");
    assert_eq!(event.successor.as_deref().unwrap_or_default(), row[15], "{name}");
    assert_eq!(event.period.to_string(), row[16], "{name}");
}

/// Looks each name of a table up in three cases of letters, and compares what is found.
fn check(table: Table) -> usize {
    let rows = cells(table.name());
    let names: BTreeSet<String> = rows.iter().map(|row| row[0].to_uppercase()).collect();
    assert_eq!(names.len(), rows.len(), "{} has a name twice", table.name());
    assert_eq!(table.len(), rows.len());
    for row in &rows {
        let mixed: String = row[0]
            .chars()
            .zip([true, false].into_iter().cycle())
            .map(|(letter, up)| if up { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() })
            .collect();
        for name in [row[0].clone(), row[0].to_lowercase(), mixed] {
            let event = table.find(&name).unwrap_or_else(|| panic!("{}: {name}", table.name()));
            assert_eq!(event.name, row[0]);
            compare(&event, row);
        }
    }
    assert!(table.events().map(|event| event.name).eq(names_of(table, &rows)), "{}", table.name());
    rows.len()
}

fn names_of(_: Table, rows: &[Vec<String>]) -> Vec<String> {
    let mut names: Vec<String> = rows.iter().map(|row| row[0].clone()).collect();
    names.sort_by_key(|name| name.to_ascii_uppercase());
    names
}

#[test]
fn every_name_of_every_table_has_the_facts_of_its_row() {
    let (mut number, mut events) = (0, 0);
    for table in tables() {
        number += 1;
        events += check(table);
    }
    assert_eq!((number, events), (54, 20_272));
}

#[test]
fn every_table_is_that_of_a_processor_of_the_bench() {
    let mut seen = BTreeSet::new();
    for processor in cpuid_dumps::all().iter().filter(|processor| processor.real || processor.name.contains("derived"))
    {
        let Some(identity) = identity(processor) else { continue };
        let tables = core_tables(identity);
        let Some(one) = (match core_type(processor) {
            Some((core_type, native)) => tables
                .iter()
                .filter(|one| one.core_type == Some(core_type))
                .min_by_key(|one| (u32::from(one.native_model) != native, one.native_model)),
            None => tables.first(),
        }) else {
            continue;
        };
        seen.insert(one.table.name());
    }
    let without: Vec<_> = tables().map(Table::name).filter(|name| !seen.contains(name)).collect();
    assert_eq!(without, WITHOUT_DUMP);
}

#[test]
fn each_processor_has_the_table_of_its_model() {
    for (name, expected) in [
        ("nehalem-920", vec!["nehalemep"]),
        ("westmere-980x", vec!["westmereep-dp"]),
        ("skylake-6600k", vec!["skylake"]),
        ("skylake-sp-6154", vec!["skylakex"]),
        ("cascade-lake-8269c", vec!["cascadelakex"]),
        ("ice-lake-1065g7", vec!["icelake"]),
        ("alder-lake-p-12900h", vec!["alderlake_goldencove", "alderlake_gracemont"]),
        ("alder-lake-n-95", vec!["alderlake_gracemont"]),
        ("lunar-lake-288v-efficient", vec!["lunarlake_lioncove", "lunarlake_skymont"]),
        ("arrow-lake-h-285h", vec!["arrowlake_lioncove", "arrowlake_skymont", "arrowlake_crestmont"]),
        ("nova-lake-derived", vec!["novalake_coyotecove", "novalake_arcticwolf"]),
        ("bulldozer-fx8150", vec!["amd_fam15h"]),
        ("zen-1800x", vec!["amd_fam17h_zen1"]),
        ("hygon-dhyana-3185", vec!["amd_fam17h_zen1"]),
        ("zen2-3600x", vec!["amd_fam17h_zen2"]),
        ("mendocino-7320u", vec!["amd_fam17h_zen2"]),
        ("zen3-5950x", vec!["amd_fam19h_zen3"]),
        ("zen4-7700x", vec!["amd_fam19h_zen4"]),
        ("zen5-9800x3d", vec!["amd_fam1ah_zen5"]),
        ("zen6-venice-derived", vec!["amd_fam1ah_zen6"]),
        // Intel has no file of its events.
        ("diamond-rapids-derived", vec![]),
        ("core2-6420", vec![]),
        ("k10-thuban", vec![]),
        ("venice-3200", vec![]),
        ("netburst-irwindale", vec![]),
    ] {
        let identity = identity(cpuid_dumps::find(name).unwrap()).unwrap();
        let found: Vec<_> = core_tables(identity).iter().map(|one: &CoreTable| one.table.name()).collect();
        assert_eq!(found, expected, "{name}: {identity}");
    }
}

#[test]
fn an_unknown_processor_core_type_or_name_is_an_error() {
    let core2 = Identity { vendor: Vendor::Intel, family: 6, model: 0x0F, stepping: 6 };
    assert_eq!(table(core2, None), Err(LookupError::UnknownProcessor(core2)));
    let skylake = table(Identity { model: 0x5E, ..core2 }, None).unwrap();
    assert_eq!(
        skylake.event("MEM_LOAD_RETIRED.L3_MIS").unwrap_err().to_string(),
        "no event is called MEM_LOAD_RETIRED.L3_MIS"
    );
    let Err(LookupError::UnknownEvent { near, .. }) = skylake.event("instruction") else { panic!() };
    assert_eq!(near, ["INST_RETIRED.ANY"]);
    for name in ["", ".", "INST_RETIRED", "INST_RETIRED.ANY ", "\u{130}NST_RETIRED.ANY", "AAAA", "ZZZZ"] {
        assert!(skylake.find(name).is_none(), "{name:?}");
    }
}

/// Linux's list gives some events of Zen 6 the encoding of another one. Those names are left out, so that nothing is
/// counted under another event's name.
#[test]
fn no_two_names_of_zen_6_have_one_encoding() {
    let zen6 = tables().find(|table| table.name() == "amd_fam1ah_zen6").unwrap();
    let mut encodings: Vec<u64> = zen6.events().map(|event| event.encoding.select()).collect();
    encodings.sort_unstable();
    encodings.dedup();
    assert_eq!(encodings.len(), zen6.len());
    for (name, select) in [
        ("fp_ret_sse_avx_ops.packed_double_flops", Some(0xA003)),
        ("fp_ret_sse_avx_ops.packed_half_flops", None),
        ("fp_nsq_read_stalls.all", Some(0x0E13)),
        ("fp_nsq_read_stalls.fp_sq", None),
        ("l2_request_g2.ls_rd_sized", Some(0x4061)),
        ("l2_request_g2.all", None),
        ("de_no_dispatch_per_slot.backend_stalls", Some(0x1_0000_1EA0)),
    ] {
        assert_eq!(zen6.find(name).map(|event| event.encoding.select()), select, "{name}");
    }
}
