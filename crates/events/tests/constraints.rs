//! The driver's compact constraints (`crates/pmu`) and the tables of names agree: the driver places no event of a table
//! on a counter on which the facts say that it does not count or record.
#![cfg(test)]

use std::collections::BTreeMap;

use crate::common::{core_type, identity};
use events::{CoreType, Event, core_tables};
use pmu::interface::emon::Microarchitecture;
use raw_cpuid::CpuIdResult;

/// Events for which the driver allows a counter that the makers' table of the product does not name, with the reason.
const WIDER: [(&str, &str, &str); 12] = [
    ("cascadelakex", "BR_INST_RETIRED.COND:p", SAME_ENCODING),
    ("cascadelakex", "MEM_LOAD_L3_MISS_RETIRED.REMOTE_FWD:p", OTHER_PRODUCT),
    ("goldmontplus", "INST_RETIRED.PREC_DIST:p", SAME_ENCODING),
    ("jaketown", "MEM_LOAD_UOPS_LLC_HIT_RETIRED.XSNP_HIT:p", OTHER_PRODUCT),
    ("jaketown", "MEM_LOAD_UOPS_LLC_HIT_RETIRED.XSNP_HITM:p", OTHER_PRODUCT),
    ("jaketown", "MEM_LOAD_UOPS_LLC_HIT_RETIRED.XSNP_MISS:p", OTHER_PRODUCT),
    ("jaketown", "MEM_LOAD_UOPS_LLC_HIT_RETIRED.XSNP_NONE:p", OTHER_PRODUCT),
    ("jaketown", "MEM_LOAD_UOPS_RETIRED.LLC_HIT:p", OTHER_PRODUCT),
    ("knightslanding", "INST_RETIRED.ANY_P:p", SAME_ENCODING),
    ("knightslanding", "INST_RETIRED.ANY_PS", SAME_ENCODING),
    ("skylake", "BR_INST_RETIRED.COND:p", SAME_ENCODING),
    ("skylakex", "BR_INST_RETIRED.COND:p", SAME_ENCODING),
];

const SAME_ENCODING: &str = "another name of the same encoding has these counters";
const OTHER_PRODUCT: &str = "the table of another product of the generation has these counters";

struct Leaves<F>(F);

impl<F: Fn(u32, u32) -> [u32; 4]> pmu::Cpuid for Leaves<F> {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let [eax, ebx, ecx, edx] = (self.0)(leaf, subleaf);
        CpuIdResult { eax, ebx, ecx, edx }
    }
}

/// Returns whether the processor has eight counters only without hyper-threading: Sandy Bridge to Cascade Lake. The
/// makers' tables are about the four of a thread.
const fn has_counters_of_both_threads(microarchitecture: Microarchitecture) -> bool {
    matches!(
        microarchitecture,
        Microarchitecture::SandyBridge
            | Microarchitecture::IvyBridge
            | Microarchitecture::Haswell
            | Microarchitecture::Broadwell
            | Microarchitecture::Skylake
    )
}

/// Returns whether event number and unit mask alone select the event.
fn is_plain(event: &Event) -> bool {
    event.encoding.cmask == 0 && !event.encoding.inv && !event.encoding.edge
}

/// Returns whether a raw event of the driver selects the event, by an encoding that its constraints have.
fn is_selectable(event: &Event) -> bool {
    event.extra.is_none() && !event.encoding.any && !event.is_fixed()
}

#[test]
fn the_driver_constrains_every_event_at_least_as_the_facts_say() {
    let (mut compared, mut unlisted) = (0, Vec::new());
    let mut wider: BTreeMap<(&str, String), (u32, u16)> = BTreeMap::new();
    for processor in cpuid_dumps::all() {
        let Some(identity) = identity(processor) else { continue };
        let of_core = core_type(processor).map(|(core_type, _)| core_type);
        let dump = processor.cpuid();
        let microarchitecture = Microarchitecture::of(&Leaves(|leaf, subleaf| dump.cpuid(leaf, subleaf)));
        let threads = if has_counters_of_both_threads(microarchitecture) { 0xF } else { u32::MAX };
        let is_low_power = of_core == Some(CoreType::Atom) && microarchitecture == Microarchitecture::Crestmont;
        for one in core_tables(identity).iter().filter(|one| one.core_type.is_none() || one.core_type == of_core) {
            let is_table = one.core_type.is_none() || identity.model != 0xC5 || is_low_power == (one.native_model != 0);
            // AMD's tables have no counters, and the driver's have those of family 15h.
            if !is_table || microarchitecture == Microarchitecture::Unknown {
                continue;
            }
            for event in one.table.events().filter(is_selectable) {
                let (encoding, has_cmask) = (event.encoding, event.encoding.cmask != 0);
                let Some(class) = microarchitecture.table().find(encoding.event, encoding.umask, has_cmask) else {
                    unlisted.push((processor.name, event.name));
                    continue;
                };
                compared += 1;
                let (counting, recording) = (class.counters().bits() & threads, class.precise().bits() & threads);
                if counting & !u32::from(event.counters.general_mask) != 0 {
                    wider.insert((one.table.name(), event.name.clone()), (counting, event.counters.general_mask));
                }
                if is_plain(&event) && recording & !u32::from(event.precise_counters.general_mask) != 0 {
                    let mask = event.precise_counters.general_mask;
                    wider.insert((one.table.name(), format!("{}:p", event.name)), (recording, mask));
                }
            }
        }
    }
    assert_eq!(unlisted, [], "the driver does not know these");
    let listed: Vec<(&str, &str)> = WIDER.iter().map(|(table, event, _)| (*table, *event)).collect();
    let found: Vec<(&str, &str)> = wider.keys().map(|(table, event)| (*table, event.as_str())).collect();
    assert_eq!(found, listed, "the driver allows more counters: {wider:?}");
    assert!(compared > 20_000, "{compared}");
}
