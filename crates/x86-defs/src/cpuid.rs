//! CPUID leaves that halprof decodes, as the registers that the instruction returns.
//!
//! The types decode registers that the caller has read already, so they work on dumps and inside the kernel alike.

mod amd;
mod basic;
mod hybrid;
mod hypervisor;
pub mod leaf;
mod models;
mod perfmon;
mod signature;
mod topology;

pub use amd::{
    Leaf8000001BEax, Leaf80000001Ebx, Leaf80000001Ecx, Leaf80000001Edx, Leaf80000007Edx, Leaf80000008Ebx,
    Leaf80000008Ecx, Leaf80000022Eax, Leaf80000022Ebx, PACKAGE_G34,
};
pub use basic::{Leaf1Ebx, Leaf1Ecx, Leaf1Edx, Leaf4Eax, VENDOR_AMD, VENDOR_HYGON, VENDOR_INTEL, vendor_text};
pub use hybrid::{CORE_TYPE_ATOM, CORE_TYPE_CORE, Leaf1AEax, Leaf7Edx};
pub use hypervisor::{HV1, Leaf40000003Ebx, Leaf40000003Edx, VENDOR_KVM, VENDOR_TCG, VENDOR_VMWARE};
pub use models::{AmdProcessor, IntelProcessor};
pub use perfmon::{Leaf1CEax, Leaf1CEbx, Leaf23Eax, Leaf23Ebx, Leaf71Eax, LeafAEax, LeafAEbx, LeafAEcx, LeafAEdx};
pub use signature::Signature;
pub use topology::{LeafBEax, LeafBEbx};
