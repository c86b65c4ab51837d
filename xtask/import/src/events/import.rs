//! Makes the facts from a folder with tables of events: `intel/*_core.csv` with `intel/map.csv`, and `amd/*.csv`.
//! Beside each table of Intel's is the file of perfmon from which it was made, `intel/*_core.json`: the table has no
//! errata and no descriptions.

use std::collections::{BTreeMap, BTreeSet};
use std::{fs, path::Path};

use anyhow::{Context, Result, bail, ensure};
use events::{Counters, Encoding, Event, EventExtra, Precision, Register, row};
use serde::Deserialize;

use super::{DESCRIPTIONS, ERRATA, ERRATA_HEADER, MAP, MAP_HEADER};
use crate::table::{AMD, INTEL, flag, hexadecimal, list, read, rows};

/// The columns of the map of Intel's processors.
const INTEL_MAP: &str = "vendor-family-model[-stepping],file,core_type,role,version";

/// The processors of AMD's tables, by the models of the Processor Programming References: Zen 2 has these models of
/// family 17h (Linux, arch/x86/kernel/cpu/amd.c, `bsp_init_amd`), family 18h is Hygon's Zen, and the events of Zen 6
/// are those of these models alone (Linux, tools/perf/pmu-events/arch/x86/mapfile.csv).
const AMD_MAP: &str = "\
AuthenticAMD,15,00,FF,FFFF,00,00,amd_fam15h
AuthenticAMD,17,00,2F,FFFF,00,00,amd_fam17h_zen1
AuthenticAMD,17,50,5F,FFFF,00,00,amd_fam17h_zen1
AuthenticAMD,17,30,4F,FFFF,00,00,amd_fam17h_zen2
AuthenticAMD,17,60,7F,FFFF,00,00,amd_fam17h_zen2
AuthenticAMD,17,80,8F,FFFF,00,00,amd_fam17h_zen2
AuthenticAMD,17,90,AF,FFFF,00,00,amd_fam17h_zen2
AuthenticAMD,19,00,0F,FFFF,00,00,amd_fam19h_zen3
AuthenticAMD,19,20,5F,FFFF,00,00,amd_fam19h_zen3
AuthenticAMD,19,10,1F,FFFF,00,00,amd_fam19h_zen4
AuthenticAMD,19,60,AF,FFFF,00,00,amd_fam19h_zen4
AuthenticAMD,1A,00,2F,FFFF,00,00,amd_fam1ah_zen5
AuthenticAMD,1A,40,4F,FFFF,00,00,amd_fam1ah_zen5
AuthenticAMD,1A,60,7F,FFFF,00,00,amd_fam1ah_zen5
AuthenticAMD,1A,50,57,FFFF,00,00,amd_fam1ah_zen6
HygonGenuine,18,00,FF,FFFF,00,00,amd_fam17h_zen1
";

/// Processors that Intel's map lacks. Bartlett Lake has the cores of Raptor Lake and no others (Linux,
/// `INTEL_BARTLETTLAKE`), whose events are those of Alder Lake.
const INTEL_MORE: &str = "GenuineIntel,6,D7,D7,FFFF,00,00,alderlake_goldencove\n";

/// The metrics of fixed counter 3: level 1, then level 2. The unit mask of the first.
const METRICS: [&str; 8] = [
    "RETIRING",
    "BAD_SPECULATION",
    "FRONTEND_BOUND",
    "BACKEND_BOUND",
    "HEAVY_OPERATIONS",
    "BRANCH_MISPREDICTS",
    "FETCH_LATENCY",
    "MEMORY_BOUND",
];
const LEVEL_1: usize = 4;
const FIRST_METRIC: u16 = 0x80;

