//! A model of the performance monitoring unit of one logical processor: its registers, counting, overflow, interrupts,
//! and the accesses that raise #GP.
//!
//! The tests judge the product by this model, so the two share no code. Every constant here comes from the manuals and
//! cites its section.
//!
//! | To find | look in |
//! |---|---|
//! | what CPUID says of a processor | `cpuid.rs` |
//! | the kind of PMU, from CPUID | `identity.rs`, and `pmu/intel_leaf.rs` for leaf 0AH |
//! | the bits of an event select register | `select.rs` |
//! | a register of a PMU | `pmu/amd.rs`, `pmu/amd_v2.rs`, `pmu/intel.rs`, `pmu/netburst.rs`, `pmu/p6.rs`, `pmu/pentium.rs` |
//! | the metrics of the top-down method | `pmu/metrics.rs` |
//! | the bits of a register that software may write | `writable.rs` |
//! | what hypervisors make of registers | `fault.rs` |
//! | errata of counters, by processor | `pmu/errata.rs` |
//! | the arithmetic of a counter | `counter.rs` |
//! | events that only some counters count | `countable.rs` |
//! | events that a second register completes | `extra.rs` |
//! | what the counters count while the processor executes | `processor/execution.rs` |
//! | the local vector table entry and `IA32_APIC_BASE` | `apic.rs` |
//! | records that the processor writes to memory | `debug_store/mod.rs` |
//! | the last branches in registers | `last_branches/mod.rs`; `processor/branches.rs` for the branches that code takes |
//! | samples of ops and fetches that an AMD processor takes itself (IBS) | `ibs/mod.rs`, `ibs/fetch.rs`; `processor/ops.rs` for what code executes |
//! | when an interrupt is raised, merged, delivered | `processor/interrupts.rs`; `interrupt_mode.rs` for differences between processors |
//! | when timers of Windows expire, which is not a matter of the PMU | `kernel_timer.rs` |
//! | counters that count nothing or a share; a loop with known events | `movement.rs` |
//! | exact counts, independent of the registers | `ledger.rs` |
//!
//! "SDM" is Intel's Software Developer's Manual. Its sections are cited by title because their numbers change between
//! editions; sections without a volume are in Vol. 3B, "Performance Monitoring". "APM" is AMD's Architecture
//! Programmer's Manual, "PPR" AMD's Processor Programming Reference.
//!
//! ```
//! use model::{Mode, Processor};
//!
//! // An AMD processor with only the four legacy counters.
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
mod countable;
mod counter;
mod cpuid;
mod debug_store;
mod extra;
mod fault;
mod ibs;
mod identity;
mod interrupt_mode;
mod kernel_timer;
mod last_branches;
mod ledger;
mod loads;
mod mode;
mod movement;
mod pmu;
mod processor;
mod reload;
mod select;
mod writable;

pub use counter::CounterId;
pub use debug_store::{Branch, Fragments, INSTRUCTION_LENGTH, Memory, RecordedAccess, Stored};
pub use fault::{FaultingAccess, GeneralProtection, Quirk};
pub use ibs::{DataSource, ExecutedFetch, ExecutedOp, FetchSource, MemoryAccess, OpKind};
pub use interrupt_mode::InterruptMode;
pub use kernel_timer::{DEFAULT_RESOLUTION, FINEST_RESOLUTION, TimerMode, next_due};
pub use last_branches::{BranchKind, TakenBranch};
pub use ledger::{Ledger, LedgerEntry};
pub use loads::Load;
pub use mode::Mode;
pub use movement::Movement;
pub use processor::{Accesses, Interrupting, Processor};
pub use select::Selected;

/// The CPUID instruction of the processor: maps (leaf, subleaf) to \[eax, ebx, ecx, edx\].
pub type CpuidFunction = Box<dyn Fn(u32, u32) -> [u32; 4] + Send + Sync>;
