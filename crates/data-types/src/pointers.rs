//! From an operand in memory to the variable that it is in, or that its base register points from.

use std::cell::OnceCell;

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use crate::module::Module;
use crate::operand::{Code, Flow, MemoryOperand, Operation};
use crate::pdb_types::DataTypes;
use crate::place::{End, Path, Place, Search};
use crate::registers::register;
use crate::symbol_records::Location;
use crate::type_table::TypeTable;

/// Maximum number of instructions from which one follows the other.
const MAX_STEPS: usize = 8;

/// Registers that a called function can change, by the calling convention of 64-bit Windows.
const VOLATILE: [Register; 7] =
    [Register::RAX, Register::RCX, Register::RDX, Register::R8, Register::R9, Register::R10, Register::R11];

/// An address in a register that leads to data of a type.
#[derive(Clone, Debug)]
struct Pointer {
    /// What points there, or what is there.
    text: String,
    /// Type of the data.
    kind: u32,
    /// Offset of the address from the beginning of the data in bytes.
    offset: i64,
    /// Whether `text` is the data itself, as with a reference.
    is_data: bool,
}

/// A function whose registers are looked at.
struct Function<'a> {
    types: &'a DataTypes,
    module: &'a Module,
    code: Code<'a>,
    flow: OnceCell<Flow>,
}

impl DataTypes {
    /// Names the memory that an operand of the instruction at `address` is. The instruction is in `code`, which begins
    /// where a function begins.
    ///
    /// Without a variable in the base register, the instructions before are followed as long as each is executed before
    /// the next on every way: loads of pointers, moves, and sums with constants.
    #[must_use]
    pub fn place(&self, code: &Code<'_>, address: u32, operand: &MemoryOperand) -> Option<Place> {
        let module = self.module_at(address).unwrap_or_default();
        let function = Function { types: self, module: &module, code: *code, flow: OnceCell::new() };
        function.find(operand, address, MAX_STEPS).map(End::into_place)
    }
}

