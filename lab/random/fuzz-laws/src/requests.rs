//! Requests to the engine on the model of the hardware, with what happens on the machine meanwhile.

use std::sync::LazyLock;

use request_fuzzer::{Catalog, SCARCE, episode};

/// Every reply, count and register is as the model says, whatever clients, time and interrupts do.
pub fn engine(bytes: &[u8]) {
    static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::new(None));
    let _ = episode(bytes, SCARCE, &CATALOG);
}
