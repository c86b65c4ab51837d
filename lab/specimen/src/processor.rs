//! The processor on which the specimen runs.

use crate::kernel;
use core::{arch::asm, ptr};

/// Its number.
pub fn current() -> u32 {
    // SAFETY: the number is optional.
    unsafe { kernel::KeGetCurrentProcessorNumberEx(ptr::null_mut()) }
}

/// The IRQL.
pub fn level() -> u32 {
    // SAFETY: no requirement.
    unsafe { kernel::KeGetCurrentIrql() }.into()
}

/// The registers of a counter.
pub struct Counter {
    pub select: u32,
    pub counter: u32,
}

/// The first one: of AMD's first interface, or of Intel's.
pub fn counter() -> Counter {
    const INTEL: u32 = u32::from_le_bytes(*b"Genu");
    if core::arch::x86_64::__cpuid(0).ebx == INTEL {
        Counter { select: 0x186, counter: 0xC1 }
    } else {
        Counter { select: 0xC001_0000, counter: 0xC001_0004 }
    }
}

/// The lower and the upper half.
pub fn halves(value: u64) -> [u32; 2] {
    [value, value >> 32].map(|half| u32::try_from(half & 0xFFFF_FFFF).unwrap_or_default())
}

pub fn write(register: u32, value: u64) {
    let [low, high] = halves(value);
    // SAFETY: a register that the processor of the test has.
    unsafe { asm!("wrmsr", in("ecx") register, in("eax") low, in("edx") high, options(nostack, preserves_flags)) };
}

pub fn read(register: u32) -> [u32; 2] {
    let (low, high);
    // SAFETY: a register that the processor of the test has.
    unsafe {
        asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
    }
    [low, high]
}

/// Milliseconds of the performance counter and of the interrupt time.
pub fn time() -> [u32; 2] {
    let mut frequency = 0;
    // SAFETY: the variable may be written.
    let now = unsafe { kernel::KeQueryPerformanceCounter(&raw mut frequency) };
    // SAFETY: no requirement.
    let interrupts = unsafe { kernel::KeQueryInterruptTime() };
    let milliseconds = u64::try_from(now / (frequency / 1_000).max(1)).unwrap_or_default();
    let [[counter, _], [time, _]] = [milliseconds, interrupts / 10_000].map(halves);
    [counter, time]
}
