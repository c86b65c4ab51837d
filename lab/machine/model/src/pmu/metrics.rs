//! `PERF_METRICS`: how fixed counter 3, which counts slots, divides into the metrics of the top-down method (SDM,
//! "Performance Metrics"; Linux, arch/x86/events/intel/core.c, `icl_update_topdown_event`, which has the order of the
//! writes).
//!
//! Each byte is a fraction of fixed counter 3 in units of 1/255, rounded to the nearest. It is right only if the
//! counter and the metrics began together: both are zero, the counter was written first, and none of them ran
//! meanwhile. Otherwise every byte reads as 255 while the counter is not zero, until both are written again.

use crate::{
    bits::ones,
    fault::{GeneralProtection, refuse_reserved},
    select::Selected,
};

/// The event of the metrics in Intel's pseudo-encodings; the unit mask of metric i is [`FIRST_UMASK`] + i (Linux,
/// arch/x86/events/perf_event.h, `INTEL_TD_METRIC_RETIRING`).
const EVENT: u16 = 0x00;
const FIRST_UMASK: u8 = 0x80;

/// Number of metrics of level 1, and of levels 1 and 2.
const LEVEL_1: u8 = 4;
const LEVELS_1_AND_2: u8 = 8;

/// The whole of a fraction.
const WHOLE: u64 = 0xFF;

/// The metrics of a processor.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    /// Slots of each metric since the register was written.
    slots: [u64; LEVELS_1_AND_2 as usize],
    number: u8,
    /// Whether the metrics began together with fixed counter 3.
    in_step: bool,
    /// The value that was written last.
    written: u64,
}

impl Metrics {
    /// Creates the metrics of a processor with level 2 or without.
    pub(crate) fn new(has_level_2: bool) -> Self {
        let number = if has_level_2 { LEVELS_1_AND_2 } else { LEVEL_1 };
        Self { slots: [0; LEVELS_1_AND_2 as usize], number, in_step: false, written: 0 }
    }

    /// Iterates over the metrics, each with its event.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u8, Selected)> + use<> {
        (0..self.number).map(|metric| (metric, Selected::event(EVENT, u16::from(FIRST_UMASK + metric))))
    }

    /// Reads the register, while fixed counter 3 has the value `slots`.
    pub(crate) fn read(&self, slots: u64) -> u64 {
        let fraction = |counted: u64| match slots {
            0 => 0,
            _ if !self.in_step => WHOLE,
            _ => {
                let rounded = (u128::from(counted) * u128::from(WHOLE) + u128::from(slots / 2)) / u128::from(slots);
                u64::try_from(rounded).unwrap_or(WHOLE).min(WHOLE)
            }
        };
        if slots == 0 && !self.in_step {
            return self.written;
        }
        let used = self.slots.iter().take(usize::from(self.number));
        used.rev().fold(0, |register, counted| register << 8 | fraction(*counted))
    }

    /// Writes the register. `are_still` says that neither it nor fixed counter 3 counts, and `slots` is the value of
    /// that counter.
    pub(crate) fn write(&mut self, value: u64, slots: u64, are_still: bool) -> Result<(), GeneralProtection> {
        refuse_reserved(value, !ones(8 * u32::from(self.number)))?;
        self.slots = [0; LEVELS_1_AND_2 as usize];
        self.written = value;
        self.in_step = are_still && slots == 0 && value == 0;
        Ok(())
    }

    /// Notes that fixed counter 3 was written, or counted without the metrics: the register has to be written again.
    pub(crate) fn fall_out_of_step(&mut self) {
        self.in_step = false;
    }

    /// Adds to a metric.
    pub(crate) fn add(&mut self, metric: u8, events: u64) {
        if let Some(slots) = self.slots.get_mut(usize::from(metric)) {
            *slots = slots.saturating_add(events);
        }
    }
}
