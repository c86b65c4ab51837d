#!/usr/bin/env bash
# pmu-tools 2026.7.24 (PyPI, pmu-tools): the name of an event depends on the row before it.
#
# A good guess: interval-normalize, which turns the rows of "perf stat -I -x," into columns, names a column by the event
# of its row. The third field of a row is a unit, which most events do not have; the energies have Joules. Seen: rows
# are compared with a list of formats, of which the last one that matched is tried first. The format without a unit also
# matches a row with one, and then the unit is the event. With nothing but energies, all of them are the one column
# "Joules", which has the last: those of the package are gone, without a word. With a row before them that has no unit,
# each has its name.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
cat > energies.csv <<'TEXT'
1.000269316,12.50,Joules,power/energy-pkg/,1000273000,100.00,,
1.000269316,2.25,Joules,power/energy-ram/,1000273000,100.00,,
2.000369316,12.75,Joules,power/energy-pkg/,1000100000,100.00,,
2.000369316,2.50,Joules,power/energy-ram/,1000100000,100.00,,
TEXT
{
    echo '1.000269316,3000000,,cycles,1000273000,100.00,,'
    sed -n 1,2p energies.csv
    echo '2.000369316,3100000,,cycles,1000100000,100.00,,'
    sed -n 3,4p energies.csv
} > cycles-first.csv
python pmu-tools==2026.7.24.0 <<'SCRIPT' | tee seen
import runpy, sys

for name in "energies.csv", "cycles-first.csv":
    print(name, flush=True)
    sys.argv = ["interval-normalize", name]
    # The module remembers the format.
    sys.modules.pop("csv_formats", None)
    runpy.run_path("packages/interval-normalize.py", run_name="__main__")
    sys.stdout.flush()
SCRIPT
diff seen - <<'SEEN'
energies.csv
Timestamp,Joules
1.000269316,2.25
2.000369316,2.50
cycles-first.csv
Timestamp,cycles,power/energy-pkg/,power/energy-ram/
1.000269316,3000000,12.50,2.25
2.000369316,3100000,12.75,2.50
SEEN
