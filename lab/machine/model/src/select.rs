//! The event select register. Bits 0 to 31 have the same layout for Intel (SDM, "Architectural Performance Monitoring
//! Version 1 Facilities", figure of `IA32_PERFEVTSELx`) and AMD (APM Vol. 2, 13.2.1, "Performance-Event Select
//! Registers").

use crate::bits::{bit, field};

/// User mode: CPL above 0.
const USR: u32 = 16;
/// Operating-system mode: CPL 0.
const OS: u32 = 17;
/// Edge detect.
const EDGE: u32 = 18;
/// Interrupt on overflow.
const INT: u32 = 20;
/// Counter enable.
const EN: u32 = 22;
/// Invert the counter mask.
const INV: u32 = 23;

/// The event that a counter counts, decoded from its select register. For a fixed counter, the architectural event that
/// the SDM assigns to it.
///
/// The fields are as written. The test that supplies event numbers must allow for `invert` having no effect without
/// `cmask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Selected {
    /// Event select: 8 bits on Intel, 12 on AMD.
    pub event: u16,
    /// Unit mask, with Intel's UMASK2 in bits 15:8.
    pub umask: u16,
    /// Counter mask: if not zero, count cycles with at least this many events.
    pub cmask: u8,
    /// Whether cycles with fewer events than `cmask` are counted instead.
    pub invert: bool,
    /// Whether only cycles in which the condition becomes true are counted.
    pub edge: bool,
}

impl Selected {
    /// Selects an event by its unit mask, without counter mask, invert or edge detection.
    pub(crate) fn event(event: u16, umask: u16) -> Self {
        Self { event, umask, cmask: 0, invert: false, edge: false }
    }
}

/// The value of a select register.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Select(pub(crate) u64);

impl Select {
    pub(crate) fn enabled(self) -> bool {
        bit(self.0, EN)
    }

    pub(crate) fn user(self) -> bool {
        bit(self.0, USR)
    }

    pub(crate) fn kernel(self) -> bool {
        bit(self.0, OS)
    }

    pub(crate) fn interrupt(self) -> bool {
        bit(self.0, INT)
    }

    /// Decodes the register of Intel, in which bits that a processor lacks are 0.
    pub(crate) fn selected(self) -> Selected {
        let [event, umask, _, cmask, _, umask2, ..] = self.0.to_le_bytes();
        let umask = u16::from_le_bytes([umask, umask2]);
        Selected { event: u16::from(event), umask, cmask, invert: bit(self.0, INV), edge: bit(self.0, EDGE) }
    }

    /// Decodes the register with AMD's event bits 11:8 in bits 35:32.
    pub(crate) fn selected_amd(self) -> Selected {
        let high = u16::from(field(self.0, 35, 32).to_le_bytes()[0]);
        let low = self.selected();
        Selected { event: low.event | high << 8, umask: low.umask & 0xFF, ..low }
    }
}
