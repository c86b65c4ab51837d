//! Both formats of a dump, ignored lines, and errors.

#![expect(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use cpuid_dump::{Dump, LineError, MAX_LEAVES, ParseError};

fn parse(text: &str) -> Dump {
    Dump::parse(text).unwrap()
}

fn error(text: &str) -> ParseError {
    Dump::parse(text).unwrap_err()
}

fn bad_line(line: usize, cause: LineError) -> ParseError {
    ParseError::Line { line, cause }
}

#[test]
fn dashed_format_is_parsed() {
    let dump = parse("CPUID 0000000A: 07300403-00000000-00000000-00000603");
    assert_eq!(dump.cpuid(0xA, 0), [0x0730_0403, 0, 0, 0x603]);
}

#[test]
fn parser_ignores_case() {
    let dump = parse("cpuid 0000000a: 0730ABCD-0000abcd-00000000-00000603");
    assert_eq!(dump.cpuid(0xA, 0), [0x0730_ABCD, 0xABCD, 0, 0x603]);
}

#[test]
fn subleaf_is_read_after_the_leaf_or_at_the_end() {
    let dump = parse(
        "CPUID 00000004: 00000001-00000000-00000000-00000000 [SL 00]\n\
         CPUID 00000004 [SL 01]: 00000002-00000000-00000000-00000000\n\
         CPUID 00000004[SL 1E]: 00000003-00000000-00000000-00000000\n\
         CPUID 00000004: 00000004-00000000-00000000-00000000 [L3] [SL 3f]\n",
    );
    let eax = |subleaf| dump.cpuid(4, subleaf)[0];
    assert_eq!([eax(0), eax(1), eax(0x1E), eax(0x3F), eax(2)], [1, 2, 3, 4, 0]);
}

/// Older versions of AIDA64 have a tab or spaces instead of the colon, and other tools spaces between the registers.
#[test]
fn the_colon_can_be_missing_and_spaces_can_be_between_the_registers() {
    let dump = parse(
        "CPUID 00000000\t00000002-756E6547-6C65746E-49656E69 [GenuineIntel]\n\
         CPUID 00000004\t00000003-00000004-00000005-00000006 [SL 02]\n\
         CPUID 00000005 00000007-00000008-00000009-0000000A\n\
         CPUID 00000006  \t0000000B-0000000C-0000000D-0000000E [note]\n\
         CPUID 80000000: 80000004 - 00000001 - 00000002 - 00000003 [note]\n\
         CPUID 80000001:\t80000001 00000001 00000002 00000003\n\
         CPUID 80000002: 80000002  00000001\t00000002 00000003 [SL 00]\n",
    );
    assert_eq!(dump.cpuid(0, 0), [2, 0x756E_6547, 0x6C65_746E, 0x4965_6E69]);
    let all: Vec<_> = dump.leaves().map(|(leaf, subleaf, registers)| (leaf, subleaf, registers[0])).collect();
    assert_eq!(all[..4], [(0, 0, 2), (4, 2, 3), (5, 0, 7), (6, 0, 0xB)]);
    for (leaf, eax) in [(0x8000_0000, 0x8000_0004), (0x8000_0001, 0x8000_0001), (0x8000_0002, 0x8000_0002)] {
        assert_eq!(dump.cpuid(leaf, 0), [eax, 1, 2, 3], "{leaf:#x}");
    }
    for (text, cause) in [
        ("CPUID 00000004\t00000003-00000004-00000005", LineError::Registers),
        ("CPUID 00000004\t00000003-00000004-00000005-00000006-00000007", LineError::Registers),
        ("CPUID 00000004: 00000003 00000004 00000005", LineError::Registers),
        ("CPUID 00000004: 00000003 00000004 00000005 0000000G", LineError::Registers),
        ("CPUID 00000004: 00000003 00000004 00000005 000000061", LineError::Registers),
        ("CPUID 00000004\t00000003-00000004-00000005-00000006 [SL 0x]", LineError::Subleaf),
    ] {
        assert_eq!(error(text), bad_line(1, cause), "{text}");
    }
}

#[test]
fn raw_output_of_the_linux_tool_is_parsed() {
    let dump = parse(
        "CPU 0:\n   \
         0x00000000 0x00: eax=0x0000000d ebx=0x756e6547 ecx=0x6c65746e edx=0x49656e69\n   \
         0x00000004 0x01: eax=0x1c004121 ebx=0x01c0003f ecx=0x0000003f edx=0x00000000\n\
         CPU 1:\n   \
         0x00000001 0x00: eax=0x000106a5 ebx=0x00000000 ecx=0x00000000 edx=0x00000000\n",
    );
    assert_eq!(dump.cpuid(0, 0)[0], 0xD);
    assert_eq!(dump.cpuid(4, 1), [0x1C00_4121, 0x01C0_003F, 0x3F, 0]);
    assert_eq!(dump.leaves().count(), 2);
}

#[test]
fn other_lines_are_ignored_with_either_line_ending() {
    let dump = parse(
        "\u{feff}CPU:\r\n# a header\r\nCPUID Registers (CPU #1):\r\n\r\n\
         CPUID 00000000: 00000001-68747541-444D4163-69746E65 [AuthenticAMD]\r\n\
         MSR 0000001B: 00000000-FEE00900\r\nCPUID dump taken: 2020-02-02\r\n0x10 and on\r\n",
    );
    assert_eq!(dump.to_string(), "CPUID 00000000: 00000001-68747541-444D4163-69746E65\n");
}

