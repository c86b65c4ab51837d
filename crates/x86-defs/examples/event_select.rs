//! Decodes a value of IA32_PERFEVTSELx, such as the one in the client's message "its select register holds 0x53003c".
//!
//! ```text
//! cargo run -p x86-defs --example event_select -- 0x53003c
//! ```

use std::env;
use std::error::Error;

use x86_defs::intel::perfmon::PerfEvtSel;

fn main() -> Result<(), Box<dyn Error>> {
    let value = env::args().nth(1).ok_or("usage: event_select HEX")?;
    let select = PerfEvtSel::from_bits(u64::from_str_radix(value.trim_start_matches("0x"), 16)?);
    println!("event {:#04x}, unit mask {:#04x}", select.event_select(), select.umask());
    println!("counts in user mode: {}, in kernel mode: {}", select.usr(), select.os());
    println!("counter mask {}, inverted: {}, edges only: {}", select.cmask(), select.inv(), select.edge());
    println!("interrupts on overflow: {}, enabled: {}", select.int(), select.en());
    Ok(())
}
