//! Leaves of hypervisors that are compatible with Microsoft's.

use bitfield_struct::bitfield;

/// EAX of leaf 40000001H of a hypervisor with Microsoft's interface: "Hv#1" (TLFS, "Hypervisor CPUID Leaf Range").
pub const HV1: u32 = u32::from_le_bytes(*b"Hv#1");

/// EBX, ECX and EDX of the first leaf of KVM (Linux, Documentation/virt/kvm/x86/cpuid.rst).
pub const VENDOR_KVM: [u8; 12] = *b"KVMKVMKVM\0\0\0";

/// EBX, ECX and EDX of the first leaf of VMware (Linux, arch/x86/kernel/cpu/vmware.c, `vmware_platform`).
pub const VENDOR_VMWARE: [u8; 12] = *b"VMwareVMware";

/// EBX, ECX and EDX of the first leaf of TCG, QEMU's emulator of processors (QEMU, target/i386/cpu.c).
pub const VENDOR_TCG: [u8; 12] = *b"TCGTCGTCGTCG";

/// CPUID.40000003H:EBX: the upper half of the partition's privileges (TLFS, "Hypervisor Feature Identification" and
/// "HV_PARTITION_PRIVILEGE_MASK").
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf40000003Ebx {
    #[bits(12)]
    _other: u16,
    /// CpuManagement: a privilege of the root partition.
    pub cpu_management: bool,
    #[bits(19)]
    _other: u32,
}

/// CPUID.40000003H:EDX (TLFS, "Hypervisor Feature Identification").
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf40000003Edx {
    #[bits(2)]
    _other: u8,
    /// PerformanceMonitorsAvailable: the partition can use the performance counters.
    pub performance_monitors_available: bool,
    #[bits(29)]
    _other: u32,
}
