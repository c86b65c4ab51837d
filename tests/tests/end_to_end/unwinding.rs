//! Call stacks at every instruction of the functions of workload.exe. Three sources of the callers must agree:
//!
//! - the calls that the program executed and that have not returned, which follow from its instructions alone;
//! - framehop, from registers, stack and the unwind data of the file;
//! - RtlVirtualUnwind of Wine, which the program calls.
//!
//! They differ in three cases. What is right in the first two follows from the calls, and agrees with the copy of
//! Windows' unwinder in .NET (`src/coreclr/unwinder/amd64/unwinder.cpp` of dotnet/runtime). "x64 prolog and epilog" of
//! Microsoft describes only RET and jumps through memory.
//!
//! - The next instruction is a direct JMP to the same function. framehop 0.16 takes every direct JMP for the end of an
//!   epilog, and so the word at RSP for the return address. Wine is right: in an epilog the target must be another
//!   function. The test gives framehop the code without these jumps as well, and then it is right everywhere.
//! - The rest of an epilog ends in a jump to another function, direct or through memory. Wine 8 takes only RET for the
//!   end of an epilog (`is_inside_epilog` in `dlls/ntdll/signal_x86_64.c`), and undoes the whole prolog again. framehop
//!   is right.
//! - A call is the last instruction of a function, so the return address belongs to the next function. framehop looks
//!   for the unwind data at the return address - 1 and finds the caller. RtlVirtualUnwind is given the function at the
//!   return address itself, as Microsoft documents it, so it undoes the prolog of the next function. framehop is right.
//!   Compilers avoid the case for this reason: LLVM inserts INT3 after such a call (X86AvoidTrailingCall.cpp). The
//!   program has it in assembly language.
//!
//! Frames are displayed with the symbol at the return address - 1, which is right in every case.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;

use framehop::x86_64::{CacheX86_64, Reg, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, ModuleSectionInfo, Unwinder};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use object::read::pe::PeFile64;
use object::{LittleEndian as LE, Object, ObjectSection};
use recording::{Module, Process, StackId};
use report::{PeHeaders, Processes, SampleLocation, SymbolFinder, SymbolIndex};
use serde::Deserialize;
use tests::{CALLER_SHARES, Function, Lab, artifacts};

/// Registers in the order of their numbers in instructions.
const REGISTERS: [Reg; 16] = [
    Reg::RAX,
    Reg::RCX,
    Reg::RDX,
    Reg::RBX,
    Reg::RSP,
    Reg::RBP,
    Reg::RSI,
    Reg::RDI,
    Reg::R8,
    Reg::R9,
    Reg::R10,
    Reg::R11,
    Reg::R12,
    Reg::R13,
    Reg::R14,
    Reg::R15,
];

/// The function whose last instruction is a call.
const END_WITH_CALL: &str = "end_with_call";

/// An instruction that is executed next.
#[derive(Debug, Deserialize)]
struct Step {
    ip: u64,
    registers: [u64; 16],
    /// Words from RSP to the frame of the entry point.
    stack: Vec<u64>,
    /// Return addresses by RtlVirtualUnwind.
    callers: Vec<u64>,
}

impl Step {
    fn stack_pointer(&self) -> u64 {
        self.registers[4]
    }

    fn word(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.stack_pointer()).filter(|offset| offset % 8 == 0)?;
        self.stack.get(usize::try_from(offset / 8).ok()?).copied()
    }
}

/// The file workload.exe.
struct Program {
    bytes: Vec<u8>,
    base: u64,
    size: u64,
}

impl Program {
    fn read() -> Self {
        let bytes = fs::read(artifacts().unwrap().join("workload.exe")).unwrap();
        let file = PeFile64::parse(&*bytes).unwrap();
        let (base, size) = (file.relative_address_base(), file.nt_headers().optional_header.size_of_image.get(LE));
        Self { base, size: size.into(), bytes }
    }

    fn file(&self) -> PeFile64<'_> {
        PeFile64::parse(&*self.bytes).unwrap()
    }

    fn contains(&self, address: u64) -> bool {
        (self.base..self.base + self.size).contains(&address)
    }

    /// Returns the callers up to the first one outside of the program.
    fn own<'a>(&self, callers: &'a [u64]) -> &'a [u64] {
        let outside = callers.iter().position(|caller| !self.contains(*caller));
        outside.map_or(callers, |outside| &callers[..=outside])
    }

    /// Returns the instructions in `addresses`.
    fn instructions(&self, addresses: Range<u64>) -> Vec<Instruction> {
        let file = self.file();
        let code = file.section_by_name(".text").unwrap();
        let code = code.data_range(addresses.start, addresses.end - addresses.start).unwrap().unwrap();
        Decoder::with_ip(64, code, addresses.start, DecoderOptions::NONE).into_iter().collect()
    }

    fn instruction(&self, address: u64) -> Instruction {
        const LONGEST: u64 = 15;
        self.instructions(address..address + LONGEST)[0]
    }
}

