//! The export to a collector: every point of the snapshot arrives, and no bad collector does harm.

#![expect(
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use agent::config::{Header, Otlp as Config};
use agent::{Family, Kind, Latest, Otlp, Point, Snapshot, StartError, Value};
use http_server::{Reaction, Request, Server, answer, response, until, unused_address};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, NumberDataPoint};
use prost::Message;

const INTERVAL: Duration = Duration::from_millis(20);

/// What does not happen within this time hangs, however busy the machine is.
const HANG_LIMIT: Duration = Duration::from_mins(2);

fn config(address: SocketAddr) -> Config {
    Config {
        endpoint: format!("http://{address}/v1/metrics"),
        interval: INTERVAL,
        headers: vec![header("Authorization", "Bearer 123456")],
        attributes: vec![header("deployment.environment.name", "test"), header("host.name", "known")],
    }
}

fn header(name: &str, value: &str) -> Header {
    Header { name: name.to_owned(), value: value.to_owned() }
}

fn start(server: &Server, latest: &Latest, timeout: Duration) -> Otlp {
    Otlp::start_with(&config(server.address()), latest.clone(), timeout).unwrap()
}

fn at(seconds: u64, nanoseconds: u32) -> SystemTime {
    UNIX_EPOCH + Duration::new(seconds, nanoseconds)
}

/// Returns a snapshot with two points of each family that has labels, and one of each other.
fn snapshot(begun: SystemTime, time: SystemTime, first: u64) -> Snapshot {
    let mut points = Vec::new();
    for (number, family) in (first..).zip(Family::ALL) {
        let value = if number % 3 == 0 { Value::Real(number as f64 + 0.25) } else { Value::Integer(number) };
        let labels =
            |text: &'static str| family.labels().iter().map(move |label| (*label, format!("{text} {label} \u{e4}")));
        points.push(Point { family: *family, labels: labels("a").collect(), value });
        if !family.labels().is_empty() {
            points.push(Point { family: *family, labels: labels("b").take(1).collect(), value });
        }
    }
    Snapshot { time, begun: begun - Duration::from_secs(7), driver_begun: begun, points }
}

fn nanoseconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap().as_nanos().try_into().unwrap()
}

