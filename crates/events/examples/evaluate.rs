//! Evaluates every metric of a file: `cargo run -p events --example evaluate -- METRICS.json VALUES.json`.
//!
//! METRICS.json is a file of Intel's perfmon (`{"Metrics": [...]}`) or of Linux's pmu-events (`[...]`).
//!
//! VALUES.json is an object. Each key is the name of an event with its modifiers as the metrics name it, or of a
//! constant; the value is a number, `true` or `false`. Case does not matter, nor a `#` before a constant. `events` and
//! `constants` may group them. Lists and objects become names with indexes and points:
//!
//! ```json
//! {
//!   "events": { "CPU_CLK_UNHALTED.THREAD": 2000000, "INST_RETIRED.ANY": 3000000, "UOPS_RETIRED.MS:c1": 5 },
//!   "constants": {
//!     "HYPERTHREADING_ON": true,
//!     "SYSTEM_TSC_FREQ": 2.4e9,
//!     "system": { "socket_count": 2, "sockets": [{ "cpus": { "count": 16 } }] }
//!   }
//! }
//! ```
//!
//! The output is an object with the value of each metric, not scaled: a number, or `{"n/a": "the reason"}`. If metrics
//! for several types of cores have the same name, their names are followed by the type, as in `ipc (cpu_atom)`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;

use events::metric::{Metric, MetricSet, Values};
use serde_json::{Map, Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [metrics, values] = words.as_slice() else { return Err("evaluate METRICS.json VALUES.json".into()) };
    let read = |path: &String| -> Result<Value, Box<dyn Error>> {
        let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        Ok(serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))?)
    };
    let file = read(metrics)?;
    let list = file.as_array().or_else(|| file.get("Metrics").and_then(Value::as_array));
    let list = list.ok_or_else(|| format!("{metrics}: it is no list and has no Metrics"))?;
    let mut known = Values::default();
    for (name, value) in read(values)?.as_object().ok_or_else(|| format!("{values}: it is no object"))? {
        match value {
            Value::Object(group) if name == "events" || name == "constants" => {
                group.iter().try_for_each(|(name, value)| add(&mut known, name, value))?;
            }
            _ => add(&mut known, name, value)?,
        }
    }
    let mut results: Vec<(String, String, Value)> = Vec::new();
    let mut parsed = Vec::new();
    for object in list {
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        match (object.get("MetricName"), Metric::parse(object)) {
            // Files of Linux have events, too.
            (None, _) => {}
            (Some(_), Ok(metric)) => parsed.push(metric),
            (Some(_), Err(error)) => {
                results.push((text("MetricName"), text("Unit"), json!({ "n/a": error.to_string() })));
            }
        }
    }
    let set = MetricSet::new(parsed);
    for (metric, value) in set.metrics().iter().zip(set.evaluate(&known)) {
        let value = value.map_or_else(|reason| json!({ "n/a": reason.to_string() }), |value| json!(value));
        results.push((metric.name.clone(), metric.cores.clone(), value));
    }
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    for (name, ..) in &results {
        *uses.entry(name.clone()).or_default() += 1;
    }
    let mut output = Map::new();
    for (name, cores, value) in results {
        let is_shared = uses.get(&name).is_some_and(|number| *number > 1) && !cores.is_empty();
        output.insert(if is_shared { format!("{name} ({cores})") } else { name }, value);
    }
    println!("{}", serde_json::to_string_pretty(&output)?);
    Ok(())
}

/// Adds a value, or the parts of a list or an object.
fn add(values: &mut Values, name: &str, value: &Value) -> Result<(), Box<dyn Error>> {
    match value {
        Value::Bool(truth) => values.set(name, f64::from(u8::from(*truth))),
        Value::Number(number) => values.set(name, number.as_f64().ok_or("too large a number")?),
        Value::Array(list) => {
            list.iter().enumerate().try_for_each(|(index, value)| add(values, &format!("{name}[{index}]"), value))?;
        }
        Value::Object(object) => {
            object.iter().try_for_each(|(key, value)| add(values, &format!("{name}.{key}"), value))?;
        }
        Value::Null => {}
        Value::String(_) => return Err(format!("{name} is text instead of a number").into()),
    }
    Ok(())
}
