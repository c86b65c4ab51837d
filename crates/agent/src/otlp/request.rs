//! A snapshot as a request of OTLP.
//!
//! The messages are built here and not by `opentelemetry_sdk`: its instruments take the start of a sum from their own
//! creation instead of from [`Snapshot::begun_of`], its `ResourceMetrics` has no public constructor, and the exporter
//! of `opentelemetry-otlp` only logs a partial success.

use std::time::{SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_semantic_conventions::resource as attribute;
use uuid::Uuid;

use crate::config::Header;
use crate::family::Kind;
use crate::host;
use crate::snapshot::{Point, Snapshot, Value};

/// Returns what the metrics are about: this process on this host, and the configured attributes, which take precedence.
pub(super) fn resource(configured: &[Header]) -> Resource {
    let known = [
        (attribute::SERVICE_NAME, "halprof".to_owned()),
        (attribute::SERVICE_VERSION, env!("CARGO_PKG_VERSION").to_owned()),
        (attribute::SERVICE_INSTANCE_ID, Uuid::new_v4().to_string()),
        (attribute::HOST_NAME, host::name()),
        (attribute::OS_TYPE, host::system().to_owned()),
        (attribute::HOST_ARCH, host::architecture().to_owned()),
    ];
    let known = known.into_iter().filter(|(name, _)| configured.iter().all(|header| header.name != *name));
    let configured = configured.iter().map(|header| key_value(&header.name, &header.value));
    let attributes = known.map(|(name, value)| key_value(name, &value)).chain(configured).collect();
    Resource { attributes, ..Resource::default() }
}

/// Returns the request that exports a snapshot.
pub(super) fn request(snapshot: &Snapshot, resource: Resource) -> ExportMetricsServiceRequest {
    let groups = snapshot.points.chunk_by(|left, right| left.family == right.family);
    let scope = InstrumentationScope {
        name: "halprof".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let metrics = groups.filter_map(|points| metric(snapshot, points)).collect();
    let scope_metrics = vec![ScopeMetrics { scope: Some(scope), metrics, schema_url: String::new() }];
    let metrics = ResourceMetrics {
        resource: Some(resource),
        scope_metrics,
        schema_url: opentelemetry_semantic_conventions::SCHEMA_URL.to_owned(),
    };
    ExportMetricsServiceRequest { resource_metrics: vec![metrics] }
}

/// Returns the metric of points that have the family of the first.
fn metric(snapshot: &Snapshot, points: &[Point]) -> Option<Metric> {
    let family = points.first()?.family;
    // A gauge has no begin.
    let begun = match family.kind() {
        Kind::Counter => nanoseconds(snapshot.begun_of(family)),
        Kind::Gauge => 0,
    };
    let data_points = points.iter().map(|point| data_point(point, begun, nanoseconds(snapshot.time))).collect();
    let data = match family.kind() {
        Kind::Counter => Data::Sum(Sum {
            data_points,
            aggregation_temporality: AggregationTemporality::Cumulative.into(),
            is_monotonic: true,
        }),
        Kind::Gauge => Data::Gauge(Gauge { data_points }),
    };
    Some(Metric {
        name: family.name().to_owned(),
        description: family.help().to_owned(),
        unit: family.unit().ucum().to_owned(),
        data: Some(data),
        ..Metric::default()
    })
}

fn data_point(point: &Point, start_time_unix_nano: u64, time_unix_nano: u64) -> NumberDataPoint {
    NumberDataPoint {
        attributes: point.labels.iter().map(|(name, value)| key_value(name, value)).collect(),
        start_time_unix_nano,
        time_unix_nano,
        value: Some(number(point.value)),
        ..NumberDataPoint::default()
    }
}

/// Returns a value as OTLP has it. Its integers have a sign, so those beyond `i64::MAX` are rounded.
#[expect(clippy::cast_precision_loss, reason = "OTLP has no type in which it could be exact")]
fn number(value: Value) -> Number {
    match value {
        Value::Integer(integer) => i64::try_from(integer).map_or(Number::AsDouble(integer as f64), Number::AsInt),
        Value::Real(real) => Number::AsDouble(real),
    }
}

fn key_value(name: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(any_value::Value::StringValue(value.to_owned())) };
    KeyValue { key: name.to_owned(), value: Some(value), ..KeyValue::default() }
}

/// Returns a time in nanoseconds since 1970; 0, which is "unknown" in OTLP, for what is earlier or does not fit.
fn nanoseconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).ok().and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_exact_where_the_format_has_them() {
        let cases = [
            (Value::Integer(0), Number::AsInt(0)),
            (Value::Integer((1 << 53) + 1), Number::AsInt((1 << 53) + 1)),
            (Value::Integer(i64::MAX as u64), Number::AsInt(i64::MAX)),
            (Value::Integer(1 << 63), Number::AsDouble(9_223_372_036_854_775_808.0)),
            (Value::Real(0.25), Number::AsDouble(0.25)),
        ];
        for (value, expected) in cases {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn configured_attributes_replace_known_ones() {
        let configured = Header { name: "service.name".to_owned(), value: "other".to_owned() };
        let attributes = resource(&[configured]).attributes;
        let named: Vec<_> = attributes.iter().filter(|attribute| attribute.key == "service.name").collect();
        assert_eq!(named, [&key_value("service.name", "other")]);
        for name in ["service.version", "service.instance.id", "host.name", "os.type", "host.arch"] {
            assert!(attributes.iter().any(|attribute| attribute.key == name), "{name}");
        }
    }
}
