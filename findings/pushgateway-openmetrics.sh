#!/usr/bin/env bash
# prometheus-pushgateway 1.5.1 (Debian 12): it takes OpenMetrics, and the counters in it lose their type.
#
# A good guess: what is no text format 0.0.4 is refused, or understood by its Content-Type. Seen: the push of a counter
# "TYPE events counter, events_total 1, EOF" with the content type of OpenMetrics is answered with 200. The family
# without a sample of its name vanishes, the sample becomes untyped, and the lines that begin with a number sign are
# comments. Only a timestamp, which OpenMetrics has in seconds, is refused.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
gateway=
trap '[ -z "$gateway" ] || kill "$gateway"; rm -rf "$folder"' EXIT
unpack prometheus-pushgateway=1.5.1-2+b5
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
usr/bin/prometheus-pushgateway --web.listen-address="127.0.0.1:$port" 2> log &
gateway=$!
for _ in $(seq 100); do
    if curl -s -o ready "http://127.0.0.1:$port/-/ready"; then break; fi
    sleep 0.1
done
push() {
    curl -s -o answer -w '%{http_code}\n' -X PUT --data-binary @- \
        -H 'Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8' \
        "http://127.0.0.1:$port/metrics/job/$1"
}
{
    push open <<'TEXT'
# HELP events Events.
# TYPE events counter
events_total 1
# EOF
TEXT
    push text <<'TEXT'
# HELP cycles_total Cycles.
# TYPE cycles_total counter
cycles_total 1
TEXT
    push timed <<'TEXT'
# TYPE events counter
events_total 1 1700000000.5
# EOF
TEXT
    curl -s "http://127.0.0.1:$port/metrics" | grep -E '^(# TYPE )?(events|cycles)'
} | tee seen
diff seen - <<'SEEN'
200
200
400
# TYPE cycles_total counter
cycles_total{instance="",job="text"} 1
# TYPE events_total untyped
events_total{instance="",job="open"} 1
SEEN