/// Events of AMD's recommended metrics that the tables lack, with table, event, unit mask and CMASK: several unit masks
/// as one, and clocks without an op in any slot (Linux, tools/perf/pmu-events/arch/x86/amdzen4, amdzen5 and amdzen6).
const AMD_MORE: [(&str, &str, u16, u16, u8); 6] = [
    ("amd_fam19h_zen4", "OPS_SOURCE_DISPATCHED_FROM_DECODER.ALL", 0xAA, 0x07, 0),
    ("amd_fam19h_zen4", "DISPATCH_STALLS_1.FE_NO_OPS_CYCLES", 0x1A0, 0x01, 6),
    ("amd_fam1ah_zen5", "OPS_SOURCE_DISPATCHED_FROM_DECODER.ALL", 0xAA, 0x07, 0),
    ("amd_fam1ah_zen5", "DISPATCH_STALLS_1.FE_NO_OPS_CYCLES", 0x1A0, 0x01, 8),
    ("amd_fam1ah_zen5", "CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD", 0xD6, 0xA2, 0),
    ("amd_fam1ah_zen6", "DE_NO_DISPATCH_PER_SLOT.NO_OPS_FROM_FRONTEND_CYCLES", 0x1A0, 0x01, 8),
];

/// Level of the compression of the descriptions: they are compressed once, and read by all.
const LEVEL: i32 = 19;

/// Makes the facts.
pub fn run(folder: &Path, facts: &Path) -> Result<()> {
    let mut files = vec![(MAP.to_owned(), map(&read(&folder.join("intel/map.csv"))?)?)];
    let of_intel = |text: &str| rows(text, INTEL, intel);
    let of_amd = |text: &str| rows(text, AMD, amd);
    let (mut errata, mut descriptions) = (BTreeSet::new(), Descriptions::new());
    for (kind, parse) in [("intel", of_intel as fn(&str) -> Result<Vec<Event>>), ("amd", of_amd)] {
        for entry in fs::read_dir(folder.join(kind)).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let is_table = path.extension().is_some_and(|extension| extension == "csv") && !path.ends_with(MAP);
            let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_table) else { continue };
            let text = read(&path)?;
            let name = match kind {
                "amd" => format!("amd_{stem}"),
                _ => table_name(stem),
            };
            let mut events = parse(&text).with_context(|| path.display().to_string())?;
            if kind == "intel" {
                let path = path.with_extension("json");
                let known = known(&events, &read(&path)?).with_context(|| path.display().to_string())?;
                errata.extend(errata_lines(&name, &known).with_context(|| path.display().to_string())?);
                describe(known, &mut descriptions);
            }
            events.extend(metrics(&name, &events));
            events.extend(amd_more(&name));
            files.push((format!("{name}.csv"), table(events)));
        }
    }
    let lines: String = errata.into_iter().collect();
    files.push((ERRATA.to_owned(), format!("{ERRATA_HEADER}\n{lines}")));
    // Nothing is changed unless every file is right.
    for (name, text) in files {
        fs::write(facts.join(&name), text).with_context(|| name)?;
    }
    let compressed = zstd::bulk::compress(description_lines(descriptions).as_bytes(), LEVEL)?;
    fs::write(facts.join(DESCRIPTIONS), compressed).context(DESCRIPTIONS)
}

/// The descriptions of each event by its name, with the number of tables that have them.
type Descriptions = BTreeMap<String, BTreeMap<String, u32>>;

/// A file of perfmon.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EventFile {
    events: Vec<FileEvent>,
}

/// An event of such a file.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct FileEvent {
    event_name: String,
    errata: Option<String>,
    brief_description: Option<String>,
    programming_restriction: Option<String>,
}

/// Returns the events of a table from its file of perfmon.
pub fn known(events: &[Event], json: &str) -> Result<Vec<FileEvent>> {
    let file: EventFile = serde_json::from_str(json)?;
    for FileEvent { event_name, programming_restriction, .. } in &file.events {
        // What the tables have of registers does not say more.
        let restriction = programming_restriction.as_deref().unwrap_or("None");
        ensure!(matches!(restriction, "None" | "MSRIndex-UMask"), "{event_name} has the restriction {restriction}");
    }
    let is_known = |one: &FileEvent| events.iter().any(|event| event.name == one.event_name);
    Ok(file.events.into_iter().filter(is_known).collect())
}

/// Adds the descriptions of a table.
fn describe(events: Vec<FileEvent>, descriptions: &mut Descriptions) {
    for FileEvent { event_name, brief_description, .. } in events {
        let words: Vec<&str> = brief_description.as_deref().unwrap_or_default().split_whitespace().collect();
        if !words.is_empty() {
            *descriptions.entry(event_name).or_default().entry(words.join(" ")).or_default() += 1;
        }
    }
}

