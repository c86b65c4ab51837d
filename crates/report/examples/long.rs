//! Writes a recording of 24 hours: processes that end and whose numbers others get, each with modules of its own, on
//! processors whose samples come late.
//!
//! ```text
//! cargo run --release -p report --example long -- 2000000 10000 10 long.rec    (samples, processes, modules of each)
//! ```

mod session;

use std::env;
use std::error::Error;
use std::fs::File;

use protocol::{CounterSample, SampleRecord};
use recording::{Module, Process, Summary, Writer};
use session::{CLOCK, sample, session};

const DAY: u64 = 24 * 3600 * CLOCK;
/// The time since the machine was started.
const START: u64 = 100 * DAY;
const PROCESSORS: u32 = 16;
/// Number of processes before one of the first numbers is used again.
const NUMBERS: u64 = 1000;
const SIZE: u64 = 0x10_0000;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [samples, processes, modules, path] = words.as_slice() else {
        return Err("SAMPLES PROCESSES MODULES FILE".into());
    };
    let (samples, processes, modules): (u64, u64, u64) = (samples.parse()?, processes.parse()?, modules.parse()?);
    let mut writer = Writer::new(File::create(path)?, &session(PROCESSORS))?;
    let mut written = 0;
    let mut batch = Vec::new();
    for number in 0..samples {
        let process = number * processes / samples;
        while written <= process {
            writer.process(&of_number(written, processes, modules))?;
            written += 1;
        }
        batch.push(SampleRecord::from(of_process(number, samples, process, modules)));
        if batch.len() == recording::MAX_SAMPLES || number + 1 == samples {
            writer.samples(&batch)?;
            batch.clear();
        }
    }
    let summary = Summary { elapsed: DAY, exit_code: Some(0), ..Summary::default() };
    writer.finish(&summary)?;
    Ok(())
}

fn id(process: u64) -> u32 {
    u32::try_from(4 * (process % NUMBERS + 1)).unwrap_or(u32::MAX)
}

fn of_number(number: u64, processes: u64, modules: u64) -> Process {
    let module = |module| Module {
        base: 0x7FF8_0000_0000 + module * SIZE,
        size: SIZE,
        path: format!("C:\\jobs\\{number}\\library{module}.dll"),
        timestamp: 1,
        image_size: 0x10_0000,
        debug: None,
    };
    Process {
        id: id(number),
        created: Some(START + DAY / processes * number),
        name: format!("job{number}.exe"),
        modules: (0..modules).map(module).collect(),
    }
}

fn of_process(number: u64, samples: u64, process: u64, modules: u64) -> CounterSample {
    let processor = u32::try_from(number % u64::from(PROCESSORS)).unwrap_or(0);
    // Processors are read one after the other, so their samples are up to 50 ms apart.
    let time = START + DAY / samples * number + 1_000_000 - u64::from(processor) * 31_250;
    let ip = 0x7FF8_0000_0000 + number % modules * SIZE + number / modules % 500 * 64;
    sample(time, ip, id(process), processor)
}
