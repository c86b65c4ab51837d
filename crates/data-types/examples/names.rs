//! Names the data at addresses relative to the base of an image, by its PDB:
//! `cargo run -p data-types --example names -- app.pdb 0x3018`.

use std::env;
use std::error::Error;
use std::path::PathBuf;

use data_types::DataTypes;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let types = DataTypes::open(&PathBuf::from(arguments.next().ok_or("the path of a PDB is missing")?))?;
    for argument in arguments {
        let address = u32::from_str_radix(argument.trim_start_matches("0x"), 16)?;
        match types.global(address, 1) {
            Some(place) => println!("{argument} {} {} ({} bytes)", place.path, place.type_name, place.size),
            None => println!("{argument} -"),
        }
    }
    Ok(())
}
