# Functions with every kind of prolog and epilog that "x64 exception handling" of Microsoft describes, except the
# prologs of interrupt handlers and of functions with 512 KiB of stack. Each takes a number in RCX and returns one in
# RAX.

    .text
    .p2align 4, 0xCC

# A leaf function: no unwind information.
    .globl leaf
leaf:
    lea rax, [rcx + 2*rcx]
    xor rax, 0x55
    ret
.Lleaf_end:

# Pushes every nonvolatile register, and has two epilogs. Bit 0 of RCX chooses one.
    .globl push_all
    .seh_proc push_all
push_all:
    push rbx
    .seh_pushreg rbx
    push rbp
    .seh_pushreg rbp
    push rsi
    .seh_pushreg rsi
    push rdi
    .seh_pushreg rdi
    push r12
    .seh_pushreg r12
    push r13
    .seh_pushreg r13
    push r14
    .seh_pushreg r14
    push r15
    .seh_pushreg r15
    sub rsp, 40
    .seh_stackalloc 40
    .seh_endprologue
    mov rbx, rcx
    mov ebp, 2
    mov esi, 3
    mov edi, 4
    mov r12d, 5
    mov r13d, 6
    mov r14d, 7
    mov r15d, 8
    call leaf
    test bl, 1
    jne 2f
    add rsp, 40
    pop r15
    pop r14
    pop r13
    pop r12
    pop rdi
    pop rsi
    pop rbp
    pop rbx
    ret
2:
    add rax, r15
    add rsp, 40
    pop r15
    pop r14
    pop r13
    pop r12
    pop rdi
    pop rsi
    pop rbp
    pop rbx
    ret
.Lpush_all_end:
    .seh_endproc

# RBP as the frame pointer. The function allocates stack after its prolog.
    .globl frame_rbp
    .seh_proc frame_rbp
frame_rbp:
    push rbp
    .seh_pushreg rbp
    push rsi
    .seh_pushreg rsi
    sub rsp, 56
    .seh_stackalloc 56
    lea rbp, [rsp + 48]
    .seh_setframe rbp, 48
    .seh_endprologue
    mov rsi, rcx
    mov eax, ecx
    and eax, 0x70
    sub rsp, rax
    sub rsp, 32
    call save_registers
    add rax, rsi
    lea rsp, [rbp + 8]
    pop rsi
    pop rbp
    ret
.Lframe_rbp_end:
    .seh_endproc

# R13 as the frame pointer, without an offset.
    .globl frame_r13
    .seh_proc frame_r13
frame_r13:
    push r13
    .seh_pushreg r13
    sub rsp, 48
    .seh_stackalloc 48
    mov r13, rsp
    .seh_setframe r13, 0
    .seh_endprologue
    sub rsp, 144
    mov [r13 + 40], rcx
    call frame_rbp
    mov rcx, [r13 + 40]
    mov [r13 + 32], rax
    call chained
    add rax, [r13 + 32]
    lea rsp, [r13 + 48]
    pop r13
    ret
.Lframe_r13_end:
    .seh_endproc

# Saves registers by MOV, among them the frame pointers of its callers.
    .globl save_registers
    .seh_proc save_registers
save_registers:
    sub rsp, 104
    .seh_stackalloc 104
    mov [rsp + 32], rsi
    .seh_savereg rsi, 32
    mov [rsp + 40], r13
    .seh_savereg r13, 40
    mov [rsp + 48], rbp
    .seh_savereg rbp, 48
    movaps [rsp + 64], xmm6
    .seh_savexmm xmm6, 64
    .seh_endprologue
    mov esi, 9
    mov r13, rcx
    mov ebp, 10
    xorps xmm6, xmm6
    call push_all
    mov rsi, [rsp + 32]
    mov r13, [rsp + 40]
    mov rbp, [rsp + 48]
    movaps xmm6, [rsp + 64]
    add rsp, 104
    ret
.Lsave_registers_end:
    .seh_endproc

# Two pages of stack.
    .globl allocate_pages
    .seh_proc allocate_pages
allocate_pages:
    test [rsp - 4096], ecx
    sub rsp, 8200
    .seh_stackalloc 8200
    .seh_endprologue
    mov [rsp + 48], rcx
    call frame_r13
    xor rax, [rsp + 48]
    add rsp, 8200
    ret
