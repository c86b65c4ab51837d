//! Counts as lines of fields, in the columns that the help names.

use std::io::{self, Write};

use csv::Writer;

use super::blocks::{self, Block, Counted};
use super::unsupported::{NOT_SUPPORTED, Unsupported};
use super::{Interval, Stat};
use crate::cli::StatArgs;
use counts::movement;
use counts::requested_metrics::MetricValue;
use user_error::Error;

/// The unit of a count: perf has one here. A count that its counter missed has the mark.
const UNIT: &str = "";

/// Writes what was counted in all the time.
pub fn total(stat: &Stat, args: &StatArgs, separator: u8, out: &mut dyn Write) -> Result<(), Error> {
    let lead: &[String] = if args.interval.is_some() { &[format!("{:.9}", stat.elapsed_seconds)] } else { &[] };
    lines(lead, (&stat.events, &stat.unsupported, &stat.metrics), stat.blocks.as_deref(), args, separator, out)
}

/// Writes what was counted in an interval.
pub fn interval(interval: &Interval, args: &StatArgs, separator: u8, out: &mut dyn Write) -> Result<(), Error> {
    let lead = [format!("{:.9}", interval.time_seconds)];
    lines(
        &lead,
        (&interval.events, &interval.unsupported, &interval.metrics),
        interval.blocks.as_deref(),
        args,
        separator,
        out,
    )
}

fn lines(
    lead: &[String],
    (events, unsupported, metrics): (&[Counted], &[Unsupported], &[MetricValue]),
    blocks: Option<&[Block]>,
    args: &StatArgs,
    separator: u8,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut out = csv::WriterBuilder::new().delimiter(separator).flexible(true).from_writer(out);
    let Some(blocks) = blocks else {
        for row in events {
            line(lead.to_vec(), row, args, &mut out)?;
        }
        unsupported_lines(lead, unsupported, args, &mut out)?;
        metric_lines(lead, metrics, args, &mut out)?;
        return Ok(out.flush()?);
    };
    let lead_of = |block: &Block| {
        let processors = (!args.aggregation.per_cpu).then(|| block.processors.len().to_string());
        lead.iter().cloned().chain([block.name.clone()]).chain(processors).collect::<Vec<_>>()
    };
    for (block, row) in blocks::rows(events, blocks, args.aggregation.per_cpu) {
        line(lead_of(block), row, args, &mut out)?;
    }
    for block in blocks {
        unsupported_lines(&lead_of(block), unsupported, args, &mut out)?;
    }
    for block in blocks {
        metric_lines(&lead_of(block), &block.metrics, args, &mut out)?;
    }
    Ok(out.flush()?)
}

/// Writes the events that are not counted, with the fields of perf.
fn unsupported_lines(
    lead: &[String],
    events: &[Unsupported],
    args: &StatArgs,
    out: &mut Writer<impl Write>,
) -> Result<(), Error> {
    for event in events.iter().filter(|_| !args.metric_only) {
        let error = args.repeat.map(|_| "");
        let fields = [NOT_SUPPORTED, UNIT, &event.name].into_iter().chain(error).chain(["0", "100.00", "", ""]);
        out.write_record(lead.iter().map(String::as_str).chain(fields)).map_err(io::Error::from)?;
    }
    Ok(())
}

/// Writes the metrics that were asked for.
fn metric_lines(
    lead: &[String],
    metrics: &[MetricValue],
    args: &StatArgs,
    out: &mut Writer<impl Write>,
) -> Result<(), Error> {
    for metric in metrics {
        let value = metric.value.map_or_else(String::new, |value| format!("{value:.3}"));
        let unit = metric.unavailable.as_deref().unwrap_or(&metric.unit);
        let name = metric.label();
        let fields: &[&str] =
            if args.metric_only { &[&value, unit, &name] } else { &["", UNIT, &name, "", "", &value, unit] };
        out.write_record(lead.iter().map(String::as_str).chain(fields.iter().copied())).map_err(io::Error::from)?;
    }
    Ok(())
}

fn line(
    mut fields: Vec<String>,
    Counted { event, metric, repeated }: &Counted,
    args: &StatArgs,
    out: &mut Writer<impl Write>,
) -> Result<(), Error> {
    if args.metric_only {
        if !args.metrics.is_empty() {
            return Ok(()); // those that were asked for are enough
        }
        let Some(metric) = metric.as_ref().filter(|metric| !metric.is_rate()) else { return Ok(()) };
        fields.extend([format!("{:.3}", metric.value), metric.unit.clone(), event.label()]);
        return Ok(out.write_record(&fields).map_err(io::Error::from)?);
    }
    let (value, unit) =
        metric.as_ref().map_or_else(Default::default, |metric| (format!("{:.3}", metric.value), metric.unit.clone()));
    let running = event.processors.iter().map(|one| one.times.running).max().unwrap_or_default();
    let error = repeated.as_ref().map(|spread| match spread.standard_error {
        Some(error) if spread.mean > 0.0 => format!("{:.2}%", 100.0 * error / spread.mean),
        Some(_) | None => String::new(),
    });
    let mark = if event.missed.is_some() { movement::UNIT } else { UNIT };
    fields.extend([event.scaled.to_string(), mark.to_owned(), event.label()]);
    fields.extend(error);
    let running = running.saturating_mul(100); // nanoseconds
    fields.extend([running.to_string(), format!("{:.2}", event.percent_running), value, unit]);
    Ok(out.write_record(&fields).map_err(io::Error::from)?)
}
