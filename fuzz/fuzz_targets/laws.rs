//! Every target: Cargo builds this file once for each law, as a program with the name of the law.

#![no_main]

use fuzz_laws::LAWS;

/// The law of this program. A name without a law does not compile.
const LAW: fn(&[u8]) = {
    let mut index = 0;
    while !is_chosen(LAWS[index].0.as_bytes()) {
        index += 1;
    }
    LAWS[index].1
};

/// Returns whether the program has this name. `==` of text cannot be called while a constant is computed.
const fn is_chosen(name: &[u8]) -> bool {
    let chosen = env!("CARGO_BIN_NAME").as_bytes();
    let mut same = 0;
    while same < name.len() && same < chosen.len() && name[same] == chosen[same] {
        same += 1;
    }
    same == name.len() && same == chosen.len()
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| LAW(bytes));
