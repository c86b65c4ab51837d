#!/usr/bin/env bash
# esbuild 0.25.11 for Windows (npm, @esbuild/win32-x64; made by Go): where a function lets its stack grow, its unwind
# information describes a frame that is not there.
#
# A good guess: behind the prolog, the unwind codes of a function hold at each instruction (Microsoft's x64 exception
# handling: outside prolog and epilog, all of them are undone). Go tests the room on the stack first, and jumps
# to the end of the function if there is too little: to a call of morestack, and back to the first instruction. Seen:
# RBP is pushed and set behind that jump, so at the call it is still the caller's, and the codes "RSP is RBP, pop RBP"
# leave the caller out of the stack. 6,706 of 7,191 functions have such a call. In 1,010 of them the next instruction is
# the jump back, which an unwinder may take for an epilog without pops; in 5,696 it restores an argument. Samples in the
# growth of stacks go to the callers' callers.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
npm install --silent --no-fund --no-audit --force --prefix . @esbuild/win32-x64@0.25.11
python iced-x86==1.21.0 <<'SCRIPT' | tee seen
import collections
import struct

from iced_x86 import Decoder, FlowControl, OpKind

data = open("node_modules/@esbuild/win32-x64/esbuild.exe", "rb").read()
header, = struct.unpack_from("<I", data, 0x3C)
count, = struct.unpack_from("<H", data, header + 6)
optional, = struct.unpack_from("<H", data, header + 20)
sections = [struct.unpack_from("<4I", data, header + 24 + optional + 40 * index + 8) for index in range(count)]


def place(address):
    return next(file + address - start for size, start, _, file in sections if start <= address < start + size)


directory, size = struct.unpack_from("<II", data, header + 24 + 112 + 3 * 8)
counts = collections.Counter()
for entry in range(place(directory), place(directory) + size, 12):
    begin, end, unwind = struct.unpack_from("<3I", data, entry)
    unwind = place(unwind)
    prolog, (set_at, set_code, push_at, push_code) = data[unwind + 1], data[unwind + 4:unwind + 8]
    # UWOP_SET_FPREG with RBP, and UWOP_PUSH_NONVOL of RBP.
    assert (data[unwind + 3], set_code, push_code) == (5, 3, 0x50)
    code = list(Decoder(64, data[place(begin):place(end)], ip=begin))
    counts["functions"] += 1
    back = [index for index, step in enumerate(code) if step.flow_control == FlowControl.UNCONDITIONAL_BRANCH
            and step.op0_kind == OpKind.NEAR_BRANCH64 and step.near_branch64 == begin]
    if not back:
        continue
    grow = max(index for index in range(back[-1]) if code[index].flow_control == FlowControl.CALL)
    # The conditional jump before RBP is pushed, which leads to the call.
    test = next(step for step in code if step.flow_control == FlowControl.CONDITIONAL_BRANCH)
    assert test.next_ip <= begin + push_at and begin + prolog < test.near_branch64 <= code[grow].ip
    counts["call without the frame"] += 1
    counts["and then the jump" if grow + 1 == back[-1] else "and then other instructions"] += 1
    if begin == 0x1240:
        print(f"push at {push_at:#x}, set at {set_at:#x}, prolog {prolog:#x}")
        for step in code[:4] + code[grow - 1:back[-1] + 1]:
            print(f"{step.ip:x} {step}")
for name in sorted(counts):
    print(name, counts[name])
SCRIPT
diff seen - <<'SEEN'
push at 0x7, set at 0xa, prolog 0xa
1240 cmp rsp,[r14+10h]
1244 jbe short 0000000000001272h
1246 push rbp
1247 mov rbp,rsp
1272 mov [rsp+8],rax
1277 call 00000000000757E0h
127c mov rax,[rsp+8]
1281 jmp short 0000000000001240h
and then other instructions 5696
and then the jump 1010
call without the frame 6706
functions 7191
SEEN
