//! Requests to the engine on the model of the hardware, with what happens on the machine meanwhile.

use std::sync::LazyLock;

use request_fuzzer::{Catalog, Kind, SCARCE, episode};

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::new(None));

/// Every reply, count and register is as the model says, whatever clients, time and interrupts do.
pub fn engine(bytes: &[u8]) {
    let _ = episode(bytes, Kind::Honest { scarce: SCARCE }, &CATALOG);
}

/// Whatever the processors answer, the engine does not panic, writes only what it has tried under a guard, tells its
/// refusals, and puts back the registers whose contents it was told.
pub fn lying_processor(bytes: &[u8]) {
    let _ = episode(bytes, Kind::Lying, &CATALOG);
}
