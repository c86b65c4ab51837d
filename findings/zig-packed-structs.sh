#!/usr/bin/env bash
# Zig 0.13.0 (PyPI, ziglang): the debug information of a packed structure is a number without
# fields.
#
# A good guess: the fields of a packed structure are bit fields in a PDB and in DWARF, as those of C are (cvinfo.h:
# LF_BITFIELD; DWARF: DW_AT_data_bit_offset), so that a debugger or a memory profiler names them: each has an offset in
# bits by definition (Zig's language reference, packed struct). Seen: a member of such a type is an unsigned integer in
# both formats, and the names of its fields are nowhere.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target packages ziglang==0.13.0
cat > code.zig <<'TEXT'
const Flags = packed struct(u32) { ready: bool, mode: u3, count: u12, rest: u16 };
const Entry = extern struct { key: u32, flags: Flags };
export fn start(entry: *Entry) void {
    entry.flags.count +%= 1;
}
pub fn panic(_: []const u8, _: ?*@import("std").builtin.StackTrace, _: ?usize) noreturn {
    while (true) {}
}
TEXT
for target in windows-msvc linux-none; do
    packages/ziglang/zig build-obj code.zig -target x86_64-$target -fno-strip --name $target \
        --cache-dir cache --global-cache-dir cache
done
{
    llvm llvm-pdbutil dump -types windows-msvc.obj > types
    # shellcheck disable=SC2016 # llvm-pdbutil's quotes
    grep -oE 'name = `(key|flags|ready|mode|count|rest)`, Type = .*, offset = [0-9]+' types
    echo "DWARF"
    llvm llvm-dwarfdump --debug-info linux-none.o |
        grep -oE 'DW_AT_(name.*"(key|flags|ready|mode|count|rest)"|(data_)?bit_.*)' | tr '\t' ' '
} | tee seen
diff seen - <<'SEEN'
name = `key`, Type = 0x0075 (unsigned), offset = 0
name = `flags`, Type = 0x0075 (unsigned), offset = 4
DWARF
DW_AT_name ("key"
DW_AT_name ("flags"
SEEN
