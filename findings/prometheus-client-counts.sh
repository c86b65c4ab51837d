#!/usr/bin/env bash
# prometheus_client 0.22.1 (PyPI): whether a count is exact depends on how it is written, and it writes an exponent of
# three digits.
#
# A good guess: a sample is a 64-bit float, as in Prometheus, so that 2^53 + 1 is read as 2^53. Seen: its parsers keep an
# integer of any size, and round the same number if it has a decimal point. What they read exactly is rounded when it is
# exposed again, and the function for "Go strings" gives 9.007199254740992e+015, where Go has e+15: the zero is fixed.
# From 1e16 on Python's own form is used, with two digits.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
seen=$(python prometheus_client==0.22.1 <<'SCRIPT'
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as text_format

def value(families):
    (family,) = families
    return repr(family.samples[0].value)

for number in ["9007199254740993", "9007199254740993.0", "18446744073709551615"]:
    families = f"# TYPE a counter\na_total {number}\n# EOF\n", f"# TYPE a_total counter\na_total {number}\n"
    print(number, value(open_metrics(families[0])), value(text_format(families[1])))
for number in [9007199254740993, 12345678901234567]:
    registry = CollectorRegistry()
    Gauge("g", "A number.", registry=registry).set(number)
    print(number, generate_latest(registry).decode().split()[-1])
SCRIPT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
9007199254740993 9007199254740993 9007199254740993
9007199254740993.0 9007199254740992.0 9007199254740992.0
18446744073709551615 18446744073709551615 18446744073709551615
9007199254740993 9.007199254740992e+015
12345678901234567 1.2345678901234568e+16
SEEN
