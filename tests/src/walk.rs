//! A walk through compiled code: the functions that a function can reach, and the stack that they need.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

/// The code of an image, at its preferred base address.
#[derive(Debug, Clone, Default)]
pub struct Image<'a> {
    /// Executable sections: address and bytes.
    pub code: Vec<(u64, &'a [u8])>,
    /// Slots of the import table, and the function of each.
    pub imports: BTreeMap<u64, String>,
}

/// What a function can reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Imported functions.
    pub imports: BTreeSet<String>,
    /// Calls and jumps with an unknown target, and instructions after which the stack depth is unknown.
    pub unknown: BTreeSet<u64>,
    /// Instructions that trap or halt: UD and INT instructions, HLT.
    pub traps: BTreeSet<u64>,
    /// Jumps to themselves, that is, endless loops.
    pub endless: BTreeSet<u64>,
    /// Functions that call themselves, directly or through others.
    pub recursive: BTreeSet<u64>,
    /// Functions, including the first one.
    pub functions: BTreeSet<u64>,
    /// Bytes of stack on the deepest path, with return addresses but without the stack of imports.
    pub stack: u64,
}

impl Image<'_> {
    /// Returns what the function at `entry` can reach.
    #[must_use]
    pub fn reach(&self, entry: u64) -> Reach {
        self.reach_from([entry])
    }

    /// Returns what the functions at `entries` can reach together.
    #[must_use]
    pub fn reach_from(&self, entries: impl IntoIterator<Item = u64>) -> Reach {
        let mut walk = Walk { image: self, reach: Reach::default(), depths: BTreeMap::new(), callers: Vec::new() };
        let stack = entries.into_iter().map(|entry| walk.function(entry)).max().unwrap_or_default();
        Reach { stack, ..walk.reach }
    }

    fn at(&self, address: u64) -> Option<Instruction> {
        let inside = |(start, bytes): &&(u64, &[u8])| (*start..start + bytes.len() as u64).contains(&address);
        let (start, bytes) = self.code.iter().find(inside)?;
        let bytes = bytes.get(usize::try_from(address - start).ok()?..)?;
        let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
        Some(instruction).filter(|instruction| instruction.code() != Code::INVALID)
    }
}

/// A walk in progress.
struct Walk<'a> {
    image: &'a Image<'a>,
    reach: Reach,
    /// Completed functions, with the stack that each needs.
    depths: BTreeMap<u64, u64>,
    /// The chain of calls to the current function.
    callers: Vec<u64>,
}

impl Walk<'_> {
    /// Walks a function and returns the stack that it needs, including the return address.
    fn function(&mut self, entry: u64) -> u64 {
        if let Some(depth) = self.depths.get(&entry) {
            return *depth;
        }
        if self.callers.contains(&entry) {
            self.reach.recursive.insert(entry);
            return 0;
        }
        self.callers.push(entry);
        self.reach.functions.insert(entry);
        let (mut deepest, mut seen) = (8, BTreeMap::new());
        // Addresses to continue at, with the stack in use there.
        let mut pending = vec![(entry, 8_u64)];
        while let Some((address, depth)) = pending.pop() {
            if let Some(before) = seen.insert(address, depth) {
                if before != depth {
                    // A loop that uses more stack in each iteration, or paths with different stack depths.
                    self.reach.unknown.insert(address);
                }
                continue;
            }
            let Some(instruction) = self.image.at(address) else {
                self.reach.unknown.insert(address);
                continue;
            };
            let depth = after(&instruction, depth).unwrap_or_else(|| {
                self.reach.unknown.insert(address);
                depth
            });
            deepest = deepest.max(depth);
            let flow = instruction.flow_control();
            if matches!(flow, FlowControl::Exception | FlowControl::Interrupt)
                || instruction.mnemonic() == Mnemonic::Hlt
            {
                self.reach.traps.insert(address);
                continue;
            }
            match flow {
                FlowControl::Return => {}
                FlowControl::ConditionalBranch => {
                    pending.extend([(instruction.near_branch_target(), depth), (instruction.next_ip(), depth)]);
                }
                FlowControl::UnconditionalBranch if instruction.near_branch_target() == address => {
                    self.reach.endless.insert(address);
                }
                FlowControl::UnconditionalBranch => pending.push((instruction.near_branch_target(), depth)),
                FlowControl::Call => {
                    deepest = deepest.max(depth + self.function(instruction.near_branch_target()));
                    pending.push((instruction.next_ip(), depth));
                }
                FlowControl::IndirectCall => {
                    self.import(&instruction);
                    pending.push((instruction.next_ip(), depth));
                }
                FlowControl::IndirectBranch => self.import(&instruction),
                _ => pending.push((instruction.next_ip(), depth)),
            }
        }
        self.callers.pop();
        self.depths.insert(entry, deepest);
        deepest
    }

    /// Records a call or a jump through memory: to an import, or to an unknown target.
    fn import(&mut self, instruction: &Instruction) {
        let slot = instruction.is_ip_rel_memory_operand().then(|| instruction.ip_rel_memory_address());
        match slot.and_then(|slot| self.image.imports.get(&slot)) {
            Some(name) => self.reach.imports.insert(name.clone()),
            None => self.reach.unknown.insert(instruction.ip()),
        };
    }
}

