#!/usr/bin/env bash
# prometheus-parse 0.2.5 (a crate): label values stay escaped, and a series is lost if one of them has a brace.
#
# A good guess: a parser of the text format returns values of labels as they were before they were written, so that
# path="C:\\app" is C:\app (Prometheus, exposition formats: \\, \" and \n are escapes). Seen: the backslashes stay
# double, so a path of Windows that goes through the parser and is written again doubles them each time. The label set
# ends at the first closing brace, also inside quotes; such a line is no error, and its sample is missing.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" prometheus-parse 0.2.5 <<'TEXT'
use prometheus_parse::Scrape;

fn main() {
    for value in [r"plain", r"C:\\app", r"{a}", r"a}b"] {
        let line = format!("cycles{{name=\"{value}\"}} 7");
        let scrape = Scrape::parse([Ok(line.clone())].into_iter()).unwrap();
        let read: Vec<_> = scrape.samples.iter().map(|sample| sample.labels.get("name").unwrap()).collect();
        println!("{line} is {}", read.first().unwrap_or(&"nothing"));
    }
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
cycles{name="plain"} 7 is plain
cycles{name="C:\\app"} 7 is C:\\app
cycles{name="{a}"} 7 is nothing
cycles{name="a}b"} 7 is nothing
SEEN
