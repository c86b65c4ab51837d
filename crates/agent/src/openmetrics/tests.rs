use std::collections::BTreeMap;
use std::time::SystemTime;

use proptest::prelude::*;
use proptest::sample::subsequence;

use super::parser::{Parsed, parse};
use super::*;

fn snapshot(points: Vec<Point>) -> Arc<Snapshot> {
    Arc::new(Snapshot {
        time: SystemTime::UNIX_EPOCH,
        begun: SystemTime::UNIX_EPOCH,
        driver_begun: SystemTime::UNIX_EPOCH,
        points,
    })
}

fn point(family: Family, labels: &[(&'static str, &str)], value: Value) -> Point {
    let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Point { family, labels, value }
}

/// Returns the value of a text, as the kind of number that was encoded.
fn read(text: &str, like: Value) -> Value {
    match like {
        Value::Integer(_) => Value::Integer(text.parse().unwrap()),
        Value::Real(_) => Value::Real(text.parse().unwrap()),
    }
}

/// `NaN` equals itself here: it has to come back too.
fn is_same(left: Value, right: Value) -> bool {
    match (left, right) {
        (Value::Real(left), Value::Real(right)) if left.is_nan() => right.is_nan(),
        (left, right) => left == right,
    }
}

fn compare(points: &[Point], families: &[Parsed]) -> Result<(), TestCaseError> {
    let mut expected: BTreeMap<Family, Vec<&Point>> = BTreeMap::new();
    for point in points {
        expected.entry(point.family).or_default().push(point);
    }
    prop_assert_eq!(expected.len(), families.len());
    for ((family, points), parsed) in expected.iter().zip(families) {
        prop_assert_eq!(&parsed.name, &family.prometheus());
        prop_assert_eq!(&parsed.help, family.help());
        prop_assert_eq!(&parsed.unit, family.unit().suffix());
        prop_assert_eq!(&parsed.kind, if family.kind() == Kind::Counter { "counter" } else { "gauge" });
        prop_assert_eq!(points.len(), parsed.samples.len());
        for (point, sample) in points.iter().zip(&parsed.samples) {
            prop_assert_eq!(&sample.name, &family.promql());
            let labels: Vec<_> = point.labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            prop_assert_eq!(&sample.labels, &labels);
            prop_assert!(is_same(point.value, read(&sample.value, point.value)), "{point:?} {sample:?}");
        }
    }
    Ok(())
}

fn value(kind: Kind) -> BoxedStrategy<Value> {
    let integer = prop_oneof![any::<u64>(), Just(u64::MAX), Just((1 << 53) + 1), 0..1_000_u64].prop_map(Value::Integer);
    match kind {
        Kind::Counter => {
            let real = prop_oneof![0.0..1e300_f64, Just(0.1), Just(f64::MIN_POSITIVE)].prop_map(Value::Real);
            prop_oneof![integer, real].boxed()
        }
        Kind::Gauge => prop_oneof![integer, any::<f64>().prop_map(Value::Real)].boxed(),
    }
}

fn text() -> impl Strategy<Value = String> {
    let hard = r#"(\\|"|\n|\r|\{|\}|,|=| |#|\\n|é|\PC){0,8}"#;
    prop_oneof![hard.prop_map(String::from), any::<String>(), Just("INST_RETIRED.ANY:u".to_owned())]
}

fn points_of(family: Family) -> impl Strategy<Value = Vec<Point>> {
    let labels = family.labels();
    let names = subsequence(labels, 0..=labels.len());
    let labels =
        names.prop_flat_map(|names| names.into_iter().map(|name| (Just(name), text())).collect::<Vec<_>>().boxed());
    let point = (labels, value(family.kind())).prop_map(move |(labels, value)| Point { family, labels, value });
    proptest::collection::vec(point, 1..4)
}

fn points() -> impl Strategy<Value = Vec<Point>> {
    subsequence(Family::ALL, 0..=Family::ALL.len())
        .prop_flat_map(|families| families.into_iter().map(points_of).collect::<Vec<_>>())
        .prop_map(|points| points.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_text_says_what_the_snapshot_says(points in points()) {
        let text = encode(&snapshot(points.clone())).unwrap();
        let families = parse(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        compare(&points, &families)?;
    }

    #[test]
    fn the_order_of_the_points_does_not_split_a_family(points in points().prop_shuffle()) {
        let text = encode(&snapshot(points)).unwrap();
        prop_assert!(parse(&text).is_ok(), "{text}");
    }
}

#[test]
fn a_snapshot_is_this_text() {
    let points = vec![
        point(Family::BuildInfo, &[("version", "0.1.0"), ("processor", "a \"b\" \\ c\nd")], Value::Integer(1)),
        point(Family::Events, &[("event", "cycles"), ("core_type", "P")], Value::Integer(u64::MAX)),
        point(Family::Events, &[("event", "cycles"), ("core_type", "E")], Value::Integer(7)),
        point(Family::EventEnabled, &[("event", "cycles")], Value::Real(0.5)),
        point(Family::ProfilesWaitingSize, &[], Value::Integer(4_096)),
    ];
    let expected = "\
# HELP halprof_build 1, with the versions of agent and driver, the profile interface and the processor
# TYPE halprof_build gauge
halprof_build{version=\"0.1.0\",processor=\"a \\\"b\\\" \\\\ c\\nd\"} 1
# HELP halprof_events Events that were counted while the event had a counter
# TYPE halprof_events counter
halprof_events_total{event=\"cycles\",core_type=\"P\"} 18446744073709551615
halprof_events_total{event=\"cycles\",core_type=\"E\"} 7
# HELP halprof_event_enabled_seconds Time in which the agent counted, summed over CPUs
# TYPE halprof_event_enabled_seconds counter
# UNIT halprof_event_enabled_seconds seconds
halprof_event_enabled_seconds_total{event=\"cycles\"} 0.5
# HELP halprof_profiles_waiting_size_bytes Size of the profiles that wait on the disk to be sent
# TYPE halprof_profiles_waiting_size_bytes gauge
# UNIT halprof_profiles_waiting_size_bytes bytes
halprof_profiles_waiting_size_bytes 4096
# EOF
";
    assert_eq!(encode(&snapshot(points)).unwrap(), expected);
    assert_eq!(encode(&snapshot(Vec::new())).unwrap(), "# EOF\n");
}

#[test]
fn a_counter_that_the_format_forbids_costs_only_itself() {
    for forbidden in [f64::NAN, -1.0, f64::NEG_INFINITY] {
        let points = vec![
            point(Family::AgentTime, &[], Value::Real(forbidden)),
            point(Family::ProfileSamples, &[], Value::Integer(2)),
        ];
        let families = parse(&encode(&snapshot(points)).unwrap()).unwrap();
        assert_eq!(families.len(), 1, "{forbidden}: {families:?}");
    }
}

#[test]
fn the_parser_refuses_what_the_format_forbids() {
    let cases = [
        ("# TYPE a gauge\na 1\n", "no `# EOF`"),
        ("a 1\n# EOF\n", "before the first family"),
        ("# TYPE a counter\na 1\n# EOF\n", "in the family"),
        ("# TYPE a gauge\na{b=\"\\x\"} 1\n# EOF\n", "unknown escape"),
        ("# TYPE a gauge\na{b=\"c\"d=\"e\"} 1\n# EOF\n", "no comma"),
        ("# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\na 1\n# EOF\n", "twice"),
        ("# TYPE a gauge\n# UNIT a seconds\na 1\n# EOF\n", "its unit"),
    ];
    for (text, expected) in cases {
        let error = parse(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}
