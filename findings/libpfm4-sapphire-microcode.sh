#!/usr/bin/env bash
# libpfm4 4.13.0 (Debian 12, libpfm4 4.13.0-1): the micro-operations of Sapphire Rapids' microcode sequencer get the
# value of another register as their unit mask.
#
# A good guess: UOPS_RETIRED:MS is C2/04 with the value 8 in MSR_PEBS_FRONTEND (0x3F7), as in Intel's event file, so
# that libpfm4 returns two words, as it does for FRONTEND_RETIRED:MS_FLOWS (C6/01 and 8). Seen: one word, C2/08. The
# 8 of the front end has become the unit mask, and nothing tells the caller that a register is missing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download --quiet -o APT::Sandbox::User=root libpfm4=4.13.0-1 >/dev/null
dpkg -x libpfm4_4.13.0-1_amd64.deb .
python3 "$here/libpfm4.py" . spr::FRONTEND_RETIRED:MS_FLOWS spr::UOPS_RETIRED:MS > seen
cat seen
diff seen - <<'SEEN'
spr::FRONTEND_RETIRED:MS_FLOWS c6/01 8
spr::UOPS_RETIRED:MS c2/08
SEEN
