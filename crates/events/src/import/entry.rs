//! An event of a JSON file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{Counters, Encoding, Event, EventExtra, Precision, Register};
use crate::row;

/// Maximum length of a description, in characters.
const MAX_TEXT: usize = 10_000;

/// The columns that [`parse`] reads, and those that change neither what an event counts nor on which counters.
const KNOWN: [&str; 38] = [
    "AnyThread",
    "BriefDescription",
    "Counter",
    "CounterMask",
    "CounterType",
    "Deprecated",
    "EdgeDetect",
    "Equal",
    "EqualityMask",
    "EventCode",
    "EventName",
    "Invert",
    "MSRIndex",
    "MSRValue",
    "PEBS",
    "PEBScounters",
    "Precise",
    "ProgrammingRestriction",
    "PublicDescription",
    "SampleAfterValue",
    "TakenAlone",
    "UMask",
    "UMaskExt",
    "Unit",
    // Which data a record has, and when it is written.
    "CollectPEBSRecord",
    "Data_LA",
    "L1_Hit_Indication",
    "PDIR_COUNTER",
    "PDISTCounter",
    "PRECISE_STORE",
    // The counters that one thread of a core has more without the other.
    "CounterHTOff",
    // Kinds of events; `MSRIndex` has their registers.
    "ELLC",
    "Errata",
    "Experimental",
    "Offcore",
    "Offmodule",
    "PerPkg",
    "Speculative",
];

/// Columns of Linux that select something in other units than cores.
const OF_OTHER_UNITS: [&str; 12] = [
    "ConfigCode",
    "EnAllCores",
    "EnAllSlices",
    "EventidCode",
    "ExtSel",
    "FCMask",
    "Filter",
    "NodeType",
    "PortMask",
    "RdWrMask",
    "SliceId",
    "ThreadMask",
];

/// Iterates over the columns of an event that are not known.
pub fn unknown_columns(value: &Value) -> impl Iterator<Item = &str> {
    let columns = value.as_object().into_iter().flatten().map(|(column, _)| column.as_str());
    let is_known = |column: &&str| KNOWN.contains(column) || OF_OTHER_UNITS.contains(column);
    columns.filter(move |column| !is_known(column))
}

/// An event with its descriptions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedEvent {
    /// The event, as a [row].
    pub row: String,
    /// Description in a sentence.
    pub brief: String,
    /// Description at length; may be empty.
    pub description: String,
}

impl ImportedEvent {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.row.split(',').next().unwrap_or_default()
    }

    /// Returns the event; `None` if the stored row is damaged.
    #[must_use]
    pub fn event(&self) -> Option<Event> {
        row::parse(&self.row).ok()
    }
}

