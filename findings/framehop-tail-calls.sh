#!/usr/bin/env bash
# framehop 0.16.0 (a crate): where an epilog ends in a tail call through a register, it finds a wrong caller.
#
# A good guess: the caller is found at each instruction of an epilog that Windows knows. Besides RET and direct jumps
# these are RET with a number, REP RET, and an indirect jump with the prefix REX.W, which compilers write for tail calls
# so that the unwinder tells them from jumps of a switch (dotnet/runtime, src/coreclr/unwinder/amd64/unwinder.cpp, has
# the unwinder of Windows; LLVM's TAILJMPr64_REX). rustc ends a function this way whose last call is one of a trait
# object. Seen: of an epilog of ADD, POP, POP and such an end, framehop knows the first place only. At the next three
# it undoes the prolog again, with a stack pointer that has moved already, and takes a word of a caller's frame.
set -euo pipefail
seen=$(python3 "$(dirname "${BASH_SOURCE[0]}")/crate.py" framehop 0.16.0 <<'TEXT'
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module, ModuleSectionInfo, Unwinder};
use std::ops::Range;

const BASE: u64 = 0x1_4000_0000;
const ENTRY: u64 = 0x7000_1000;

/// push rbx; push rsi; sub rsp, 28h; nop; add rsp, 28h; pop rsi; pop rbx.
const CODE: &[u8] = &[0x53, 0x56, 0x48, 0x83, 0xEC, 0x28, 0x90, 0x48, 0x83, 0xC4, 0x28, 0x5E, 0x5B];
/// Version 1, a prolog of 6 bytes, 3 codes: the stack of 28h bytes, RSI, RBX.
const UNWIND: &[u8] = &[1, 6, 3, 0, 6, 0x42, 2, 0x60, 1, 0x30, 0, 0];

struct Sections(Vec<u8>, Vec<u8>);

impl ModuleSectionInfo<Vec<u8>> for Sections {
    fn base_svma(&self) -> u64 {
        BASE
    }

    fn section_svma_range(&mut self, name: &[u8]) -> Option<Range<u64>> {
        let size = self.section_data(name)?.len() as u64;
        let start = BASE + [(&b".text"[..], 0x1000), (b".pdata", 0x2000), (b".xdata", 0x3000)]
            .into_iter().find_map(|(section, start)| (section == name).then_some(start))?;
        Some(start..start + size)
    }

    fn section_data(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        match name {
            b".text" => Some(self.0.clone()),
            b".pdata" => Some(self.1.clone()),
            b".xdata" => Some(UNWIND.to_vec()),
            _ => None,
        }
    }
}

fn main() {
    let ends: [(&str, &[u8]); 6] = [
        ("ret", &[0xC3]), ("jmp rip", &[0xFF, 0x25, 0, 0, 1, 0]), ("ret 8", &[0xC2, 8, 0]), ("rep ret", &[0xF3, 0xC3]),
        ("rex.w jmp rax", &[0x48, 0xFF, 0xE0]), ("rex.w jmp [rax+18h]", &[0x48, 0xFF, 0x60, 0x18]),
    ];
    for (name, end) in ends {
        let code = [CODE, end, &[0x90; 8]].concat();
        let function = [0x1000, 0x1000 + code.len() as u32, 0x3000].map(u32::to_le_bytes).concat();
        let mut unwinder = UnwinderX86_64::<Vec<u8>>::new();
        unwinder.add_module(Module::new("app".to_owned(), BASE..BASE + 0x4000, BASE, Sections(code, function)));
        let mut cache = CacheX86_64::new();
        // The body, and the four places of the epilog.
        let right = [(6, 0x38), (7, 0x38), (11, 0x10), (12, 8), (13, 0)].map(|(place, depth)| {
            let address = BASE + 0x1000 + place;
            let mut registers = UnwindRegsX86_64::new(address, ENTRY - depth, 0);
            let mut stack = |address| Ok(address);
            let frame = FrameAddress::from_instruction_pointer(address);
            let caller = unwinder.unwind_frame(frame, &mut registers, &mut cache, &mut stack);
            matches!(caller, Ok(Some(ENTRY))) && registers.sp() == ENTRY + 8
        });
        println!("{name}: {right:?}");
    }
}
TEXT
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
ret: [true, true, true, true, true]
jmp rip: [true, true, true, true, true]
ret 8: [true, true, false, false, false]
rep ret: [true, true, false, false, false]
rex.w jmp rax: [true, true, false, false, false]
rex.w jmp [rax+18h]: [true, true, false, false, false]
SEEN
