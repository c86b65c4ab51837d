//! Register writes of other programs during a session.

use simulation::SimMachine;

/// Event select, unit mask, USR, OS, INT and EN of a select register.
const SELECT: u64 = 0xFFFF | 0b11 << 16 | 1 << 20 | 1 << 22;

/// Enable and OVF_PMI_T0 of a CCCR of NetBurst.
const CCCR: u64 = 1 << 12 | 1 << 26;

/// Bits of a register that another program changes.
#[derive(Clone, Copy)]
enum Change {
    /// Clears some of these bits. A program that starts a stopped counter is not in the tests: the overflows of that
    /// counter belong to no session.
    Clear(u64),
    /// Sets these bits.
    Set(u64),
}

/// The registers of an identity that another program writes: selects and global registers, and those that freeze.
fn registers(name: &str) -> Vec<(u32, Change)> {
    use Change::{Clear, Set};
    let selects = |registers: &mut dyn Iterator<Item = u32>| registers.map(|msr| (msr, Clear(SELECT))).collect();
    let freeze_on_interrupt = (0x1D9, Set(0b11 << 11));
    let freeze = |msr| (msr, Set(0b11 << 58));
    match name {
        "amd-legacy" => selects(&mut (0xC001_0000..0xC001_0004)),
        "zen-1800x" => selects(&mut (0xC001_0200..0xC001_020C).step_by(2)),
        "zen4-7700x" => {
            let mut all: Vec<_> = selects(&mut (0xC001_0200..0xC001_020C).step_by(2));
            all.extend([(0xC000_0301, Clear(0x3F)), freeze(0xC000_0303), freeze_on_interrupt]);
            all
        }
        "netburst-cedarmill" => (0x360..0x372).map(|msr| (msr, Clear(CCCR))).collect(),
        "p6-coppermine" => selects(&mut (0x186..0x188)),
        "intel-v1" => selects(&mut (0x186..0x18A)),
        _ => {
            let mut all: Vec<_> = selects(&mut (0x186..0x18A));
            all.extend([(0x38D, Clear(0xBBB)), (0x38F, Clear(0x7_0000_03FF)), freeze_on_interrupt]);
            if !["intel-v2", "haswell-4710mq"].contains(&name) {
                all.push(freeze(0x391));
            }
            all
        }
    }
}

/// Makes another program write one of the registers, chosen by `register`, with some of its `bits` changed.
pub fn write(machine: &SimMachine, name: &str, processor: u32, register: usize, bits: u64) {
    let all = registers(name);
    let (msr, change) = all[register % all.len()];
    let cpu = machine.processor(processor);
    // A register for setting status bits reads as zero. Not every processor can freeze.
    let Ok(found) = cpu.model().uncounted(|model| model.rdmsr(msr)) else { return };
    if machine.is_asleep() {
        return;
    }
    let value = match change {
        Change::Clear(own) => found & !(bits & own),
        Change::Set(own) => found | own,
    };
    let can_refuse = matches!(change, Change::Set(_));
    assert!(cpu.write_foreign(msr, value) || can_refuse, "{name}: {msr:#x} = {value:#x}");
}
