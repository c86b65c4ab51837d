//! Control areas of processors, as the code on them finds its own.

use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use pmu::ProcessorIndex;
use protocol::PROCESSOR_WORDS;

use crate::current::current_processor;

/// Allocator of an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum AreaOwner {
    /// The kernel's own call for control areas.
    Kernel = 0,
    /// The driver, from the pool.
    Pool = 1,
    /// The driver, from contiguous physical memory.
    Contiguous = 2,
}

/// The control area of a processor.
#[derive(Debug)]
pub struct AreaOfProcessor {
    /// Null if the processor has no area.
    words: AtomicPtr<AtomicU64>,
    /// Number of the words.
    length: AtomicU32,
    /// Number of the [`AreaOwner`].
    owner: AtomicU8,
}

impl AreaOfProcessor {
    /// Gives an area to the processor.
    ///
    /// # Safety
    /// There are `length` words, until the area is [taken](Self::take) and no code on the processor uses it.
    pub unsafe fn give(&self, words: *mut AtomicU64, length: u32, owner: AreaOwner) {
        self.length.store(length, Ordering::Relaxed);
        self.owner.store(owner as u8, Ordering::Relaxed);
        self.words.store(words, Ordering::Release);
    }

    /// Takes the area from the processor, with its length. Returns null if it has none.
    pub fn take(&self) -> (*mut AtomicU64, u32) {
        let words = self.words.swap(core::ptr::null_mut(), Ordering::AcqRel);
        (words, self.length.load(Ordering::Relaxed))
    }

    /// Returns who allocated the area that was given last.
    pub fn owner(&self) -> AreaOwner {
        match self.owner.load(Ordering::Relaxed) {
            0 => AreaOwner::Kernel,
            1 => AreaOwner::Pool,
            _ => AreaOwner::Contiguous,
        }
    }
}

/// The control areas of all processors, by index.
static AREAS: [AreaOfProcessor; PROCESSOR_WORDS * 64] = [const {
    AreaOfProcessor { words: AtomicPtr::new(core::ptr::null_mut()), length: AtomicU32::new(0), owner: AtomicU8::new(0) }
}; _];

/// Returns the control area of a processor, or `None` if there cannot be such a processor.
#[must_use]
pub fn area_of(processor: ProcessorIndex) -> Option<&'static AreaOfProcessor> {
    AREAS.get(processor.as_usize())
}

/// Returns a word of the current processor's area, or `None` if it has no area or a shorter one. The code that frees an
/// area must ensure that no processor uses it.
///
/// # IRQL
/// Any at which the thread stays on its processor.
pub fn word(word: u16) -> Option<&'static AtomicU64> {
    let area = AREAS.get(current_processor().as_usize())?;
    let words = area.words.load(Ordering::Acquire);
    if words.is_null() || u32::from(word) >= area.length.load(Ordering::Relaxed) {
        return None;
    }
    // SAFETY: the area has this word
    let word = unsafe { words.add(word.into()) };
    // SAFETY: the area lives until it is freed, and no code uses it by then; the processor's own writes are aligned and
    // as atomic as these
    Some(unsafe { &*word })
}
