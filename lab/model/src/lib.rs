//! A model of one logical processor's performance monitoring unit: its registers, what it counts, how it overflows,
//! how it interrupts, and which accesses it refuses with #GP.
//!
//! The code under test is judged by this model, so the two share nothing: every constant here was written from the
//! manuals, next to the section it comes from.
//!
//! | To find | look in |
//! |---|---|
//! | which PMU a processor has, from CPUID | `identity.rs`, and `pmu/intel_leaf.rs` for leaf 0AH |
//! | the bits of an event select register | `select.rs` |
//! | a register of a PMU, and what it refuses | `pmu/amd.rs`, `pmu/amd_v2.rs`, `pmu/intel.rs`, `pmu/netburst.rs`, `pmu/p6.rs`, `pmu/pentium.rs` |
//! | the arithmetic of a counter | `counter.rs` |
//! | the local vector table entry and `IA32_APIC_BASE` | `apic.rs` |
//! | records that the processor writes to memory | `debug_store/mod.rs` |
//! | when an interrupt is raised, merged, delivered | `processor.rs`; `interrupt_mode.rs` for the modes in which processors differ |
//! | what was really counted | `ledger.rs` |
//!
//! "SDM" is Intel's Software Developer's Manual; its sections are cited by title, since their numbers move between
//! editions (those without a volume are in Vol. 3B, "Performance Monitoring"). "APM" is AMD's Architecture Programmer's
//! Manual, "PPR" AMD's Processor Programming Reference.
//!
//! ```
//! use model::{Mode, Processor};
//!
//! // An AMD processor with nothing but the four counters that every one has.
//! let mut processor = Processor::new(Box::new(|leaf, _| match leaf {
//!     0 => [1, u32::from_le_bytes(*b"Auth"), u32::from_le_bytes(*b"cAMD"), u32::from_le_bytes(*b"enti")],
//!     _ => [0; 4],
//! }));
//! processor.wrmsr(0xC001_0004, 0)?; // PerfCtr0
//! processor.wrmsr(0xC001_0000, 0x0043_00C0)?; // PerfEvtSel0: enabled, user and kernel, event C0
//! processor.run(Mode::User, &|selected| if selected.event == 0xC0 { 1000 } else { 0 });
//! assert_eq!(processor.rdpmc(0), Ok(1000));
//! # Ok::<(), model::GeneralProtection>(())
//! ```

#![forbid(unsafe_code)]

mod apic;
mod architectural;
mod bits;
mod counter;
mod debug_store;
mod fault;
mod identity;
mod interrupt_mode;
mod ledger;
mod pmu;
mod processor;
mod select;

pub use counter::CounterId;
pub use debug_store::{Branch, INSTRUCTION_LENGTH, Memory, Stored};
pub use fault::GeneralProtection;
pub use interrupt_mode::InterruptMode;
pub use ledger::{Ledger, LedgerEntry};
pub use processor::{Accesses, Interrupting, Mode, Processor};
pub use select::Selected;

/// The CPUID instruction of the processor: (leaf, subleaf) to \[eax, ebx, ecx, edx\].
pub type CpuidFunction = Box<dyn Fn(u32, u32) -> [u32; 4] + Send + Sync>;
