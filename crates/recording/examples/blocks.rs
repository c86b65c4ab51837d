//! Lists the blocks of a recording, also of one that is damaged or was cut off.
//!
//! ```text
//! cargo run -p report --example synthetic -- 100000 big.rec
//! cargo run -p recording --example blocks -- big.rec
//! ```

use std::env;
use std::error::Error;
use std::fs::File;
use std::io::BufReader;

use recording::{Block, Reader};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("usage: blocks FILE")?;
    for block in Reader::new(BufReader::new(File::open(path)?))? {
        match block {
            Ok(Block::Session(session)) => {
                let events: Vec<&str> = session.events.iter().map(|event| event.name.as_str()).collect();
                println!("session   {}, CPUs {:?}: {}", session.processor, session.processors, events.join(", "));
            }
            Ok(Block::Process(process)) => {
                println!("process   {} {}, {} modules", process.id, process.name, process.modules.len());
            }
            Ok(Block::Methods(methods)) => println!("methods   {} of process {}", methods.methods.len(), methods.id),
            Ok(Block::Stacks(stacks)) => println!("stacks    {} callers", stacks.nodes.len()),
            Ok(Block::Samples(samples)) => println!("samples   {}", samples.len()),
            Ok(Block::StackedSamples(samples)) => println!("samples   {} with call stacks", samples.len()),
            Ok(Block::Summary(summary)) => println!("summary   {} units of time", summary.elapsed),
            // The reader continues behind a damaged block if it can find the next one.
            Err(error) => println!("damaged   {error}"),
        }
    }
    Ok(())
}
