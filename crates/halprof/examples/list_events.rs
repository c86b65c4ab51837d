//! Lists the profile sources that the machine supports, and what the names on the command line stand for:
//! `cargo run -p halprof --example list_events -- instructions L1-dcache-load-misses`.

use std::error::Error;
use std::process::ExitCode;

use halprof::Driver;
use halprof::protocol::{ProcessorSet, modes};

fn main() -> ExitCode {
    match list() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                eprintln!("  because: {error}");
                cause = error.source();
            }
            if let Some(remedy) = error.remedy() {
                eprintln!("  try: {remedy}");
            }
            ExitCode::FAILURE
        }
    }
}

fn list() -> Result<(), halprof::Error> {
    let driver = Driver::open()?;
    for source in driver.sources()?.iter().filter(|source| source.supported) {
        println!("{}", source.name);
    }
    for name in std::env::args().skip(1) {
        for event in driver.events(&name, modes::USER, &ProcessorSet::EMPTY)? {
            println!("{name} is {} (source {:#x})", event.name, event.request.event.source);
        }
    }
    Ok(())
}
