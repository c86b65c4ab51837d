#!/usr/bin/env bash
# VictoriaMetrics 1.79.5 (Debian 12, victoria-metrics 1.79.5+ds1-2+b5): the exemplar of a counter without labels becomes
# a series of its own.
#
# A good guess: a line of OpenMetrics is read as such, or the part from the number sign on is a comment, as it is for a
# counter that has labels. Seen: without labels, everything before the first brace is the name, and the first brace is
# that of the exemplar. So the counter is missing, and there is a series "cycles_total 7 #" with the labels, the value
# and the time of the exemplar. The import is answered with 204, and a scrape of the same text has the same result.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack victoria-metrics=1.79.5+ds1-2+b5
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
usr/bin/victoria-metrics -httpListenAddr="127.0.0.1:$port" -storageDataPath=data -retentionPeriod=100y >log 2>&1 &
trap 'kill $!; wait; rm -rf "$folder"' EXIT
server=http://127.0.0.1:$port
curl --silent --fail --retry 20 --retry-connrefused --retry-delay 1 "$server/health" >/dev/null
minute=$(($(date +%s) / 60 * 60 - 60))
cat > metrics.txt <<TEXT
# TYPE cycles counter
cycles_total 7 # {thread="81"} 2.5 $((minute - 30))
# TYPE instructions counter
instructions_total{cpu="0"} 9 # {thread="81"} 4.5 $((minute - 30))
# EOF
TEXT
curl --silent --fail --write-out '%{http_code}\n' --data-binary @metrics.txt "$server/api/v1/import/prometheus"
sleep 2
curl --silent --fail "$server/internal/force_flush"
curl --silent --fail "$server/api/v1/export" --data 'match[]={__name__!=""}' | python3 -c '
import json, sys

for one in sorted(map(json.loads, sys.stdin), key=str):
    of_exemplar = one["timestamps"][0] == 1000 * int(sys.argv[1])
    print(one["metric"], *one["values"], "at the time of", "the exemplar" if of_exemplar else "the import")
' $((minute - 30)) | tee seen
diff seen - <<'SEEN'
{'__name__': 'cycles_total 7 #', 'thread': '81'} 2.5 at the time of the exemplar
{'__name__': 'instructions_total', 'cpu': '0'} 9 at the time of the import
SEEN