/// The sections of a file, which is loaded at the address that it prefers.
struct Sections<'a> {
    file: PeFile64<'a>,
    /// Addresses of instructions that are replaced by NOP.
    hidden: Vec<u64>,
}

impl ModuleSectionInfo<Vec<u8>> for Sections<'_> {
    fn base_svma(&self) -> u64 {
        self.file.relative_address_base()
    }

    fn section_svma_range(&mut self, name: &[u8]) -> Option<Range<u64>> {
        let section = self.file.section_by_name_bytes(name)?;
        Some(section.address()..section.address() + section.size())
    }

    fn section_data(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        const NOP: u8 = 0x90;
        let start = self.section_svma_range(name)?.start;
        let mut bytes = self.file.section_by_name_bytes(name)?.data().ok()?.to_vec();
        for place in self.hidden.iter().filter_map(|address| usize::try_from(address.checked_sub(start)?).ok()) {
            if let Some(byte) = bytes.get_mut(place) {
                *byte = NOP;
            }
        }
        Some(bytes)
    }
}

/// Returns an unwinder of the program, without the instructions at the addresses in `hidden`.
fn unwinder(program: &Program, hidden: Vec<u64>) -> UnwinderX86_64<Vec<u8>> {
    let mut unwinder = UnwinderX86_64::new();
    let (addresses, sections) = (program.base..program.base + program.size, Sections { file: program.file(), hidden });
    unwinder.add_module(framehop::Module::new("workload.exe".to_owned(), addresses, program.base, sections));
    unwinder
}

/// Returns the callers by framehop, up to the first one outside of the program.
fn unwound(program: &Program, unwinder: &UnwinderX86_64<Vec<u8>>, step: &Step) -> Vec<u64> {
    let mut registers = UnwindRegsX86_64::new(step.ip, 0, 0);
    for (register, value) in REGISTERS.into_iter().zip(step.registers) {
        registers.set(register, value);
    }
    let (mut cache, mut read) = (CacheX86_64::new(), |address| step.word(address).ok_or(()));
    let mut frames = unwinder.iter_frames(step.ip, registers, &mut cache, &mut read);
    let mut callers = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        if let FrameAddress::ReturnAddress(address) = frame {
            callers.push(address.get());
            if !program.contains(address.get()) {
                break;
            }
        }
    }
    callers
}

/// A call that has not returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Call {
    /// Address of the instruction.
    site: u64,
    return_address: u64,
    /// Where the return address is on the stack.
    slot: u64,
}

