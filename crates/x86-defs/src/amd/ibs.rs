//! Instruction-Based Sampling of fetches and of ops (PPR, "Instruction Based Sampling"; Linux,
//! arch/x86/include/asm/amd/ibs.h).

use bitfield_struct::bitfield;

/// IBS_FETCH_CTL: [`IbsFetchCtl`].
pub const IBS_FETCH_CTL: u32 = 0xC001_1030;

/// IBS_FETCH_LINADDR: the linear address of the fetch.
pub const IBS_FETCH_LINADDR: u32 = 0xC001_1031;

/// IBS_OP_CTL: [`IbsOpCtl`].
pub const IBS_OP_CTL: u32 = 0xC001_1033;

/// IBS_OP_RIP: the linear address of the instruction of the op.
pub const IBS_OP_RIP: u32 = 0xC001_1034;

/// IBS_OP_DATA: [`IbsOpData`].
pub const IBS_OP_DATA: u32 = 0xC001_1035;

/// IBS_OP_DATA2: [`IbsOpData2`].
pub const IBS_OP_DATA2: u32 = 0xC001_1036;

/// IBS_OP_DATA3: [`IbsOpData3`].
pub const IBS_OP_DATA3: u32 = 0xC001_1037;

/// IBS_DC_LINADDR: the linear address of the data.
pub const IBS_DC_LINADDR: u32 = 0xC001_1038;

/// IBSCTL: [`IbsCtl`].
pub const IBSCTL: u32 = 0xC001_103A;

/// IBS_FETCH_CTL. What the processor sets describes the fetch while `val` is set.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct IbsFetchCtl {
    /// IbsFetchMaxCnt: bits 19:4 of the period.
    pub max_cnt: u16,
    /// IbsFetchCnt: bits 19:4 of the fetches of the period.
    pub cnt: u16,
    /// IbsFetchLat: cycles until the fetch was delivered, or abandoned.
    pub lat: u16,
    /// IbsFetchEn.
    pub en: bool,
    /// IbsFetchVal: the registers have a sample, and the unit stands still.
    pub val: bool,
    /// IbsFetchComp: the fetch was delivered.
    pub comp: bool,
    /// IbsIcMiss.
    pub ic_miss: bool,
    /// IbsPhyAddrValid.
    pub phy_addr_valid: bool,
    /// IbsL1TlbPgSz.
    #[bits(2)]
    pub l1_tlb_pg_sz: u8,
    /// IbsL1TlbMiss.
    pub l1_tlb_miss: bool,
    /// IbsL2TlbMiss.
    pub l2_tlb_miss: bool,
    /// IbsRandEn: the low bits of the period are random.
    pub rand_en: bool,
    /// IbsFetchL2Miss.
    pub l2_miss: bool,
    /// IbsFetchL3MissOnly.
    pub l3_miss_only: bool,
    /// IbsFetchOcMiss: the op cache.
    pub oc_miss: bool,
    /// IbsFetchL3Miss.
    pub l3_miss: bool,
    #[bits(2)]
    _reserved: u8,
}

/// IBS_OP_CTL.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct IbsOpCtl {
    /// IbsOpMaxCnt: bits 19:4 of the period.
    pub max_cnt: u16,
    /// IbsOpL3MissOnly.
    pub l3_miss_only: bool,
    /// IbsOpEn.
    pub en: bool,
    /// IbsOpVal: the other registers have a sample, and the unit stands still.
    pub val: bool,
    /// IbsOpCntCtl: counts dispatched ops instead of cycles.
    pub cnt_ctl: bool,
    /// IbsOpMaxCnt\[26:20\]: these bits of the period.
    #[bits(7)]
    pub max_cnt_ext: u8,
    #[bits(5)]
    _reserved: u8,
    /// IbsOpCurCnt. The processor sets bits 6:0 to a random value at the beginning of a period.
    #[bits(27)]
    pub cur_cnt: u32,
    /// The threshold of the latency filter, and whether it is on.
    #[bits(5)]
    pub latency_filter: u8,
}

/// IBS_OP_DATA.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct IbsOpData {
    /// IbsCompToRetCtr: cycles from the completion of the op until it retired.
    pub comp_to_ret: u16,
    /// IbsTagToRetCtr: cycles from its tag until it retired.
    pub tag_to_ret: u16,
    #[bits(6)]
    _other: u8,
    /// IbsRipInvalid.
    pub rip_invalid: bool,
    #[bits(25)]
    _other: u32,
}

/// IBS_OP_DATA2. It means something of loads alone.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct IbsOpData2 {
    /// DataSrc, bits 2:0.
    #[bits(3)]
    pub data_src: u8,
    _reserved: bool,
    /// RmtNode: the source is another node.
    pub rmt_node: bool,
    /// CacheHitSt: the line was in the state O, not M.
    pub cache_hit_st: bool,
    /// DataSrc, bits 4:3, from Zen 4 on.
    #[bits(2)]
    pub data_src_hi: u8,
    /// StrmSt: a streaming store.
    pub strm_st: bool,
    /// RmtSocket: the source is another socket.
    pub rmt_socket: bool,
    #[bits(54)]
    _reserved: u64,
}

/// IBS_OP_DATA3.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct IbsOpData3 {
    /// IbsLdOp.
    pub ld_op: bool,
    /// IbsStOp.
    pub st_op: bool,
    #[bits(5)]
    _other: u8,
    /// IbsDcMiss.
    pub dc_miss: bool,
    #[bits(6)]
    _other: u8,
    /// IbsDcUcMemAcc: memory that is not cached.
    pub dc_uc_mem_acc: bool,
    #[bits(2)]
    _other: u8,
    /// IbsDcLinAddrValid.
    pub dc_lin_addr_valid: bool,
    #[bits(14)]
    _other: u16,
    /// IbsDcMissLat: cycles from the miss of the L1 data cache until the data were there.
    pub dc_miss_lat: u16,
    _tlb_refill_lat: u16,
}

/// IBSCTL.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct IbsCtl {
    /// LvtOffset: number of the extended LVT entry.
    #[bits(4)]
    pub lvt_offset: u8,
    #[bits(4)]
    _reserved: u8,
    /// LvtOffsetVal: `lvt_offset` is valid.
    pub lvt_offset_val: bool,
    #[bits(55)]
    _reserved: u64,
}
