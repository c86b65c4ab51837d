#!/usr/bin/env bash
# openmetrics-parser 0.4.4 (a crate): its parser of Prometheus' text format refuses counters for their names.
#
# A good guess: parse_prometheus() takes what Prometheus takes; the suffix _total is a rule of OpenMetrics, and a
# custom in the text format (Prometheus, exposition formats). Seen: one counter with another name, and the whole text
# is an error. Timestamps differ as well: the text format has milliseconds and OpenMetrics seconds, and both parsers
# return the number as it is written in the same field, so that one moment is 1700000000123 or 1700000000.123 there.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" openmetrics-parser 0.4.4 <<'TEXT'
use openmetrics_parser::{openmetrics::parse_openmetrics, prometheus::parse_prometheus};

fn main() {
    for name in ["cycles_total", "cycles"] {
        let text = format!("# TYPE {name} counter\n{name} 1 1700000000123\n");
        match parse_prometheus(&text) {
            Ok(read) => println!("{name} {:?}", read.families[name].iter_samples().next().unwrap().timestamp),
            Err(error) => println!("{name} {error}"),
        }
    }
    let read = parse_openmetrics("# TYPE cycles counter\ncycles_total 1 1700000000.123\n# EOF\n").unwrap();
    println!("OpenMetrics {:?}", read.families["cycles"].iter_samples().next().unwrap().timestamp);
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
cycles_total Some(1700000000123.0)
cycles Counters should have a _total suffix. Got cycles
OpenMetrics Some(1700000000.123)
SEEN
