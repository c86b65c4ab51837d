//! Control registers (SDM Vol. 3A, 2.5; APM Vol. 2, 3.1).

/// CR4.PCE: RDPMC can be executed at any privilege level. Otherwise, it faults at any other than 0.
pub const CR4_PCE: u64 = 1 << 8;
