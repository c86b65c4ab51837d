//! Non-paged memory on the NUMA node of a processor, not filled with zeros.

use core::mem;
use core::ptr::{self, NonNull};

use pmu::ProcessorIndex;
use sample_ring::Memory;
use wdk_sys::ntddk::{
    ExAllocatePool2, ExFreePool, KeGetProcessorNumberFromIndex, KeQueryHighestNodeNumber, KeQueryNodeActiveAffinity,
};
use wdk_sys::{GROUP_AFFINITY, PROCESSOR_NUMBER, PVOID, SIZE_T, ULONG, ULONG64};

use super::aligned::POOL_ALIGNMENT;
use super::irp::check;
use super::routine;
use super::text::Text;

/// POOL_FLAG_UNINITIALIZED (wdm.h).
const UNINITIALIZED: ULONG64 = 0x2;

/// POOL_FLAG_NON_PAGED (wdm.h).
const NON_PAGED: ULONG64 = 0x40;

/// PoolExtendedParameterNumaNode of POOL_EXTENDED_PARAMETER_TYPE (wdm.h).
const NUMA_NODE: ULONG64 = 3;

/// The bit `Optional` of POOL_EXTENDED_PARAMETER: a kernel that does not know the type ignores the parameter.
const OPTIONAL: ULONG64 = 1 << 8;

/// MM_ANY_NODE_OK (wdm.h): memory of another node is better than none.
const ANY_NODE_OK: ULONG = 0x8000_0000;

/// Tag of the blocks.
const TAG: ULONG = u32::from_ne_bytes(*b"hpRi");

/// POOL_EXTENDED_PARAMETER.
#[repr(C)]
struct ExtendedParameter {
    /// The type, in the 8 lowest bits, and flags.
    kind: ULONG64,
    preferred_node: ULONG,
    unused: ULONG,
}

const _: () =
    assert!(size_of::<ExtendedParameter>() == 0x10 && mem::offset_of!(ExtendedParameter, preferred_node) == 8);

static ALLOCATE_NAME: Text<15> = Text::new("ExAllocatePool3");

type Allocate = unsafe extern "system" fn(
    flags: ULONG64,
    bytes: SIZE_T,
    tag: ULONG,
    parameters: *const ExtendedParameter,
    count: ULONG,
) -> PVOID;

const _: () = assert!(Memory::ALIGNMENT <= POOL_ALIGNMENT);

/// The non-paged pool, with its function that prefers a node: ExAllocatePool3, from Windows Server 2022 on.
pub struct NodePool(Option<Allocate>);

impl NodePool {
    /// Looks the function up.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn new() -> Self {
        let found = routine::find(&ALLOCATE_NAME);
        // SAFETY: ExAllocatePool3 has this signature in every release that exports it
        Self(found.map(|address| unsafe { mem::transmute::<PVOID, Allocate>(address) }))
    }

    /// Allocates memory, on the node of the processor if it has any left. Returns `None` if memory is short.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    pub fn allocate(&self, processor: ProcessorIndex, bytes: usize) -> Option<Memory> {
        let flags = NON_PAGED | UNINITIALIZED;
        let size = bytes as SIZE_T;
        let start = match self.0.zip(node_of(processor)) {
            Some((allocate, node)) => {
                let preferred_node = ULONG::from(node) | ANY_NODE_OK;
                let parameter = ExtendedParameter { kind: NUMA_NODE | OPTIONAL, preferred_node, unused: 0 };
                // SAFETY: one parameter, which is only read
                unsafe { allocate(flags, size, TAG, &raw const parameter, 1) }
            }
            // SAFETY: no requirement
            None => unsafe { ExAllocatePool2(flags, size, TAG) },
        };
        // SAFETY: the pool gave this block, which is aligned to 16 bytes, and `free` returns it on any thread
        NonNull::new(start.cast()).map(|start| unsafe { Memory::new(start, bytes, free) })
    }
}

/// Returns a block to the pool.
///
/// # Safety
/// The block comes from [`NodePool::allocate`] and is not used any more.
///
/// # IRQL
/// At most DISPATCH_LEVEL.
unsafe fn free(start: NonNull<u8>, _bytes: usize) {
    // SAFETY: guaranteed by the caller
    unsafe { ExFreePool(start.as_ptr().cast()) };
}

/// Returns the node of a processor. `None` if the kernel does not say it: of a node that is larger than a group, it
/// reports one group only.
fn node_of(processor: ProcessorIndex) -> Option<u16> {
    let mut place = PROCESSOR_NUMBER { Group: 0, Number: 0, Reserved: 0 };
    // SAFETY: the kernel may write to `place`
    check(unsafe { KeGetProcessorNumberFromIndex(processor.number(), &raw mut place) }).ok()?;
    // SAFETY: no requirement
    let highest = unsafe { KeQueryHighestNodeNumber() };
    (0..=highest).find(|node| {
        let mut affinity = GROUP_AFFINITY { Mask: 0, Group: 0, Reserved: [0; 3] };
        // SAFETY: the kernel may write to `affinity`; the number of processors is optional
        unsafe { KeQueryNodeActiveAffinity(*node, &raw mut affinity, ptr::null_mut()) };
        affinity.Group == place.Group && affinity.Mask >> (place.Number & 63) & 1 == 1
    })
}
