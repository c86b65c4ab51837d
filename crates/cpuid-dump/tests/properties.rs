//! Every dump round-trips, and no text makes the parser panic.

#![expect(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::fmt::Write;

use cpuid_dump::Dump;
use proptest::prelude::*;

type Leaf = (u32, u32, [u32; 4]);

fn leaf() -> impl Strategy<Value = Leaf> {
    // Small ranges make it likely that leaves, subleaves and the highest leaf coincide.
    let number = prop_oneof![0..0x30_u32, 0x4000_0000..0x4000_0008_u32, 0x8000_0000..0x8000_0028_u32, any::<u32>()];
    let subleaf = prop_oneof![Just(0), 0..8_u32, any::<u32>()];
    (number, subleaf, any::<[u32; 4]>())
}

/// Generates distinct leaves in ascending order.
fn leaves() -> impl Strategy<Value = Vec<Leaf>> {
    prop::collection::vec(leaf(), 1..40).prop_map(|mut leaves| {
        leaves.sort_by_key(|&(leaf, subleaf, _)| (leaf, subleaf));
        leaves.dedup_by_key(|&mut (leaf, subleaf, _)| (leaf, subleaf));
        leaves
    })
}

fn with_dashes(leaves: &[Leaf], subleaf_first: bool) -> String {
    leaves.iter().fold(String::new(), |mut text, (leaf, subleaf, [a, b, c, d])| {
        if subleaf_first {
            writeln!(text, "CPUID {leaf:08x} [SL {subleaf:02x}]: {a:08x}-{b:08x}-{c:08x}-{d:08x}\r").unwrap();
        } else {
            writeln!(text, "CPUID {leaf:08X}: {a:08X}-{b:08X}-{c:08X}-{d:08X} [SL {subleaf:02X}]").unwrap();
        }
        text
    })
}

fn with_equals(leaves: &[Leaf]) -> String {
    leaves.iter().fold("CPU 0:\n".to_owned(), |mut text, (leaf, subleaf, [a, b, c, d])| {
        write!(text, "   0x{leaf:08x} 0x{subleaf:02x}: ").unwrap();
        writeln!(text, "eax=0x{a:08x} ebx=0x{b:08x} ecx=0x{c:08x} edx=0x{d:08x}").unwrap();
        text
    })
}

/// Generates pieces of dumps, concatenated without regard to the grammar.
fn near_miss() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("CPUID ".to_owned()),
        Just("0000000A".to_owned()),
        Just("07300403-00000000-00000000-00000603".to_owned()),
        Just("0x00000004 0x01".to_owned()),
        Just("eax=0x1c004121 ebx=0x01c0003f ecx=0x0000003f edx=0x00000000".to_owned()),
        Just(" [SL ".to_owned()),
        Just("]".to_owned()),
        Just(":".to_owned()),
        Just(" ".to_owned()),
        Just("\r\n".to_owned()),
        Just("CPU".to_owned()),
        "\\PC{0,3}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn every_format_round_trips(leaves in leaves(), subleaf_first: bool) {
        let dump = Dump::parse(&with_dashes(&leaves, subleaf_first)).unwrap();
        prop_assert_eq!(&dump.leaves().collect::<Vec<_>>(), &leaves);
        prop_assert_eq!(&Dump::parse(&with_equals(&leaves)).unwrap(), &dump);
        prop_assert_eq!(&Dump::parse(&dump.to_string()).unwrap(), &dump);
    }

    #[test]
    fn cpuid_returns_a_leaf_of_the_dump_or_zero(leaves in leaves(), (leaf, subleaf, _) in leaf()) {
        let dump = Dump::parse(&with_equals(&leaves)).unwrap();
        let found = dump.cpuid(leaf, subleaf);
        let known = leaves.iter().any(|&(l, s, registers)| {
            l == leaf && (s == subleaf || s == 0) && registers == found
        });
        prop_assert!(known || found == [0; 4]);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        drop(Dump::parse(&String::from_utf8_lossy(&bytes)));
    }

    #[test]
    fn near_miss_never_panics(text in near_miss()) {
        if let Ok(dump) = Dump::parse(&text) {
            prop_assert_eq!(&Dump::parse(&dump.to_string()).unwrap(), &dump);
        }
    }
}
