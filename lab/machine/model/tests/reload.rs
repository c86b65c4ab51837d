//! Auto counter reload: registers, and which overflow loads what.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use model::{GeneralProtection, Mode, Processor, Selected};

const GLOBAL_STATUS: u32 = 0x38E;
const GLOBAL_CTRL: u32 = 0x38F;
const FIXED_CTR_CTRL: u32 = 0x38D;
const FIXED_CTR0: u32 = 0x309;

/// The registers of general counter 3: select, value, which overflows load it, and with what.
const SELECT: u32 = 0x189;
const COUNTER: u32 = 0x4C4;
const CAUSES: u32 = 0x190E;
const LOADED: u32 = 0x190F;
/// The last two of fixed counter 0.
const FIXED_CAUSES: u32 = 0x1982;
const FIXED_LOADED: u32 = 0x1983;

const BIT: u64 = 1 << 3;
const FIXED_BIT: u64 = 1 << 32;
const WIDTH: u64 = 0xFFFF_FFFF_FFFF;

fn processor(name: &str) -> Processor {
    let dump = cpuid_dumps::find(name).unwrap().cpuid();
    Processor::new(Box::new(|leaf, subleaf| dump.cpuid(leaf, subleaf))).with_perf_capabilities(0x2F00)
}

/// Counter 3 counts branches and overflows at the hundredth with an interrupt. Fixed counter 0 counts instructions and
/// overflows at the tenth.
fn counting() -> Processor {
    let mut processor = processor("panther-lake-355-efficient");
    for (register, value) in [
        (LOADED, 100_u64.wrapping_neg() & 0xFFFF_FFFF),
        (FIXED_LOADED, 10_u64.wrapping_neg() & 0xFFFF_FFFF),
        (COUNTER, 100_u64.wrapping_neg() & WIDTH),
        (FIXED_CTR0, 10_u64.wrapping_neg() & WIDTH),
        (SELECT, 0xC4 | 1 << 16 | 1 << 20 | 1 << 22),
        (FIXED_CTR_CTRL, 2 | 8),
        (GLOBAL_CTRL, BIT | FIXED_BIT),
    ] {
        assert_eq!(processor.wrmsr(register, value), Ok(()), "{register:#x}");
    }
    processor
}

fn run(processor: &mut Processor, branches: u64, instructions: u64) {
    processor.run(Mode::User, &|one: Selected| match (one.event, one.umask) {
        (0xC4, 0) => branches,
        _ => instructions,
    });
}

fn state(processor: &mut Processor) -> [u64; 3] {
    let [value, fixed, status] =
        [COUNTER, FIXED_CTR0, GLOBAL_STATUS].map(|register| processor.rdmsr(register).unwrap());
    [value.wrapping_neg() & WIDTH, fixed.wrapping_neg() & WIDTH, status]
}

#[test]
fn registers_take_the_counters_of_the_enumeration_and_the_lower_half_of_a_value() {
    let mut processor = processor("lunar-lake-288v-efficient");
    let refused = Err(GeneralProtection);
    for (register, value, result) in [
        (CAUSES, 0xFC | 3 << 32, Ok(())),
        (CAUSES, 1, refused),
        (CAUSES, 1 << 34, refused),
        (LOADED, 0xFFFF_FFFF, Ok(())),
        (LOADED, 1 << 32, refused),
        (0x1902, 0, refused), // counter 0 is no such counter
        (0x1903, 0, refused),
        (0x1990, 0, refused), // fixed counter 3
        (0x1901, 0, refused),
    ] {
        assert_eq!(processor.wrmsr(register, value), result, "{register:#x}, {value:#x}");
    }
    assert_eq!([CAUSES, LOADED].map(|register| processor.rdmsr(register)), [Ok(0xFC | 3 << 32), Ok(0xFFFF_FFFF)]);
    processor.lose_power();
    assert_eq!([CAUSES, LOADED].map(|register| processor.rdmsr(register)), [Ok(0); 2]);
}

/// P cores enumerate the leaf with zeros, others do not.
#[test]
fn other_processors_do_not_have_them() {
    for name in ["lunar-lake-288v", "arrow-lake-h-285h-low-power", "haswell-4710mq", "zen4-7700x"] {
        let dump = cpuid_dumps::find(name).unwrap().cpuid();
        let mut processor = Processor::new(Box::new(|leaf, subleaf| dump.cpuid(leaf, subleaf)));
        assert_eq!([CAUSES, FIXED_CAUSES].map(|register| processor.rdmsr(register).is_err()), [true; 2], "{name}");
    }
}

#[test]
fn an_overflow_loads_the_counters_that_name_it_and_these_alone() {
    let mut processor = counting();
    processor.wrmsr(CAUSES, FIXED_BIT).unwrap();
    run(&mut processor, 40, 9);
    assert_eq!(state(&mut processor), [60, 1, 0]);
    run(&mut processor, 5, 1);
    // The fixed counter itself counts on from its overflow.
    assert_eq!(state(&mut processor), [100, 0, FIXED_BIT]);
    assert!(processor.take_interrupt());
}

#[test]
fn a_counter_that_loads_itself_reports_nothing() {
    let mut processor = counting();
    processor.wrmsr(FIXED_CAUSES, FIXED_BIT | BIT).unwrap();
    run(&mut processor, 40, 12);
    assert_eq!(state(&mut processor), [60, 10, 0]);
    assert!(!processor.take_interrupt());
    run(&mut processor, 60, 7);
    // By the overflow of the general counter, which comes first in the model.
    assert_eq!(state(&mut processor), [0, 3, BIT]);
    assert!(processor.take_interrupt());
}
