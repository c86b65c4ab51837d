//! One thread writes into a ring and never waits, another reads. Shows that every item is either read or counted as
//! lost by the writer.
//!
//! ```text
//! cargo run --release -p sample-ring --example two_threads
//! ```

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sample_ring::{Pushed, channel};

const ITEMS: u64 = 1_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    // The value that both ends share counts the losses, as the driver does for each ring.
    let (mut producer, mut consumer) = channel::<u64, _>(1024, AtomicU64::new(0)).ok_or("out of memory")?;
    let writer = thread::spawn(move || {
        for number in 0..ITEMS {
            if producer.push(number) == Pushed::Full {
                producer.side().fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let mut read = 0;
    loop {
        // Checked before the drain, so that the last drain reads every item.
        let is_last = writer.is_finished();
        while consumer.drain(256, |items| read += items.len() as u64) > 0 {}
        if is_last {
            break;
        }
        thread::yield_now();
    }
    writer.join().map_err(|_| "the writer panicked")?;
    let lost = consumer.side().load(Ordering::Relaxed);
    println!("{read} read + {lost} lost of {ITEMS} written");
    if read + lost == ITEMS { Ok(()) } else { Err("an item was neither read nor counted as lost".into()) }
}
