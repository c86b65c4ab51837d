//! KTRAP_FRAME of x64: the state of the interrupted code.

/// The fields that the handler reads (ntddk.h; the bindings keep it opaque).
#[repr(C)]
pub struct TrapFrame {
    volatile_state: [u8; 0x168],
    rip: u64,
    /// 16 bits; the bytes after it are undefined.
    cs: u16,
    fill: [u16; 3],
    flags: u32,
    fill2: u32,
    rsp: u64,
    ss: u16,
    fill3: [u16; 3],
}

const _: () = assert!(size_of::<TrapFrame>() == 0x190);
const _: () = assert!(core::mem::offset_of!(TrapFrame, rip) == 0x168);
const _: () = assert!(core::mem::offset_of!(TrapFrame, cs) == 0x170);
const _: () = assert!(core::mem::offset_of!(TrapFrame, flags) == 0x178);
const _: () = assert!(core::mem::offset_of!(TrapFrame, rsp) == 0x180);
const _: () = assert!(core::mem::offset_of!(TrapFrame, ss) == 0x188);

impl TrapFrame {
    /// Returns the address of the next instruction.
    #[must_use]
    pub const fn instruction_pointer(&self) -> u64 {
        self.rip
    }

    /// Returns whether the code ran at CPL 3, from the low bits of CS (SDM Vol. 3A, 5.5). PreviousMode is not reliable
    /// in an interrupt.
    #[must_use]
    pub const fn is_user(&self) -> bool {
        self.cs & 3 == 3
    }
}
