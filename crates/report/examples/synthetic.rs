//! Writes a deterministic recording for benchmarks: samples at 20,000 addresses, or as many as the third argument
//! allows, in 50 modules. With a fourth argument, each sample has a call stack of so many frames: every address is
//! called in eight ways, and callers further out are shared by more of them.
//!
//! ```text
//! cargo run --release -p report --example synthetic -- 10000000 big.rec
//! cargo run --release -p report --example synthetic -- 200000000 distinct.rec 10000000
//! cargo run --release -p report --example synthetic -- 1000000 stacks.rec 20000 30
//! cargo run --release -p report --example synthetic -- 1000000 big.txt    (in the format of `perf script`)
//! ```

mod session;

use std::env;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use protocol::{CounterSample, SampleRecord};
use recording::{CallStack, Module, Process, SampleStack, StackEnd, Summary, Writer};
use session::{CLOCK, sample, session};

const MODULES: u64 = 50;
const ADDRESSES: u64 = 20_000;
/// Distance between two addresses of a module in bytes.
const DISTANCE: u64 = 64;
/// Distance between the bases of two modules in bytes.
const SPACING: u64 = 0x100_0000;

/// Number of ways in which an address is called.
const PATHS: u64 = 8;
/// Maximum number of frames of a stack, for which the modules have room.
const MAX_FRAMES: u64 = 64;
/// Address of the callers in a module, the room for those at one distance from the sampled function, and their number.
const CALLERS: u64 = 0xF0_0000;
const LEVEL: u64 = 0x4000;
const CALLERS_OF_LEVEL: u64 = 256;

const PROCESSES: u32 = 8;
const PROCESSORS: u32 = 16;

/// Samples per write: as many as `record` collects for a block.
const BATCH: usize = recording::MAX_SAMPLES;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let (number, path, addresses, frames) = match words.as_slice() {
        [number, path] => (number, path, ADDRESSES, 0),
        [number, path, addresses] => (number, path, addresses.parse()?, 0),
        [number, path, addresses, frames] => (number, path, addresses.parse()?, frames.parse()?),
        _ => return Err("NUMBER FILE [ADDRESSES [FRAMES]]".into()),
    };
    if addresses > MODULES * SPACING / DISTANCE || frames > MAX_FRAMES {
        return Err("the modules have not so many addresses".into());
    }
    let samples = Samples { random: SplitMix(1), time: 0, addresses }.take(number.parse()?);
    let file = File::create(path)?;
    let text = Path::new(path).extension().is_some_and(|extension| extension == "txt");
    if text { script(samples, BufWriter::new(file)) } else { recording(samples, frames, file) }
}

fn recording(mut samples: impl Iterator<Item = CounterSample>, frames: u64, file: File) -> Result<(), Box<dyn Error>> {
    let mut writer = Writer::new(file, &session(PROCESSORS))?;
    for id in 0..PROCESSES {
        let modules = (0..MODULES).map(module).collect();
        writer.process(&Process { id: 4 * (id + 1), created: Some(1), name: format!("program{id}.exe"), modules })?;
    }
    loop {
        let batch: Vec<CounterSample> = samples.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            break;
        }
        if frames == 0 {
            writer.samples(&batch.into_iter().map(SampleRecord::from).collect::<Vec<_>>())?;
        } else {
            let stacked = batch.into_iter().map(|sample| (sample.into(), stack(&sample, frames)));
            writer.stacked_samples(&stacked.collect::<Vec<_>>())?;
        }
    }
    let summary = Summary { elapsed: CLOCK, exit_code: Some(0), ..Summary::default() };
    writer.finish(&summary)?;
    Ok(())
}

/// Returns the stack of a sample with so many frames, the sampled function included.
fn stack(sample: &CounterSample, frames: u64) -> SampleStack {
    let way = (sample.ip - base(0)) / DISTANCE * PATHS + SplitMix(sample.time).below(PATHS);
    let caller = |level: u64| {
        // Half as many callers one level further out.
        let number = SplitMix((way >> level) * MAX_FRAMES + level).below(MODULES * CALLERS_OF_LEVEL);
        base(number % MODULES) + CALLERS + level * LEVEL + number / MODULES * DISTANCE
    };
    SampleStack::Stack(CallStack { callers: (1..frames).map(caller).collect(), end: StackEnd::Complete })
}

/// Writes one frame per sample, because a sample is one address.
fn script(samples: impl Iterator<Item = CounterSample>, mut out: impl Write) -> Result<(), Box<dyn Error>> {
    for CounterSample { time, ip, process, thread, processor, interval, .. } in samples {
        let program = process / 4 - 1;
        let (seconds, rest) = (time / CLOCK, time % CLOCK / 10);
        writeln!(
            out,
            "program{program} {process}/{thread} [{processor:03}] {seconds}.{rest:06}: {interval} cycles:u: "
        )?;
        let module = (ip - base(0)) / SPACING;
        writeln!(out, "\t{ip:16x} function_{:x}+0x0 (/usr/lib/library{module}.so)\n", ip - base(module))?;
    }
    Ok(out.flush()?)
}

fn base(module: u64) -> u64 {
    0x7FF8_0000_0000 + module * SPACING
}

fn module(number: u64) -> Module {
    Module {
        base: base(number),
        size: SPACING,
        path: format!("C:\\Program Files\\Example\\library{number}.dll"),
        timestamp: 1,
        image_size: 0x100_0000,
        debug: None,
    }
}

/// An endless sequence of samples.
struct Samples {
    random: SplitMix,
    time: u64,
    addresses: u64,
}

impl Iterator for Samples {
    type Item = CounterSample;

    /// The product of two uniformly distributed numbers makes few addresses hot and many cold.
    fn next(&mut self) -> Option<CounterSample> {
        self.time += 10;
        let location = self.random.below(self.addresses) * self.random.below(self.addresses) / self.addresses;
        let process = 4 * (1 + u32::try_from(location % u64::from(PROCESSES)).ok()?);
        let ip = base(location % MODULES) + location / MODULES * DISTANCE;
        Some(sample(self.time, ip, process, u32::try_from(self.random.below(PROCESSORS.into())).ok()?))
    }
}

/// SplitMix64 (G. L. Steele, D. Lea and C. H. Flood, 2014).
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % limit
    }
}
