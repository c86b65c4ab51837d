#!/usr/bin/env bash
# critcmp 0.1.8 (PyPI, astral-dev-toolchain-critcmp; the program of the crate): what a benchmark of criterion measured
# is always a time.
#
# A good guess: criterion measures whatever a Measurement measures, such as instructions, and saves the unit beside each
# sample (raw.csv), so critcmp shows the numbers with it, or without a unit. Seen: 1,500 instructions are 1500.0 ns, and
# three million are 3.0 ms. The ratio is right.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
crate 'criterion = { version = "=0.8.2", default-features = false, features = ["cargo_bench_support", "csv_output"] }' \
    '[[bench]]' 'name = "counts"' 'harness = false'
mkdir benches
cat > benches/counts.rs <<'TEXT'
use criterion::measurement::{Measurement, ValueFormatter};
use criterion::{Criterion, Throughput};

/// Counts as instructions what the benchmark returns.
struct Instructions;

impl ValueFormatter for Instructions {
    fn scale_values(&self, _: f64, _: &mut [f64]) -> &'static str {
        "instr"
    }
    fn scale_throughputs(&self, _: f64, _: &Throughput, _: &mut [f64]) -> &'static str {
        "instr/elem"
    }
    fn scale_for_machines(&self, _: &mut [f64]) -> &'static str {
        "instructions"
    }
}

impl Measurement for Instructions {
    type Intermediate = ();
    type Value = f64;
    fn start(&self) {}
    fn end(&self, (): ()) -> f64 {
        0.0
    }
    fn add(&self, one: &f64, other: &f64) -> f64 {
        one + other
    }
    fn zero(&self) -> f64 {
        0.0
    }
    fn to_f64(&self, value: &f64) -> f64 {
        *value
    }
    fn formatter(&self) -> &dyn ValueFormatter {
        self
    }
}

fn main() {
    let mut criterion = Criterion::default().with_measurement(Instructions).sample_size(10).configure_from_args();
    for (name, count) in [("few", 1500.0), ("many", 3e6)] {
        criterion.bench_function(name, |bencher| bencher.iter_custom(|times| times as f64 * count));
    }
}
TEXT
export CARGO_TARGET_DIR=$folder/target
cargo bench --quiet --bench counts -- --warm-up-time 0.1 --measurement-time 0.1 --save-baseline first > output 2>&1
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target packages \
    astral-dev-toolchain-critcmp==0.1.8
{
    grep -oE '(few|many) +time: .*' output | tr -s ' '
    tail -qn1 target/criterion/*/first/raw.csv | cut -d, -f7 | uniq
    packages/bin/critcmp --color never first | grep -E '^(few|many) ' | tr -s ' ' | cut -d' ' -f1,3
} | tee seen
diff seen - <<'SEEN'
few time: [1500.0 instr 1500.0 instr 1500.0 instr]
many time: [3000000 instr 3000000 instr 3000000 instr]
instructions
few 1500.0±0.00ns
many 3.0±0.00ms
SEEN
