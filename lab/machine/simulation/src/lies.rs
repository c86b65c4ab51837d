//! A processor whose answers are not what its registers contain: a faulty one, or one of a hypervisor with defects.

/// What the code under test asks a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    /// CPUID, of a leaf and a subleaf.
    Cpuid(u32, u32),
    /// RDMSR, of the register with this address.
    Read(u32),
    /// The same under a guard.
    GuardedRead(u32),
    /// WRMSR under a guard: whether it faults.
    GuardedWrite(u32),
    /// RDPMC under a guard, with this index: whether it faults.
    GuardedCounter(u32),
}

/// What a processor answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lie {
    /// The truth.
    #[default]
    Truth,
    /// #GP, if the access is guarded; otherwise the truth.
    Fault,
    /// The truth with these bits inverted. EAX is in the lowest bits of an answer of CPUID, then EBX, ECX and EDX.
    Inverted(u128),
    /// This.
    Instead(u128),
}

impl Lie {
    /// Returns the answer if this is the truth.
    #[must_use]
    pub const fn instead_of(self, truth: u128) -> u128 {
        match self {
            Self::Truth | Self::Fault => truth,
            Self::Inverted(bits) => truth ^ bits,
            Self::Instead(answer) => answer,
        }
    }

    /// Returns the answer of CPUID.
    #[must_use]
    pub fn instead_of_leaf(self, truth: [u32; 4]) -> [u32; 4] {
        let [eax, ebx, ecx, edx] = truth.map(u128::from);
        let answer = self.instead_of(eax | ebx << 32 | ecx << 64 | edx << 96).to_le_bytes();
        let mut registers = [0; 4];
        for (register, bytes) in registers.iter_mut().zip(answer.as_chunks().0) {
            *register = u32::from_le_bytes(*bytes);
        }
        registers
    }

    /// Returns the answer of a register.
    #[must_use]
    pub fn instead_of_register(self, truth: u64) -> u64 {
        u64::try_from(self.instead_of(truth.into()) & u128::from(u64::MAX)).unwrap_or(u64::MAX)
    }
}

/// Decides how a processor answers.
pub type Liar = Box<dyn FnMut(Question) -> Lie + Send>;
