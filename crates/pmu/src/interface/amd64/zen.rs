//! The profile sources of Zen processors. Sources of the HAL's table whose event still exists keep their number and
//! name, with today's encoding. There are two more sources of WDM.H, and from 0x1000 on the driver's own, which no HAL
//! has.
//!
//! The events come from AMD's Processor Programming References, section "Core Performance Monitor Counters": family 17h
//! (56176), 19h models 01h (55898) and 11h (55901), and 1Ah (57238), where event NNNH is PMCxNNN. Linux has them in
//! tools/perf/pmu-events/arch/x86/amdzen1 to amdzen6; those of Zen 6 come from there. An event that increments by more
//! than 15 per cycle takes two counters (`pairs.rs`), and none of these does.

use x86_defs::amd::perfmon::PerfEvtSel;

use super::SOURCES;
use crate::source::packed::PackedSelect;
use crate::source::{ProfileSource, Source};

/// Encodings of a source on Zen and Zen 2, Zen 3, Zen 4, Zen 5, Zen 6. Zero if the generation lacks the event.
type Encodings = [u64; 5];

/// A source that any generation has.
struct Row {
    source: u64,
    name: &'static str,
    encodings: Encodings,
}

const fn row(source: u64, name: &'static str, encodings: Encodings) -> Row {
    Row { source, name, encodings }
}

/// Returns the select of a 12-bit event with its unit mask, in both modes (APM Vol. 2, 13.2.1, "PerfEvtSel").
const fn event(number: u16, unit_mask: u8) -> u64 {
    let [low, high] = number.to_le_bytes();
    PerfEvtSel::new()
        .with_event_select(low)
        .with_event_select_high(high & 0xF)
        .with_unit_mask(unit_mask)
        .with_usr(true)
        .with_os(true)
        .into_bits()
}

const ABSENT: u64 = 0;

const fn always(select: u64) -> Encodings {
    [select; 5]
}

const fn until_zen2(select: u64) -> Encodings {
    [select, ABSENT, ABSENT, ABSENT, ABSENT]
}

const fn from_zen3(select: u64) -> Encodings {
    [ABSENT, select, select, select, select]
}

const fn from_zen3_to_zen5(select: u64) -> Encodings {
    [ABSENT, select, select, select, ABSENT]
}

const fn from_zen4(select: u64) -> Encodings {
    [ABSENT, ABSENT, select, select, select]
}

/// Requests of the data cache to the L2.
const DATA_CACHE_REQUESTS: Encodings =
    [event(0x060, 0xC8), event(0x060, 0xE8), event(0x060, 0xE8), event(0x060, 0xE0), event(0x060, 0xE0)];

/// Misses of the instruction cache: its requests to the L2; from Zen 3 to Zen 5, tag misses.
const INSTRUCTION_CACHE_MISSES: Encodings =
    [event(0x060, 0x10), event(0x18E, 0x18), event(0x18E, 0x18), event(0x18E, 0x18), event(0x060, 0x10)];

