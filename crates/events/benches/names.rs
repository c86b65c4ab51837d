//! Looks names up in the largest table, each once, for callgrind to count the instructions; `cargo xtask bench` does
//! that.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench that cannot be set up must not measure")]
#![forbid(unsafe_code)]

use std::fmt::Display;
use std::hint::black_box;

use events::{CoreTable, Event, Identity, Table, Vendor, core_tables, table};

/// Cascade Lake-X, with 2,344 events.
const CASCADE_LAKE: Identity = Identity { vendor: Vendor::Intel, family: 6, model: 0x55, stepping: 7 };

fn main() {
    let largest = table(CASCADE_LAKE, None).expect("a table");
    let events: Vec<Event> = largest.events().collect();
    let by_position = |position: usize| events.get(position).expect("an event").name.to_lowercase();
    let names = [
        ("find first", by_position(0)),
        ("find middle", by_position(events.len() / 2)),
        ("find last", by_position(events.len() - 1)),
        ("find none", "MEM_LOAD_RETIRED.L3_MIS".to_owned()),
    ];
    for (operation, name) in names {
        let found = measured_find(black_box(largest), black_box(&name));
        report(operation);
        assert_eq!(found.is_some(), operation != "find none");
    }
    let found = measured_tables(black_box(CASCADE_LAKE));
    report("tables of CPU");
    assert_eq!(found.len(), 1);
}

#[inline(never)]
fn measured_find(table: Table, name: &str) -> Option<Event> {
    table.find(name)
}

#[inline(never)]
fn measured_tables(identity: Identity) -> Vec<CoreTable> {
    core_tables(identity)
}

/// Prints an operation, which accesses no register.
#[inline(never)]
fn report(operation: impl Display) {
    println!("Names|{operation}|0|0|0|0|0");
}