/// Returns the stack in use after an instruction (for a call, after it has returned), or `None` if the instruction does
/// not determine it.
fn after(instruction: &Instruction, depth: u64) -> Option<u64> {
    if matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return) {
        return Some(depth);
    }
    let to_stack = instruction.op0_kind() == OpKind::Register && instruction.op0_register() == Register::RSP;
    let constant = matches!(instruction.op1_kind(), OpKind::Immediate8to64 | OpKind::Immediate32to64);
    let moved = match instruction.mnemonic() {
        Mnemonic::Sub if to_stack && constant => instruction.immediate(1).cast_signed().checked_neg()?,
        Mnemonic::Add if to_stack && constant => instruction.immediate(1).cast_signed(),
        Mnemonic::Push | Mnemonic::Pushfq | Mnemonic::Popfq => instruction.stack_pointer_increment().into(),
        Mnemonic::Pop if !to_stack => instruction.stack_pointer_increment().into(),
        _ if writes_stack_pointer(instruction) => return None,
        _ => 0,
    };
    depth.checked_add_signed(moved.checked_neg()?)
}

fn writes_stack_pointer(instruction: &Instruction) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(instruction).used_registers();
    used.iter().any(|used| {
        used.register().full_register() == Register::RSP
            && !matches!(used.access(), OpAccess::None | OpAccess::NoMemAccess | OpAccess::Read | OpAccess::CondRead)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x1000;

    fn reach(code: &[u8]) -> Reach {
        let imports = BTreeMap::from([(0x2000, "ExAllocatePool2".to_owned())]);
        Image { code: vec![(BASE, code)], imports }.reach(BASE)
    }

    /// Encodes CALL or JMP, at offset `at`, through the import slot at offset `slot`.
    fn through(operation: u8, at: u8, slot: u32) -> [u8; 6] {
        let [a, b, c, d] = (slot - u32::from(at) - 6).to_le_bytes();
        [0xFF, operation, a, b, c, d]
    }

    #[test]
    fn an_import_is_found_behind_a_call_a_branch_and_a_tail_call() {
        // test al, al; je +1; ret; call +1; ret; jmp [import]
        let mut code = vec![0x84, 0xC0, 0x74, 0x01, 0xC3, 0xE8, 0x01, 0, 0, 0, 0xC3];
        code.extend(through(0x25, 11, 0x1000));
        let found = reach(&code);
        assert_eq!(found.imports.into_iter().collect::<Vec<_>>(), ["ExAllocatePool2"]);
        assert_eq!((found.functions.len(), found.unknown.len()), (2, 0));
    }

    #[test]
    fn an_unknown_target_is_reported() {
        let mut code = through(0x15, 0, 0x1008).to_vec(); // not a slot of an import
        code.extend([0xFF, 0xD0, 0xC3]); // call rax; ret
        assert_eq!(reach(&code).unknown.into_iter().collect::<Vec<_>>(), [BASE, BASE + 6]);
        assert_eq!(reach(&[0xE9, 0, 1, 0, 0]).unknown.len(), 1, "beyond the code");
    }

    #[test]
    fn traps_and_endless_loops_are_found() {
        // je +2; jmp self; ud2
        let found = reach(&[0x74, 0x02, 0xEB, 0xFE, 0x0F, 0x0B]);
        assert_eq!((found.endless.len(), found.traps.len()), (1, 1));
    }

    #[test]
    fn recursion_is_found_through_another_function() {
        // call +1; ret; call -11; ret
        let found = reach(&[0xE8, 0x01, 0, 0, 0, 0xC3, 0xE8, 0xF5, 0xFF, 0xFF, 0xFF, 0xC3]);
        assert_eq!(found.recursive.into_iter().collect::<Vec<_>>(), [BASE + 1 - 1]);
    }

    #[test]
    fn the_stack_is_that_of_the_deepest_path() {
        // push rbx; sub rsp, 0x20; je +5; call +8; add rsp, 0x20; pop rbx; ret; sub rsp, 0x100; add rsp, 0x100; ret
        let mut code = vec![0x53, 0x48, 0x83, 0xEC, 0x20, 0x74, 0x05, 0xE8, 0x06, 0, 0, 0];
        code.extend([0x48, 0x83, 0xC4, 0x20, 0x5B, 0xC3]);
        code.extend([0x48, 0x81, 0xEC, 0, 1, 0, 0, 0x48, 0x81, 0xC4, 0, 1, 0, 0, 0xC3]);
        assert_eq!(reach(&code).stack, 8 + 8 + 0x20 + 8 + 0x100);
    }

    #[test]
    fn an_instruction_with_an_unknown_effect_on_the_stack_is_reported() {
        let cases: [(&str, &[u8]); 6] = [
            ("sub rsp, rax", &[0x48, 0x29, 0xC4]),
            ("and rsp, -4096", &[0x48, 0x81, 0xE4, 0x00, 0xF0, 0xFF, 0xFF]),
            ("lea rsp, [rsp - 4096]", &[0x48, 0x8D, 0xA4, 0x24, 0x00, 0xF0, 0xFF, 0xFF]),
            ("mov rsp, rcx", &[0x48, 0x89, 0xCC]),
            ("pop rsp", &[0x5C]),
            ("enter 4096, 0", &[0xC8, 0x00, 0x10, 0x00]),
        ];
        for (name, code) in cases {
            let found = reach(&[code, &[0xC3]].concat());
            assert_eq!(found.unknown.into_iter().collect::<Vec<_>>(), [BASE], "{name}");
        }
    }

    #[test]
    fn every_instruction_with_a_constant_effect_on_the_stack_is_counted() {
        let cases: [(&str, &[u8], u64); 4] = [
            ("push -1; pop rax", &[0x6A, 0xFF, 0x58], 8),
            ("push ax; pop ax", &[0x66, 0x50, 0x66, 0x58], 2),
            ("pushfq; popfq", &[0x9C, 0x9D], 8),
            ("add rsp, -128; sub rsp, -128", &[0x48, 0x83, 0xC4, 0x80, 0x48, 0x83, 0xEC, 0x80], 128),
        ];
        for (name, code, stack) in cases {
            let found = reach(&[code, &[0xC3]].concat());
            assert_eq!((found.stack, found.unknown.len()), (8 + stack, 0), "{name}");
        }
    }

    #[test]
    fn paths_that_disagree_on_the_stack_are_reported() {
        // push rax; jmp -3
        assert_eq!(reach(&[0x50, 0xEB, 0xFD]).unknown.into_iter().collect::<Vec<_>>(), [BASE]);
        // je +1; push rax; ret
        assert_eq!(reach(&[0x74, 0x01, 0x50, 0xC3]).unknown.into_iter().collect::<Vec<_>>(), [BASE + 3]);
    }

    #[test]
    fn every_instruction_that_traps_or_halts_is_a_trap() {
        for code in [&[0x0F, 0x0B][..], &[0x0F, 0xB9, 0xC0], &[0xCC], &[0xF1], &[0xCD, 0x29], &[0xF4]] {
            assert_eq!(reach(code).traps.len(), 1, "{code:x?}");
        }
    }
}
