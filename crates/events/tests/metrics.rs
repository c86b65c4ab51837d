//! Metrics of files: their parts, their values, and what is wrong with malformed ones.
#![cfg(test)]

use events::metric::{Metric, MetricSet, Values};
use serde_json::{Value, json};

fn parse(text: &str) -> Result<Metric, String> {
    Metric::parse(&serde_json::from_str::<Value>(text).unwrap()).map_err(|error| error.to_string())
}

/// Makes a set of metrics of Linux's form.
fn set(metrics: &[(&str, &str)]) -> MetricSet {
    let parse =
        |(name, text): &(&str, &str)| Metric::parse(&json!({ "MetricName": name, "MetricExpr": text })).unwrap();
    MetricSet::new(metrics.iter().map(parse).collect())
}

/// Returns the values, or the reasons, of the metrics of a set.
fn results(set: &MetricSet, values: &Values) -> Vec<String> {
    let text = |value: Result<f64, _>| value.map_or_else(|reason| format!("n/a: {reason}"), |value| value.to_string());
    set.evaluate(values).into_iter().map(text).collect()
}

fn values(known: &[(&str, f64)]) -> Values {
    let mut values = Values::default();
    for (name, value) in known {
        values.set(name, *value);
    }
    values
}

#[test]
fn a_metric_of_intel_has_aliases_and_constants() {
    let metric = parse(
        r#"{ "MetricName": "Ports", "MetricGroup": "TopdownL1; Ports,Cor", "UnitOfMeasure": "percent",
             "BriefDescription": "Ports in use.", "Formula": "100 * a / (b / 2 if smt_on else b) + w * c",
             "Events": [{ "Name": "UOPS.P0:c1", "Alias": "a" }, { "Name": "CLK", "Alias": "b" }],
             "Constants": [{ "Name": "HYPERTHREADING_ON", "Alias": "smt_on" }, { "Name": "20", "Alias": "w" },
                           { "Name": "system.sockets[0].cpus.count * system.socket_count", "Alias": "c" }] }"#,
    )
    .unwrap();
    assert_eq!(metric.groups, ["TopdownL1", "Ports", "Cor"]);
    assert_eq!((metric.unit.as_str(), metric.brief.as_str()), ("%", "Ports in use."));
    let inputs = ["UOPS.P0:c1", "CLK", "HYPERTHREADING_ON", "system.sockets", "system.socket_count"];
    assert_eq!(metric.inputs(), inputs);
    let set = MetricSet::new(vec![metric]);
    let mut known = values(&[("uops.p0:C1", 5.0), ("CLK", 10.0), ("system.sockets[0].cpus.count", 4.0)]);
    assert_eq!(results(&set, &known), ["n/a: HYPERTHREADING_ON has no value"]);
    known.set("hyperthreading_on", 1.0);
    known.set("SOCKET_COUNT", 2.0);
    assert_eq!(results(&set, &known), ["260"], "100 * 5 / 5 + 20 * 8");
    known.set("#SMT_on", 0.0);
    assert_eq!(results(&set, &known), ["260"], "the name itself goes before its synonyms");
    known.set("HYPERTHREADING_ON", 0.0);
    assert_eq!(results(&set, &known), ["210"]);
    known.set_unavailable("CLK", "its group did not run");
    assert_eq!(results(&set, &known), ["n/a: CLK was not counted: its group did not run"]);
}

