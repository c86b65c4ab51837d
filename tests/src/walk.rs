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
    /// Functions of the image that a function calls through pointers, which may be none. Without an entry, such calls
    /// have an unknown target.
    pub targets: BTreeMap<u64, BTreeSet<u64>>,
    /// Functions that an imported function calls before it returns, by the function that calls the import.
    pub callbacks: BTreeMap<(u64, String), BTreeSet<u64>>,
    /// Beginnings of functions. A jump to another one is a call that does not return; without them, its target belongs
    /// to the function that jumps.
    pub starts: BTreeSet<u64>,
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
    /// Calls: the caller, the stack that it has in use there, and the called function.
    pub calls: BTreeSet<(u64, u64, u64)>,
    /// The stack that each function needs.
    pub depths: BTreeMap<u64, u64>,
}

impl Reach {
    /// Returns the bytes of stack on the deepest path from `entry` that leads through a function, or `None` if none
    /// does.
    #[must_use]
    pub fn stack_through(&self, entry: u64, function: u64) -> Option<u64> {
        Some(self.stack_above(entry, function)? + self.depths.get(&function)?)
    }

    /// Returns the most stack in use when a function is called. A function that calls itself is not followed.
    fn stack_above(&self, entry: u64, function: u64) -> Option<u64> {
        if function == entry {
            return Some(0);
        }
        let callers = self.calls.iter().filter(|(caller, _, called)| *called == function && *caller != function);
        callers.filter_map(|(caller, depth, _)| Some(self.stack_above(entry, *caller)? + depth)).max()
    }
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
        let mut walk = Walk { image: self, reach: Reach::default(), callers: Vec::new() };
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

/// Bytes of a return address.
const RETURN_ADDRESS: u64 = 8;

/// A walk in progress.
struct Walk<'a> {
    image: &'a Image<'a>,
    reach: Reach,
    /// The chain of calls to the current function.
    callers: Vec<u64>,
}

