//! What the registers tell of a fetch.

use x86_defs::amd::ibs::{self as registers, IbsFetchCtl};

use super::op::{MemoryOp, Op};
use crate::cpu::{Cpu, Msr};

const IBS_FETCH_LINADDR: Msr = Msr::new(registers::IBS_FETCH_LINADDR);

/// The registers that [`read`] reads.
pub(super) const REGISTERS: [Msr; 1] = [IBS_FETCH_LINADDR];

/// Reads the fetch of a sample, whose control register is `control`. `None` if its address is unknown (erratum 1197 of
/// family 19h: it is 0).
pub(super) fn read(cpu: &impl Cpu, control: u64) -> Option<Op> {
    let ip = Some(cpu.rdmsr(IBS_FETCH_LINADDR)).filter(|address| *address != 0)?;
    let latency = IbsFetchCtl::from_bits(control).lat();
    let source = (control >> 48) as u32;
    let memory = MemoryOp { loads: false, stores: false, address: ip, latency, source };
    Some(Op { ip, latency: 0, memory: Some(memory) })
}