/// Returns a line for each event: its name, a tab, and the description that most tables have.
fn description_lines(descriptions: Descriptions) -> String {
    let most = |texts: BTreeMap<String, u32>| texts.into_iter().rev().max_by_key(|(_, number)| *number);
    let line = |(name, texts)| Some(format!("{name}\t{}\n", most(texts)?.0));
    descriptions.into_iter().filter_map(line).collect()
}

/// Returns a line for each event of a table that has errata in the file of perfmon; `null` and `0` are none.
pub fn errata_lines(table: &str, events: &[FileEvent]) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for FileEvent { event_name, errata, .. } in events {
        let numbers = errata.iter().flat_map(|list| list.split(',')).map(str::trim);
        let numbers: BTreeSet<&str> = numbers.filter(|number| !matches!(*number, "" | "0" | "null")).collect();
        let is_number = |number: &&str| number.bytes().all(|byte| byte.is_ascii_alphanumeric());
        ensure!(numbers.iter().all(is_number), "{event_name} has the errata {errata:?}");
        if !numbers.is_empty() {
            let numbers = numbers.into_iter().collect::<Vec<_>>().join("|");
            lines.push(format!("{table},{event_name},{numbers}\n"));
        }
    }
    Ok(lines)
}

/// Returns the name of a table of Intel's: that of its file in lower case without `_core`.
fn table_name(stem: &str) -> String {
    stem.strip_suffix("_core").unwrap_or(stem).to_lowercase()
}

/// Returns the metrics of fixed counter 3, which Intel's files of metrics use and its files of events lack, for a table
/// with the event of that counter (SDM Vol. 3B, "Performance Metrics"; pseudo-encodings: Linux,
/// arch/x86/events/perf_event.h, `INTEL_TD_METRIC_RETIRING`).
fn metrics(table: &str, events: &[Event]) -> Vec<Event> {
    let has_slots = events.iter().any(|event| event.name == "TOPDOWN.SLOTS" && event.is_fixed());
    let number = match table {
        _ if !has_slots => 0,
        "icelake" | "icelakex" | "tigerlake" | "rocketlake" => LEVEL_1,
        _ => METRICS.len(),
    };
    let slots = Counters { fixed_mask: 1 << 3, ..Counters::NONE };
    let metric = |(umask, name): (u16, &&str)| {
        let encoding = Encoding { event: 0, umask, ..Encoding::default() };
        Event::new(format!("PERF_METRICS.{name}"), encoding, slots)
    };
    (FIRST_METRIC..).zip(METRICS.iter().take(number)).map(metric).collect()
}

/// Returns the events of [`AMD_MORE`] for a table.
fn amd_more(table: &str) -> impl Iterator<Item = Event> {
    AMD_MORE.into_iter().filter(move |(of, ..)| *of == table).map(|(_, name, event, umask, cmask)| {
        Event::new(name.to_owned(), Encoding { event, umask, cmask, ..Encoding::default() }, Counters::ANY)
    })
}

/// Formats a table in the order of names. A deprecated event gets the event as its successor that has the same
/// encoding.
fn table(mut events: Vec<Event>) -> String {
    events.sort_by(|one, other| one.name.cmp(&other.name));
    let mut current: BTreeMap<(Encoding, Option<EventExtra>), String> = BTreeMap::new();
    for event in events.iter().filter(|event| !event.deprecated) {
        current.entry((event.encoding, event.extra.clone())).or_insert_with(|| event.name.clone());
    }
    let mut text = format!("{}\n", row::HEADER);
    for event in &mut events {
        if event.deprecated {
            event.successor = current.get(&(event.encoding, event.extra.clone())).cloned();
        }
        text.push_str(&row::format(event));
        text.push('\n');
    }
    text
}

