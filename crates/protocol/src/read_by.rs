//! How registers are read.

/// How the register of a [`RegisterRecord`](crate::RegisterRecord) was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum ReadBy {
    /// RDMSR.
    Rdmsr = 0,
    /// RDPMC.
    Rdpmc = 1,
    /// A load from the page of the local APIC.
    LocalApic = 2,
}

impl ReadBy {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Rdmsr, Self::Rdpmc, Self::LocalApic];

    /// Returns the kind with this number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|read_by| *read_by as u16 == number)
    }
}