/// Parses an event. An error says which field has which value.
pub fn parse(value: &Value) -> Result<ImportedEvent, String> {
    let text = |key: &str| match value.get(key) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.trim()),
        Some(other) => Err(format!("{key} is {}", shortened(&other.to_string()))),
    };
    let numbers = |key: &str| -> Result<Vec<u64>, String> {
        let list = text(key)?;
        let number_of = |part: &str| number(part).map_err(|()| format!("{key} is \"{}\"", shortened(list)));
        list.split([',', '|']).filter(|part| !part.trim().is_empty()).map(|part| number_of(part.trim())).collect()
    };
    let one = |key: &str| -> Result<u64, String> { Ok(numbers(key)?.first().copied().unwrap_or_default()) };
    let words = |key: &str| -> Result<Vec<u16>, String> {
        let word = |number: u64| u16::try_from(number).map_err(|_| format!("{key} is {number:#x}"));
        numbers(key)?.into_iter().map(word).collect()
    };
    for column in OF_OTHER_UNITS {
        if !matches!(text(column)?, "" | "0" | "0x0" | "0x00") {
            return Err(format!("{column} is \"{}\", which cores do not have", shortened(text(column)?)));
        }
    }
    if !matches!(text("CounterType")?, "" | "PGMABLE" | "FIXED") {
        return Err(format!("CounterType is \"{}\"", shortened(text("CounterType")?)));
    }
    // The n-th unit mask is for the n-th register, and, with the last one, on the n-th counter alone.
    let is_by_counter = match text("ProgrammingRestriction")? {
        "" | "None" | "MSRIndex-UMask" => false,
        "MSRIndex-UMask-Counter" => true,
        other => return Err(format!("ProgrammingRestriction is \"{}\"", shortened(other))),
    };
    let name = text("EventName")?;
    if !row::is_name(name) {
        return Err("the name has other characters than letters, digits and _.-:=".to_owned());
    }
    let (events, mut umasks) = (words("EventCode")?, words("UMask")?);
    let extension = one("UMaskExt")?;
    if extension > 0xFF {
        return Err(format!("UMaskExt is {extension:#x}"));
    }
    for umask in &mut umasks {
        *umask |= u16::try_from(extension).unwrap_or_default() << 8;
    }
    if events.iter().any(|event| *event > 0xFFF) {
        return Err(format!("EventCode is {}", shortened(text("EventCode")?)));
    }
    let first = |list: &[u16]| list.first().copied().unwrap_or_default();
    let msrs: Vec<u16> = words("MSRIndex")?.into_iter().filter(|msr| *msr != 0).collect();
    let mut registers = Register::of_lists(&msrs, &events, &umasks);
    if is_by_counter {
        registers.truncate(1);
    }
    let flag = |key: &str| -> Result<bool, String> {
        match one(key)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!("{key} is {other}")),
        }
    };
    let precision = match one("PEBS")?.max(one("Precise")?) {
        0 => Precision::Imprecise,
        1 => Precision::Precise,
        2 => Precision::OnlyPrecise,
        other => return Err(format!("PEBS is {other}")),
    };
    let counters_of = |key: &str| {
        let list = text(key)?;
        counters(key, if is_by_counter { list.split(',').next().unwrap_or_default() } else { list })
    };
    let (counters, recording) = (counters_of("Counter")?, counters_of("PEBScounters")?);
    let event = Event {
        name: name.to_owned(),
        encoding: Encoding {
            event: registers.first().map_or(first(&events), |register| register.event),
            umask: registers.first().map_or(first(&umasks), |register| register.umask),
            cmask: u8::try_from(one("CounterMask")?).map_err(|_| "CounterMask is above 255".to_owned())?,
            inv: flag("Invert")?,
            edge: flag("EdgeDetect")?,
            any: flag("AnyThread")?,
            // perfmon's files have the one key or the other.
            eq: flag("EqualityMask")? || flag("Equal")?,
        },
        counters: counters.unwrap_or(Counters::ANY),
        precision,
        precise_counters: match (precision, recording, counters) {
            (Precision::Imprecise, ..) => Counters::NONE,
            (_, Some(recording), _) => recording,
            (_, None, counting) => {
                let mask = counting.unwrap_or(Counters::ANY).general_mask & 0xF;
                Counters { general_mask: mask, ..Counters::NONE }
            }
        },
        alone: flag("TakenAlone")? && registers.is_empty(),
        extra: if registers.is_empty() { None } else { Some(EventExtra { registers, value: one("MSRValue")? }) },
        deprecated: flag("Deprecated")?,
        successor: None,
        period: one("SampleAfterValue")?,
    };
    let brief = plain(text("BriefDescription")?);
    let description = plain(text("PublicDescription")?);
    let description = if description == brief { String::new() } else { description };
    Ok(ImportedEvent { row: row::format(&event.with_fixed_counter()), brief, description })
}

/// Parses a number, in hexadecimal behind `0x`.
pub fn number(text: &str) -> Result<u64, ()> {
    let text = text.trim().to_ascii_lowercase();
    let (digits, radix) = text.strip_prefix("0x").map_or((text.as_str(), 10), |digits| (digits, 16));
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_plain { u64::from_str_radix(digits, radix).map_err(|_| ()) } else { Err(()) }
}

/// Parses `0,1,2,3`, `Fixed counter 1`, or numbers from 32 on for fixed counters. Nothing is any counter.
fn counters(key: &str, text: &str) -> Result<Option<Counters>, String> {
    let invalid = || format!("{key} is \"{}\"", shortened(text));
    if text.is_empty() {
        return Ok(None);
    }
    let lower = text.to_ascii_lowercase();
    if let Some(number) = lower.strip_prefix("fixed counter") {
        let number: u32 = number.trim().parse().map_err(|_| invalid())?;
        let fixed_mask = 1_u16.checked_shl(number).ok_or_else(invalid)?;
        return Ok(Some(Counters { fixed_mask, ..Counters::NONE }));
    }
    let mut counters = Counters::NONE;
    for part in text.split(',') {
        let number: u32 = part.trim().parse().map_err(|_| invalid())?;
        match number {
            0..16 => counters.general_mask |= 1 << number,
            32..48 => counters.fixed_mask |= 1 << (number - 32),
            _ => return Err(invalid()),
        }
    }
    // A row has general counters or one fixed counter.
    if counters.general_mask != 0 {
        counters.fixed_mask = 0;
    }
    Ok(Some(counters))
}

/// Removes what a terminal could execute, and limits the length.
fn plain(text: &str) -> String {
    let letters = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let text: String = letters.take(MAX_TEXT).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn shortened(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_default).collect()
}
