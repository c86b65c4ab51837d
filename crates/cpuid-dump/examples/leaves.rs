//! Prints the CPUID leaves of the first processor in a dump, one line each.
//!
//! ```text
//! cargo run -p cpuid-dump --example leaves -- lab/machine/cpuid-dumps/identities.cpuid
//! cpuid -1 -r | cargo run -p cpuid-dump --example leaves
//! ```

use std::error::Error;
use std::{env, fs, io};

use cpuid_dump::Dump;

fn main() -> Result<(), Box<dyn Error>> {
    let text = if let Some(path) = env::args_os().nth(1) {
        fs::read_to_string(path)?
    } else {
        io::read_to_string(io::stdin())?
    };
    let dump = Dump::parse(&text)?;
    // Leaf 0 has the vendor in EBX, EDX and ECX, in this order (SDM Vol. 2A, CPUID).
    let [highest, ebx, ecx, edx] = dump.cpuid(0, 0);
    let vendor = [ebx, edx, ecx].map(u32::to_le_bytes).concat();
    println!("{}, highest basic leaf {highest:#x}", String::from_utf8_lossy(&vendor));
    for (leaf, subleaf, [eax, ebx, ecx, edx]) in dump.leaves() {
        println!("{leaf:08x}.{subleaf:x}  eax {eax:08x}  ebx {ebx:08x}  ecx {ecx:08x}  edx {edx:08x}");
    }
    Ok(())
}