.Lallocate_pages_end:
    .seh_endproc

# An epilog that ends in a jump to another function.
    .globl jump_near
    .seh_proc jump_near
jump_near:
    push rdi
    .seh_pushreg rdi
    sub rsp, 32
    .seh_stackalloc 32
    .seh_endprologue
    mov rdi, rcx
    call leaf
    lea rcx, [rax + rdi]
    add rsp, 32
    pop rdi
    jmp push_all
.Ljump_near_end:
    .seh_endproc

# An epilog that ends in a jump through memory, as through an import table.
    .globl jump_through_memory
    .seh_proc jump_through_memory
jump_through_memory:
    sub rsp, 40
    .seh_stackalloc 40
    .seh_endprologue
    call leaf
    mov rcx, rax
    add rsp, 40
    jmp [rip + .Laddress_of_push_all]
.Ljump_through_memory_end:
    .seh_endproc

# A function that saves R13 only in its second part, whose unwind information is chained to that of the first. Bit 0 of
# RCX chooses whether it is executed. R13 is the frame pointer of the caller.
    .globl chained
chained:
    push rbx
    sub rsp, 48
    mov rbx, rcx
    test bl, 1
    jne .Lpart
    call leaf
    add rsp, 48
    pop rbx
    ret
.Lpart:
    mov [rsp + 40], r13
    mov r13d, 11
    call frame_rbp
    add rax, r13
    mov r13, [rsp + 40]
    add rsp, 48
    pop rbx
    ret
.Lchained_end:

# A function whose last instruction is a call: the return address belongs to the next function, which has another
# prolog. Compilers insert an instruction that is never executed after such a call.
    .globl end_with_call
    .seh_proc end_with_call
end_with_call:
    push rbx
    .seh_pushreg rbx
    sub rsp, 32
    .seh_stackalloc 32
    .seh_endprologue
    mov rbx, rcx
    call skip_caller
.Lend_with_call_end:
    .seh_endproc

    .globl after_the_call
    .seh_proc after_the_call
after_the_call:
    sub rsp, 56
    .seh_stackalloc 56
    .seh_endprologue
    call leaf
    add rsp, 56
    ret
.Lafter_the_call_end:
    .seh_endproc

# Returns to the caller of end_with_call.
    .globl skip_caller
skip_caller:
    lea rax, [rcx + 1]
    mov rbx, [rsp + 40]
    add rsp, 48
    ret
.Lskip_caller_end:

    .section .rdata, "dr"
    .p2align 3
.Laddress_of_push_all:
    .quad push_all

    .globl prolog_sizes
prolog_sizes:
    .quad .Lleaf_end - leaf
    .quad .Lpush_all_end - push_all
    .quad .Lframe_rbp_end - frame_rbp
    .quad .Lframe_r13_end - frame_r13
    .quad .Lsave_registers_end - save_registers
    .quad .Lallocate_pages_end - allocate_pages
    .quad .Ljump_near_end - jump_near
    .quad .Ljump_through_memory_end - jump_through_memory
    .quad .Lchained_end - chained
    .quad .Lend_with_call_end - end_with_call
    .quad .Lafter_the_call_end - after_the_call
    .quad .Lskip_caller_end - skip_caller

# The assembler has no directives for chained unwind information that ends with the function.
    .section .xdata, "dr"
    .p2align 2
.Lunwind:
    .byte 1, 5, 2, 0 # version; size of the prolog; number of codes; no frame register
    .byte 5, 0x52 # UWOP_ALLOC_SMALL, 48 bytes
    .byte 1, 0x30 # UWOP_PUSH_NONVOL, RBX
.Lunwind_part:
    .byte 1 | 4 << 3, 5, 2, 0 # UNW_FLAG_CHAININFO
    .byte 5, 0xD4 # UWOP_SAVE_NONVOL, R13, at
    .short 40 / 8
    .rva chained, .Lpart, .Lunwind

    .section .pdata, "dr"
    .p2align 2
    .rva chained, .Lpart, .Lunwind
    .rva .Lpart, .Lchained_end, .Lunwind_part
    .text
