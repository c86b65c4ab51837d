#!/usr/bin/env bash
# object 0.40.0 (a crate): .gnu_debuglink of PE images is not seen by the function that reads it.
#
# A good guess: Object::gnu_debuglink returns the name and the checksum wherever the section is, because binutils writes
# it into PE images as well, and the section can be read there by its name. Seen: for PE the answer is always Ok(None),
# "there is none"; the implementation reads ELF only. So the symbols of stripped MinGW programs are not found.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" object 0.40.0 <<'TEXT'
use object::{Object, ObjectSection};

/// An image with one section, whose name is in the table of strings because it is longer than eight characters.
fn image() -> Vec<u8> {
    let word = |value: u32| value.to_le_bytes();
    let mut image = b"MZ".to_vec();
    image.resize(0x3C, 0);
    image.extend(word(0x40));
    image.extend(b"PE\0\0\x64\x86\x01\0");
    image.extend([word(0), word(0x400), word(0)].concat());
    image.extend([240, 0, 0x22, 0, 0x0B, 2, 0, 0]);
    image.extend([0, 0, 0, 0x1000, 0x1000, 0x4000_0000, 1, 0x1000, 0x200, 6, 0, 6, 0].map(word).concat());
    image.extend([0x2000, 0x200, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16].map(word).concat());
    image.resize(0x40 + 24 + 240, 0);
    image.extend(b"/4\0\0\0\0\0\0");
    image.extend([16, 0x1000, 0x200, 0x200, 0, 0, 0, 0x4200_0040].map(word).concat());
    image.resize(0x200, 0);
    image.extend(b"app.debug\0\0\0\x78\x56\x34\x12");
    image.resize(0x400, 0);
    image.extend(word(4 + 15));
    image.extend(b".gnu_debuglink\0");
    image
}

fn main() {
    let image = image();
    let file = object::File::parse(&*image).unwrap();
    let section = file.section_by_name(".gnu_debuglink").unwrap();
    println!("{:?} {:?}", file.format(), String::from_utf8_lossy(&section.data().unwrap()[..9]));
    println!("{:?}", file.gnu_debuglink());
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
Pe "app.debug"
Ok(None)
SEEN
