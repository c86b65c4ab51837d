//! The map of the tables agrees with the one table from model to processor, which the driver uses.
#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};

use events::{CoreTable, Identity, Vendor, core_tables};
use pmu::Cpuid;
use pmu::interface::emon::Microarchitecture;
use raw_cpuid::CpuIdResult;
use x86_defs::cpuid::{AmdProcessor, IntelProcessor};

/// Models of Intel from Nehalem on that no event file is for.
const WITHOUT_FILE: &[u8] = &[0x5D];

/// CPUID of a core of a model.
struct Core {
    family: u16,
    model: u8,
    table: CoreTable,
}

impl Cpuid for Core {
    fn cpuid(&self, leaf: u32, _: u32) -> CpuIdResult {
        let [family, model] = [u32::from(self.family), u32::from(self.model)];
        let signature = family.min(0xF) << 8 | family.saturating_sub(0xF) << 20 | (model & 0xF) << 4 | model >> 4 << 16;
        let core_type = self.table.core_type.map_or(0, |core_type| core_type as u32);
        let (eax, edx) = match leaf {
            0 => (0x1A, 0),
            1 => (signature, 0),
            7 => (0, u32::from(core_type != 0) << 15),
            0x1A => (core_type << 24 | u32::from(self.table.native_model), 0),
            _ => (0, 0),
        };
        CpuIdResult { eax, ebx: 0, ecx: 0, edx }
    }
}

#[test]
fn every_model_has_tables_and_each_table_is_of_one_microarchitecture() {
    let mut of_table: BTreeMap<&str, BTreeSet<u8>> = BTreeMap::new();
    let mut without_file = Vec::new();
    for (family, model) in [6, 18, 19].into_iter().flat_map(|family| (0..=u8::MAX).map(move |model| (family, model))) {
        let tables = core_tables(Identity { vendor: Vendor::Intel, family, model, stepping: 4 });
        let processor = IntelProcessor::of_model(family, model);
        assert!(tables.is_empty() || processor.is_some(), "family {family}, model {model:#04x}");
        if processor.is_some_and(|one| tables.is_empty() && model > 0x19 && one != IntelProcessor::Penryn) {
            without_file.push(model);
        }
        for table in tables {
            let name = table.table.name();
            let microarchitecture = Microarchitecture::of(&Core { family, model, table });
            assert_ne!(microarchitecture, Microarchitecture::Unknown, "{name}");
            of_table.entry(name).or_default().insert(microarchitecture as u8);
        }
    }
    assert!(of_table.len() > 45 && without_file == WITHOUT_FILE, "{without_file:x?}");
    assert!(of_table.values().all(|microarchitectures| microarchitectures.len() == 1), "{of_table:?}");
}

#[test]
fn every_zen_has_the_table_of_its_generation() {
    for (family, model) in (0x17..=0x1A).flat_map(|family| (0..=u8::MAX).map(move |model| (family, model))) {
        let vendor = if family == 0x18 { Vendor::Hygon } else { Vendor::Amd };
        let tables = core_tables(Identity { vendor, family, model, stepping: 0 });
        let Some(one) = tables.first() else { continue };
        let expected: &[&str] = match AmdProcessor::of_model(family, model) {
            Some(AmdProcessor::Zen) => &["amd_fam17h_zen1", "amd_fam17h_zen2"],
            Some(AmdProcessor::Milan | AmdProcessor::Zen3) => &["amd_fam19h_zen3"],
            Some(AmdProcessor::Zen4) => &["amd_fam19h_zen4"],
            Some(AmdProcessor::Zen5) => &["amd_fam1ah_zen5"],
            Some(AmdProcessor::Zen6) => &["amd_fam1ah_zen6"],
            _ => &[],
        };
        assert!(expected.contains(&one.table.name()), "family {family:#x}, model {model:#x}: {}", one.table.name());
    }
}
