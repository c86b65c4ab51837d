//! The pool. Wine's is a heap without page alignment and without a list of what is allocated.

#![expect(unsafe_code, reason = "gives out memory")]

use crate::{
    kernel::{call_stack, deferred, hal, irql, nodes},
    lock::lock,
    nt::{APC_LEVEL, DISPATCH_LEVEL, Pointer},
    state::{machine::MACHINE, pool::Block},
    violation::{self, catch_panic},
};
use bench_protocol::PoolTag;
use std::{
    alloc::{Layout, alloc, dealloc},
    collections::BTreeMap,
    ops::Range,
    ptr,
};

const PAGE: usize = 0x1000;
const ALIGNMENT: usize = 16;

/// The fill bytes of uninitialized memory and of freed memory.
const UNINITIALIZED_FILL: u8 = 0xA5;
const FREED_FILL: u8 = 0xDD;

/// Flags of ExAllocatePool2: POOL_FLAG_UNINITIALIZED, _NON_PAGED, _NON_PAGED_EXECUTE, _PAGED.
const UNINITIALIZED: u64 = 0x2;
const NON_PAGED: u64 = 0x40;
const NON_PAGED_EXECUTE: u64 = 0x80;
const PAGED: u64 = 0x100;

/// PoolExtendedParameterNumaNode, in the lowest bits of the first word of a POOL_EXTENDED_PARAMETER.
const NUMA_NODE: u64 = 3;
const TYPE_BITS: u64 = 0xFF;

/// The bit `Optional` of that word.
const OPTIONAL: u64 = 0x100;

/// MM_ANY_NODE_OK.
const ANY_NODE_OK: u32 = 0x8000_0000;

/// Bit 0 of POOL_TYPE: paged pool.
const PAGED_TYPE: u32 = 1;

pub fn fail_nth(nth: Option<u64>) {
    lock(&MACHINE.kernel.pool).fail.set(nth);
}

pub fn statistics() -> bench_protocol::Pool {
    let pool = lock(&MACHINE.kernel.pool);
    let mut tags: BTreeMap<u32, PoolTag> = BTreeMap::new();
    for block in pool.blocks.values() {
        let name = || String::from_utf8_lossy(&block.tag.to_le_bytes()).into_owned();
        let tag = tags.entry(block.tag).or_insert_with(|| PoolTag { tag: name(), allocations: 0, bytes: 0 });
        tag.allocations += 1;
        tag.bytes += size(block);
    }
    let tags: Vec<PoolTag> = tags.into_values().collect();
    let allocations = tags.iter().map(|tag| tag.allocations).sum();
    let bytes = tags.iter().map(|tag| tag.bytes).sum();
    let mut nodes: BTreeMap<u32, u64> = BTreeMap::new();
    for (node, bytes) in pool.blocks.values().filter_map(|block| Some((block.node?, size(block)))) {
        *nodes.entry(node).or_default() += bytes;
    }
    bench_protocol::Pool { total_allocations: pool.total_allocations, allocations, bytes, tags, nodes }
}

/// Keeps the pool unchanged while the result lives, if the 64-bit word at the address is in allocated nonpaged pool.
pub fn pin(address: u64) -> Option<impl Sized> {
    let pool = lock(&MACHINE.kernel.pool);
    let address = usize::try_from(address).ok()?;
    let (start, block) = pool.blocks.range(..=address).next_back()?;
    let is_there = !block.paged && address - start + size_of::<u64>() <= block.layout.size();
    is_there.then_some(pool)
}

/// Returns whether memory is in allocated nonpaged pool.
pub fn is_resident(range: &Range<usize>) -> bool {
    let pool = lock(&MACHINE.kernel.pool);
    let before = pool.blocks.range(..=range.start).next_back();
    before.is_some_and(|(start, block)| !block.paged && range.end - start <= block.layout.size())
}

fn size(block: &Block) -> u64 {
    u64::try_from(block.layout.size()).unwrap_or(u64::MAX)
}

/// What an allocation asks for.
struct Wanted {
    size: usize,
    tag: u32,
    paged: bool,
    filling: u8,
    node: Option<u32>,
}

impl Wanted {
    /// Reads the arguments of ExAllocatePool2 and ExAllocatePool3.
    fn new(function: &str, flags: u64, size: usize, tag: u32) -> Option<Self> {
        if (flags & (NON_PAGED | NON_PAGED_EXECUTE | PAGED)).count_ones() != 1 {
            violation::other(format!("{function} with the flags {flags:#x}"));
            return None;
        }
        let filling = if flags & UNINITIALIZED == 0 { 0 } else { UNINITIALIZED_FILL };
        Some(Self { size, tag, paged: flags & PAGED != 0, filling, node: None })
    }
}

/// POOL_EXTENDED_PARAMETER.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ExtendedParameter {
    kind: u64,
    value: u64,
}

