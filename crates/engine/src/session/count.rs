//! What an event of a session has counted on a processor.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pmu::hal::movement::Movement;
use pmu::{DisturbanceCell, Recorder};

use crate::rotation::{TurnCount, TurnSums};
use crate::time::Ticks;

/// Count of an event on a processor.
#[derive(Debug, Default)]
pub struct Count {
    /// Count at the last reading.
    value: AtomicU64,
    /// What the counter had counted for another session before this one began to share it.
    before: AtomicU64,
    /// Time with a counter, if the event takes turns, by the platform's clock.
    running: AtomicU64,
    /// Sums over its turns.
    pub sums: TurnCells,
    /// What another program changed first while the session used the counter.
    pub disturbance: DisturbanceCell,
    /// The number of the [`Movement`] that its counter had before the session began.
    movement: AtomicU32,
    /// The number of the [`Recorder`] that its counter is.
    recorder: AtomicU32,
}

impl Count {
    /// Notes which part the counter has in the samples.
    pub fn set_recorder(&self, recorder: Recorder) {
        self.recorder.store(recorder as u32, Ordering::Relaxed);
    }

    /// Returns the number of that part.
    pub fn recorder(&self) -> u32 {
        self.recorder.load(Ordering::Relaxed)
    }

    /// Begins with what the counter has counted so far.
    pub fn begin(&self, so_far: u64) {
        self.before.store(so_far, Ordering::Relaxed);
    }

    /// Updates the count from what the counter has counted so far.
    pub fn update(&self, so_far: u64) {
        self.value.store(so_far.wrapping_sub(self.before.load(Ordering::Relaxed)), Ordering::Relaxed);
    }

    /// Updates the count of an event that takes turns.
    pub fn update_turns(&self, counted: &TurnCount) {
        self.value.store(counted.count, Ordering::Relaxed);
        self.running.store(counted.running.0, Ordering::Relaxed);
        self.sums.store(counted.sums);
        if let Some((disturbance, time)) = counted.disturbance {
            self.disturbance.note(disturbance, time);
        }
    }

    /// Marks the count by what its counter counted of a known loop.
    pub fn set_movement(&self, movement: Movement) {
        self.movement.store(movement as u32, Ordering::Relaxed);
    }

    /// Returns that mark.
    pub fn movement(&self) -> u32 {
        self.movement.load(Ordering::Relaxed)
    }

    pub fn load(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    pub fn running(&self) -> Ticks {
        Ticks(self.running.load(Ordering::Relaxed))
    }
}

/// [`TurnSums`] that one processor writes and another reads.
#[derive(Debug, Default)]
pub struct TurnCells {
    turns: AtomicU64,
    /// Squares, products and durations, each as bits 63:0 and 127:64.
    sums: [[AtomicU64; 2]; 3],
}

impl TurnCells {
    fn store(&self, TurnSums { turns, squares, products, durations }: TurnSums) {
        self.turns.store(turns, Ordering::Relaxed);
        for (cells, sum) in self.sums.iter().zip([squares, products, durations]) {
            let [low, high] = cells;
            let [low_half, high_half]: [u64; 2] = zerocopy::transmute!(sum);
            low.store(low_half, Ordering::Relaxed);
            high.store(high_half, Ordering::Relaxed);
        }
    }

    pub fn load(&self) -> (u64, [[u64; 2]; 3]) {
        let sums = self.sums.each_ref().map(|cells| cells.each_ref().map(|cell| cell.load(Ordering::Relaxed)));
        (self.turns.load(Ordering::Relaxed), sums)
    }
}
