#!/usr/bin/env bash
# capstone 5.0.9 (PyPI): SYSCALL, and the reads of shadow stacks and protection keys, change no register.
#
# A good guess: regs_access(), made for analyses of what is alive, knows the registers that an instruction uses without
# naming them, as it does for RDPMC. Seen: SYSCALL writes neither RCX nor R11, RDSSPQ not even the register that it
# names, RDPKRU neither EAX nor EDX. WRPKRU, UMONITOR, CLZERO and MONITORX read nothing, and UMWAIT reads its control,
# and not the deadline in EDX:EAX. So RCX seems to keep over a system call what it held before. iced-x86 1.21 (PyPI) has
# all of them.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
python capstone==5.0.9 iced-x86==1.21.0 <<'SCRIPT' | tee seen
import capstone, iced_x86

machine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
machine.detail = True
names = {number: name.lower() for name, number in vars(iced_x86.Register).items() if isinstance(number, int)}
reading = [iced_x86.OpAccess.READ, iced_x86.OpAccess.COND_READ]
for code in ["0F33", "0F05", "F3480F1EC8", "0F01EE", "0F01EF", "F30FAEF0", "0F01FC", "0F01FA", "F20FAEF1"]:
    (instruction,) = machine.disasm(bytes.fromhex(code), 0)
    first = " / ".join(" ".join(map(instruction.reg_name, some)) or "-" for some in instruction.regs_access())
    used = iced_x86.InstructionInfoFactory().info(iced_x86.Decoder(64, bytes.fromhex(code)).decode()).used_registers()
    second = " / ".join(" ".join(names[one.register] for one in used if (one.access in reading) == read) or "-"
                        for read in (True, False))
    print(f"{instruction.mnemonic}: reads / writes {first}; by iced-x86 {second}")
SCRIPT
diff seen - <<'SEEN'
rdpmc: reads / writes ecx / rax rdx; by iced-x86 ecx / rax rdx
syscall: reads / writes - / -; by iced-x86 - / rcx r11
rdsspq: reads / writes - / -; by iced-x86 - / rax
rdpkru: reads / writes - / -; by iced-x86 ecx / rax rdx
wrpkru: reads / writes - / -; by iced-x86 eax ecx edx / -
umonitor: reads / writes - / -; by iced-x86 rax / -
clzero: reads / writes - / -; by iced-x86 rax / -
monitorx: reads / writes - / -; by iced-x86 ecx edx rax / -
umwait: reads / writes ecx / -; by iced-x86 ecx eax edx / -
SEEN