fn allocate(function: &str, Wanted { size, tag, paged, filling, node }: Wanted) -> Pointer {
    irql::check(function, if paged { APC_LEVEL } else { DISPATCH_LEVEL });
    if size == 0 || tag == 0 {
        violation::other(format!("{function} of {size} bytes with the tag {tag:#x}"));
        return ptr::null_mut();
    }
    let mut pool = lock(&MACHINE.kernel.pool);
    let fails = [pool.fail.fails(), call_stack::fails(function)];
    if fails.contains(&true) {
        return ptr::null_mut();
    }
    let Ok(layout) = Layout::from_size_align(size, if size < PAGE { ALIGNMENT } else { PAGE }) else {
        return ptr::null_mut();
    };
    // SAFETY: the size is not zero.
    let memory = unsafe { alloc(layout) };
    if !memory.is_null() {
        // SAFETY: the memory has this size.
        unsafe { memory.write_bytes(filling, size) };
        pool.total_allocations += 1;
        pool.blocks.insert(memory.expose_provenance(), Block { layout, tag, paged, node });
    }
    memory.cast()
}

/// Frees memory. A tag of 0 matches every tag.
fn release(function: &str, memory: Pointer, tag: u32) {
    let block = lock(&MACHINE.kernel.pool).blocks.remove(&memory.addr());
    let Some(block) = block else {
        return violation::other(format!("{function} of {memory:p}, which is not allocated"));
    };
    irql::check(function, if block.paged { APC_LEVEL } else { DISPATCH_LEVEL });
    if tag != 0 && tag != block.tag {
        violation::other(format!("{function} with the tag {tag:#x} of memory with the tag {:#x}", block.tag));
    }
    hal::memory_freed(function);
    deferred::memory_freed(function, &(memory.addr()..memory.addr() + block.layout.size()));
    // SAFETY: the memory has this size, and the driver has given it up.
    unsafe { memory.cast::<u8>().write_bytes(FREED_FILL, block.layout.size()) };
    // SAFETY: allocated with this layout, and no longer in the table.
    unsafe { dealloc(memory.cast(), block.layout) };
}

/// Allocates nonpaged memory that begins at a page, with undefined contents.
pub fn allocate_pages(function: &str, size: usize, tag: u32) -> Pointer {
    allocate(function, Wanted { size, tag, paged: false, filling: UNINITIALIZED_FILL, node: None })
}

/// Frees memory of [`allocate_pages`].
pub fn free_pages(function: &str, memory: Pointer, tag: u32) {
    release(function, memory, tag);
}

/// Implements ExAllocatePool2.
pub extern "system" fn allocate2(flags: u64, size: usize, tag: u32) -> Pointer {
    const NAME: &str = "ExAllocatePool2";
    catch_panic(NAME, ptr::null_mut(), || {
        Wanted::new(NAME, flags, size, tag).map_or(ptr::null_mut(), |wanted| allocate(NAME, wanted))
    })
}

/// Implements ExAllocatePool3, whose only parameter here is the preferred node.
pub unsafe extern "system" fn allocate3(
    flags: u64,
    size: usize,
    tag: u32,
    parameters: *const ExtendedParameter,
    count: u32,
) -> Pointer {
    const NAME: &str = "ExAllocatePool3";
    catch_panic(NAME, ptr::null_mut(), || {
        let Some(mut wanted) = Wanted::new(NAME, flags, size, tag) else { return ptr::null_mut() };
        for index in 0..count as usize {
            // SAFETY: the driver must pass so many parameters.
            let parameter = unsafe { parameters.add(index) };
            // SAFETY: as above; the driver reads or writes none of them until this function returns.
            let ExtendedParameter { kind, value } = unsafe { parameter.read() };
            let node = u32::try_from(value).unwrap_or(u32::MAX) & !ANY_NODE_OK;
            match kind & TYPE_BITS {
                NUMA_NODE if node <= nodes::highest() => wanted.node = Some(node),
                _ if kind & OPTIONAL != 0 && kind & TYPE_BITS != NUMA_NODE => {}
                _ => {
                    violation::other(format!("{NAME} with the parameter {kind:#x}, {value:#x}"));
                    return ptr::null_mut();
                }
            }
        }
        allocate(NAME, wanted)
    })
}

/// Implements ExAllocatePoolWithTag.
pub extern "system" fn allocate_with_tag(kind: u32, size: usize, tag: u32) -> Pointer {
    catch_panic("ExAllocatePoolWithTag", ptr::null_mut(), || {
        let paged = kind & PAGED_TYPE != 0;
        let wanted = Wanted { size, tag, paged, filling: UNINITIALIZED_FILL, node: None };
        allocate("ExAllocatePoolWithTag", wanted)
    })
}

/// Implements ExFreePool.
pub extern "system" fn free(memory: Pointer) {
    catch_panic("ExFreePool", (), || release("ExFreePool", memory, 0));
}

/// Implements ExFreePoolWithTag.
pub extern "system" fn free_with_tag(memory: Pointer, tag: u32) {
    catch_panic("ExFreePoolWithTag", (), || release("ExFreePoolWithTag", memory, tag));
}
