#!/usr/bin/env bash
# LLVM 19.1.7 (Debian 12, llvm-19 1:19.1.7-3~deb12u1) with libpfm4 4.13.0 (Debian 12, libpfm4 4.13.0-1): llvm-exegesis
# asks for the ports of Sapphire Rapids by a name that libpfm4 does not have.
#
# A good guess: llvm-exegesis is linked with libpfm4 and has a table of its names, so each of them is an event of the
# processor that it is for. Seen: the ports "2, 3 and 10" and "5 and 11", which only Golden Cove and its successors
# have, are in the table as units of uops_dispatched_port, the event of Ice Lake. In libpfm4 their event is
# uops_dispatched, as in Intel's files. So the ports of an instruction can be measured on Ice Lake, and not on Sapphire
# Rapids.
set -euo pipefail
helpers=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
. "$helpers/packages.sh"
unpack llvm-19=1:19.1.7-3~deb12u1
for event in uops_dispatched_port uops_dispatched; do
    for unit in port_2_3 port_2_3_10 port_5_11; do
        in_table=no
        ! grep --quiet --text --null-data --line-regexp "$event:$unit" usr/lib/llvm-19/bin/llvm-exegesis || in_table=yes
        processors=""
        for processor in icl spr; do
            ! python3 "$helpers/libpfm4.py" "$processor::$event:$unit" >/dev/null 2>&1 || processors+=" $processor"
        done
        echo "$event:$unit: in llvm-exegesis $in_table, in libpfm4 for${processors:- none}"
    done
done | tee seen
diff seen - <<'SEEN'
uops_dispatched_port:port_2_3: in llvm-exegesis yes, in libpfm4 for icl
uops_dispatched_port:port_2_3_10: in llvm-exegesis yes, in libpfm4 for none
uops_dispatched_port:port_5_11: in llvm-exegesis yes, in libpfm4 for none
uops_dispatched:port_2_3: in llvm-exegesis no, in libpfm4 for icl
uops_dispatched:port_2_3_10: in llvm-exegesis no, in libpfm4 for spr
uops_dispatched:port_5_11: in llvm-exegesis no, in libpfm4 for spr
SEEN
