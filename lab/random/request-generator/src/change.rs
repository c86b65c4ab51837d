//! Changes that make a valid request invalid, or valid in another way.

use bench_protocol::Random;

use crate::draw::{number, pick};
use crate::request::Request;

/// Numbers at the limits of fields.
const LIMITS: [u32; 10] = [0, 1, 2, 47, 48, 64, 0x7FFF_FFFF, 1 << 31, u32::MAX - 1, u32::MAX];

/// Lengths of the output: shorter than any reply, and as long as the longest.
const LENGTHS: [usize; 8] = [0, 1, 47, 48, 49, 72, 199, 1 << 16];

/// Longest input after a change.
const MAX_INPUT: usize = 4_096;

/// Changes a request in one way.
pub fn change(random: &mut Random, request: &mut Request) {
    match random.up_to(7) {
        0 => flip_bits(random, &mut request.input),
        1 | 2 => overwrite_field(random, &mut request.input),
        3 => resize(random, &mut request.input),
        4 => request.output = pick(random, &LENGTHS).unwrap_or(0),
        5 => request.output = usize::try_from(random.up_to(600)).unwrap_or(0),
        6 => request.code ^= 1 << number(random, 31),
        _ => request.input.iter_mut().for_each(|byte| *byte = number(random, 0xFF).to_le_bytes()[0]),
    }
}

fn flip_bits(random: &mut Random, bytes: &mut [u8]) {
    for _ in 0..=random.up_to(2) {
        let at = place(random, bytes.len());
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << number(random, 7);
        }
    }
}

/// Overwrites a field of four bytes with a number at a limit.
fn overwrite_field(random: &mut Random, bytes: &mut [u8]) {
    let at = place(random, bytes.len()) & !3;
    let value = pick(random, &LIMITS).unwrap_or(0);
    if let Some(field) = bytes.get_mut(at..at + 4) {
        field.copy_from_slice(&value.to_le_bytes());
    }
}

fn resize(random: &mut Random, bytes: &mut Vec<u8>) {
    let length = match random.up_to(3) {
        0 => 0,
        1 => bytes.len().saturating_sub(1),
        2 => bytes.len() + 1,
        _ => usize::try_from(random.up_to(MAX_INPUT as u64)).unwrap_or(0),
    };
    bytes.resize(length, 0);
}

fn place(random: &mut Random, length: usize) -> usize {
    usize::try_from(random.up_to(length.saturating_sub(1) as u64)).unwrap_or(0)
}
