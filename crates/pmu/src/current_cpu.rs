//! The number of a processor, and the token of the code that runs on it.

use core::fmt;
use core::marker::PhantomData;

use crate::cpu::Cpu;

/// Number of a logical processor over all processor groups, as KeGetCurrentProcessorNumberEx returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ProcessorIndex(u32);

impl ProcessorIndex {
    /// The boot processor.
    pub const BOOT: Self = Self(0);

    /// Wraps the number of a processor.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number, as the protocol and the kernel know it.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the number as an index of a slice with one element per processor.
    #[must_use]
    #[inline]
    pub const fn as_usize(self) -> usize {
        self.0 as usize
    }

    /// Returns the first `count` processors, in ascending order.
    pub fn first(count: u32) -> impl Iterator<Item = Self> {
        (0..count).map(Self)
    }
}

impl fmt::Display for ProcessorIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Token of code that runs on one processor at PROFILE_LEVEL: the registers of that processor, and its number.
///
/// A function that takes the token touches the registers and the state of the current processor. A performance monitor
/// interrupt cannot occur in between, and no other code on that processor can run. The token is two words, is passed by
/// value, and is not `Send`: it stays on its processor, at its IRQL, until the reference in it ends.
#[derive(Debug)]
pub struct CurrentCpu<'a, C: Cpu> {
    cpu: &'a C,
    index: ProcessorIndex,
    not_send: PhantomData<*const ()>,
}

impl<'a, C: Cpu> CurrentCpu<'a, C> {
    /// Makes the token of the processor with the number `index`, whose registers `cpu` accesses.
    ///
    /// # Contract
    /// The caller runs on that processor at PROFILE_LEVEL (HIGH_LEVEL on x64), and stays there until the last copy of
    /// the token is gone. Only what brings code to a processor may call this: the closure of the platform that runs on
    /// each processor, the interrupt handler, the tick, and the simulation of these in tests.
    ///
    /// This crate has no unsafe code, so that it cannot make the contract a condition of safety. The driver does: its
    /// [`Cpu`] can be made in one module only, by functions that keep the code on its processor, and the function of
    /// that module that makes the token is unsafe unless it raises the IRQL itself. Without a `cpu` there is no token.
    #[must_use]
    #[inline]
    pub const fn new(cpu: &'a C, index: ProcessorIndex) -> Self {
        const { assert!(size_of::<Self>() == 2 * size_of::<usize>(), "the token is passed in two registers") };
        Self { cpu, index, not_send: PhantomData }
    }

    /// Returns the registers of the processor.
    #[must_use]
    #[inline]
    pub const fn cpu(self) -> &'a C {
        self.cpu
    }

    /// Returns the number of the processor.
    #[must_use]
    #[inline]
    pub const fn index(self) -> ProcessorIndex {
        self.index
    }
}

impl<C: Cpu> Clone for CurrentCpu<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Cpu> Copy for CurrentCpu<'_, C> {}