impl Walk<'_> {
    /// Walks a function and returns the stack that it needs, including the return address.
    fn function(&mut self, entry: u64) -> u64 {
        if let Some(depth) = self.reach.depths.get(&entry) {
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
            let is_tail_call = self.is_tail_call(entry, &instruction);
            if is_tail_call {
                // The called function returns to the caller of this one.
                let (depth, called) = (depth.saturating_sub(RETURN_ADDRESS), instruction.near_branch_target());
                self.reach.calls.insert((entry, depth, called));
                deepest = deepest.max(depth + self.function(called));
            }
            let inside = (!is_tail_call).then(|| (instruction.near_branch_target(), depth));
            match flow {
                FlowControl::Return => {}
                FlowControl::ConditionalBranch => {
                    pending.extend(inside.into_iter().chain([(instruction.next_ip(), depth)]));
                }
                FlowControl::UnconditionalBranch if instruction.near_branch_target() == address => {
                    self.reach.endless.insert(address);
                }
                FlowControl::UnconditionalBranch => pending.extend(inside),
                FlowControl::Call => {
                    let called = instruction.near_branch_target();
                    self.reach.calls.insert((entry, depth, called));
                    deepest = deepest.max(depth + self.function(called));
                    pending.push((instruction.next_ip(), depth));
                }
                FlowControl::IndirectCall | FlowControl::IndirectBranch => {
                    for called in self.indirect(entry, &instruction) {
                        self.reach.calls.insert((entry, depth, called));
                        deepest = deepest.max(depth + self.function(called));
                    }
                    if flow == FlowControl::IndirectCall {
                        pending.push((instruction.next_ip(), depth));
                    }
                }
                _ => pending.push((instruction.next_ip(), depth)),
            }
        }
        self.callers.pop();
        self.reach.depths.insert(entry, deepest);
        deepest
    }

    /// Returns whether an instruction of a function jumps to another function.
    fn is_tail_call(&self, caller: u64, instruction: &Instruction) -> bool {
        let target = instruction.near_branch_target();
        matches!(instruction.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch)
            && target != caller
            && self.image.starts.contains(&target)
    }

    /// Records a call or a jump through a pointer: to an import, to known functions, or to an unknown target. Returns
    /// the functions in the image that may run before it returns.
    fn indirect(&mut self, caller: u64, instruction: &Instruction) -> BTreeSet<u64> {
        let slot = instruction.is_ip_rel_memory_operand().then(|| instruction.ip_rel_memory_address());
        if let Some(name) = slot.and_then(|slot| self.image.imports.get(&slot)) {
            self.reach.imports.insert(name.clone());
            return self.image.callbacks.get(&(caller, name.clone())).cloned().unwrap_or_default();
        }
        let targets = self.image.targets.get(&caller);
        if targets.is_none() {
            self.reach.unknown.insert(instruction.ip());
        }
        targets.cloned().unwrap_or_default()
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
        Image { code: vec![(BASE, code)], imports, ..Image::default() }.reach(BASE)
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

    #[test]
    fn a_call_through_a_pointer_needs_the_stack_of_its_deepest_target() {
        // sub rsp, 0x20; call rax; add rsp, 0x20; ret; nop; sub rsp, 0x100; add rsp, 0x100; ret; ret
        let mut code = vec![0x48, 0x83, 0xEC, 0x20, 0xFF, 0xD0, 0x48, 0x83, 0xC4, 0x20, 0xC3, 0x90];
        code.extend([0x48, 0x81, 0xEC, 0, 1, 0, 0, 0x48, 0x81, 0xC4, 0, 1, 0, 0, 0xC3, 0xC3]);
        let targets = BTreeMap::from([(BASE, BTreeSet::from([BASE + 12, BASE + 27]))]);
        let found = Image { code: vec![(BASE, &code)], targets, ..Image::default() }.reach(BASE);
        assert_eq!((found.stack, found.functions.len(), found.unknown.len()), (8 + 0x20 + 8 + 0x100, 3, 0));
        assert_eq!(found.stack_through(BASE, BASE + 27), Some(8 + 0x20 + 8));
    }

    #[test]
    fn a_jump_to_another_function_is_a_call_that_does_not_return() {
        // sub rsp, 0x20; add rsp, 0x20; je +1; ret; jmp +1; nop; push rax; pop rax; ret
        let code =
            [0x48, 0x83, 0xEC, 0x20, 0x48, 0x83, 0xC4, 0x20, 0x74, 0x01, 0xC3, 0xEB, 0x01, 0x90, 0x50, 0x58, 0xC3];
        let mut image = Image { code: vec![(BASE, &code)], ..Image::default() };
        assert_eq!((image.reach(BASE).stack, image.reach(BASE).functions.len()), (8 + 0x20, 1));
        image.starts = BTreeSet::from([BASE, BASE + 14]);
        let found = image.reach(BASE);
        assert_eq!((found.stack, found.functions.len()), (8 + 0x20, 2));
        assert_eq!(found.stack_through(BASE, BASE + 14), Some(8 + 8));
    }

    #[test]
    fn an_import_that_calls_back_needs_the_stack_of_what_it_calls() {
        // sub rsp, 0x20; call [import]; add rsp, 0x20; ret; push rax; pop rax; ret
        let mut code = vec![0x48, 0x83, 0xEC, 0x20];
        code.extend(through(0x15, 4, 0x1000));
        code.extend([0x48, 0x83, 0xC4, 0x20, 0xC3, 0x50, 0x58, 0xC3]);
        let mut image = Image { code: vec![(BASE, &code)], ..Image::default() };
        image.imports.insert(0x2000, "KeIpiGenericCall".to_owned());
        assert_eq!(image.reach(BASE).stack, 8 + 0x20);
        image.callbacks.insert((BASE, "KeIpiGenericCall".to_owned()), BTreeSet::from([BASE + 15]));
        let found = image.reach(BASE);
        assert_eq!((found.stack, found.imports.len()), (8 + 0x20 + 8 + 8, 1));
    }

    #[test]
    fn the_stack_through_a_function_is_that_of_its_deepest_callers_and_calls() {
        // sub rsp, 0x20; call +6; add rsp, 0x20; ret; nop; sub rsp, 0x100; add rsp, 0x100; ret
        let mut code = vec![0x48, 0x83, 0xEC, 0x20, 0xE8, 0x06, 0, 0, 0, 0x48, 0x83, 0xC4, 0x20, 0xC3, 0x90];
        code.extend([0x48, 0x81, 0xEC, 0, 1, 0, 0, 0x48, 0x81, 0xC4, 0, 1, 0, 0, 0xC3]);
        let found = reach(&code);
        assert_eq!(found.stack_through(BASE, BASE + 15), Some(8 + 0x20 + 8 + 0x100));
        assert_eq!(found.stack_through(BASE, BASE + 14), None);
    }
}
