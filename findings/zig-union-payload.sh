#!/usr/bin/env bash
# Zig 0.13.0 (PyPI, ziglang): in CodeView, the payload of a tagged union is larger than the place that it has.
#
# A good guess: a member of a structure ends where the next one begins, at the latest. Seen: the structure of a tagged
# union has the payload at 0 and the tag at 16, and its size is 24, but the record of the payload, a union whose largest
# member is a slice of 16 bytes, says 24 too. A report of memory by members counts the tag and the padding twice.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/llvm.sh"
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target packages ziglang==0.13.0
cat > code.zig <<'TEXT'
const Value = union(enum) { number: u64, text: []const u8, none };
export fn start(place: *anyopaque) void {
    const value: *Value = @ptrCast(@alignCast(place));
    var copy = value.*;
    copy.number = 1;
    value.* = copy;
}
pub fn panic(_: []const u8, _: ?*@import("std").builtin.StackTrace, _: ?usize) noreturn {
    while (true) {}
}
TEXT
packages/ziglang/zig build-obj code.zig -target x86_64-windows-msvc -fno-strip \
    --cache-dir cache --global-cache-dir cache
# The list of fields is in front of its structure.
llvm llvm-pdbutil dump -types code.obj | awk '
    /LF_FIELDLIST/ { fields = "" }
    /LF_MEMBER/ { fields = fields "\n    " $5 " at " $(NF - 3) }
    /LF_(STRUCTURE|UNION)/ { name = $NF }
    /sizeof [1-9]/ && name ~ /`(code\.Value(:Payload)?|\[]u8)`/ { print name, "of", $NF fields }' |
    tr -d '`,' | tee seen
diff seen - <<'SEEN'
code.Value of 24
    payload at 0
    tag at 16
code.Value:Payload of 24
    number at 0
    text at 0
[]u8 of 16
    ptr at 0
    len at 8
SEEN