/// The sources in ascending order of their numbers. Comments on the driver's own sources name the event in the PPRs.
const ROWS: [Row; 82] = [
    // Cycles not in halt.
    row(0x00, "Time", always(event(0x076, 0x00))),
    // Retired instructions.
    row(0x02, "TotalIssues", always(event(0x0C0, 0x00))),
    // Retired branches.
    row(0x06, "BranchInstructions", always(event(0x0C2, 0x00))),
    // Requests of the data cache to the L2, including prefetches.
    row(0x08, "DcacheMisses", DATA_CACHE_REQUESTS),
    // PMCx081 miscounts on every Zen (Linux, arch/x86/events/amd/core.c).
    row(0x09, "IcacheMisses", INSTRUCTION_CACHE_MISSES),
    // Misses of the L2, without those of its prefetcher.
    row(0x0A, "CacheMisses", always(event(0x064, 0x09))),
    row(0x0B, "BranchMispredictions", always(event(0x0C3, 0x00))),
    // x87, MMX and SSE.
    row(0x0D, "FpInstructions", until_zen2(event(0x0CB, 0x07))),
    row(0x13, "TotalCycles", always(event(0x076, 0x00))),
    // PMCx080 miscounts too, and Zen, Zen 2 and Zen 6 have no substitute.
    row(0x14, "IcacheIssues", from_zen3_to_zen5(event(0x18E, 0x1F))),
    // Dispatched loads, stores, and load-stores.
    row(0x15, "DcacheAccesses", always(event(0x029, 0x07))),
    row(0x2F, "LSRetiredCFLUSH", from_zen3(event(0x026, 0x00))),
    row(0x30, "LSRetiredCPUID", from_zen3(event(0x027, 0x00))),
    row(0x31, "DCAccess", always(event(0x029, 0x07))),
    row(0x32, "DCMiss", DATA_CACHE_REQUESTS),
    // Reloads from the L2 TLB, of pages of all sizes.
    row(0x45, "DCL1DTLBMissL2DTLBHit", always(event(0x045, 0x0F))),
    // Reloads by a page walk.
    row(0x46, "DCL1DTLBMissL2DTLBMiss", always(event(0x045, 0xF0))),
    row(0x4D, "DCDispatchedPrefetchInstructions", always(event(0x04B, 0x07))),
    row(0x4E, "DCDispatchedPrefetchInstructionsLoad", always(event(0x04B, 0x01))),
    row(0x4F, "DCDispatchedPrefetchInstructionsStore", always(event(0x04B, 0x02))),
    row(0x50, "DCDispatchedPrefetchInstructionsNTA", always(event(0x04B, 0x04))),
    row(0x5E, "ICFetch", from_zen3_to_zen5(event(0x18E, 0x1F))),
    row(0x5F, "ICMiss", INSTRUCTION_CACHE_MISSES),
    row(0x60, "ICRefillFromL2", always(event(0x082, 0x00))),
    row(0x61, "ICRefillFromSystem", always(event(0x083, 0x00))),
    row(0x62, "ICL1TLBMissL2TLBHit", always(event(0x084, 0x00))),
    // Pages of 4 KB, 2 MB and 1 GB; from Zen 3 on coalesced ones too.
    row(
        0x63,
        "ICL1TLBMissL2TLBMiss",
        [event(0x085, 0x07), event(0x085, 0x0F), event(0x085, 0x0F), event(0x085, 0x0F), event(0x085, 0x0F)],
    ),
    row(0x64, "ICResyncBySnoop", until_zen2(event(0x086, 0x00))),
    // Stalled for any reason.
    row(0x65, "ICInstructionFetchStall", until_zen2(event(0x087, 0x04))),
    row(0x68, "FRRetiredx86Instructions", always(event(0x0C0, 0x00))),
    row(0x69, "FRRetireduops", always(event(0x0C1, 0x00))),
    row(0x6A, "FRRetiredBranches", always(event(0x0C2, 0x00))),
    row(0x6B, "FRRetiredBranchesMispredicted", always(event(0x0C3, 0x00))),
    row(0x6C, "FRRetiredTakenBranches", always(event(0x0C4, 0x00))),
    row(0x6D, "FRRetiredTakenBranchesMispredicted", always(event(0x0C5, 0x00))),
    row(0x6E, "FRRetiredFarControlTransfers", always(event(0x0C6, 0x00))),
    row(0x6F, "FRRetiredResyncsNonControlTransferBranches", until_zen2(event(0x0C7, 0x00))),
    row(0x70, "FRRetiredNearReturns", always(event(0x0C8, 0x00))),
    row(0x71, "FRRetiredNearReturnsMispredicted", always(event(0x0C9, 0x00))),
    row(0x73, "FRRetiredFPUInstructions", until_zen2(event(0x0CB, 0x07))),
    row(0x74, "FRRetiredFPUInstructionsx87", until_zen2(event(0x0CB, 0x01))),
    row(0x7E, "FRTakenHardwareInterrupts", from_zen3(event(0x02C, 0x00))),
    // ExRetCond.
    row(0x1000, "RetiredConditionalBranches", always(event(0x0D1, 0x00))),
    // ExRetIndBrchInstr.
    row(0x1001, "RetiredIndirectBranches", from_zen3(event(0x0CC, 0x00))),
    // ExRetBrnIndMisp.
    row(0x1002, "RetiredIndirectBranchesMispredicted", always(event(0x0CA, 0x00))),
    // ExRetMsprdBrnchInstrDirMsmtch.
    row(0x1003, "RetiredBranchesMispredictedByDirection", from_zen3(event(0x1C7, 0x00))),
    // ExRetFusedInstr.
    row(0x1004, "RetiredFusedInstructions", from_zen3(event(0x1D0, 0x00))),
    // ExRetUcodeInst.
    row(0x1005, "RetiredMicrocodedInstructions", from_zen4(event(0x1C1, 0x00))),
    // ExRetUcodeOps.
    row(0x1006, "RetiredMicrocodeOps", from_zen4(event(0x1C2, 0x00))),
    // LsNotHaltedP0Cyc: cycles not in halt, at the frequency of P0.
    row(0x1007, "ReferenceCycles", from_zen4(event(0x120, 0x01))),
    // ExDivBusy.
    row(0x1008, "DividerBusyCycles", always(event(0x0D3, 0x00))),
    // ExDivCount.
    row(0x1009, "DivideOps", always(event(0x0D4, 0x00))),
    // LsDispatch.LdDispatch.
    row(0x100A, "LoadsDispatched", always(event(0x029, 0x01))),
    // LsDispatch.StoreDispatch.
    row(0x100B, "StoresDispatched", always(event(0x029, 0x02))),
    // LsDispatch.LdStDispatch.
    row(0x100C, "LoadOpStoresDispatched", always(event(0x029, 0x04))),
    // LsSTLF.
    row(0x100D, "StoreToLoadForwards", always(event(0x035, 0x00))),
    // LsBadStatus2.StliOther.
    row(0x100E, "StoreToLoadConflicts", from_zen3(event(0x024, 0x02))),
    // LsLocks.BusLock.
    row(0x100F, "BusLocks", always(event(0x025, 0x01))),
    // LsSmiRx.
    row(0x1010, "SystemManagementInterrupts", from_zen3(event(0x02B, 0x00))),
    // L2RequestG1, except prefetches.
    row(
        0x1011,
        "L2Requests",
        [event(0x060, 0xF9), event(0x060, 0xF9), event(0x060, 0xF9), event(0x060, 0xF1), event(0x060, 0xF1)],
    ),
    // L2RequestG1.CacheableIcRead.
    row(0x1012, "L2RequestsFromInstructionCache", always(event(0x060, 0x10))),
    // L2RequestG1, all requests of the data cache.
    row(0x1013, "L2RequestsFromDataCache", DATA_CACHE_REQUESTS),
    // L2CacheReqStat, hits of either cache.
    row(0x1014, "L2Hits", always(event(0x064, 0xF6))),
    // L2CacheReqStat.IcFillMiss and LsRdBlkC.
    row(0x1015, "L2Misses", always(event(0x064, 0x09))),
    // L2CacheReqStat.IcFillMiss.
    row(0x1016, "L2MissesFromInstructionCache", always(event(0x064, 0x01))),
    // L2CacheReqStat.LsRdBlkC.
    row(0x1017, "L2MissesFromDataCache", always(event(0x064, 0x08))),
    // LsAnyFillsFromSys, all.
    row(0x1018, "DataCacheFills", from_zen3(event(0x044, 0xFF))),
    // LsAnyFillsFromSys.LocalL2.
    row(0x1019, "DataCacheFillsFromL2", from_zen3(event(0x044, 0x01))),
    // LsAnyFillsFromSys.LocalCcx.
    row(0x101A, "DataCacheFillsFromSameComplex", from_zen3(event(0x044, 0x02))),
    // LsAnyFillsFromSys.NearCache and FarCache.
    row(0x101B, "DataCacheFillsFromOtherComplexes", from_zen3(event(0x044, 0x14))),
    // LsAnyFillsFromSys.DramIoNear and DramIoFar.
    row(0x101C, "DataCacheFillsFromMemory", from_zen3(event(0x044, 0x48))),
    // LsL1DTlbMiss, all.
    row(0x101D, "DataTlbMisses", always(event(0x045, 0xFF))),
    // IcTagHitMiss.InstructionCacheHit.
    row(0x101E, "InstructionCacheHits", from_zen3_to_zen5(event(0x18E, 0x07))),
    // OpCacheHitMiss.OpCacheHit.
    row(0x101F, "OpCacheHits", from_zen3(event(0x28F, 0x03))),
    // OpCacheHitMiss.OpCacheMiss.
    row(0x1020, "OpCacheMisses", from_zen3(event(0x28F, 0x04))),
    // DeOpQueueEmpty.
    row(0x1021, "OpQueueEmptyCycles", from_zen3(event(0x0A9, 0x00))),
    // DeDisOpsFromDecoder.AnyFpDispatch.
    row(0x1022, "FloatingPointOpsDispatched", from_zen3(event(0x0AB, 0x04))),
    // DeDisOpsFromDecoder.AnyIntegerDispatch.
    row(0x1023, "IntegerOpsDispatched", from_zen3(event(0x0AB, 0x08))),
    // DeDisDispatchTokenStalls1.IntPhyRegFileRsrcStall.
    row(0x1024, "DispatchStallsForIntegerRegisters", from_zen3(event(0x0AE, 0x01))),
    // DeDisDispatchTokenStalls1.LoadQueueRsrcStall.
    row(0x1025, "DispatchStallsForLoadQueue", from_zen3(event(0x0AE, 0x02))),
    // DeDisDispatchTokenStalls1.StoreQueueRsrcStall.
    row(0x1026, "DispatchStallsForStoreQueue", from_zen3(event(0x0AE, 0x04))),
    // DeDisDispatchTokenStalls2.RetireTokenStall. On Zen 6, bit 5 is integer scheduler 5.
    row(
        0x1027,
        "DispatchStallsForRetireQueue",
        [ABSENT, event(0x0AF, 0x20), event(0x0AF, 0x20), event(0x0AF, 0x20), event(0x0AF, 0x80)],
    ),
];

