//! Operands of instructions, and the variables that they lead to.

use data_types::{Code, DataTypes, Operation};
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess, Register};
use object::{ExportTarget, Object as _};

use crate::program::{Program, member};

/// Returns the exported functions with their addresses, and the end of the code.
fn functions(program: &Program) -> Vec<(String, Code<'static>)> {
    let file = object::File::parse(&*program.image).unwrap();
    let base = file.relative_address_base();
    let is_64_bit = file.is_64();
    let (start, code) = program.code();
    let code: &'static [u8] = code.leak();
    let mut functions: Vec<(u32, String)> = Vec::new();
    for export in file.exports().unwrap().map(Result::unwrap) {
        let ExportTarget::Address { address, .. } = export.target() else { continue };
        let name = String::from_utf8(export.name().into_name().unwrap().to_vec()).unwrap();
        functions.push((u32::try_from(address - base).unwrap(), name));
    }
    functions.sort();
    let code = |address: u32| {
        let bytes = &code[usize::try_from(address - start).unwrap()..];
        // Each function has one return, at its end.
        let mut decoder = Decoder::new(bitness(is_64_bit), bytes, DecoderOptions::NONE);
        while decoder.decode().flow_control() != FlowControl::Return {}
        Code { address, bytes: &bytes[..decoder.position()], is_64_bit }
    };
    functions.into_iter().map(|(address, name)| (name, code(address))).collect()
}

fn bitness(is_64_bit: bool) -> u32 {
    if is_64_bit { 64 } else { 32 }
}

/// Returns the operands of a function in memory, with what they are: `[rcx+0x8] node->value int Node.value@8`. Those of
/// the stack that only calls and returns have are left out.
fn operands(types: &DataTypes, code: &Code<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let mut factory = InstructionInfoFactory::new();
    for instruction in
        &mut Decoder::with_ip(bitness(code.is_64_bit), code.bytes, code.address.into(), DecoderOptions::NONE)
    {
        let address = u32::try_from(instruction.ip()).unwrap();
        for memory in factory.info(&instruction).used_memory() {
            if instruction.is_stack_instruction() && memory.base().full_register() == Register::RSP {
                continue;
            }
            let operation = match memory.access() {
                OpAccess::Read | OpAccess::ReadWrite => Operation::Load,
                OpAccess::Write => Operation::Store,
                _ => continue,
            };
            let operand = code.operand(address, operation).unwrap();
            let place = types
                .place(code, address, &operand)
                .map(|place| format!(" {} {} {}", place.path, place.type_name, member(&place)));
            found.push(format!("{operand}{}", place.unwrap_or_default()).trim_end().to_owned());
        }
    }
    found
}

/// The functions of a program, and their operands in the order of the code.
fn check(name: &str, expected: &[(&str, &[&str])]) {
    let program = Program::read(name);
    let types = program.types();
    let found: Vec<_> =
        functions(&program).iter().map(|(function, code)| (function.clone(), operands(&types, code))).collect();
    let own = |(function, operands): &(&str, &[&str])| {
        ((*function).to_owned(), operands.iter().map(|operand| (*operand).to_owned()).collect())
    };
    assert_eq!(found, expected.iter().map(own).collect::<Vec<_>>());
}

#[test]
fn operands_lead_to_members_of_what_registers_point_to() {
    let expected: &[(&str, &[&str])] = &[
        ("value", &["[rcx+0x8] node->value int Node.value@8"]),
        (
            "payload_size",
            &[
                "[rcx+0x18] node->payload Payload* Node.payload@24",
                "[rax+0xc] node->payload->size unsigned Payload.size@12",
            ],
        ),
        (
            "third",
            &[
                "[rcx] node.next Node* Node.next@0",
                "[rax] node.next->next Node* Node.next@0",
                "[rax+0x18] node.next->next->payload Payload* Node.payload@24",
                "[rax+0xc] node.next->next->payload->size unsigned Payload.size@12",
            ],
        ),
        ("sum", &["[rcx+0x8] node->value int Node.value@8", "[rcx] node->next Node* Node.next@0"]),
        ("count", &["[rcx+rdx*2+0xc] node->counts[] short Node.counts[]@12"]),
        ("nth", &["[rcx+rdx+0x8] pairs[].value __int64 Pair.value@8"]),
        ("nth_of_three", &["[rcx+rax*8+0x8] threes[].second __int64 Three.second@8"]),
        ("fourth", &["[rcx+0x38]"]),
        ("number", &["[rcx+rdx*4] numbers[] const int"]),
        ("first", &["[rcx] *numbers const int"]),
        ("item", &["[rcx+0x20] flexible->items[7] int Flexible.items[]@4"]),
        ("behind", &["[rcx+rdx*4+0x10]"]),
        ("root_value", &["[rip+0x1f51] root Node*", "[rax+0x8] root->value int Node.value@8"]),
        ("node_value", &["[rcx+rax+0x8] nodes[].value int Node.value@8"]),
        (
            "view_first",
            &["[rcx] view.first const Pair* View.first@0", "[rax+0x8] view.first->value __int64 Pair.value@8"],
        ),
        (
            "virtual_size",
            &[
                "[rcx+0x1c] shape->payload.size unsigned Derived.payload.size@28",
                "[rcx] shape->__vfptr vftable* Derived.__vfptr@0",
                "[rax]",
            ],
        ),
        ("local", &["[rsp+0x2c] number int", "[rsp+0x48] pairs[1].value __int64 Pair.value@8"]),
        ("opaque", &["[rcx+0x8]"]),
        ("incomplete", &["[rcx+0x8]"]),
        ("join", &["[rcx+0x18]", "[rax+0xc]"]),
        ("after_call", &["[rsi+0x8] node->value int Node.value@8"]),
    ];
    check("pointers", expected);
}

#[test]
fn without_optimization_a_variable_of_the_stack_leads_on() {
    // Before the code that the PDB gives variables for, parameters are stored.
    let expected: &[(&str, &[&str])] = &[(
        "walk",
        &[
            "[rsp+0x34]",
            "[rsp+0x28]",
            "[rsp+0x34] step int",
            "[rsp+0x18] pair.nodes[1].value int node.value@8",
            "[rsp+0x28] node node*",
            "[rax] node->next node* node.next@0",
            "[rax+0x8] node->next->value int node.value@8",
            "[rsp+0x20] pair.sum __int64 pair.sum@32",
            "[rsp+0x20] pair.sum __int64 pair.sum@32",
            "[rsp+0x18] pair.nodes[1].value int node.value@8",
        ],
    )];
    check("stack", expected);
    // The register that 32-bit variables are relative to is a virtual one if the stack is aligned anew.
    let expected: &[(&str, &[&str])] = &[(
        "walk",
        &[
            "[ebp+0xc]",
            "[ebp+0x8]",
            "[ebp+0xc] step int",
            "[esp+0xc]",
            "[ebp+0x8] node node*",
            "[eax] node->next node* node.next@0",
            "[eax+0x4] node->next->value int node.value@4",
            "[esp+0x10]",
            "[esp+0x14]",
            "[esp+0x10]",
            "[esp+0xc]",
        ],
    )];
    check("stack32", expected);
}

#[test]
fn a_structure_that_two_files_of_c_define_is_not_guessed() {
    check("records", &[("first_file", &["[rip+0x3fd9] shared shared*", "[rax]"])]);
}