#[test]
fn a_metric_of_linux_has_a_scale_and_uses_others() {
    for (text, scale, unit) in [
        ("100%", 100.0, "%"),
        ("1GHz", 1.0, "GHz"),
        ("6.1e-5MiB", 6.1e-5, "MiB"),
        ("1e3 ns", 1e3, "ns"),
        ("1per_instr", 1.0, "per_instr"),
        ("2elements", 2.0, "elements"),
        ("7", 7.0, ""),
    ] {
        let metric = Metric::parse(&json!({ "MetricName": "m", "MetricExpr": "1", "ScaleUnit": text })).unwrap();
        assert!((metric.scale - scale).abs() < 1e-12 && metric.unit == unit, "{text}: {metric:?}");
    }
    let set = set(&[("slots", "4 * clk"), ("bound", "1 - retiring - a / Slots"), ("retiring", "b / slots")]);
    assert_eq!(set.check(), Ok(()));
    assert_eq!(results(&set, &values(&[("clk", 25.0), ("a", 10.0), ("b", 40.0)])), ["100", "0.5", "0.4"]);
    assert_eq!(
        results(&set, &values(&[("clk", 0.0), ("a", 10.0), ("b", 40.0)])),
        ["0", "n/a: retiring: division by zero in column 3", "n/a: division by zero in column 3"]
    );
}

#[test]
fn a_metric_can_have_the_name_of_an_event_and_cores_have_their_own() {
    let on = |cores: &str, name: &str, text: &str| {
        Metric::parse(&json!({ "MetricName": name, "MetricExpr": text, "Unit": cores })).unwrap()
    };
    let metrics = MetricSet::new(vec![
        on("cpu_core", "TSC", "TSC / 2"),
        on("cpu_core", "ipc", "1 * width"),
        on("cpu_atom", "ipc", "1 * width"),
        on("cpu_core", "width", "6"),
        on("cpu_atom", "width", "5"),
    ]);
    assert_eq!(metrics.check(), Ok(()));
    assert_eq!(results(&metrics, &values(&[("tsc", 8.0)])), ["4", "6", "5", "6", "5"]);
}

#[test]
fn recursion_is_found_and_named_and_the_others_have_values() {
    let circle = set(&[("ok", "a + 1"), ("in", "x"), ("x", "y + 1"), ("y", "z"), ("z", "X * 2"), ("far", "a")]);
    let (index, error) = circle.check().unwrap_err();
    assert_eq!((index, error.to_string().as_str()), (1, "recursion: x -> y -> z -> x"));
    assert_eq!(
        results(&circle, &values(&[("a", 1.0)])),
        [
            "2",
            "n/a: recursion: x -> y -> z -> x",
            "n/a: recursion: x -> y -> z -> x",
            "n/a: recursion: y -> z -> x -> y",
            "n/a: recursion: z -> x -> y -> z",
            "1"
        ]
    );
    let names: Vec<String> = (0..100).map(|number| format!("m{number}")).collect();
    let uses: Vec<String> = (1..=100).map(|number| format!("m{number}")).collect();
    let long: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(uses.iter().map(String::as_str)).collect();
    let long = set(&long);
    assert_eq!(long.check().unwrap_err().1.to_string(), "m0 uses metrics through too many others");
    let found = results(&long, &values(&[("m100", 3.0)]));
    assert_eq!(found[0], "n/a: m0 uses metrics through too many others");
    assert_eq!(found[99], "3");
}

#[test]
fn metrics_that_use_others_twice_each_take_no_exponential_time() {
    let names: Vec<String> = (0..30).map(|number| format!("m{number}")).collect();
    let texts: Vec<String> = (1..=30).map(|number| format!("m{number} + m{number}")).collect();
    let pairs: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    let set = set(&pairs);
    assert_eq!(set.check(), Ok(()));
    assert_eq!(results(&set, &values(&[("m30", 1.0)]))[0], f64::from(1_u32 << 30).to_string());
}