/// Entries of the HAL's table, two of WDM.H that it lacks, and the driver's own.
const LENGTH: usize = SOURCES.len() + 2 + 40;

/// Sources whose event every Zen has in the same encoding, and which Linux programs on any later processor of AMD
/// (arch/x86/events/amd/core.c, `amd_zen4_perfmon_event_map`): cycles, instructions and branches.
const ON_EVERY_MODEL: [u64; 8] = [0x00, 0x02, 0x06, 0x0B, 0x13, 0x68, 0x6A, 0x6B];

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler alone, which refuses a wrong index")]
const fn is_on_every_model(source: u64) -> bool {
    let mut index = 0;
    while index < ON_EVERY_MODEL.len() {
        if ON_EVERY_MODEL[index] == source {
            return true;
        }
        index += 1;
    }
    false
}

/// A column of [`ROWS`].
#[derive(Clone, Copy)]
enum Column {
    /// That of a generation.
    Known(usize),
    /// [`ON_EVERY_MODEL`] alone.
    Unknown,
}

/// Merges the entries of the HAL's table and those above by their numbers, and returns the entries and their selects. A
/// source that a generation lacks keeps its entry, with a select of zero.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler alone, which refuses a wrong index")]
const fn merged(column: Column) -> ([ProfileSource; LENGTH], [PackedSelect; LENGTH]) {
    let (mut entries, mut selects) = ([SOURCES[0]; LENGTH], [PackedSelect::ABSENT; LENGTH]);
    let (mut place, mut hal, mut ours) = (0, 0, 0);
    while place < LENGTH {
        let of_hal = if hal < SOURCES.len() { SOURCES[hal].source.0 } else { u64::MAX };
        let of_ours = if ours < ROWS.len() { ROWS[ours].source } else { u64::MAX };
        if of_ours <= of_hal {
            let Row { source, name, encodings } = &ROWS[ours];
            entries[place] = ProfileSource { source: Source(*source), name, select: ABSENT };
            selects[place] = PackedSelect::new(match column {
                Column::Known(generation) => encodings[generation],
                Column::Unknown if is_on_every_model(*source) => encodings[0],
                Column::Unknown => ABSENT,
            });
        } else {
            entries[place] = ProfileSource { select: ABSENT, ..SOURCES[hal] };
        }
        hal += (of_hal <= of_ours) as usize;
        ours += (of_ours <= of_hal) as usize;
        place += 1;
    }
    assert!(hal == SOURCES.len() && ours == ROWS.len());
    (entries, selects)
}

/// The sources of every generation, without their selects.
pub const ENTRIES: [ProfileSource; LENGTH] = merged(Column::Unknown).0;

/// Family 17h.
pub const ZEN: [PackedSelect; LENGTH] = merged(Column::Known(0)).1;

/// Family 19h, the models of Zen 3.
pub const ZEN3: [PackedSelect; LENGTH] = merged(Column::Known(1)).1;

/// Family 19h, the models of Zen 4.
pub const ZEN4: [PackedSelect; LENGTH] = merged(Column::Known(2)).1;

/// Family 1Ah, the models of Zen 5.
pub const ZEN5: [PackedSelect; LENGTH] = merged(Column::Known(3)).1;

/// Family 1Ah, the models of Zen 6.
pub const ZEN6: [PackedSelect; LENGTH] = merged(Column::Known(4)).1;

/// Models of which no document is known.
pub const UNKNOWN: [PackedSelect; LENGTH] = merged(Column::Unknown).1;