#[test]
fn only_the_first_processor_is_read() {
    let dump = parse(
        "CPUID 00000000: 00000001-00000000-00000000-00000000\n\
         CPUID 00000001: 00000001-00000000-00000000-00000000\n\
         CPUID 00000001: 00000002-00000000-00000000-00000000\n\
         CPUID 00000000: 00000002-00000000-00000000-00000000\n\
         CPUID 00000002: 00000003-00000000-00000000-00000000\n\
         CPUID 00000003: broken\n",
    );
    assert_eq!(dump.leaves().collect::<Vec<_>>(), [(0, 0, [1, 0, 0, 0]), (1, 0, [1, 0, 0, 0])]);
}

#[test]
fn leaf_without_subleaves_is_the_same_for_every_subleaf() {
    let dump = parse(
        "CPUID 00000001: 00000001-00000000-00000000-00000000\n\
         CPUID 00000007: 00000000-00000009-00000000-00000000\n",
    );
    assert_eq!(dump.cpuid(1, 5)[0], 1);
    assert_eq!(dump.cpuid(7, 0)[1], 9);
    assert_eq!(dump.cpuid(7, 1)[1], 0, "leaf 7 has subleaves");
}

#[test]
fn leaves_above_the_highest_or_absent_are_zero() {
    let dump = parse(
        "CPUID 00000000: 00000002-00000000-00000000-00000000\n\
         CPUID 00000002: 00000001-00000000-00000000-00000000\n\
         CPUID 00000003: 00000001-00000000-00000000-00000000\n\
         CPUID 40000000: 00000000-00000000-00000000-00000000\n\
         CPUID 40000001: 00000001-00000000-00000000-00000000\n\
         CPUID 80000000: 80000001-00000000-00000000-00000000\n\
         CPUID 80000001: 00000001-00000000-00000000-00000000\n\
         CPUID 80000002: 00000001-00000000-00000000-00000000\n",
    );
    let eax = |leaf| dump.cpuid(leaf, 0)[0];
    assert_eq!([eax(2), eax(3), eax(1)], [1, 0, 0]);
    assert_eq!([eax(0x8000_0001), eax(0x8000_0002)], [1, 0]);
    assert_eq!(eax(0x4000_0001), 1, "early KVM reports no highest leaf");
}

#[test]
fn text_without_leaves_is_an_error() {
    assert_eq!(error(""), ParseError::NoLeaf);
    assert_eq!(error("CPU 0:\nCPUID Registers (CPU #1):\n").to_string(), "no CPUID line found");
}

#[test]
fn malformed_line_is_an_error_with_its_number() {
    for (line, cause) in [
        ("CPUID 000000A: 07300403-00000000-00000000-00000603", LineError::Leaf),
        ("CPUID 0000000G: 07300403-00000000-00000000-00000603", LineError::Leaf),
        ("CPUID 0000000A", LineError::Colon),
        ("CPUID 0000000A 07300403-00000000-00000000", LineError::Registers),
        ("CPUID 0000000A:", LineError::Registers),
        ("CPUID 0000000A: 07300403-00000000-00000000", LineError::Registers),
        ("CPUID 0000000A: 07300403-00000000-00000000-0000060", LineError::Registers),
        ("CPUID 0000000A: 07300403-00000000-00000000-+0000603", LineError::Registers),
        ("CPUID 0000000A: 07300403-00000000-00000000-00000603-00000000", LineError::Registers),
        ("CPUID 0000000A: 07300403-00000000-00000000-00000603 [SL x]", LineError::Subleaf),
        ("CPUID 0000000A: 07300403-00000000-00000000-00000603 [SL 01", LineError::Subleaf),
        ("CPUID 0000000A [SL 01]: 07300403-00000000-00000000-00000603 [SL 02]", LineError::Subleaf),
        ("0x0000000a 0x00 eax=0x07300403", LineError::Colon),
        ("0x0000a 0x00: eax=0x07300403 ebx=0x00000000 ecx=0x00000000 edx=0x00000603", LineError::Leaf),
        ("0x0000000a zero: eax=0x07300403 ebx=0x00000000 ecx=0x00000000 edx=0x00000603", LineError::Subleaf),
        ("0x0000000a 0x00: eax=0x07300403 ecx=0x00000000 ebx=0x00000000 edx=0x00000603", LineError::Registers),
        ("0x0000000a 0x00: eax=0x07300403 ebx=0x00000000 ecx=0x00000000", LineError::Registers),
    ] {
        assert_eq!(error(&format!("# header\n{line}\n")), bad_line(2, cause), "{line}");
    }
    assert_eq!(
        error("CPUID 0000000A:").to_string(),
        "line 1: the registers are not four groups of eight hexadecimal digits"
    );
}

#[test]
fn dump_with_too_many_leaves_is_an_error() {
    let line = |leaf| format!("CPUID {leaf:08X}: 00000000-00000000-00000000-00000000\n");
    let text: String = (1..=MAX_LEAVES + 1).map(line).collect();
    assert_eq!(error(&text), bad_line(MAX_LEAVES + 1, LineError::TooMany));
}
