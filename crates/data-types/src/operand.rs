//! The operand of an instruction in memory.

use std::collections::BTreeSet;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register, UsedMemory,
};

/// Maximum number of bytes of a function in which registers are followed.
const MAX_CODE: usize = 0x1_0000;

/// What an instruction does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It reads it.
    Load,
    /// It writes it.
    Store,
}

/// The code of a function.
#[derive(Clone, Copy, Debug)]
pub struct Code<'a> {
    /// Address of the first byte relative to the image.
    pub address: u32,
    /// The bytes from there on. A register is followed only within them.
    pub bytes: &'a [u8],
    /// Whether it is 64-bit code.
    pub is_64_bit: bool,
}

/// An operand in memory: base, index and displacement. Its text is that of an assembler: `[rbx+rcx*8+0x18]`.
#[derive(Clone, Copy, Debug)]
pub struct MemoryOperand {
    segment: Register,
    pub(crate) base: Register,
    pub(crate) index: Register,
    pub(crate) scale: u32,
    /// From the base; if the operand is relative to the instruction, the address relative to the image.
    pub(crate) displacement: i64,
    size: u32,
    /// Address of the next instruction, if the operand is relative to it.
    next: Option<i64>,
}

impl MemoryOperand {
    /// Returns the operand that an instruction reads or writes. An instruction that copies has one of each.
    pub(crate) fn of(instruction: &Instruction, operation: Operation) -> Option<Self> {
        let mut factory = InstructionInfoFactory::new();
        let used = factory.info(instruction).used_memory().to_vec();
        let matches = |memory: &&UsedMemory| {
            let (reads, writes) = match memory.access() {
                OpAccess::Read | OpAccess::CondRead => (true, false),
                OpAccess::Write | OpAccess::CondWrite => (false, true),
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
                _ => (false, false),
            };
            if operation == Operation::Load { reads } else { writes }
        };
        let memory = used.iter().find(matches)?;
        let is_relative = instruction.is_ip_rel_memory_operand() && memory.base() == Register::None;
        Some(Self {
            segment: memory.segment(),
            base: memory.base(),
            index: memory.index(),
            scale: memory.scale(),
            displacement: memory.displacement().cast_signed(),
            size: u32::try_from(memory.memory_size().size()).unwrap_or(0),
            next: is_relative.then(|| instruction.next_ip().cast_signed()),
        })
    }

    /// Returns the number of bytes; 0 if it is unknown.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Returns the address relative to the image, if the instruction has it.
    pub(crate) fn image_address(&self) -> Option<u32> {
        self.next.and_then(|_| u32::try_from(self.displacement).ok())
    }

    pub(crate) fn has_index(&self) -> bool {
        self.index != Register::None
    }

    /// Returns whether the operand is in a segment whose base is not 0: data of the thread or processor.
    pub(crate) fn is_of_thread(&self) -> bool {
        matches!(self.segment, Register::FS | Register::GS)
    }
}

impl std::fmt::Display for MemoryOperand {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |register: Register| format!("{register:?}").to_lowercase();
        let mut terms = Vec::new();
        if self.next.is_some() {
            terms.push("rip".to_owned());
        }
        if self.base != Register::None {
            terms.push(name(self.base));
        }
        match (self.index, self.scale) {
            (Register::None, _) => {}
            (index, 0 | 1) => terms.push(name(index)),
            (index, scale) => terms.push(format!("{}*{scale}", name(index))),
        }
        let displacement = self.displacement.wrapping_sub(self.next.unwrap_or(0));
        let text = terms.join("+");
        let size = displacement.unsigned_abs();
        let text = match (text.is_empty(), displacement) {
            (true, _) => format!("{displacement:#x}"),
            (false, 0) => text,
            (false, ..0) => format!("{text}-{size:#x}"),
            (false, _) => format!("{text}+{size:#x}"),
        };
        let segment = if self.is_of_thread() { format!("{}:", name(self.segment)) } else { String::new() };
        write!(formatter, "{segment}[{text}]")
    }
}

impl Code<'_> {
    fn decoder(&self) -> Decoder<'_> {
        let bytes = if self.bytes.len() > MAX_CODE { &[] } else { self.bytes };
        let bitness = if self.is_64_bit { 64 } else { 32 };
        Decoder::with_ip(bitness, bytes, self.address.into(), DecoderOptions::NONE)
    }

    /// Returns the operand in memory that the instruction at `address` reads or writes.
    #[must_use]
    pub fn operand(&self, address: u32, operation: Operation) -> Option<MemoryOperand> {
        MemoryOperand::of(&self.instruction_at(address)?, operation)
    }

    fn instruction_at(&self, address: u32) -> Option<Instruction> {
        let bitness = if self.is_64_bit { 64 } else { 32 };
        let bytes = self.bytes.get(address.checked_sub(self.address)? as usize..)?;
        let mut decoder = Decoder::with_ip(bitness, bytes, address.into(), DecoderOptions::NONE);
        let instruction = decoder.decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    /// Decodes the function.
    pub(crate) fn flow(&self) -> Flow {
        let mut flow = Flow { instructions: Vec::new(), targets: BTreeSet::new(), is_known: true };
        for instruction in &mut self.decoder() {
            // What follows could be the middle of another instruction, and could lead anywhere.
            if instruction.is_invalid() {
                flow.is_known = false;
                break;
            }
            match instruction.flow_control() {
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
                    flow.targets.insert(instruction.near_branch_target());
                }
                // A jump through the image's table of imports leaves the function.
                FlowControl::IndirectBranch => flow.is_known &= instruction.is_ip_rel_memory_operand(),
                _ => {}
            }
            flow.instructions.push(instruction);
        }
        flow
    }
}

/// The instructions of a function.
pub(crate) struct Flow {
    instructions: Vec<Instruction>,
    /// Where branches lead.
    targets: BTreeSet<u64>,
    /// Whether the code says where all branches lead.
    is_known: bool,
}

impl Flow {
    /// Returns the instructions that are executed before that at `address` on every way to it, without a gap, the last
    /// first.
    pub(crate) fn before(&self, address: u32) -> impl Iterator<Item = &Instruction> {
        let address = u64::from(address);
        let end = self.instructions.partition_point(|instruction| instruction.ip() < address);
        let before = self.instructions.get(..end).filter(|_| self.is_known).unwrap_or_default();
        let mut next = address;
        before.iter().rev().take_while(move |instruction| {
            let falls_through = !matches!(
                instruction.flow_control(),
                FlowControl::UnconditionalBranch
                    | FlowControl::IndirectBranch
                    | FlowControl::Return
                    | FlowControl::Exception
                    | FlowControl::Interrupt
            );
            let is_before = instruction.next_ip() == next && !self.targets.contains(&next);
            next = instruction.ip();
            falls_through && is_before
        })
    }
}
