//! An interrupt at a masked LVT entry is lost.

/// The mode of every machine here.
const MODE: model::InterruptMode = model::InterruptMode::LostWhileMasked;

#[path = "accesses.rs"]
mod accesses;
#[path = "architectural.rs"]
mod architectural;
#[path = "areas.rs"]
mod areas;
#[path = "branches.rs"]
mod branches;
#[path = "budgets.rs"]
mod budgets;
#[path = "life.rs"]
mod life;
#[path = "precise.rs"]
mod precise;
#[path = "refusals.rs"]
mod refusals;

mod scene {
    pub use crate::recorded::scene::*;

    /// Returns a machine in the interrupt mode of these tests.
    pub fn machine(name: &str, format: u8, processors: u32) -> simulation::SimMachine {
        crate::recorded::scene::machine(name, format, processors).with_interrupt_mode(super::MODE)
    }
}
