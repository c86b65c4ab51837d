//! Control areas of processors, as the code on them finds its own.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use debug_store::Layout;
use pmu::ProcessorIndex;
use protocol::PROCESSOR_WORDS;

use crate::current::current_processor;

/// The control area of a processor.
#[derive(Debug)]
pub struct AreaOfProcessor {
    /// Null if the processor has no area.
    words: AtomicPtr<AtomicU64>,
    of_kernel: AtomicBool,
}

impl AreaOfProcessor {
    /// Gives an area to the processor.
    ///
    /// # Safety
    /// `words` has at least the words of the shortest layout, until the area is [taken](Self::take) and no code on the
    /// processor uses it.
    pub unsafe fn give(&self, words: *mut AtomicU64, of_kernel: bool) {
        self.of_kernel.store(of_kernel, Ordering::Relaxed);
        self.words.store(words, Ordering::Release);
    }

    /// Takes the area from the processor. Returns null if it has none.
    pub fn take(&self) -> *mut AtomicU64 {
        self.words.swap(core::ptr::null_mut(), Ordering::AcqRel)
    }

    /// Returns whether the kernel allocated the area that was given last.
    pub fn is_of_kernel(&self) -> bool {
        self.of_kernel.load(Ordering::Relaxed)
    }
}

/// The control areas of all processors, by index.
static AREAS: [AreaOfProcessor; PROCESSOR_WORDS * 64] =
    [const { AreaOfProcessor { words: AtomicPtr::new(core::ptr::null_mut()), of_kernel: AtomicBool::new(false) } }; _];

/// Number of words in the shortest layout.
const LEAST_WORDS: usize = Layout::V62.size() / 8;

/// Returns the control area of a processor, or `None` if there cannot be such a processor.
#[must_use]
pub fn area_of(processor: ProcessorIndex) -> Option<&'static AreaOfProcessor> {
    AREAS.get(processor.as_usize())
}

/// Returns a word of the current processor's area, or `None` if it has no area. The code that frees an area must ensure
/// that no processor uses it.
///
/// # IRQL
/// Any at which the thread stays on its processor.
pub fn word(word: u8) -> Option<&'static AtomicU64> {
    let words = AREAS.get(current_processor().as_usize())?.words.load(Ordering::Acquire);
    let index = usize::from(word);
    if words.is_null() || index >= LEAST_WORDS {
        return None;
    }
    // SAFETY: every layout has at least `LEAST_WORDS` words
    let word = unsafe { words.add(index) };
    // SAFETY: the area lives until it is freed, and no code uses it by then; the processor's own writes are aligned and
    // as atomic as these
    Some(unsafe { &*word })
}
