//! Writes a recording of a process with these images as modules, and one sample at addresses that are spread evenly
//! over their sections of code.
//!
//! ```text
//! cargo run -p report --example addresses -- 20000 images.rec numpy.libs/openblas.dll
//! ```

use std::error::Error;
use std::fs::File;
use std::{env, fs};

use object::read::pe::PeFile64;
use object::{Object as _, ObjectSection as _, SectionKind};
use protocol::{CounterKind, CounterSample, Mode, SampleRecord, modes};
use recording::{Module, Process, RecordedEvent, Session, Summary, Writer};
use report::PeHeaders;

/// Address of the first module, and the distance between two.
const BASE: u64 = 0x7FF8_0000_0000;
const SPACING: u64 = 0x1000_0000;

const PROCESS: u32 = 4;
const SOURCE: u32 = 25;
const INTERVAL: u32 = 100_003;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [number, output, images @ ..] = words.as_slice() else { return Err("NUMBER FILE IMAGE...".into()) };
    let (mut modules, mut code) = (Vec::new(), Vec::new());
    for (path, base) in images.iter().zip((0..).map(|index| BASE + index * SPACING)) {
        let bytes = fs::read(path)?;
        let headers = PeHeaders::parse(bytes.as_slice())?;
        let image = PeFile64::parse(bytes.as_slice())?;
        let start = image.relative_address_base();
        let sections = image.sections().filter(|section| section.kind() == SectionKind::Text);
        code.extend(sections.map(|section| (modules.len(), section.address() - start, section.size())));
        modules.push(Module {
            base,
            size: headers.image_size.into(),
            path: fs::canonicalize(path)?.to_str().ok_or("a path that is not UTF-8")?.to_owned(),
            timestamp: headers.timestamp,
            image_size: headers.image_size,
            debug: headers.debug,
        });
    }
    let number: u64 = number.parse()?;
    let size: u64 = code.iter().map(|(_, _, size)| size).sum();
    let mut samples: Vec<SampleRecord> = Vec::new();
    for index in 0..number {
        let mut at = index * size / number;
        for (module, begin, size) in &code {
            if at >= *size {
                at -= size;
                continue;
            }
            let module = modules.get(*module).ok_or("a section without a module")?;
            samples.push(sample(index, module.base + begin + at).into());
            break;
        }
    }
    let mut writer = Writer::new(File::create(output)?, &session())?;
    writer.process(&Process { id: PROCESS, created: Some(1), name: "images.exe".to_owned(), modules })?;
    samples.chunks(recording::MAX_SAMPLES).try_for_each(|batch| writer.samples(batch))?;
    writer.finish(&Summary {
        elapsed: number,
        counts: Vec::new(),
        interrupted_by_user: false,
        exit_code: Some(0),
        kept: None,
    })?;
    Ok(())
}

fn sample(time: u64, ip: u64) -> CounterSample {
    CounterSample {
        time,
        ip,
        process: PROCESS,
        thread: PROCESS + 1,
        processor: 0,
        source: SOURCE,
        interval: INTERVAL,
        kind: CounterKind::Sample,
        mode: Mode::User,
        pebs_sequence: 0,
        cookie: 0,
    }
}

fn session() -> Session {
    Session {
        created_unix_ms: 1_767_225_600_000,
        client: "0.1.0".to_owned(),
        driver: "0.1.0".to_owned(),
        processor: "Synthetic".to_owned(),
        computer: None,
        command: Vec::new(),
        clock: 10_000_000,
        processors: vec![0],
        batch: 0,
        part: 0,
        core_types: Vec::new(),
        events: vec![RecordedEvent {
            source: SOURCE,
            name: "TotalCycles".to_owned(),
            modes: modes::BOTH,
            interval: INTERVAL,
            frequency: 0,
            core_type: 0,
        }],
    }
}
