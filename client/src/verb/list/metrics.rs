//! `list metrics`, and the metrics that `list PATTERN` finds.

use std::fmt::Write as _;

use serde::Serialize;

use crate::cli::ListArgs;
use crate::machine::dump;
use crate::verb::encode::lines;
use counts::cpuid;
use counts::processor_metrics::{MetricInfo, all};
use terminal::context::Context;
use terminal::document::Document;
use user_error::Error;

/// The pattern that stands for all metrics.
pub const ALL: &str = "metrics";

/// Widths of the columns, which fill 80 characters with two spaces between them.
const NAME: usize = 30;
const CORES: usize = 12;
const UNIT: usize = 10;
const GROUPS: usize = 22;
const LINE: usize = 80;

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Metrics {
    metrics: Vec<MetricInfo>,
}

impl Document for Metrics {
    const SCHEMA: &'static str = "halprof.metrics/1";
}

/// Lists all metrics of the processor.
pub fn run(args: &ListArgs, context: &mut Context) -> Result<(), Error> {
    let imported = context.cache.load()?;
    let metrics = match &args.cpuid {
        Some(path) => all(&cpuid::of_dump(&dump::read(path, context.input)?), imported.as_ref(), &|_| true)?,
        None => all(&cpuid::this_processor(), imported.as_ref(), &|_| true)?,
    };
    if args.format.json {
        return context.json(&Metrics { metrics });
    }
    if metrics.is_empty() {
        return context.say("this client has no metrics for this processor");
    }
    context.say(&table(&metrics))
}

/// Formats metrics in 80 columns; a long name has a line of its own, and each description.
pub fn table(metrics: &[MetricInfo]) -> String {
    let line = |name: &str, cores: &str, unit: &str, groups: &str| {
        format!("{name:NAME$}  {cores:CORES$}  {unit:UNIT$}  {groups}").trim_end().to_owned()
    };
    let rule = "-";
    let mut text = line("Metric", "Cores", "Unit", "Groups");
    let rules = line(&rule.repeat(NAME), &rule.repeat(CORES), &rule.repeat(UNIT), &rule.repeat(GROUPS));
    let _ = write!(text, "\n{rules}"); // a string takes everything
    for metric in metrics {
        let unit: String = metric.unit.chars().take(UNIT).collect();
        let groups = lines(&metric.groups.join(" "), GROUPS);
        let mut groups = groups.iter().map(|line| line.chars().take(GROUPS).collect::<String>());
        let first = groups.next().unwrap_or_default();
        if metric.name.chars().count() > NAME {
            let _ = write!(text, "\n{}", metric.name.chars().take(LINE).collect::<String>());
            let _ = write!(text, "\n{}", line("", &metric.core_type, &unit, &first));
        } else {
            let _ = write!(text, "\n{}", line(&metric.name, &metric.core_type, &unit, &first));
        }
        for more in groups {
            let _ = write!(text, "\n{}", line("", "", "", &more));
        }
        for part in lines(&metric.description, LINE - 4) {
            let _ = write!(text, "\n    {}", part.chars().take(LINE - 4).collect::<String>());
        }
    }
    text
}
