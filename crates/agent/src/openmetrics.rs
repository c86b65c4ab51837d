//! Snapshots as OpenMetrics 1.0 text.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry;

use crate::family::{Family, Kind, Unit};
use crate::snapshot::{Point, Snapshot, Value};

/// The content type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns a snapshot as text. Families without points are left out. So are counters that are negative or `NaN`: the
/// format forbids them, and a scraper that finds one may drop the whole text.
///
/// # Errors
/// The encoder failed. It has no reason to while it writes into memory.
pub fn encode(snapshot: &Arc<Snapshot>) -> Result<String, fmt::Error> {
    let mut registry = registry::Registry::default();
    registry.register_collector(Box::new(Points(Arc::clone(snapshot))));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Points(Arc<Snapshot>);

impl Collector for Points {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for (family, points) in families(&self.0) {
            encode_family(&mut encoder, family, &points)?;
        }
        Ok(())
    }
}

/// Returns the families with their points that a text shows: each family once, and no counter that is negative or
/// `NaN`.
pub(crate) fn families(snapshot: &Snapshot) -> Vec<(Family, Vec<&Point>)> {
    let mut points: Vec<&Point> = snapshot.points.iter().filter(|point| is_valid(point)).collect();
    // The formats forbid a family in two places. Sorting is free if the snapshot keeps its promise.
    points.sort_by_key(|point| point.family);
    let families = points.chunk_by(|left, right| left.family == right.family);
    families.filter_map(|points| Some((points.first()?.family, points.to_vec()))).collect()
}

fn is_valid(point: &Point) -> bool {
    match (point.family.kind(), point.value) {
        (Kind::Counter, Value::Real(value)) => value >= 0.0,
        (Kind::Counter, Value::Integer(_)) | (Kind::Gauge, _) => true,
    }
}

fn encode_family(encoder: &mut DescriptorEncoder, family: Family, points: &[&Point]) -> fmt::Result {
    let (unit, kind) = (unit(family.unit()), metric_type(family.kind()));
    // The encoder appends the unit to the name.
    let full = family.prometheus();
    let name = unit.as_ref().and_then(|unit| full.strip_suffix(unit.as_str())?.strip_suffix('_')).unwrap_or(&full);
    let mut metric = encoder.encode_descriptor(name, &escape(family.help()), unit.as_ref(), kind)?;
    for point in points {
        encode_point(metric.encode_family(&point.labels)?, point)?;
    }
    Ok(())
}

fn encode_point(mut encoder: MetricEncoder, point: &Point) -> fmt::Result {
    let none: Option<&Exemplar<NoLabelSet, f64>> = None;
    match (point.family.kind(), point.value) {
        (Kind::Counter, Value::Integer(value)) => encoder.encode_counter(&value, none),
        (Kind::Counter, Value::Real(value)) => encoder.encode_counter(&value, none),
        (Kind::Gauge, Value::Integer(value)) => encoder.encode_gauge(&value),
        (Kind::Gauge, Value::Real(value)) => encoder.encode_gauge(&value),
    }
}

const fn metric_type(kind: Kind) -> MetricType {
    match kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
    }
}

const fn unit(unit: Unit) -> Option<registry::Unit> {
    match unit {
        Unit::None => None,
        Unit::Seconds => Some(registry::Unit::Seconds),
        Unit::Bytes => Some(registry::Unit::Bytes),
    }
}

/// Returns a description with the escapes of the format. The encoder escapes only the values of labels.
fn escape(help: &str) -> String {
    help.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"")
}

#[cfg(test)]
mod parser;
#[cfg(test)]
mod tests;
