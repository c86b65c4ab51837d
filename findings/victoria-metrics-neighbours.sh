#!/usr/bin/env bash
# VictoriaMetrics 1.79.5 (Debian 12, victoria-metrics 1.79.5+ds1-2+b5): whether a count is exact depends on the other
# values of its series.
#
# A good guess: values are 64-bit floats, as in Prometheus, and the default of -precisionBits, 64, loses none of their
# bits. Seen: a block of values is stored as integers with one decimal exponent. 2^53 - 1 comes back as it is, and as
# 9007199254740990 if 0.5 is in the block as well. 2^60, the weight of a long recording in cycles, loses a bit even by
# itself, and 123456.789012345 its last digit, where a 64-bit float has both.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack victoria-metrics=1.79.5+ds1-2+b5
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
usr/bin/victoria-metrics -httpListenAddr="127.0.0.1:$port" -storageDataPath=data -retentionPeriod=100y >log 2>&1 &
trap 'kill $!; wait; rm -rf "$folder"' EXIT
server=http://127.0.0.1:$port
curl --silent --fail --retry 20 --retry-connrefused --retry-delay 1 "$server/health" >/dev/null
minute=$(($(date +%s) / 60 * 60 - 60))
for line in "alone 9007199254740991 $minute" "beside 9007199254740991 $minute" "beside 0.5 $((minute + 1))" \
    "weight 1152921504606846976 $minute" "fraction 123456.789012345 $minute"; do
    echo "${line}000"
done | curl --silent --fail --data-binary @- "$server/api/v1/import/prometheus"
curl --silent --fail "$server/internal/force_flush"
for name in alone beside weight fraction; do
    curl --silent --fail "$server/api/v1/export" --data "match[]=$name" |
        python3 -c 'import json, sys; one = json.load(sys.stdin); print(one["metric"]["__name__"], *one["values"])'
done | tee seen
diff seen - <<'SEEN'
alone 9007199254740991
beside 9007199254740990 0.5
weight 1152921504606846848
fraction 123456.78901234
SEEN
