//! Events as lines of CSV. `crates/events/facts/README.md` describes the columns.

use std::fmt::{Display, Write as _};

use thiserror::Error;

use crate::event::{Counters, Encoding, Event, EventExtra, Precision, Register};

/// The first line of a file.
pub const HEADER: &str = "name,event,umask,cmask,inv,edge,any,eq,counters,precise,precise_counters,msr,value,alone,\
                          deprecated,successor,period";

/// Number of columns.
const COLUMNS: usize = 17;

/// Why a line is no event.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RowError {
    /// The number of columns is wrong.
    #[error("{found} columns instead of {COLUMNS}")]
    Columns {
        /// How many there are.
        found: usize,
    },
    /// A column has an invalid value.
    #[error("column {column} is \"{value}\"")]
    Value {
        /// Name of the column.
        column: &'static str,
        /// What it holds.
        value: String,
    },
}

/// Parses a line.
///
/// # Errors
/// If a column is missing or has a value that it cannot have.
pub fn parse(line: &str) -> Result<Event, RowError> {
    let fields: Vec<&str> = line.split(',').collect();
    let found = fields.len();
    let fields: [&str; COLUMNS] = fields.try_into().map_err(|_| RowError::Columns { found })?;
    let [
        name,
        event,
        umask,
        cmask,
        inv,
        edge,
        any,
        eq,
        counters,
        precise,
        recording,
        msr,
        value,
        alone,
        old,
        next,
        period,
    ] = fields;
    if !is_name(name) {
        return Err(invalid("name", name));
    }
    let (events, umasks) = (list("event", event)?, list("umask", umask)?);
    let (first, first_umask) = match (events.first(), umasks.first()) {
        (Some(event), Some(umask)) => (*event, *umask),
        _ => return Err(invalid("event", event)),
    };
    if events.iter().any(|event| *event > 0xFFF) {
        return Err(invalid("event", event));
    }
    let extra = if msr.is_empty() {
        None
    } else {
        let msrs = list("msr", msr)?;
        let of = |list: &[u16], index: usize| list.get(index).or(list.first()).copied();
        let register = |(index, msr): (usize, &u16)| {
            Some(Register { msr: *msr, event: of(&events, index)?, umask: of(&umasks, index)? })
        };
        let registers = msrs.iter().enumerate().map(register).collect::<Option<Vec<_>>>();
        let value = u64::from_str_radix(value, 16).map_err(|_| invalid("value", value))?;
        Some(EventExtra { registers: registers.ok_or_else(|| invalid("msr", msr))?, value })
    };
    Ok(Event {
        name: name.to_owned(),
        encoding: Encoding {
            event: first,
            umask: first_umask,
            cmask: cmask.parse().map_err(|_| invalid("cmask", cmask))?,
            inv: flag("inv", inv)?,
            edge: flag("edge", edge)?,
            any: flag("any", any)?,
            eq: flag("eq", eq)?,
        },
        counters: self::counters("counters", counters)?,
        precision: match precise {
            "0" => Precision::Imprecise,
            "1" => Precision::Precise,
            "2" => Precision::OnlyPrecise,
            _ => return Err(invalid("precise", precise)),
        },
        precise_counters: self::counters("precise_counters", recording)?,
        extra,
        alone: flag("alone", alone)?,
        deprecated: flag("deprecated", old)?,
        successor: match next {
            "" => None,
            next if is_name(next) => Some(next.to_owned()),
            next => return Err(invalid("successor", next)),
        },
        period: period.parse().map_err(|_| invalid("period", period))?,
    })
}

/// Formats an event as a line without its end.
#[must_use]
pub fn format(event: &Event) -> String {
    let Event { name, encoding, extra, .. } = event;
    let registers = extra.as_ref().map_or(&[][..], |extra| &extra.registers);
    let joined = |of: fn(&Register) -> u16, alone: u16| {
        let mut values: Vec<u16> = registers.iter().map(of).collect();
        if values.is_empty() {
            values.push(alone);
        }
        if values.iter().all(|value| values.first() == Some(value)) {
            values.truncate(1);
        }
        join(&values)
    };
    let (events, umasks) = (joined(|one| one.event, encoding.event), joined(|one| one.umask, encoding.umask));
    let msrs: Vec<u16> = registers.iter().map(|one| one.msr).collect();
    let value = extra.as_ref().map_or_else(String::new, |extra| format!("{:X}", extra.value));
    let flags = [encoding.inv, encoding.edge, encoding.any, encoding.eq].map(u8::from);
    let [inv, edge, any, eq] = flags;
    format!(
        "{name},{events},{umasks},{},{inv},{edge},{any},{eq},{},{},{},{},{value},{},{},{},{}",
        encoding.cmask,
        counters_text(event.counters),
        event.precision as u8,
        counters_text(event.precise_counters),
        join(&msrs),
        u8::from(event.alone),
        u8::from(event.deprecated),
        event.successor.as_deref().unwrap_or_default(),
        event.period,
    )
}

/// Returns whether a text can be the name of an event. Other characters could corrupt a table or a terminal.
#[must_use]
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_NAME
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b':' | b'='))
}

/// Maximum length of a name, in bytes.
pub const MAX_NAME: usize = 120;

fn invalid(column: &'static str, value: impl Display) -> RowError {
    RowError::Value { column, value: value.to_string() }
}

fn flag(column: &'static str, text: &str) -> Result<bool, RowError> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(invalid(column, text)),
    }
}

/// Parses hexadecimal numbers with bars between them.
fn list(column: &'static str, text: &str) -> Result<Vec<u16>, RowError> {
    let number = |part: &str| u16::from_str_radix(part, 16).map_err(|_| invalid(column, text));
    text.split('|').map(number).collect()
}

fn join(values: &[u16]) -> String {
    let mut text = String::new();
    for value in values {
        let bar = if text.is_empty() { "" } else { "|" };
        let _ = write!(text, "{bar}{value:02X}"); // a string takes everything
    }
    text
}

/// Parses a set of counters: a mask of general ones, `any`, `fixedN`, or nothing.
fn counters(column: &'static str, text: &str) -> Result<Counters, RowError> {
    match (text, text.strip_prefix("fixed")) {
        ("", _) => Ok(Counters::NONE),
        ("any", _) => Ok(Counters::ANY),
        (_, Some(number)) => {
            let mask = number.parse().ok().and_then(|number| 1_u16.checked_shl(number));
            Ok(Counters { fixed_mask: mask.ok_or_else(|| invalid(column, text))?, ..Counters::NONE })
        }
        (mask, None) => {
            let general_mask = u16::from_str_radix(mask, 16).map_err(|_| invalid(column, text))?;
            Ok(Counters { general_mask, ..Counters::NONE })
        }
    }
}

fn counters_text(counters: Counters) -> String {
    match counters {
        Counters::NONE => String::new(),
        Counters::ANY => "any".to_owned(),
        Counters { general_mask: 0, fixed_mask } => format!("fixed{}", fixed_mask.trailing_zeros()),
        Counters { general_mask, .. } => format!("{general_mask:X}"),
    }
}
