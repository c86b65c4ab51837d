//! `interval`: sets the interval of a source.

use std::ops::RangeInclusive;

use halprof::event::one;
use pmu::Source;
use protocol::Event;
use serde::Serialize;

use crate::cli::IntervalArgs;
use system::connection;
use terminal::context::Context;
use terminal::document::Document;
use user_error::Error;
use user_error::event_error::EventError;

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Answer {
    /// KPROFILE_SOURCE.
    id: Option<u32>,
    name: String,
    requested: u32,
    interval: u32,
    previous_interval: u32,
    clamped: bool,
    minimum: u32,
    maximum: u32,
}

impl Document for Answer {
    const SCHEMA: &'static str = "halprof.interval/1";
}

pub fn run(args: &IntervalArgs, context: &mut Context) -> Result<(), Error> {
    let connection = connection::open(context.system()?)?;
    let sources = connection.sources()?;
    let event = one(&args.source, &connection)?.event;
    let plain = sources.name_of(&Event { core_type: 0, ..event });
    if args.source.core_type() != 0 {
        let (name, plain) = (args.source.to_string(), plain);
        return Err(EventError::CommonInterval { name, plain }.into());
    }
    let record = connection.set_interval(event.source, args.interval)?;
    let answer = Answer {
        id: Source(event.source).number(),
        name: plain,
        requested: args.interval,
        interval: record.interval,
        previous_interval: record.previous_interval,
        clamped: record.interval != args.interval,
        minimum: record.minimum,
        maximum: record.maximum,
    };
    if args.format.json {
        return context.json(&answer);
    }
    let Answer { name, requested, interval, previous_interval, minimum, maximum, .. } = &answer;
    context.say(&format!("{name}: interval {interval}, before {previous_interval}{}", unit(event.source)))?;
    if answer.clamped {
        context.say(&clamped(&answer.name, event.source, (*requested, *interval), *minimum..=*maximum))?;
    }
    Ok(())
}

/// Returns the line that says why another interval is used than the one asked for.
pub fn clamped(name: &str, source: u64, (asked, used): (u32, u32), range: RangeInclusive<u32>) -> String {
    let (minimum, maximum) = (range.start(), range.end());
    let why = match asked {
        // The only other reason.
        asked if range.contains(&asked) => "is no multiple of a millisecond".to_owned(),
        _ => format!("is out of the range from {minimum} to {maximum}"),
    };
    format!("{name}: {asked} {why}{}; {used} is used", unit(source))
}

/// Returns the unit of an interval, if it is not the event.
fn unit(source: u64) -> &'static str {
    if source == Source::TIME.0 { " (units of 100 ns)" } else { "" }
}