fn intel(fields: [&str; 15]) -> Result<Event> {
    let [name, event, umask, cmask, inv, edge, any, counters, pebs, recording, msr, value, alone, deprecated, period] =
        fields;
    let (events, umasks) = (list(event)?, list(umask)?);
    let msrs: Vec<u16> = list(msr)?.into_iter().filter(|msr| *msr != 0).collect();
    let counters = self::counters(counters)?;
    let precision = match pebs {
        "0" => Precision::Imprecise,
        "1" => Precision::Precise,
        "2" => Precision::OnlyPrecise,
        other => bail!("PEBS is \"{other}\""),
    };
    let precise_counters = match (precision, recording) {
        (Precision::Imprecise, _) => Counters::NONE,
        // Files without the column are of processors whose first four counters record.
        (_, "") => Counters { general_mask: counters.general_mask & 0xF, ..Counters::NONE },
        (_, mask) => wide_counters(mask)?,
    };
    let first_of = |list: &[u16]| list.first().copied().context("an empty list");
    let registers = Register::of_lists(&msrs, &events, &umasks);
    let first = registers.first().copied();
    let extra = if registers.is_empty() { None } else { Some(EventExtra { registers, value: hexadecimal(value)? }) };
    let event = Event {
        name: name.to_owned(),
        encoding: Encoding {
            event: first.map_or_else(|| first_of(&events), |first| Ok(first.event))?,
            umask: first.map_or_else(|| first_of(&umasks), |first| Ok(first.umask))?,
            cmask: cmask.parse()?,
            inv: flag(inv)?,
            edge: flag(edge)?,
            any: flag(any)?,
            eq: false,
        },
        counters,
        precision,
        precise_counters,
        alone: flag(alone)? && extra.is_none(),
        extra,
        deprecated: flag(deprecated)?,
        successor: None,
        period: period.parse()?,
    };
    Ok(event.with_fixed_counter())
}

fn amd([name, sub, event, umask]: [&str; 4]) -> Result<Event> {
    let [event, umask] = [event, umask].map(|text| u16::try_from(hexadecimal(text)?).context("too large"));
    let name = if sub.is_empty() { name.to_owned() } else { format!("{name}.{sub}") };
    Ok(Event::new(name, Encoding { event: event?, umask: umask?, ..Encoding::default() }, Counters::ANY))
}

/// Returns the lines of the map: Intel's, and those of AMD.
fn map(text: &str) -> Result<String> {
    let rows = rows(text, INTEL_MAP, map_line).context("map")?;
    Ok(format!("{MAP_HEADER}\n{}{INTEL_MORE}{AMD_MAP}", rows.concat()))
}

fn map_line([processor, file, core_type, role, _]: [&str; 5]) -> Result<String> {
    // CPUID leaf 0x1A of the cores in the SoC tile (Linux, arch/x86/events/perf_event.h, INTEL_ATOM_CMT_NATIVE_ID).
    const LOW_POWER: u8 = 2;
    let parts: Vec<&str> = processor.splitn(4, '-').collect();
    let (vendor, family, model, steppings) = match parts[..] {
        [vendor, family, model] => (vendor, family, model, 0xFFFF),
        [vendor, family, model, set] => (vendor, family, model, stepping_mask(set)?),
        _ => bail!("no processor"),
    };
    let family: u16 = family.parse()?;
    let model = u8::from_str_radix(model, 16)?;
    let core_type = if core_type.is_empty() { 0 } else { hexadecimal(core_type)? };
    let native = if role == "LowPower_Atom" { LOW_POWER } else { 0 };
    let stem = file.strip_suffix(".csv").context("no file of CSV")?;
    Ok(format!(
        "{vendor},{family:X},{model:02X},{model:02X},{steppings:X},{core_type:02X},{native:02X},{}\n",
        table_name(stem)
    ))
}

/// Returns the mask of a set of steppings: `[01234]`.
fn stepping_mask(set: &str) -> Result<u16> {
    let digits = set.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).context("no set of steppings")?;
    digits.chars().try_fold(0, |mask, digit| Ok(mask | 1 << digit.to_digit(16).context("no stepping")?))
}

/// Parses `0xff` or `F0`, a fixed counter.
fn counters(text: &str) -> Result<Counters> {
    match text.strip_prefix('F') {
        Some(number) => Ok(Counters { fixed_mask: 1 << number.parse::<u8>()?.min(15), ..Counters::NONE }),
        None => wide_counters(text),
    }
}

/// Parses a mask with the fixed counters from bit 32 on.
fn wide_counters(text: &str) -> Result<Counters> {
    let mask = hexadecimal(text)?;
    ensure!(mask & 0xFFFF_0000_FFFF_0000 == 0, "counters {mask:#x}");
    let [low, _, fixed, _] = [0, 16, 32, 48].map(|shift| (mask >> shift & 0xFFFF) as u16);
    Ok(Counters { general_mask: low, fixed_mask: fixed })
}
