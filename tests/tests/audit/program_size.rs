//! The sizes of the programs as the package has them.

use std::fs;

use object::read::pe::PeFile64;
use object::{Object, ObjectSection};
use tests::artifacts;

/// Limits for the programs without debug information, in bytes.
const SIZES: [(&str, u64); 2] = [("client.exe", 9_400_000), ("halprof-agent.exe", 6_600_000)];

#[test]
fn the_programs_are_small_without_their_debug_information() {
    for (program, most) in SIZES {
        let bytes = fs::read(artifacts().unwrap().join(program)).unwrap();
        let file = PeFile64::parse(&*bytes).unwrap();
        // The linker of mingw-w64 puts the debug information behind the rest, and the package into a file of its own.
        let shipped = file.sections().filter(|section| !section.name().unwrap().starts_with(".debug_"));
        let ends = shipped.filter_map(|section| section.file_range()).map(|(start, length)| start + length);
        let size = ends.max().unwrap();
        println!("{program}: {size} bytes");
        assert!((1_000_000..=most).contains(&size), "{program}: {size} bytes");
    }
}
