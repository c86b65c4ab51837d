#!/usr/bin/env bash
# pmu-tools 2026.7.24 (PyPI, pmu-tools): toplev knows one model each of Meteor Lake and Arrow Lake, and not stepping 11
# of Cooper Lake.
#
# A good guess: it follows Intel's mapfile.csv, from which it downloads the events. There, models AAh, ACh and B5h are
# Meteor Lake, C5h and C6h Arrow Lake, and steppings 5 to Fh of model 55h have one table. Seen: AAh and C6h alone are
# known, and steppings 4 to 10 of 55h, while Cooper Lake was sold as stepping 11 (CPX-SP A1 in Intel's list of
# microcode). The others are "simple", as any unknown processor. Arrow Lake, on its list of hybrids, gets 8 counters of
# "cpu", and none of cpu_core and cpu_atom, which the other hybrids have.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
python pmu-tools==2026.7.24.0 <<'SCRIPT' | tee seen
import ast, re, sys

sys.argv = ["toplev"]
import tl_cpu

known = ast.literal_eval(re.search(r"^known_cpus = (\(.*?^\))", open("packages/toplev.py").read(), re.M | re.S)[1])
for model, stepping in [(0x55, 4), (0x55, 7), (0x55, 10), (0x55, 11), (0xAA, 4), (0xAC, 1), (0xB5, 0), (0xC6, 2),
                        (0xC5, 2), (0xBD, 1)]:
    with open("cpuinfo", "w") as file:
        file.write(f"""processor : 0
vendor_id : GenuineIntel
cpu family : 6
model : {model}
model name : Intel
stepping : {stepping}
physical id : 0
core id : 0
flags : fpu
""")
    environment = tl_cpu.Env()
    environment.cpuinfo = "cpuinfo"
    # Hardware, as the machine of this script may be virtual, and with all processors online.
    one = tl_cpu.CPU(known, nocheck=True, env=environment)
    print(f"{model:02X}h, {stepping}: {one.realcpu}", one.counters)
SCRIPT
diff seen - <<'SEEN'
55h, 4: skx {'cpu': 8}
55h, 7: clx {'cpu': 8}
55h, 10: clx {'cpu': 8}
55h, 11: simple {'cpu': 8}
AAh, 4: mtl {'cpu_core': 8, 'cpu': 4, 'cpu_atom': 8}
ACh, 1: simple {'cpu': 8}
B5h, 0: simple {'cpu': 8}
C6h, 2: arl {'cpu': 8}
C5h, 2: simple {'cpu': 8}
BDh, 1: lnl {'cpu_core': 10, 'cpu': 10, 'cpu_atom': 8}
SEEN
