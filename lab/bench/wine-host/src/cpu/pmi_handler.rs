//! The handler of the profile interrupt that a driver registers, and the trap frame that it receives.

use bench_protocol::InterruptSite;
use std::ops::Range;

pub type Routine = unsafe extern "system" fn(*mut TrapFrame);

/// A registered handler of the profile interrupt, and the process that registered it.
#[derive(Clone, Copy)]
pub struct RegisteredHandler {
    pub routine: Routine,
    pub process: u32,
}

impl RegisteredHandler {
    pub fn is_in(self, addresses: &Range<usize>) -> bool {
        let routine: *const () = self.routine as *const ();
        addresses.contains(&routine.addr())
    }
}

/// KTRAP_FRAME of x64, as far as a handler reads it.
#[repr(C, align(16))]
pub struct TrapFrame {
    registers: [u64; 45],
    rip: u64,
    cs: u64,
    flags: u64,
    rsp: u64,
    ss: u64,
}

const _: () = assert!(size_of::<TrapFrame>() == 0x190 && std::mem::offset_of!(TrapFrame, rip) == 0x168);

impl TrapFrame {
    /// Returns the frame of an interrupt at `site`, with the selectors of Windows x64 and interrupts enabled. The bits
    /// above the 16-bit selectors are undefined.
    pub fn interrupted(site: InterruptSite) -> Self {
        const KERNEL_STACK: u64 = 0xFFFF_F800_0010_0000;
        const USER_STACK: u64 = 0x0000_0010_0000_0000;
        const UNDEFINED: u64 = 0xA5A5_A5A5_A5A5_0000;
        let (cs, ss, rsp) = if site.user { (0x33, 0x2B, USER_STACK) } else { (0x10, 0x18, KERNEL_STACK) };
        Self { registers: [0; 45], rip: site.ip, cs: UNDEFINED | cs, flags: 0x202, rsp, ss: UNDEFINED | ss }
    }
}
