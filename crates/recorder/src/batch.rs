//! Memory for the samples between the driver and the disk: bounded, and used again.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use halprof::SampleStream;
use protocol::{ReplyHeader, SampleRecord};
use zerocopy::{FromZeros, IntoBytes};

use user_error::Error;

/// Maximum number of samples in a reply. One reply fills a block of the recording.
pub const MAX_BATCH: usize = recording::MAX_SAMPLES;

/// Maximum memory for samples that are not written yet, in bytes. 2.5 million samples per second fill it in more than
/// two seconds.
const MAX_HELD: usize = 256 << 20;

/// Number of unused buffers that are kept. A stalled disk needs more of them for a while.
const MAX_FREE: usize = 4;

/// Replies with fewer samples are copied, because one that waits for the disk would otherwise hold a whole buffer.
const MIN_KEPT: usize = MAX_BATCH / 4;

const _: () = assert!(size_of::<ReplyHeader>() == size_of::<SampleRecord>(), "samples follow one header");

/// The memory for all samples of a recording in progress.
#[derive(Debug)]
pub struct Buffers {
    state: Mutex<BuffersState>,
    released: Condvar,
    max: usize,
}

#[derive(Debug, Default)]
struct BuffersState {
    free: Vec<Box<[SampleRecord]>>,
    /// Bytes of the batches and of the buffer being filled.
    held: usize,
}

/// A buffer for one reply: its header, which has the size of a sample, and [`MAX_BATCH`] samples.
#[derive(Debug)]
pub struct Buffer(Box<[SampleRecord]>);

/// Samples as the driver returned them. Their memory is returned when they are dropped.
#[derive(Debug)]
pub struct Batch {
    memory: Box<[SampleRecord]>,
    /// Index of the first sample.
    first: usize,
    count: usize,
    buffers: Arc<Buffers>,
}

impl Buffers {
    /// Creates the memory, which is allocated when it is needed.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Self::with_max(MAX_HELD)
    }

    fn with_max(max: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), released: Condvar::new(), max })
    }

    fn lock(&self) -> MutexGuard<'_, BuffersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a buffer. Waits while all memory is held by samples that are not written yet.
    pub fn take(&self) -> Buffer {
        let bytes = (MAX_BATCH + 1) * size_of::<SampleRecord>();
        let mut state = self.lock();
        while state.held > 0 && state.held + bytes > self.max {
            state = self.released.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.held += bytes;
        let free = state.free.pop();
        drop(state);
        Buffer(free.unwrap_or_else(|| vec![SampleRecord::new_zeroed(); MAX_BATCH + 1].into_boxed_slice()))
    }

    /// Returns the samples of a reply, of which there are `count`.
    pub fn fill(self: &Arc<Self>, buffer: Buffer, count: usize) -> Batch {
        let count = count.min(MAX_BATCH);
        let whole = Batch { memory: buffer.0, first: 1, count, buffers: Arc::clone(self) };
        if count >= MIN_KEPT {
            return whole;
        }
        let memory: Box<[SampleRecord]> = whole.records().into();
        self.lock().held += size_of_val(&*memory);
        Batch { memory, first: 0, count, buffers: Arc::clone(self) }
    }

    /// Fetches samples from the driver, in the order in which it returns them, and keeps those that `keep` accepts.
    /// Also returns whether the session is stopped and has no more. Waits for `wait` unless the driver has many
    /// samples before, and for memory.
    ///
    /// # Errors
    /// If the driver does not answer.
    pub fn fetch(
        self: &Arc<Self>,
        stream: &mut SampleStream,
        wait: Duration,
        keep: impl FnMut(&SampleRecord) -> bool,
    ) -> Result<(Batch, bool), Error> {
        let mut buffer = self.take();
        let answer = stream.fetch(wait, buffer.bytes());
        let kept = buffer.keep(answer.as_ref().map_or(0, |fetched| fetched.count), keep);
        let batch = self.fill(buffer, kept);
        Ok((batch, answer?.is_last))
    }

    fn release(&self, memory: Box<[SampleRecord]>) {
        let mut state = self.lock();
        state.held = state.held.saturating_sub(size_of_val(&*memory));
        let is_whole = memory.len() > MAX_BATCH;
        // Freed after the lock is released, if it is not kept.
        let surplus = if is_whole && state.free.len() < MAX_FREE {
            state.free.push(memory);
            None
        } else {
            Some(memory)
        };
        drop(state);
        self.released.notify_one();
        drop(surplus);
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.lock().held
    }
}

