#!/usr/bin/env bash
# hdrhistogram 0.10.8 (PyPI): a percentile covers fewer values than it says.
#
# A good guess: the 99th percentile is a value that at least 99 % of the recorded ones do not exceed, and libraries of
# one family agree on it: of 160 values it is the 159th (158.4 of them, rounded up), as in hdr-histogram-js 3.0.1 and
# the crate hdrhistogram 7.6.0. Seen: the rank is rounded to the nearest number, so it is the 158th, which 98.75 % do
# not exceed. With 150 values all agree. A latency that two programs take from one histogram differs for some counts.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
{
    python hdrhistogram==0.10.8 <<'SCRIPT'
from hdrh.histogram import HdrHistogram

for count in [150, 160]:
    histogram = HdrHistogram(1, 1000, 3)
    for value in range(1, count + 1):
        histogram.record_value(value)
    print(count, histogram.get_value_at_percentile(99), "Python")
SCRIPT
    node hdr-histogram-js@3.0.1 <<'SCRIPT'
import * as hdr from "hdr-histogram-js";

for (const count of [150, 160]) {
    const histogram = hdr.build({ lowestDiscernibleValue: 1, highestTrackableValue: 1000 });
    for (let value = 1; value <= count; value++) histogram.recordValue(value);
    console.log(count, histogram.getValueAtPercentile(99), "JavaScript");
}
SCRIPT
} | tee seen
diff seen - <<'SEEN'
150 149 Python
160 158 Python
150 149 JavaScript
160 159 JavaScript
SEEN
