//! Measures a loop in the current thread: `cargo run --example measure [EVENT]...`, in an elevated prompt.

use std::error::Error;

use halprof::Builder;

fn main() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let names = if names.is_empty() { vec!["instructions".to_owned(), "cycles".to_owned()] } else { names };
    let builder = names.iter().try_fold(Builder::new(), |builder, name| builder.event(name))?;
    let mut group = builder.user().build_for_thread()?;
    println!("grade: {}", group.availability());
    for event in group.calibrate()?.events() {
        println!("overhead of {}: {} + {} at most", event.name(), event.subtracted(), event.bound());
    }
    let counts = group.measure(|| (0..1_000_000_u64).fold(0, |hash: u64, number| hash.rotate_left(5) ^ number))?;
    for (name, count) in counts.iter() {
        println!("{name}: {count}");
    }
    println!("{:?}, {}", counts.time_running, counts.quality);
    Ok(())
}
