//! Writes a recording of a process with these images as modules, and one sample at addresses that are spread evenly
//! over their sections of code.
//!
//! ```text
//! cargo run -p report --example addresses -- 20000 images.rec numpy.libs/openblas.dll
//! ```

mod session;

use std::error::Error;
use std::fs::File;
use std::{env, fs};

use object::read::pe::PeFile64;
use object::{Object as _, ObjectSection as _, SectionKind};
use protocol::SampleRecord;
use recording::{Module, Process, Summary, Writer};
use report::PeHeaders;
use session::{sample, session};

/// Address of the first module, and the distance between two.
const BASE: u64 = 0x7FF8_0000_0000;
const SPACING: u64 = 0x1000_0000;

const PROCESS: u32 = 4;

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
            samples.push(sample(index, module.base + begin + at, PROCESS, 0).into());
            break;
        }
    }
    let mut writer = Writer::new(File::create(output)?, &session(1))?;
    writer.process(&Process { id: PROCESS, created: Some(1), name: "images.exe".to_owned(), modules })?;
    samples.chunks(recording::MAX_SAMPLES).try_for_each(|batch| writer.samples(batch))?;
    writer.finish(&Summary { elapsed: number, exit_code: Some(0), ..Summary::default() })?;
    Ok(())
}
