//! The general counters that can record each event, by processor model. On any other counter, or for an event that the
//! table of the processor lacks, PEBS records nothing.

mod tables;

use crate::{
    bits::{bit, byte},
    counter::CounterId,
    cpuid::{atom, family},
    select::Selected,
};
use tables::Rule;

/// The rules for models without a table: the architectural events that are counted when an instruction retires. As on
/// Golden Cove, counter 0 does not record instructions.
const UNKNOWN: &[Rule] = &[(0xC0, &[0x00], !1), (0xC4, &[0x00], !0), (0xC5, &[0x00], !0)];

/// The same where only counter 0 records (record format 0).
const UNKNOWN_ALONE: &[Rule] = &[(0xC0, &[0x00], 1), (0xC4, &[0x00], 1), (0xC5, &[0x00], 1)];

/// The PEBS restrictions of a processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recordable {
    rules: &'static [Rule],
    /// A bit for each general counter with precise distribution.
    distributed: u64,
}

impl Recordable {
    pub(super) fn read(cpuid: &dyn Fn(u32, u32) -> [u32; 4]) -> Self {
        let [signature, ..] = cpuid(1, 0);
        let model = byte(signature, 19, 16) << 4 | byte(signature, 7, 4);
        let rules = match family(signature) {
            6 => of_family_6(model, atom(cpuid)),
            18 if atom(cpuid).is_some() => tables::ARCTIC_WOLF,
            // Nova Lake, Diamond Rapids.
            18 | 19 => tables::COYOTE_COVE,
            _ => UNKNOWN,
        };
        let distributed = match rules {
            _ if std::ptr::eq(rules, tables::GOLDEN_COVE) => 0b1,
            _ if std::ptr::eq(rules, tables::LION_COVE) => 0b11,
            _ => 0,
        };
        Self { rules, distributed }
    }

    /// Returns the restrictions of a processor on which only counter 0 records.
    pub(super) fn alone(self) -> Self {
        if std::ptr::eq(self.rules, UNKNOWN) { Self { rules: UNKNOWN_ALONE, ..self } } else { self }
    }

    /// Returns a bit for each general counter that can record the selected event.
    pub(super) fn counters(self, Selected { event, umask, cmask, invert, edge }: Selected) -> u64 {
        if cmask != 0 || invert || edge {
            return 0;
        }
        let of = self.rules.iter().find(|(number, umasks, _)| *number == event && umasks.contains(&umask));
        of.map_or(0, |(_, _, counters)| *counters)
    }

    /// Returns whether a counter records the selected event with precise distribution: at the overflow itself instead
    /// of at the next event (column `PDISTCounter` of the event files: counter 0 on Golden Cove, 0 and 1 on Lion Cove,
    /// fixed counter 0 wherever it records; SDM, "PDist: Precise Distribution").
    pub(super) fn is_distributed(self, counter: CounterId, selected: Selected) -> bool {
        match counter {
            CounterId::General(number) => bit(self.distributed & self.counters(selected), number.into()),
            CounterId::Fixed(number) => number == 0,
            CounterId::Metric(_) => false,
        }
    }
}

/// Returns the rules of a model of family 6 (SDM Vol. 4, "CPUID Signature Values of DisplayFamily_DisplayModel";
/// `mapfile.csv` of the event files).
fn of_family_6(model: u8, atom: Option<u32>) -> &'static [Rule] {
    /// Native model of Crestmont (Linux, arch/x86/events/perf_event.h, `INTEL_ATOM_CMT_NATIVE_ID`).
    const CRESTMONT: u32 = 2;
    let is_atom = atom.is_some();
    match model {
        0x0F | 0x16 | 0x17 | 0x1D => tables::CORE_2,
        0x1A | 0x1E | 0x1F | 0x2E => tables::NEHALEM,
        0x25 | 0x2C | 0x2F => tables::WESTMERE,
        0x2A | 0x2D => tables::SANDY_BRIDGE,
        0x3A | 0x3E => tables::IVY_BRIDGE,
        0x3C | 0x3F | 0x45 | 0x46 => tables::HASWELL,
        0x3D | 0x47 | 0x4F | 0x56 => tables::BROADWELL,
        0x4E | 0x5E | 0x8E | 0x9E | 0xA5 | 0xA6 | 0x55 => tables::SKYLAKE,
        0x7D | 0x7E | 0x6A | 0x6C | 0x8C | 0x8D | 0xA7 => tables::ICE_LAKE,
        0x97 | 0x9A | 0xB7 | 0xBA | 0xBF if is_atom => tables::GRACEMONT,
        0xAA | 0xAC | 0xB5 if is_atom => tables::CRESTMONT,
        0x97 | 0x9A | 0xB7 | 0xBA | 0xBF | 0xAA | 0xAC | 0xB5 | 0x8F | 0xCF | 0xAD | 0xAE | 0xD7 => tables::GOLDEN_COVE,
        0x1C | 0x26 | 0x27 | 0x35 | 0x36 => tables::BONNELL,
        0x37 | 0x4A | 0x4C | 0x4D | 0x5A | 0x5D => tables::SILVERMONT,
        0x57 | 0x85 => tables::KNIGHTS_LANDING,
        0x5C | 0x5F => tables::GOLDMONT,
        0x7A => tables::GOLDMONT_PLUS,
        0x86 | 0x96 | 0x9C => tables::TREMONT,
        0xBE => tables::GRACEMONT,
        0xAF | 0xB6 => tables::CRESTMONT,
        0xC5 if atom == Some(CRESTMONT) => tables::CRESTMONT,
        0xBD | 0xC5 | 0xC6 if is_atom => tables::SKYMONT,
        0xBD | 0xC5 | 0xC6 => tables::LION_COVE,
        0xCC | 0xD5 if is_atom => tables::DARKMONT,
        0xCC | 0xD5 => tables::COUGAR_COVE,
        0xDD => tables::DARKMONT,
        _ => UNKNOWN,
    }
}
