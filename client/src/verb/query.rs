//! `query`: shows one source.

use super::context::Context;
use crate::cli::QueryArgs;
use crate::connection::Connection;
use crate::errata;
use crate::error::Error;
use crate::format::properties;
use crate::processors::ranges;
use crate::source::SourceInfo;

pub fn run(args: &QueryArgs, context: &mut Context) -> Result<(), Error> {
    let connection = Connection::open(context.system()?)?;
    let id = connection.sources()?.find(&args.source)?.id;
    let source = SourceInfo::from(&connection.source(id)?).with_errata(&connection.info()?);
    if args.format.json {
        return context.json(&source);
    }
    let counters = match source.counters.as_slice() {
        [] => "none: it is measured time".to_owned(),
        numbers if source.unlisted => {
            format!("any of {}, but unlisted: it may count nothing on some", ranges(numbers.iter().copied()))
        }
        numbers => format!("any of {}", ranges(numbers.iter().copied())),
    };
    let running = match source.running {
        0 => "no".to_owned(),
        1 => "on 1 processor".to_owned(),
        number => format!("on {number} processors"),
    };
    let mut rows = vec![
        ("Id", format!("{} ({:#04x})", source.id, source.id)),
        ("Name", source.name),
        ("Supported", source.reason.map_or_else(|| "yes".to_owned(), |reason| format!("no: {reason}"))),
        ("Interval", source.interval.to_string()),
        ("Min", source.minimum.to_string()),
        ("Max", source.maximum.to_string()),
        ("Select", source.select),
        ("Counters", counters),
        ("Running", running),
    ];
    if !source.errata.is_empty() {
        rows.push(("Errata", errata::numbers(source.errata.iter())));
    }
    context.say(&properties(&rows))
}