#[test]
fn each_malformed_metric_has_a_cause() {
    for (text, expected) in [
        (r"{}", "MetricName is \"\""),
        (r"7", "MetricName is \"\""),
        (r#"{ "MetricName": 7 }"#, "MetricName is no text"),
        (r#"{ "MetricName": ["a"], "Formula": "a" }"#, "MetricName is no text"),
        (r#"{ "MetricName": " ", "Formula": "a" }"#, "MetricName is \"\""),
        (r#"{ "MetricName": "a\u001b[31m", "Formula": "a" }"#, "MetricName is \"a\\u{1b}[31m\""),
        (r#"{ "MetricName": "m" }"#, "it has neither Formula nor MetricExpr"),
        (r#"{ "MetricName": "m", "Formula": "" }"#, "it has neither Formula nor MetricExpr"),
        (r#"{ "MetricName": "m", "Formula": 7 }"#, "Formula is no text"),
        (r#"{ "MetricName": "m", "MetricExpr": {} }"#, "MetricExpr is no text"),
        (
            r#"{ "MetricName": "m", "Formula": "a +" }"#,
            "Formula, column 4: expected a number, a name or '(', found the end",
        ),
        (r#"{ "MetricName": "m", "MetricExpr": "f(a)" }"#, "MetricExpr, column 1: no function is called f"),
        (r#"{ "MetricName": "m", "Formula": "a", "Events": 7 }"#, "Events is no list of objects with Name and Alias"),
        (r#"{ "MetricName": "m", "Formula": "a", "Events": {} }"#, "Events is no list of objects with Name and Alias"),
        (
            r#"{ "MetricName": "m", "Formula": "a", "Events": ["a"] }"#,
            "Events is no list of objects with Name and Alias",
        ),
        (
            r#"{ "MetricName": "m", "Formula": "a", "Events": [{ "Name": "E" }] }"#,
            "Events is no list of objects with Name and Alias",
        ),
        (
            r#"{ "MetricName": "m", "Formula": "a", "Events": [{ "Name": "", "Alias": "a" }] }"#,
            "Events is no list of objects with Name and Alias",
        ),
        (
            r#"{ "MetricName": "m", "Formula": "a", "Events": [{ "Name": 1, "Alias": "a" }] }"#,
            "Events is no list of objects with Name and Alias",
        ),
        (
            r#"{ "MetricName": "m", "Formula": "a", "Constants": [{ "Alias": "a" }] }"#,
            "Constants is no list of objects with Name and Alias",
        ),
        (
            r#"{ "MetricName": "m", "Formula": "a", "Events": [{ "Name": "E", "Alias": "a" }, { "Name": "F", "Alias": "A" }] }"#,
            "the alias A is there twice",
        ),
        (
            r#"{ "MetricName": "m", "Formula": "a", "Events": [{ "Name": "E", "Alias": "a" }], "Constants": [{ "Name": "1", "Alias": "a" }] }"#,
            "the alias a is there twice",
        ),
        (
            r#"{ "MetricName": "m", "Formula": "a", "Constants": [{ "Name": "1 2", "Alias": "a" }] }"#,
            "constant a, column 3: expected an operator, found 2",
        ),
        (r#"{ "MetricName": "m", "Formula": "a", "ScaleUnit": "%" }"#, "ScaleUnit is \"%\""),
        (r#"{ "MetricName": "m", "Formula": "a", "ScaleUnit": "0%" }"#, "ScaleUnit is \"0%\""),
        (r#"{ "MetricName": "m", "Formula": "a", "ScaleUnit": "-1%" }"#, "ScaleUnit is \"-1%\""),
        (r#"{ "MetricName": "m", "Formula": "a", "ScaleUnit": "1e999%" }"#, "ScaleUnit is \"1e999%\""),
        (r#"{ "MetricName": "m", "Formula": "a", "ScaleUnit": "1.2.3x" }"#, "ScaleUnit is \"1.2.3x\""),
        (r#"{ "MetricName": "m", "Formula": "a", "ScaleUnit": 100 }"#, "ScaleUnit is no text"),
        (r#"{ "MetricName": "m", "Formula": "a", "MetricGroup": [] }"#, "MetricGroup is no text"),
        (r#"{ "MetricName": "m", "Formula": "a", "Unit": 1 }"#, "Unit is no text"),
        (r#"{ "MetricName": "m", "Formula": "a", "BriefDescription": {} }"#, "BriefDescription is no text"),
    ] {
        assert_eq!(parse(text).expect_err(text), expected, "{text}");
    }
    let long = format!(r#"{{ "MetricName": "{}", "Formula": "a" }}"#, "x".repeat(201));
    assert_eq!(parse(&long).unwrap_err(), format!("MetricName is \"{}\"", "x".repeat(60)));
}
