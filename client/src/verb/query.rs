//! `query`: shows one source.

use std::fmt::Write;

use halprof::core_types::{SourceOnType, qualified};
use halprof::errata;
use halprof::event::one;
use halprof::precise::sampled_by_ibs;
use halprof::source::SourceInfo;
use halprof::text::processors::ranges;
use halprof::text::support;
use protocol::Event;

use crate::cli::QueryArgs;
use system::connection;
use terminal::context::Context;
use terminal::format::{properties, table};
use user_error::Error;

pub fn run(args: &QueryArgs, context: &mut Context) -> Result<(), Error> {
    let connection = connection::open(context.system()?)?;
    let found = one(&args.source, &connection)?;
    let Event { source: number, core_type, .. } = found.event;
    let stands_for = Some(connection.sources()?.name_of(&found.event)).filter(|name| *name != found.name);
    let source = SourceInfo { name: found.name, ..SourceInfo::from(&connection.source(number, core_type)?) };
    let info = connection.info()?;
    let by_ibs = source.supported && sampled_by_ibs(&info, &source);
    let mut source = source.with_errata(&info, core_type);
    if core_type == 0 {
        source.core_types = connection.on_core_types(number)?;
    } else {
        source.name = qualified(&source.name, core_type);
    }
    if args.format.json {
        return context.json(&source);
    }
    let core_types = core_types(&source.core_types);
    let running = match source.running {
        0 => "no".to_owned(),
        1 => "on 1 processor".to_owned(),
        number => format!("on {number} processors"),
    };
    // A timer counts alike on all processors; for others the table has these rows.
    let is_timer = source.counters.is_empty() && source.support == 0;
    let mut rows = vec![
        (
            "Id",
            source.id.map_or_else(|| "none: the HAL has no number for it".to_owned(), |id| format!("{id} ({id:#04x})")),
        ),
        ("Name", source.name),
        ("Supported", source.reason.map_or_else(|| "yes".to_owned(), |reason| format!("no: {reason}"))),
        ("Interval", source.interval.to_string()),
        ("Min", source.minimum.to_string()),
        ("Max", source.maximum.to_string()),
        ("Select", source.select),
        ("Counters", counters(&source.counters, source.unlisted, is_timer)),
        ("Precise", if by_ibs { "by IBS".to_owned() } else { precise(&source.precise_counters) }),
        ("Running", running),
    ];
    if let Some(name) = stands_for {
        rows.insert(2, ("Stands for", name));
    }
    if !core_types.is_empty() && !is_timer {
        rows.retain(|(name, _)| !["Supported", "Counters", "Precise"].contains(name));
    }
    if !source.errata.is_empty() {
        rows.push(("Errata", errata::numbers(source.errata.iter())));
    }
    context.say(&properties(&rows))?;
    if core_types.is_empty() || is_timer { Ok(()) } else { context.say(&format!("\n{core_types}")) }
}

fn counters(numbers: &[u32], unlisted: bool, is_timer: bool) -> String {
    match numbers {
        [] if is_timer => "none: it is measured time".to_owned(),
        [] => "none".to_owned(),
        numbers if unlisted => {
            format!("any of {}, but unlisted: it may count nothing on some", ranges(numbers.iter().copied()))
        }
        numbers => format!("any of {}", ranges(numbers.iter().copied())),
    }
}

fn precise(numbers: &[u32]) -> String {
    match numbers {
        [] => "no".to_owned(),
        numbers => format!("on {}, if the processor has PEBS", ranges(numbers.iter().copied())),
    }
}

/// Formats what the source is on each core type; empty on a machine that is not a hybrid.
fn core_types(core_types: &[SourceOnType]) -> String {
    if core_types.is_empty() {
        return String::new();
    }
    let row = |one: &SourceOnType| {
        let counters = ranges(one.counters.iter().copied());
        let counters = if one.unlisted && one.supported { format!("{counters} (unlisted)") } else { counters };
        let precise =
            if one.precise_counters.is_empty() { "-".to_owned() } else { ranges(one.precise_counters.iter().copied()) };
        vec![one.name.clone(), support::word(one.support).to_owned(), counters, precise, one.running.to_string()]
    };
    let rows: Vec<Vec<String>> = core_types.iter().map(row).collect();
    let mut text = table(&["Core type", "Supported", "Counters", "Precise", "Running"], &["Running"], &rows);
    for one in core_types.iter().filter(|one| !one.supported) {
        let _ = write!(text, "\n\n{}: {}", one.name, support::sentence(one.support)); // a string takes everything
    }
    if core_types.iter().any(|one| one.unlisted && one.supported) {
        text.push_str("\n\nunlisted: it may count nothing on some of these counters");
    }
    text
}