fn text(attributes: &[KeyValue]) -> Vec<(String, String)> {
    let value = |attribute: &KeyValue| match attribute.value.as_ref().unwrap().value.as_ref().unwrap() {
        any_value::Value::StringValue(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    attributes.iter().map(|attribute| (attribute.key.clone(), value(attribute))).collect()
}

/// Compares a request with the snapshot that it should contain, point by point.
fn compare(request: &Request, snapshot: &Snapshot) {
    assert_eq!(request.target, "POST /v1/metrics");
    assert_eq!(request.header("content-type"), "application/x-protobuf");
    assert_eq!(request.header("authorization"), "Bearer 123456");
    let request = ExportMetricsServiceRequest::decode(request.body.as_slice()).unwrap();
    let [resource] = request.resource_metrics.as_slice() else { panic!("{request:?}") };
    let attributes = text(&resource.resource.as_ref().unwrap().attributes);
    let attribute = |name: &str| {
        let values: Vec<_> = attributes.iter().filter(|(own, _)| own == name).map(|(_, value)| value).collect();
        assert_eq!(values.len(), 1, "{name}: {attributes:?}");
        values[0].as_str()
    };
    assert_eq!(attribute("service.name"), "halprof");
    assert_eq!(attribute("service.version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(attribute("service.instance.id").len(), 36);
    assert_eq!(attribute("host.name"), "known");
    assert_eq!(attribute("deployment.environment.name"), "test");
    assert!(!attribute("os.type").is_empty() && !attribute("host.arch").is_empty());
    let [scope] = resource.scope_metrics.as_slice() else { panic!("{resource:?}") };
    let mut received = Vec::new();
    for metric in &scope.metrics {
        let family = *Family::ALL.iter().find(|family| family.name() == metric.name).unwrap();
        assert_eq!((metric.unit.as_str(), metric.description.as_str()), (family.unit().ucum(), family.help()));
        let (points, start) = match (family.kind(), metric.data.as_ref().unwrap()) {
            (Kind::Counter, Data::Sum(sum)) => {
                assert!(sum.is_monotonic);
                assert_eq!(sum.aggregation_temporality(), AggregationTemporality::Cumulative);
                let begins_with_driver =
                    ["halprof.event", "halprof.driver."].iter().any(|of| family.name().starts_with(of));
                let begun = if begins_with_driver { snapshot.driver_begun } else { snapshot.begun };
                (&sum.data_points, nanoseconds(begun))
            }
            (Kind::Gauge, Data::Gauge(gauge)) => (&gauge.data_points, 0),
            other => panic!("{other:?}"),
        };
        for point in points {
            assert_eq!(point.start_time_unix_nano, start);
            assert_eq!(point.time_unix_nano, nanoseconds(snapshot.time));
            received.push((family, text(&point.attributes), value(point)));
        }
    }
    let owned = |point: &Point| point.labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let sent: Vec<_> = snapshot.points.iter().map(|point| (point.family, owned(point), point.value)).collect();
    assert_eq!(received, sent);
}

fn value(point: &NumberDataPoint) -> Value {
    match point.value.unwrap() {
        Number::AsInt(integer) => Value::Integer(integer.try_into().unwrap()),
        Number::AsDouble(real) => Value::Real(real),
    }
}

#[test]
fn every_point_arrives_exactly() {
    let server = Server::start(usize::MAX, |_| answer("200 OK", b""));
    let latest = Latest::default();
    let otlp = start(&server, &latest, Duration::from_secs(5));
    let small = snapshot(at(1_000, 7), at(2_000, 999_999_999), 0);
    latest.set(small.clone());
    compare(&server.request(), &small);
    // Beyond what a double has exactly, and to the end of what OTLP has.
    let mut large = snapshot(at(1_000, 7), at(2_060, 1), (1 << 53) + 1);
    large.points.last_mut().unwrap().value = Value::Integer(i64::MAX as u64);
    latest.set(large.clone());
    until("the large snapshot", || {
        let request = server.request();
        // The number is in the message byte by byte.
        let time = nanoseconds(large.time).to_le_bytes();
        let is_large = request.body.windows(time.len()).any(|window| window == time);
        if is_large {
            compare(&request, &large);
        }
        is_large
    });
    // The driver has restarted: the counters are less, and their start is later.
    let reset = snapshot(at(3_000, 0), at(3_010, 0), 1);
    latest.set(reset.clone());
    otlp.stop();
    compare(server.requests().last().unwrap(), &reset);
}

#[test]
fn nothing_is_sent_before_the_first_snapshot_and_the_last_is_sent_at_the_end() {
    let server = Server::start(usize::MAX, |_| answer("200 OK", b""));
    let latest = Latest::default();
    let config = Config { interval: Duration::from_hours(1), ..config(server.address()) };
    let otlp = Otlp::start(&config, latest.clone()).unwrap();
    let last = snapshot(at(1_000, 0), at(2_000, 0), 0);
    latest.set(last.clone());
    assert_eq!(server.requests().len(), 0);
    otlp.stop();
    compare(&server.request(), &last);
    Otlp::start(&config, Latest::default()).unwrap().stop();
    assert_eq!(server.requests().len(), 0);
}

fn partial(rejected_data_points: i64, error_message: &str) -> Vec<u8> {
    let partial = ExportMetricsPartialSuccess { rejected_data_points, error_message: error_message.to_owned() };
    ExportMetricsServiceResponse { partial_success: Some(partial) }.encode_to_vec()
}

/// The body of an error by the protocol: `google.rpc.Status` with a code and a message.
fn status() -> Vec<u8> {
    b"\x08\x03\x12\x0ftoo many labels".to_vec()
}

#[test]
fn what_a_bad_collector_does_is_a_failure_and_is_named() {
    type React = fn() -> Reaction;
    let cases: [(React, &str); 12] = [
        (|| answer("413 Content Too Large", b"less, please"), "413: less, please"),
        (|| answer("400 Bad Request", &status()), "400: too many labels"),
        (|| answer("503 Service Unavailable", b""), "503"),
        (|| answer("307 Temporary Redirect\r\nLocation: /elsewhere", b""), "307"),
        (|| answer("200 OK", &partial(3, "too old")), "3 points were rejected: the server answered 200: too old"),
        (|| answer("200 OK", b"<html>It works!</html>"), "not OTLP in protobuf: the server answered 200: <html>"),
        (|| answer("200 OK", &vec![0; 1 << 20]), "too long"),
        (|| Reaction::Bytes(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()), ""),
        (|| Reaction::Bytes(vec![]), ""),
        (|| Reaction::Hangs(vec![]), "timeout"),
        (|| Reaction::Hangs(response("200 OK", b"")[..20].to_vec()), "timeout"),
        (|| Reaction::Hangs(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n".to_vec()), "breaks off"),
    ];
    for (react, expected) in cases {
        // It recovers after two failures.
        let mut number = 0;
        let server = Server::start(usize::MAX, move |_| {
            number += 1;
            if number <= 2 { react() } else { answer("200 OK", &partial(0, "only a warning")) }
        });
        let latest = Latest::default();
        let sent = snapshot(at(1_000, 0), at(2_000, 0), 0);
        latest.set(sent.clone());
        // Where a server hangs, an answer in time may come too late on a busy machine: one more failure.
        let hangs = ["timeout", "breaks off"].contains(&expected);
        let otlp = start(&server, &latest, if hangs { Duration::from_millis(300) } else { HANG_LIMIT });
        for _ in 0..4 {
            compare(&server.request(), &sent);
        }
        assert!(otlp.failures() == 2 || hangs && otlp.failures() > 2, "{expected}: {}", otlp.failures());
        let error = otlp.last_error().unwrap();
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(!error.contains("123456") && error.len() < 500, "{error}");
        otlp.stop();
    }
}

#[test]
fn a_collector_that_is_not_there_is_tried_until_it_is() {
    let address = unused_address();
    let latest = Latest::default();
    let sent = snapshot(at(1_000, 0), at(2_000, 0), 0);
    latest.set(sent.clone());
    let otlp = Otlp::start(&config(address), latest).unwrap();
    until("failures", || otlp.failures() >= 3);
    assert!(otlp.last_error().is_some());
    let server = Server::start_at(address, usize::MAX, |_| answer("200 OK", b""));
    compare(&server.request(), &sent);
    otlp.stop();
}

#[test]
fn a_collector_without_tls_is_a_failure_of_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let latest = Latest::default();
    latest.set(snapshot(at(1_000, 0), at(2_000, 0), 0));
    let config = Config { endpoint: format!("https://{address}/v1/metrics"), ..config(address) };
    let otlp = Otlp::start(&config, latest).unwrap();
    let mut first = [0];
    let (mut stream, _) = listener.accept().unwrap();
    stream.read_exact(&mut first).unwrap();
    assert_eq!(first, [0x16], "no handshake");
    stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    until("a failure", || otlp.failures() > 0);
    let error = otlp.last_error().unwrap();
    assert!(error.contains("corrupt message"), "{error}");
}

#[test]
fn the_end_does_not_wait_longer_than_the_timeout() {
    // Its answer takes more than an hour.
    let react = |_: &_| Reaction::Slowly(response("200 OK", &vec![0; 100_000]), Duration::from_millis(50));
    let server = Server::start(usize::MAX, react);
    let latest = Latest::default();
    latest.set(snapshot(at(1_000, 0), at(2_000, 0), 0));
    let otlp = start(&server, &latest, Duration::from_millis(500));
    server.request();
    let begun = Instant::now();
    otlp.stop();
    assert!(begun.elapsed() < HANG_LIMIT, "{:?}", begun.elapsed());
}

#[test]
fn a_wrong_configuration_is_refused_at_the_start() {
    let right = config(unused_address());
    let cases = [
        (Config { endpoint: "collector:4317".to_owned(), ..right.clone() }, "Scheme"),
        (Config { endpoint: "http://[::1".to_owned(), ..right.clone() }, "Address"),
        (Config { headers: vec![header("a b", "c")], ..right.clone() }, "Header"),
    ];
    for (config, expected) in cases {
        let error: StartError = Otlp::start(&config, Latest::default()).unwrap_err();
        assert!(format!("{error:?}").starts_with(expected), "{error:?}");
    }
}
