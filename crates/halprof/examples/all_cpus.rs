//! Counts on every CPU for a second: `cargo run --example all_cpus [EVENT]...`, in an elevated prompt.

use std::error::Error;
use std::thread;
use std::time::Duration;

use halprof::Builder;

fn main() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let names = if names.is_empty() { vec!["instructions".to_owned(), "cycles".to_owned()] } else { names };
    let builder = names.iter().try_fold(Builder::new(), |builder, name| builder.event(name))?;
    let mut group = builder.both().multiplex().build_for_all_cpus()?;
    let counts = group.measure(|| thread::sleep(Duration::from_secs(1)))?;
    for (name, count) in counts.iter() {
        println!("all CPUs: {name}: {count}");
    }
    println!("{}", counts.quality);
    for (cpu, counts) in group.read_per_cpu()? {
        for (name, count) in counts.iter() {
            println!("CPU {cpu}: {name}: {count}");
        }
    }
    Ok(())
}
