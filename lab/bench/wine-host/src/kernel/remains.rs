//! What a driver left behind.

use crate::kernel::{
    callbacks, deferred, etw, hal, hardware_counters, io_space, processor_change, requests, system_threads, work_items,
};
use std::ops::Range;

/// Reports and removes what a driver left behind whose image is removed from memory.
pub fn check(addresses: &Range<usize>) {
    deferred::image_unloaded(addresses);
    requests::image_unloaded(addresses);
    hal::image_unloaded(addresses);
    hardware_counters::image_unloaded();
    callbacks::image_unloaded(addresses);
    etw::image_unloaded(addresses);
    processor_change::image_unloaded(addresses);
    system_threads::image_unloaded(addresses);
    work_items::image_unloaded();
    io_space::image_unloaded();
}