/// Returns the calls that have not returned at each step, the innermost first.
fn calls(program: &Program, steps: &[Step]) -> Vec<Vec<Call>> {
    let mut calls: Vec<Call> = Vec::new();
    let mut last: Option<Instruction> = None;
    let at_step = |step: &Step| {
        let slot = step.stack_pointer();
        if let Some(last) = last
            && matches!(last.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
        {
            assert_eq!(step.word(slot), Some(last.next_ip()), "{:x}: a call pushes its return address", last.ip());
            calls.push(Call { site: last.ip(), return_address: last.next_ip(), slot });
        }
        calls.retain(|call| call.slot >= slot);
        last = Some(program.instruction(step.ip));
        calls.iter().rev().copied().collect()
    };
    steps.iter().map(at_step).collect()
}

/// The symbols of the program as a report shows them.
struct Symbols(SymbolIndex);

impl Symbols {
    const PROCESS: u32 = 8;

    fn of(program: &Program, addresses: &BTreeSet<u64>) -> Self {
        let folder = artifacts().unwrap();
        let path = folder.join("workload.exe");
        let PeHeaders { timestamp, image_size, debug, .. } = PeHeaders::read(&path).unwrap().unwrap();
        assert!(debug.is_some(), "a PDB");
        let path = path.to_string_lossy().into_owned();
        let module = Module { base: program.base, size: program.size, path, timestamp, image_size, debug };
        let mut processes = Processes::default();
        let name = "workload.exe".to_owned();
        processes.add(&Process { id: Self::PROCESS, created: None, name, modules: vec![module] });
        let finder = SymbolFinder::new(vec![folder], None, None).unwrap();
        let index = SymbolIndex::of(&processes, addresses.iter().copied().map(Self::location), &finder);
        assert_eq!(index.missing(), []);
        Self(index)
    }

    fn location(ip: u64) -> SampleLocation {
        SampleLocation {
            event: 0,
            core_type: 0,
            process: Self::PROCESS.into(),
            thread: 0,
            processor: 0,
            parallelism: 0,
            kernel: false,
            ip,
            stack: StackId::NOT_RECORDED,
        }
    }

    /// Returns the name of the function at an address, without its path.
    fn name(&self, address: u64) -> String {
        let symbol = self.0.symbol(&Self::location(address));
        symbol.trim_end_matches("()").rsplit("::").next().unwrap().to_owned()
    }
}

/// Runs the program one instruction at a time. Returns its functions and the steps.
fn stepped() -> (Vec<Function>, Vec<Step>) {
    let lab = Lab::boot("amd-legacy").unwrap();
    let program = artifacts().unwrap().join("workload.exe");
    let ran = lab.wine().run(&program.to_string_lossy(), &["steps"]).unwrap();
    lab.finish().unwrap();
    let ran = ran.success().unwrap();
    let mut lines = ran.out.lines();
    let functions = serde_json::from_str(lines.next().unwrap()).unwrap();
    (functions, lines.map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn unwinders_and_symbols_agree_with_the_executed_calls_at_every_instruction() {
    let (functions, steps) = stepped();
    let program = Program::read();
    let calls = calls(&program, &steps);
    let function_at =
        |address| functions.iter().find(|it: &&Function| (it.address..it.address + it.size).contains(&address));

    let executed: BTreeSet<u64> = steps.iter().map(|step| step.ip).collect();
    for Function { name, address, size } in &functions {
        let instructions = program.instructions(*address..address + size);
        assert!(instructions.len() > 2, "{name}");
        // The compiler aligns loops by NOPs, some of them after a jump.
        let instructions = instructions.iter().filter(|instruction| instruction.mnemonic() != Mnemonic::Nop);
        let skipped = instructions.filter(|instruction| !executed.contains(&instruction.ip()));
        let skipped: Vec<_> = skipped.map(|instruction| (instruction.ip(), instruction.code())).collect();
        assert!(skipped.is_empty(), "{name}: {skipped:x?}");
    }

    let jumps: BTreeSet<u64> = functions.iter().flat_map(|function| own_jumps(&program, function)).collect();
    let with_jumps = unwinder(&program, Vec::new());
    let without_jumps = unwinder(&program, jumps.iter().copied().collect());
    let outermost = *steps[0].stack.last().unwrap();
    assert!(!program.contains(outermost), "the caller of the entry point is kernel32.dll");
    let exits: BTreeSet<u64> = functions.iter().flat_map(|function| exits(&program, function)).collect();
    let (mut wrong_at_jumps, mut wrong) = (0, BTreeMap::<&str, u32>::new());
    for (step, calls) in steps.iter().zip(&calls) {
        let expected: Vec<u64> = calls.iter().map(|call| call.return_address).chain([outermost]).collect();
        let place = || format!("{:x} in {:?}: {step:x?}", step.ip, function_at(step.ip));
        assert_eq!(unwound(&program, &without_jumps, step), expected, "framehop, {}", place());
        if unwound(&program, &with_jumps, step) != expected {
            assert!(jumps.contains(&step.ip), "framehop without the change, {}", place());
            wrong_at_jumps += 1;
        }
        let callers = program.own(&step.callers);
        let at_the_end = calls.iter().position(|call| function_at(call.site).is_some_and(is_the_end(call)));
        let right = if exits.contains(&step.ip) { Some(0) } else { at_the_end.map(|last| last + 1) };
        if let Some(right) = right {
            *wrong.entry(function_at(step.ip).unwrap().name.as_str()).or_default() += 1;
            assert_eq!(callers[..right], expected[..right], "RtlVirtualUnwind, {}", place());
            assert_ne!(callers, expected, "RtlVirtualUnwind, {}", place());
        } else {
            assert_eq!(callers, expected, "RtlVirtualUnwind, {}", place());
        }
    }
    assert!(wrong_at_jumps > 0, "framehop no longer needs the change");
    // Two calls of a function with POP and JMP, two of one with JMP, one of the function that END_WITH_CALL calls.
    assert_eq!(wrong, BTreeMap::from([("jump_near", 4), ("jump_through_memory", 2), ("skip_caller", 3)]));

    let calls: BTreeMap<u64, u64> = calls.iter().flatten().map(|call| (call.return_address, call.site)).collect();
    let callers = calls.keys().flat_map(|caller| [caller - 1, *caller]);
    let symbols = Symbols::of(&program, &executed.iter().copied().chain(callers).collect());
    let expected = |address| function_at(address).map(|function| function.name.as_str());
    let is_expected = |name: &str, address| match expected(address) {
        Some(expected) => name == expected,
        None => functions.iter().all(|function| function.name != name),
    };
    for address in &executed {
        assert!(is_expected(&symbols.name(*address), *address), "{address:x}: {}", symbols.name(*address));
    }
    for (caller, site) in &calls {
        let name = symbols.name(caller - 1);
        assert!(is_expected(&name, *site), "{caller:x}: {name} instead of {:?}", expected(*site));
        // The subtraction is necessary exactly where a call is the last instruction.
        assert_eq!(symbols.name(*caller) != name, name == END_WITH_CALL, "{caller:x}: {name}");
    }
    assert!(calls.len() > 20, "{calls:x?}");
}

/// Returns the addresses of direct jumps to the same function.
fn own_jumps(program: &Program, function: &Function) -> Vec<u64> {
    let addresses = function.address..function.address + function.size;
    let is_jump = |instruction: &&Instruction| {
        instruction.flow_control() == FlowControl::UnconditionalBranch
            && addresses.contains(&instruction.near_branch_target())
    };
    program.instructions(addresses.clone()).iter().filter(is_jump).map(Instruction::ip).collect()
}

/// Returns the addresses of jumps to other functions, and of the POPs before them.
fn exits(program: &Program, function: &Function) -> Vec<u64> {
    let addresses = function.address..function.address + function.size;
    let instructions = program.instructions(addresses.clone());
    let is_exit = |instruction: &Instruction| match instruction.flow_control() {
        FlowControl::UnconditionalBranch => !addresses.contains(&instruction.near_branch_target()),
        FlowControl::IndirectBranch => true,
        _ => false,
    };
    let places = (0..instructions.len()).filter(|place| is_exit(&instructions[*place]));
    let epilog = |place: usize| {
        let before = instructions[..place].iter().rev().take_while(|before| before.mnemonic() == Mnemonic::Pop);
        before.chain([&instructions[place]]).map(Instruction::ip).collect::<Vec<_>>()
    };
    places.flat_map(epilog).collect()
}

/// Returns whether a function ends with a call.
fn is_the_end(call: &Call) -> impl Fn(&Function) -> bool {
    let end = call.return_address;
    move |function| function.address + function.size == end
}

#[test]
fn the_stacks_of_the_interrupt_sites_have_the_stated_callers() {
    let lab = Lab::boot("amd-legacy").unwrap();
    let workload = lab.workload().unwrap();
    let (sites, stacks): (Vec<_>, Vec<_>) = workload.description.traced_sites().unwrap().into_iter().unzip();
    drop(workload);
    lab.finish().unwrap();

    let program = Program::read();
    let addresses = stacks.iter().flat_map(|stack| &stack.user).flat_map(|address| [*address, address - 1]).collect();
    let symbols = Symbols::of(&program, &addresses);
    let mut weights: BTreeMap<String, u32> = BTreeMap::new();
    for (site, stack) in sites.iter().zip(&stacks) {
        assert_eq!((stack.ip, stack.process, stack.raised), (site.ip, site.process, false));
        let callers = if site.user {
            assert_eq!((stack.kernel.len(), stack.user[0]), (0, site.ip));
            &stack.user[1..]
        } else {
            assert_eq!((stack.kernel.len(), stack.kernel[0]), (3, site.ip));
            &stack.user[..]
        };
        let own = program.own(callers);
        let outside = callers.len() - own.len() + 1;
        assert!(outside >= 2, "kernel32.dll and ntdll.dll: {callers:x?}");
        let names: Vec<String> = own[..own.len() - 1].iter().map(|caller| symbols.name(caller - 1)).collect();
        assert_eq!(names.last().map(String::as_str), Some("start"), "{names:?}");
        assert!((3..=6).contains(&names.len()), "{names:?}");
        for name in names.into_iter().collect::<BTreeSet<_>>() {
            *weights.entry(name).or_default() += site.weight;
        }
    }
    let total: u32 = sites.iter().map(|site| site.weight).sum();
    assert_eq!(weights.remove("start"), Some(total));
    let shares: BTreeMap<&str, f64> =
        weights.iter().map(|(name, weight)| (name.as_str(), f64::from(*weight) * 100.0 / f64::from(total))).collect();
    assert_eq!(shares, BTreeMap::from(CALLER_SHARES));
}
