//! Writes a recording of a process with an image as its module, and samples that each have the same last branches,
//! from the newest to the oldest.
//!
//! ```text
//! cargo run -p report --example last_branches -- 100 app.rec app.exe 1083-1040 1083-1040 10b8-1000
//! ```

mod session;

use std::error::Error;
use std::fs::{self, File};
use std::{env, iter};

use protocol::{BranchKind, BranchRecord, BranchType, Mode, Prediction, SampleRecord, last_branches};
use recording::{Module, Process, RecordedSession, Summary, Writer};
use report::PeHeaders;
use session::{sample, session};

/// Address of the module.
const BASE: u64 = 0x7FF8_0000_0000;

const PROCESS: u32 = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [number, output, image, branches @ ..] = words.as_slice() else {
        return Err("NUMBER FILE IMAGE FROM-TO...".into());
    };
    let headers = PeHeaders::parse(fs::read(image)?.as_slice())?;
    let path = fs::canonicalize(image)?.to_str().ok_or("a path that is not UTF-8")?.to_owned();
    let module = Module {
        base: BASE,
        size: headers.image_size.into(),
        path: path.clone(),
        timestamp: headers.timestamp,
        image_size: headers.image_size,
        debug: headers.debug,
    };
    let mut ends = Vec::new();
    for branch in branches {
        let (from, to) = branch.split_once('-').ok_or("a branch is FROM-TO")?;
        ends.push((BASE + u64::from_str_radix(from, 16)?, BASE + u64::from_str_radix(to, 16)?));
    }
    let number: u64 = number.parse()?;
    let stack = |time: u64| {
        let first = sample(time, BASE, PROCESS, 0);
        let branch = move |&(from, to): &(u64, u64)| {
            BranchRecord {
                time,
                from,
                process: PROCESS,
                thread: first.thread,
                processor: 0,
                event: 0,
                cycles: 0,
                prediction: Prediction::Predicted,
                branch_type: BranchType::NotReported,
                kind: BranchKind::LastBranch,
                mode: Mode::User,
                to,
            }
            .into()
        };
        iter::once(first.into()).chain(ends.iter().map(branch))
    };
    let records: Vec<SampleRecord> = (0..number).flat_map(stack).collect();
    let bits = last_branches::USER | last_branches::ANY;
    let session = RecordedSession { last_branches: bits, command: vec![path], ..session(1) };
    let mut writer = Writer::new(File::create(output)?, &session)?;
    writer.process(&Process { id: PROCESS, created: Some(1), name: "app.exe".to_owned(), modules: vec![module] })?;
    writer.samples(&records)?;
    writer.finish(&Summary { elapsed: number, exit_code: Some(0), ..Summary::default() })?;
    Ok(())
}
