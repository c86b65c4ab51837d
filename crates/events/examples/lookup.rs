//! Prints an event of a processor: `cargo run -p events --example lookup -- 6 5E MEM_LOAD_RETIRED.L3_MISS` takes the
//! family and the model in hexadecimal.

use std::error::Error;

use events::{Identity, Vendor, core_tables};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [family, model, name] = words.as_slice() else { return Err("lookup FAMILY MODEL NAME".into()) };
    let family = u16::from_str_radix(family, 16)?;
    let vendor = if family > 0xE && family != 0x12 { Vendor::Amd } else { Vendor::Intel };
    let identity = Identity { vendor, family, model: u8::from_str_radix(model, 16)?, stepping: 0 };
    for one in core_tables(identity) {
        let core_type = one.core_type.map_or("cpu", events::CoreType::name);
        match one.table.event(name) {
            Ok(event) => println!("{core_type}: select {:#x}, {:?}", event.encoding.select(), event.counters),
            Err(error) => println!("{core_type}: {error}"),
        }
    }
    Ok(())
}