impl Buffer {
    /// Returns the bytes for the reply.
    pub fn bytes(&mut self) -> &mut [u8] {
        self.0.as_mut_bytes()
    }

    /// Moves those of the first `count` samples that `keep` accepts to the front. Returns how many there are.
    fn keep(&mut self, count: usize, mut keep: impl FnMut(&SampleRecord) -> bool) -> usize {
        let records = self.0.get_mut(1..).unwrap_or_default();
        let mut kept = 0;
        for index in 0..count.min(records.len()) {
            if records.get(index).is_some_and(&mut keep) {
                if kept < index {
                    records.swap(kept, index);
                }
                kept += 1;
            }
        }
        kept
    }
}

impl Batch {
    /// Returns the samples.
    #[must_use]
    pub fn records(&self) -> &[SampleRecord] {
        self.memory.get(self.first..).and_then(|records| records.get(..self.count)).unwrap_or_default()
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.buffers.release(std::mem::take(&mut self.memory));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use fake_system::sample;

    const WHOLE: usize = (MAX_BATCH + 1) * size_of::<SampleRecord>();

    fn filled(buffers: &Arc<Buffers>, count: usize) -> Batch {
        let mut buffer = buffers.take();
        for (time, record) in (0..).zip(&mut buffer.0[1..=count]) {
            *record = sample(4, time);
        }
        buffers.fill(buffer, count)
    }

    #[test]
    fn the_samples_of_a_reply_are_those_after_its_header() {
        let buffers = Buffers::new();
        for count in [0, 1, MIN_KEPT - 1, MIN_KEPT, MAX_BATCH] {
            let batch = filled(&buffers, count);
            let wanted: Vec<SampleRecord> = (0..count as u64).map(|time| sample(4, time)).collect();
            assert!(batch.records() == wanted, "{count}");
        }
        assert_eq!(buffers.held(), 0);
    }

    #[test]
    fn samples_that_are_kept_stay_in_order() {
        let buffers = Buffers::new();
        let mut buffer = buffers.take();
        for (time, record) in (0..).zip(&mut buffer.0[1..=10]) {
            *record = sample(4, time);
        }
        assert_eq!(buffer.keep(10, |record| record.time() % 3 == 0), 4);
        let batch = buffers.fill(buffer, 4);
        assert_eq!(batch.records().iter().map(SampleRecord::time).collect::<Vec<_>>(), [0, 3, 6, 9]);
    }

    #[test]
    fn a_few_samples_do_not_hold_a_whole_buffer() {
        let buffers = Buffers::new();
        let few: Vec<Batch> = (0..1_000).map(|_| filled(&buffers, 10)).collect();
        assert_eq!(buffers.held(), 1_000 * 10 * size_of::<SampleRecord>());
        drop(few);
        let many = [filled(&buffers, MIN_KEPT), filled(&buffers, MAX_BATCH)];
        assert_eq!(buffers.held(), 2 * WHOLE);
        drop(many);
        assert_eq!((buffers.held(), buffers.lock().free.len()), (0, 2));
    }

    #[test]
    fn memory_is_bounded_and_the_next_buffer_waits_for_a_batch_to_be_written() {
        let buffers = Buffers::with_max(3 * WHOLE);
        let mut batches: Vec<Batch> = (0..3).map(|_| filled(&buffers, MAX_BATCH)).collect();
        let (sender, receiver) = mpsc::channel();
        let waiting = thread::spawn({
            let buffers = Arc::clone(&buffers);
            move || sender.send(buffers.take().0.len())
        });
        assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err(), "all memory is held");
        batches.pop();
        assert_eq!(receiver.recv_timeout(Duration::from_mins(2)), Ok(MAX_BATCH + 1));
        waiting.join().unwrap().unwrap();
        assert_eq!(buffers.held(), 3 * WHOLE);
    }
}
