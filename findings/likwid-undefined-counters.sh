#!/usr/bin/env bash
# likwid 5.2.2 (Debian 12, likwid 5.2.2+dfsg1-1): formulas of its groups name counters that the group does not program.
#
# A good guess: the groups are the tested part of likwid, so each formula uses the counters of its own event set. Seen:
# four groups for Zen 3 and Sandy Bridge do not. In L3CACHE of Zen 3 the cycles per instruction are FIXC1/FIXC0, as on
# Intel's processors, though instructions and cycles are in PMC0 and PMC1. L3CACHE of Sandy Bridge divides PMC0 by
# PMC1, but its event set has these counters under longer names, with the values of their match registers.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack likwid=5.2.2+dfsg1-1
python3 - <<'SCRIPT' | tee seen
import pathlib, re

for name in ["zen3/L2CACHE", "zen3/L3CACHE", "zen3/CACHE", "sandybridge/L3CACHE", "sandybridgeEP/L3CACHE"]:
    text = pathlib.Path("usr/share/likwid/perfgroups", name + ".txt").read_text()
    events, formulas = re.search("EVENTSET\n(.*)METRICS\n(.*)LONG\n", text, re.DOTALL).groups()
    programmed = set(re.findall(r"^(\S+)", events, re.MULTILINE))
    counters = (re.findall("[A-Z]*(?:PM|FIX)C[0-9]", line.split()[-1]) for line in formulas.splitlines() if line)
    used = {counter for found in counters for counter in found}
    print(name, "lacks", *(sorted(used - programmed) or ["nothing"]))
SCRIPT
diff seen - <<'SEEN'
zen3/L2CACHE lacks FIXC1
zen3/L3CACHE lacks FIXC0 FIXC1
zen3/CACHE lacks nothing
sandybridge/L3CACHE lacks PMC0 PMC1
sandybridgeEP/L3CACHE lacks PMC0 PMC1
SEEN