impl Function<'_> {
    fn table(&self) -> &TypeTable {
        self.types.table()
    }

    fn flow(&self) -> &Flow {
        self.flow.get_or_init(|| self.code.flow())
    }

    /// Names the memory that the operand of the instruction at `address` is.
    fn find(&self, memory: &MemoryOperand, address: u32, steps: usize) -> Option<End> {
        if memory.is_of_thread() {
            return None;
        }
        if let Some(address) = memory.image_address() {
            return self.types.global_end(address, memory.size());
        }
        if let Some(found) = self.stack_variable(memory, address) {
            return Some(found);
        }
        // Without a scale, base and index can be in any order.
        let swapped = Some((memory.index, memory.base)).filter(|_| memory.scale == 1);
        [Some((memory.base, memory.index)), swapped].into_iter().flatten().find_map(|(base, index)| {
            let displacement = Some(memory.displacement).filter(|_| !memory.has_index());
            let pointer = self.pointer(base, displacement, address, steps)?;
            let step = self.factor(index, address, steps).saturating_mul(memory.scale.into());
            self.behind(pointer, memory, step)
        })
    }

    /// Finds the variable of the function that has the memory at a register.
    fn stack_variable(&self, memory: &MemoryOperand, address: u32) -> Option<End> {
        let (kind, name, offset) = self.variable_at(memory.base, memory.displacement, address)?;
        let search = Search::new(self.table(), memory.size(), memory.has_index());
        Some(search.find(kind, offset, Path::new(name.to_owned(), false)))
    }

    /// Returns type and name of the variable at an offset from a register, and the offset in it. If several are there,
    /// it is the smallest.
    fn variable_at(&self, base: Register, displacement: i64, address: u32) -> Option<(u32, &str, u64)> {
        let found = self.module.live_at(address).filter_map(|(variable, location)| {
            let Location::Memory { register: number, offset, part } = location else { return None };
            let size = self.table().size(variable.kind)?;
            let inside = displacement.checked_sub(offset.into())?.checked_add(part.into())?;
            let inside = u64::try_from(inside).ok().filter(|inside| *inside < size)?;
            (register(number) == Some(base)).then_some((size, (variable.kind, &*variable.name, inside)))
        });
        found.min_by_key(|(size, _)| *size).map(|(_, found)| found)
    }

    /// Returns where the address in a register leads to when the instruction at `address` begins. If several variables
    /// have it, as those of inlined functions, it is one whose data has the `displacement`.
    fn pointer(&self, register: Register, displacement: Option<i64>, address: u32, steps: usize) -> Option<Pointer> {
        if register == Register::None {
            return None;
        }
        if let Some(pointer) = self.pointer_variable(register, displacement, address) {
            return Some(pointer);
        }
        let steps = steps.checked_sub(1)?;
        let mut factory = InstructionInfoFactory::new();
        for instruction in self.flow().before(address) {
            let at = u32::try_from(instruction.ip()).ok()?;
            if writes(&mut factory, instruction, register) {
                return self.assigned(instruction, register, at, steps);
            }
            // The register still has what it had then.
            if let Some(pointer) = self.pointer_variable(register, displacement, at) {
                return Some(pointer);
            }
        }
        None
    }

    /// Returns the variable in a register, or the member of one, if it is a pointer.
    fn pointer_variable(&self, base: Register, displacement: Option<i64>, address: u32) -> Option<Pointer> {
        let mut pointers = self.module.live_at(address).filter_map(|(variable, location)| {
            let Location::Register { register: number, part } = location else { return None };
            if register(number) != Some(base) {
                return None;
            }
            let path = Path::new(variable.name.to_string(), false);
            pointer_to(self.table(), &Search::new(self.table(), 1, false).find(variable.kind, part.into(), path))
        });
        let first = pointers.next()?;
        let Some(displacement) = displacement.and_then(|displacement| u64::try_from(displacement).ok()) else {
            return Some(first);
        };
        let has = |pointer: &Pointer| self.table().size(pointer.kind).is_some_and(|size| displacement < size);
        if has(&first) { Some(first) } else { pointers.find(has).or(Some(first)) }
    }

    /// Returns where the address leads that an instruction writes to a register.
    fn assigned(&self, instruction: &Instruction, register: Register, at: u32, steps: usize) -> Option<Pointer> {
        if instruction.op0_kind() != OpKind::Register || instruction.op0_register() != register {
            return None;
        }
        let moved = |pointer: Pointer, by: i64| {
            let offset = pointer.offset.checked_add(by)?;
            Some(Pointer { offset, ..pointer })
        };
        match (instruction.mnemonic(), instruction.op1_kind()) {
            (Mnemonic::Mov, OpKind::Register) => self.pointer(instruction.op1_register(), None, at, steps),
            (Mnemonic::Mov, OpKind::Memory) => {
                let memory = MemoryOperand::of(instruction, Operation::Load)?;
                pointer_to(self.table(), &self.find(&memory, at, steps)?)
            }
            (Mnemonic::Lea, OpKind::Memory) => {
                if instruction.is_ip_rel_memory_operand() {
                    let address = u32::try_from(instruction.ip_rel_memory_address()).ok()?;
                    let (datum, offset) = self.types.datum(address)?;
                    let offset = i64::try_from(offset).ok()?;
                    return Some(Pointer { text: datum.0, kind: datum.1, offset, is_data: true });
                }
                if instruction.memory_index() != Register::None {
                    return None;
                }
                let (base, displacement) =
                    (instruction.memory_base(), instruction.memory_displacement64().cast_signed());
                if let Some((kind, name, offset)) = self.variable_at(base, displacement, at) {
                    let offset = i64::try_from(offset).ok()?;
                    return Some(Pointer { text: name.to_owned(), kind, offset, is_data: true });
                }
                moved(self.pointer(base, None, at, steps)?, displacement)
            }
            (
                mnemonic @ (Mnemonic::Add | Mnemonic::Sub),
                OpKind::Immediate8to64 | OpKind::Immediate32to64 | OpKind::Immediate8to32 | OpKind::Immediate32,
            ) => {
                let immediate = instruction.immediate(1).cast_signed();
                let by = if mnemonic == Mnemonic::Add { immediate } else { immediate.checked_neg()? };
                moved(self.pointer(register, None, at, steps)?, by)
            }
            _ => None,
        }
    }

    /// Returns a number of which the value of a register is a multiple: the index of an array times the size of its
    /// elements.
    fn factor(&self, register: Register, address: u32, steps: usize) -> u64 {
        self.written_factor(register, address, steps).unwrap_or(1)
    }

    fn written_factor(&self, register: Register, address: u32, steps: usize) -> Option<u64> {
        let steps = steps.checked_sub(1)?;
        let mut factory = InstructionInfoFactory::new();
        let mut before = self.flow().before(address);
        let instruction = before.find(|instruction| writes(&mut factory, instruction, register))?;
        let at = u32::try_from(instruction.ip()).ok()?;
        let of = |register: Register| self.factor(register, at, steps);
        let to_register = instruction.op0_kind() == OpKind::Register;
        let is_immediate = instruction.op_count() > 0
            && !matches!(instruction.op_kind(instruction.op_count() - 1), OpKind::Register | OpKind::Memory);
        let immediate = || instruction.immediate(instruction.op_count() - 1);
        match instruction.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movsxd if to_register && instruction.op1_kind() == OpKind::Register => {
                Some(of(instruction.op1_register()))
            }
            Mnemonic::Shl if to_register && is_immediate => {
                of(instruction.op0_register()).checked_mul(1_u64.checked_shl(u32::try_from(immediate()).ok()?)?)
            }
            Mnemonic::Imul if is_immediate => {
                Some(immediate().cast_signed().unsigned_abs()).filter(|factor| *factor > 0)
            }
            Mnemonic::Lea if instruction.memory_displacement64() == 0 => {
                let (base, index) = (instruction.memory_base(), instruction.memory_index());
                let scale = u64::from(instruction.memory_index_scale());
                match base {
                    Register::None => of(index).checked_mul(scale),
                    base if base == index => of(index).checked_mul(scale + 1),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Names the memory at an operand whose base register has `pointer`. What is added by an index is a multiple of
    /// `step`.
    fn behind(&self, pointer: Pointer, memory: &MemoryOperand, step: u64) -> Option<End> {
        let table = self.table();
        let offset = pointer.offset.checked_add(memory.displacement)?;
        let size = table.size(pointer.kind).filter(|size| *size > 0)?;
        let search = Search::new(table, memory.size(), memory.has_index());
        let Pointer { text, kind, is_data, .. } = pointer;
        let inside = u64::try_from(offset).ok();
        // An array at the end of a structure can have more elements than its type says.
        let is_inside = inside.filter(|inside| *inside < size || search.has_open_end(kind) && *inside < MAX_TAIL);
        let path = Path::new(text, !is_data);
        let is_structure = table.structure(kind).is_some();
        if let Some(inside) = is_inside
            && (is_structure || is_data)
        {
            let end = search.find(kind, inside, path.clone());
            if !memory.has_index() || end.path.text().contains("[]") {
                return Some(end);
            }
        }
        // A displacement outside of a structure is as likely that of a structure around it as of its neighbor. An index
        // can be that of an array within the structure, which the displacement is the end of.
        let is_neighbor = memory.has_index() && step.is_multiple_of(size);
        if is_data && !memory.has_index() || is_structure && !is_neighbor {
            return None;
        }
        let size = i64::try_from(size).ok()?;
        let element = if memory.has_index() { None } else { Some(offset.div_euclid(size)) };
        let rest = u64::try_from(offset.rem_euclid(size)).ok()?;
        let path = if element == Some(0) {
            Path::new(format!("*{}", path.text()), false)
        } else {
            let mut path = path;
            path.push_index(element);
            path
        };
        Some(search.find(kind, rest, path))
    }
}

/// Returns whether an instruction writes a register, or can write it.
fn writes(factory: &mut InstructionInfoFactory, instruction: &Instruction, register: Register) -> bool {
    let calls = instruction.mnemonic() == Mnemonic::Call && VOLATILE.contains(&register.full_register());
    let used = factory.info(instruction).used_registers();
    let mut written = used
        .iter()
        .filter(|used| !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess));
    calls || written.any(|used| used.register().full_register() == register.full_register())
}

/// Maximum offset in bytes in an array at the end of a structure.
const MAX_TAIL: u64 = 1 << 20;

/// Returns where a datum leads to, if it is a pointer.
fn pointer_to(table: &TypeTable, end: &End) -> Option<Pointer> {
    let pointee = table.pointee(end.kind?)?;
    let text = end.path.text().to_owned();
    Some(Pointer { text, kind: pointee.kind, offset: 0, is_data: pointee.is_reference })
}
