//! The branches that a program of Windows takes: its thread executes its own code, one instruction after the other.

use std::fs;
use std::ops::Range;
use std::path::Path;

use bench_protocol::{BranchKind, TakenBranch};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use object::read::pe::PeFile64;
use object::{Object, ObjectSection};

/// RFLAGS.TF.
const TRAP_FLAG: u64 = 1 << 8;

/// The code of a program in memory.
pub struct Code64 {
    bytes: Vec<u8>,
    addresses: Range<u64>,
}

impl Code64 {
    /// Reads the code of an image that is loaded at `base`.
    pub fn read(image: &Path, base: u64) -> Self {
        let image = fs::read(image).unwrap();
        let file = PeFile64::parse(&*image).unwrap();
        let text = file.section_by_name(".text").unwrap();
        let begin = text.address() - file.relative_address_base() + base;
        Self { bytes: text.data().unwrap().to_vec(), addresses: begin..begin + text.size() }
    }

    fn instruction(&self, address: u64) -> Instruction {
        let offset = usize::try_from(address - self.addresses.start).unwrap();
        Decoder::with_ip(64, &self.bytes[offset..], address, DecoderOptions::NONE).decode()
    }
}

fn kind(instruction: &Instruction) -> BranchKind {
    match instruction.flow_control() {
        FlowControl::ConditionalBranch => BranchKind::Conditional,
        FlowControl::UnconditionalBranch => BranchKind::DirectJump,
        FlowControl::IndirectBranch => BranchKind::IndirectJump,
        FlowControl::Call => BranchKind::DirectCall,
        FlowControl::IndirectCall => BranchKind::IndirectCall,
        FlowControl::Return => BranchKind::Return,
        _ => panic!("{instruction} does not branch"),
    }
}

/// Returns the process of Linux that runs a program of Windows.
pub fn process_of(program: &Path) -> Pid {
    let name = program.file_name().unwrap().as_encoded_bytes();
    let is_it = |process: &Pid| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).next().is_some_and(|program| program.ends_with(name))
    };
    let entries = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    let numbers = entries.filter_map(|name| name.to_str()?.parse().ok()).map(Pid::from_raw);
    numbers.filter(is_it).last().unwrap()
}

/// Steps a thread from `begin` until it leaves the code. Returns the branches that it takes in between, in order.
/// `wake` ends the wait in which the thread is.
pub fn taken(thread: Pid, code: &Code64, begin: u64, wake: impl FnOnce()) -> Vec<TakenBranch> {
    ptrace::attach(thread).unwrap();
    assert!(matches!(waitpid(thread, None).unwrap(), WaitStatus::Stopped(..)));
    wake();
    let (mut taken, mut has_begun, mut before, mut signal) = (Vec::new(), false, 0, None);
    loop {
        ptrace::step(thread, signal).unwrap();
        signal = match waitpid(thread, None).unwrap() {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => None,
            WaitStatus::Stopped(_, other) => Some(other),
            status => panic!("the program ended: {status:?}"),
        };
        let now = ptrace::getregs(thread).unwrap().rip;
        has_begun |= now == begin;
        if !has_begun {
            before = now;
            continue;
        }
        let instruction = code.addresses.contains(&before).then(|| code.instruction(before));
        if let Some(instruction) = instruction
            && instruction.next_ip() != now
            && instruction.code() != Code::INVALID
        {
            if !code.addresses.contains(&now) {
                detach(thread, signal);
                return taken;
            }
            taken.push(TakenBranch { from: before, to: now, kind: kind(&instruction), mispredicted: false, cycles: 1 });
        }
        before = now;
    }
}

/// Lets the thread run on. Wine's way into system calls stores the flags and loads them again, among them the one by
/// which a thread is stepped.
fn detach(thread: Pid, signal: Option<Signal>) {
    let mut registers = ptrace::getregs(thread).unwrap();
    registers.eflags &= !TRAP_FLAG;
    ptrace::setregs(thread, registers).unwrap();
    ptrace::detach(thread, signal).unwrap();
}
