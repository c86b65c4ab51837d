//! Snapshots in the text format of Prometheus, version 0.0.4, which everything that reads metrics of Prometheus
//! accepts: the Pushgateway, the textfile collector of node_exporter, `promtool check metrics`.
//!
//! It differs from [OpenMetrics](crate::openmetrics) in the name of a counter's family, which is that of its samples
//! here (OpenMetrics leaves out `_total`, so that the counters would have no type here); in the escapes of a
//! description; and in that it has neither units nor an end (Prometheus, "Exposition formats").

use std::fmt::{self, Write};

use crate::family::Kind;
use crate::openmetrics::families;
use crate::snapshot::{Point, Snapshot, Value};

/// The content type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns a snapshot as text, without the points that OpenMetrics leaves out.
///
/// # Errors
/// The encoder failed. It has no reason to while it writes into memory.
pub fn encode(snapshot: &Snapshot) -> Result<String, fmt::Error> {
    let mut text = String::new();
    for (family, points) in families(snapshot) {
        let (name, kind) = (
            family.promql(),
            match family.kind() {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            },
        );
        let help = family.help().replace('\\', "\\\\").replace('\n', "\\n");
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")?;
        for point in points {
            text.push_str(&name);
            write_labels(&mut text, point)?;
            write_value(&mut text, point.value)?;
        }
    }
    Ok(text)
}

fn write_labels(text: &mut String, point: &Point) -> fmt::Result {
    let mut before = '{';
    for (name, value) in &point.labels {
        let value = value.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"");
        write!(text, "{before}{name}=\"{value}\"")?;
        before = ',';
    }
    if before == ',' {
        text.push('}');
    }
    Ok(())
}

fn write_value(text: &mut String, value: Value) -> fmt::Result {
    match value {
        Value::Integer(value) => writeln!(text, " {value}"),
        Value::Real(value) if value.is_infinite() => writeln!(text, " {}Inf", if value > 0.0 { '+' } else { '-' }),
        Value::Real(value) => writeln!(text, " {value}"),
    }
}

#[cfg(test)]
mod tests;
