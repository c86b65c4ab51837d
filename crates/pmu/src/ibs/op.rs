//! What the registers tell of an op.

use x86_defs::amd::ibs::{self as registers, IbsOpData, IbsOpData2, IbsOpData3};

use crate::cpu::{Cpu, Msr};

const IBS_OP_RIP: Msr = Msr::new(registers::IBS_OP_RIP);
const IBS_OP_DATA: Msr = Msr::new(registers::IBS_OP_DATA);
const IBS_OP_DATA2: Msr = Msr::new(registers::IBS_OP_DATA2);
const IBS_OP_DATA3: Msr = Msr::new(registers::IBS_OP_DATA3);
const IBS_DC_LINADDR: Msr = Msr::new(registers::IBS_DC_LINADDR);

/// The registers that [`read`] reads.
pub(super) const REGISTERS: [Msr; 5] = [IBS_OP_RIP, IBS_OP_DATA, IBS_OP_DATA2, IBS_OP_DATA3, IBS_DC_LINADDR];

/// An op that retired, or a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// Address of its instruction, or of the fetch.
    pub ip: u64,
    /// Cycles from the tag of an op until it retired, or 0.
    pub latency: u16,
    /// What it did to memory, if it did.
    pub memory: Option<MemoryOp>,
}

/// What an op did to memory, or a fetch, which neither loads nor stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryOp {
    /// It loaded.
    pub loads: bool,
    /// It stored.
    pub stores: bool,
    /// Linear address of the data, or 0 if it is unknown.
    pub address: u64,
    /// Cycles from the miss of the L1 data cache until the data were there; 0 for a hit and for a store. Of a fetch
    /// those until it was delivered or abandoned.
    pub latency: u16,
    /// Of a fetch bits 63:48 of IBS_FETCH_CTL. Of an op bits 21:0 of IBS_OP_DATA3; from bit 22 on bits 7:6 and 2:0 of
    /// IBS_OP_DATA2 in five bits, then its bits 4, 5, 8 and 9. Bit 31 says that IBS_OP_DATA2 means something.
    pub source: u32,
}

/// Reads the op of a sample. `None` if its instruction is unknown. `tells_invalid` says whether a bit tells that.
pub(super) fn read(cpu: &impl Cpu, tells_invalid: bool) -> Option<Op> {
    let data = IbsOpData::from_bits(if tells_invalid { cpu.rdmsr(IBS_OP_DATA) } else { 0 });
    if data.rip_invalid() {
        return None;
    }
    let (ip, memory) = (cpu.rdmsr(IBS_OP_RIP), memory(cpu));
    Some(Op { ip, latency: data.tag_to_ret(), memory })
}

fn memory(cpu: &impl Cpu) -> Option<MemoryOp> {
    let data3 = IbsOpData3::from_bits(cpu.rdmsr(IBS_OP_DATA3));
    let (loads, stores) = (data3.ld_op(), data3.st_op());
    if !loads && !stores {
        return None;
    }
    let address = if data3.dc_lin_addr_valid() { cpu.rdmsr(IBS_DC_LINADDR) } else { 0 };
    let data2 = loads.then(|| IbsOpData2::from_bits(cpu.rdmsr(IBS_OP_DATA2)));
    let latency = if loads && data3.dc_miss() { data3.dc_miss_lat() } else { 0 };
    let source = (data3.into_bits() & 0x3F_FFFF) as u32 | data2.map_or(0, source);
    Some(MemoryOp { loads, stores, address, latency, source })
}

/// Returns the part of a source that is from IBS_OP_DATA2.
fn source(data2: IbsOpData2) -> u32 {
    let number = u32::from(data2.data_src_hi()) << 3 | u32::from(data2.data_src());
    let flags = [data2.rmt_node(), data2.cache_hit_st(), data2.strm_st(), data2.rmt_socket(), true];
    (27_u32..).zip(flags).fold(number << 22, |all, (bit, is_set)| all | u32::from(is_set) << bit)
}
