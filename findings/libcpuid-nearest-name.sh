#!/usr/bin/env bash
# libcpuid 0.6.2 (Debian 12, cpuidtool 0.6.2+repack1-1): a processor that it does not know gets the name of another.
#
# A good guess: of a family and model that its table lacks it says "Unknown", as it does of an unknown Atom. Its table
# is searched for the row with the most points: a brand that says "Xeon", a number of cores or a size of cache count as
# the model does. Seen: Knights Landing of 2016 is a Pentium III, and Haswell's server of 2014 and a Core Ultra of 2025
# are of the Pentium II. The model that it prints beside the name is right. Of the public dumps of InstLatX64, from
# which the registers below are, those of the servers with Ice Lake, Sapphire Rapids and Granite Rapids have such names
# as well.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
unpack cpuidtool=0.6.2+repack1-1 libcpuid16=0.6.2+repack1-1

# codename LEAF...: the name of a processor of Intel, by AIDA64's lines of its leaves.
codename() {
    echo '------[ CPUID Registers / Logical CPU #0 ]------' > dump.txt
    printf 'CPUID %s\n' '00000000: 0000000D-756E6547-6C65746E-49656E69' "$@" >> dump.txt
    debian cpuid_tool --quiet --load=dump.txt --outfile=- --extmodel --brandstr --codename
}

{
    codename '00000001: 00050671-08FF0800-7FF8F39F-BFEBFBFF' \
        '80000000: 80000008-00000000-00000000-00000000' \
        '80000002: 65746E49-2952286C-6F655820-6850206E' \
        '80000003: 4D542869-50432029-32372055-40203031' \
        '80000004: 332E3120-7A484730-00000000-00000000'
    codename '00000001: 000306F2-00200800-7FFEFBFF-BFEBFBFF' \
        '80000000: 80000008-00000000-00000000-00000000' \
        '80000002: 65746E49-2952286C-6F655820-2952286E' \
        '80000003: 55504320-2D354520-30363632-20337620' \
        '80000004: 2E322040-48473036-0000007A-00000000'
    codename '00000001: 000C0652-00800800-7FFAFBFF-BFEBFBFF' \
        '80000000: 80000008-00000000-00000000-00000000' \
        '80000002: 65746E49-2952286C-726F4320-4D542865' \
        '80000003: 6C552029-20617274-38322039-00004835' \
        '80000004: 00000000-00000000-00000000-00000000'
} | grep -v '^-*$' | tee seen
diff seen - <<'SEEN'
87
Intel(R) Xeon Phi(TM) CPU 7210 @ 1.30GHz
P-III Xeon (Tanner)
63
Intel(R) Xeon(R) CPU E5-2660 v3 @ 2.60GHz
P-II Xeon (Klamath)
197
Intel(R) Core(TM) Ultra 9 285H
Pentium II (Deschutes)
SEEN
