//! The current processor.

use crate::kernel;
use core::{arch::asm, ptr};

/// Returns its number.
pub fn current() -> u32 {
    // SAFETY: the pointer is optional.
    unsafe { kernel::KeGetCurrentProcessorNumberEx(ptr::null_mut()) }
}

/// Returns the IRQL.
pub fn level() -> u32 {
    // SAFETY: the function has no preconditions.
    unsafe { kernel::KeGetCurrentIrql() }.into()
}

/// The registers of a counter.
pub struct Counter {
    pub select: u32,
    pub counter: u32,
}

/// Returns the first counter: AMD's legacy counter 0 or Intel's general counter 0.
pub fn counter() -> Counter {
    const INTEL: u32 = u32::from_le_bytes(*b"Genu");
    if core::arch::x86_64::__cpuid(0).ebx == INTEL {
        Counter { select: 0x186, counter: 0xC1 }
    } else {
        Counter { select: 0xC001_0000, counter: 0xC001_0004 }
    }
}

/// Returns the lower and the upper half.
pub fn halves(value: u64) -> [u32; 2] {
    [value, value >> 32].map(|half| u32::try_from(half & 0xFFFF_FFFF).unwrap_or_default())
}

pub fn write(register: u32, value: u64) {
    let [low, high] = halves(value);
    // SAFETY: the test names a register that the processor has.
    unsafe { asm!("wrmsr", in("ecx") register, in("eax") low, in("edx") high, options(nostack, preserves_flags)) };
}

pub fn read(register: u32) -> [u32; 2] {
    let (low, high);
    // SAFETY: the test names a register that the processor has.
    unsafe {
        asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
    }
    [low, high]
}

/// Returns the performance counter and the interrupt time in milliseconds.
pub fn time() -> [u32; 2] {
    let mut frequency = 0;
    // SAFETY: `frequency` is writable.
    let now = unsafe { kernel::KeQueryPerformanceCounter(&raw mut frequency) };
    // SAFETY: the function has no preconditions.
    let interrupts = unsafe { kernel::KeQueryInterruptTime() };
    let milliseconds = u64::try_from(now / (frequency / 1_000).max(1)).unwrap_or_default();
    let [[counter, _], [time, _]] = [milliseconds, interrupts / 10_000].map(halves);
    [counter, time]
}
