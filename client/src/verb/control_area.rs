//! `control-area`: the PROCESSOR_PROFILE_CONTROL_AREA of processors, and what their Debug Store has.

use halprof::text::processors::named;
use halprof::text::{missing_feature, ntstatus};
use protocol::status::STATUS_MEMORY_NOT_ALLOCATED;
use protocol::{AreaRecord, AreaRequest, NtStatus, ProcessorSet, area};
use serde::Serialize;

use crate::cli::ControlAreaArgs;
use system::connection;
use terminal::columns::fitted;
use terminal::context::Context;
use terminal::document::Document;
use terminal::format;
use user_error::Error;

const HEADINGS: [&str; 7] = ["CPU", "Address", "Size", "Whose", "State", "BTS", "PEBS"];

/// PEBS_FMT of architectural PEBS, which has a buffer of its own.
const ARCHITECTURAL: u32 = 15;

/// Placeholder for a processor without an area.
const NONE: &str = "-";

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ControlAreas {
    areas: Vec<ControlArea>,
}

impl Document for ControlAreas {
    const SCHEMA: &'static str = "halprof.control-area/1";
}

/// The control area of a processor.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ControlArea {
    processor: u32,
    address: Option<String>,
    /// Size in bytes.
    size: Option<u32>,
    /// `kernel` or `halprof`.
    owner: Option<&'static str>,
    /// Whether a session uses it.
    used: bool,
    status: String,
    branches: bool,
    /// Whether branches of one mode can be recorded.
    branches_by_mode: bool,
    /// Format of precise records; `None` if the driver does not know it. In this case `missing_feature` has its number.
    precise_format: Option<u32>,
    /// Why there is no Debug Store, or which of branches and precise records it does not have.
    #[serde(rename = "lack")]
    missing_feature: Option<String>,
}

impl From<&AreaRecord> for ControlArea {
    fn from(record: &AreaRecord) -> Self {
        let AreaRecord { processor, status, address, size, flags, format, missing_feature } = *record;
        let has = |flag: u32| flags & flag != 0;
        let is_there = address != 0;
        let owner = if has(area::OF_KERNEL) { "kernel" } else { "halprof" };
        Self {
            processor,
            address: is_there.then(|| format::address(address)),
            size: is_there.then_some(size),
            owner: is_there.then_some(owner),
            used: has(area::USED),
            status: ntstatus::name(NtStatus::new(status)),
            branches: has(area::BRANCHES),
            branches_by_mode: has(area::BRANCHES) && has(area::MODES),
            precise_format: has(area::PRECISE).then_some(format),
            missing_feature: missing_feature
                .checked_sub(1)
                .map(|number| missing_feature::sentence(number, format.into())),
        }
    }
}

pub fn run(args: &ControlAreaArgs, context: &mut Context) -> Result<(), Error> {
    let connection = connection::open(context.system()?)?;
    let request = AreaRequest {
        operation: args.operation.number(),
        current: args.current.into(),
        reserved: 0,
        processors: args.processors.map_or(ProcessorSet::EMPTY, |list| list.0),
    };
    let areas: Vec<ControlArea> = connection.control_areas(&request)?.iter().map(ControlArea::from).collect();
    if args.format.json {
        return context.json(&ControlAreas { areas });
    }
    context.say(&rows(&areas, context.width(false)))?;
    for note in notes(&areas) {
        context.say(&format!("\n{note}"))?;
    }
    Ok(())
}

fn rows(areas: &[ControlArea], width: usize) -> String {
    let row = |area: &ControlArea| {
        vec![
            area.processor.to_string(),
            area.address.clone().unwrap_or_else(|| NONE.to_owned()),
            area.size.map_or_else(|| NONE.to_owned(), |size| format!("{size:#X}").replace('X', "x")),
            area.owner.unwrap_or(NONE).to_owned(),
            state(area),
            if area.branches { "yes" } else { "no" }.to_owned(),
            match area.precise_format {
                None => "no".to_owned(),
                Some(ARCHITECTURAL) => "own".to_owned(),
                Some(format) => format.to_string(),
            },
        ]
    };
    fitted(&HEADINGS, &["CPU"], &["State"], areas.iter().map(row).collect(), width)
}

/// Returns the result of the last request for an area, or that none has been requested.
fn state(area: &ControlArea) -> String {
    let is_idle = area.address.is_none() && area.status == ntstatus::name(STATUS_MEMORY_NOT_ALLOCATED);
    if is_idle { "none".to_owned() } else { area.status.clone() }
}

/// Returns details that do not fit into the columns, each once with its processors.
fn notes(areas: &[ControlArea]) -> Vec<String> {
    let on = |is_meant: &dyn Fn(&ControlArea) -> bool| {
        let mut processors = areas.iter().filter(|area| is_meant(area)).map(|area| area.processor).peekable();
        processors.peek().is_some().then(|| named(processors))
    };
    let mut notes = Vec::new();
    notes.extend(on(&|area| area.used).map(|processors| format!("A session uses those of {processors}.")));
    notes.extend(
        on(&|area| area.branches && !area.branches_by_mode)
            .map(|processors| format!("On {processors}, branches of one mode alone cannot be recorded (DS-CPL).")),
    );
    let mut missing_features: Vec<&String> = areas.iter().filter_map(|area| area.missing_feature.as_ref()).collect();
    missing_features.sort_unstable();
    missing_features.dedup();
    for missing_feature in missing_features {
        notes.extend(
            on(&|area| area.missing_feature.as_ref() == Some(missing_feature))
                .map(|processors| format!("On {processors}:\n  {missing_feature}")),
        );
    }
    notes
}
