#!/usr/bin/env bash
# promtool 2.42 (Debian 12, package prometheus): "check metrics" accepts what no counter can be, and a series that is
# there twice.
#
# A good guess: a checker of metrics finds a negative or missing count, and two values of one series, which Prometheus
# cannot store both. Seen: exit code 0 and no word. It complains about a missing description (exit code 3), and finds a
# text that lacks its last line feed malformed (exit code 1). A test that only runs it proves the grammar and the names.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack prometheus=2.42.0+ds-5+deb12u1
check() {
    local code=0
    printf '%b' "$2" | usr/bin/promtool check metrics > said 2>&1 || code=$?
    echo "$1: $code" "$(head -n 1 said)" | sed "s/ *$//"
}
family='# HELP events_total Events.\n# TYPE events_total counter\n'
{
    check negative "${family}events_total -5\n"
    check "not a number" "${family}events_total NaN\n"
    check twice "${family}events_total{cpu=\"0\"} 1\nevents_total{cpu=\"0\"} 2\n"
    check "no description" '# TYPE events_total counter\nevents_total 1\n'
    check "no line feed" "${family}events_total 1"
} | tee seen
diff seen - <<'SEEN'
negative: 0
not a number: 0
twice: 0
no description: 3 events_total no help text
no line feed: 1 error while linting: text format parsing error in line 3: unexpected end of input stream
SEEN
