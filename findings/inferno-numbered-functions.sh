#!/usr/bin/env bash
# inferno 0.12.8 (a crate): a flame graph takes the number at the end of a function's name for a count.
#
# A good guess: the count of a folded line is behind its last space, so that "main;worker 2 10" is 10 samples of
# "worker 2". Names with spaces are usual (operators of C++, threads, programs of Windows). Seen: two numbers at the
# end are the counts of two profiles. The function is called "worker", and it has a change of 53 %, as if a second
# profile had been given.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" inferno 0.12.8 <<'TEXT'
use inferno::flamegraph::{Options, from_lines};

fn main() {
    for lines in [["main;worker_2 10", "main;other 5"], ["main;worker 2 10", "main;other 5"]] {
        let mut graph = Vec::new();
        from_lines(&mut Options::default(), lines, &mut graph).unwrap();
        let graph = String::from_utf8(graph).unwrap();
        let mut titles = graph.split("<title>").filter(|title| title.starts_with("worker"));
        println!("{}: {}", lines[0], titles.next().unwrap().split("</title>").next().unwrap());
    }
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
main;worker_2 10: worker_2 (10 samples, 66.67%)
main;worker 2 10: worker (10 samples, 66.67%; +53.33%)
SEEN
