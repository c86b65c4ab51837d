//! The registers of the Debug Store: which of them a processor has, and which writes they refuse.

use crate::{
    bits::{bit, byte, ones},
    counter::CounterId,
    cpuid::{hidden_by_hypervisor, vendor},
    fault::{GeneralProtection, refuse_reserved},
    pmu::{Freeze, IntelLeaf},
    select::Selected,
    writable::{self, DebugFacts, PebsFacts},
};

use super::{architectural::Architectural, recordable::Recordable};

/// `IA32_MISC_ENABLE` (SDM Vol. 4, "Architectural MSRs", like all registers here). None of its writable bits concern
/// performance monitoring, so the model refuses all writes.
const MISC_ENABLE: u32 = 0x1A0;
/// Performance Monitoring Available.
const MONITORING_AVAILABLE: u64 = 1 << 7;
const BTS_UNAVAILABLE: u64 = 1 << 11;
const PEBS_UNAVAILABLE: u64 = 1 << 12;

/// `IA32_BIOS_SIGN_ID`: the revision of the microcode in bits 63:32. The model refuses writes, which no test needs.
const BIOS_SIGN_ID: u32 = 0x8B;
/// A revision that is newer than every known update.
const NEWEST_MICROCODE: u32 = 0x7FFF_FFFF;

/// `IA32_DEBUGCTL`.
const DEBUGCTL: u32 = 0x1D9;
/// `FREEZE_LBRS_ON_PMI`.
const FREEZE_LBRS: u32 = 11;
/// `FREEZE_PERFMON_ON_PMI`.
const FREEZE_PERFMON: u32 = 12;
/// `FREEZE_WHILE_SMM`.
const FREEZE_WHILE_SMM: u32 = 14;
/// Bit of `IA32_PERF_CAPABILITIES` that enumerates `FREEZE_WHILE_SMM`.
const CAN_FREEZE_WHILE_SMM: u32 = 12;

/// `IA32_DS_AREA`.
const DS_AREA: u32 = 0x600;
/// `IA32_PEBS_ENABLE`.
const PEBS_ENABLE: u32 = 0x3F1;
/// `PS_EN`: precise stores.
const PS_EN: u32 = 63;
/// `LL_EN` of counter 0; those of other counters follow.
const LL_EN: u32 = 32;
/// `PEBS_DATA_CFG`.
const PEBS_DATA_CFG: u32 = 0x3F2;

/// `PEBS_FMT` of `IA32_PERF_CAPABILITIES`.
const PEBS_FORMAT: (u32, u32) = (11, 8);
/// The newest format of records in the Debug Store.
const LAST_FORMAT: u8 = 6;
/// The format of architectural PEBS.
const ARCHITECTURAL: u8 = 15;

/// The bits of the Branch Trace Store in `IA32_DEBUGCTL`.
#[derive(Debug, Clone, Copy)]
struct BranchBits {
    tr: u32,
    bts: u32,
    btint: u32,
    off_os: u32,
    off_usr: u32,
}

/// SDM Vol. 3B, "IA32_DEBUGCTL MSR".
const FAMILY_6: BranchBits = BranchBits { tr: 6, bts: 7, btint: 8, off_os: 9, off_usr: 10 };
/// SDM Vol. 3B, "MSR_DEBUGCTLA MSR" of processors based on NetBurst.
const FAMILY_15: BranchBits = BranchBits { tr: 2, bts: 3, btint: 4, off_os: 5, off_usr: 6 };

/// The PEBS support of a processor.
#[derive(Debug, Clone, Copy)]
struct Pebs {
    format: u8,
    /// The writable bits of `IA32_PEBS_ENABLE`.
    writable: u64,
    /// It has bits for load latency.
    has_latency_bits: bool,
    /// The fixed counters that can write records, by number.
    fixed: u64,
    /// `PEBS_DATA_CFG` exists.
    baseline: bool,
    recordable: Recordable,
}

/// The Debug Store features of a processor.
#[derive(Debug, Clone, Copy, Default)]
struct Features {
    misc_enable: bool,
    /// The bits of `IA32_DEBUGCTL`, if the processor has a Debug Store.
    store: Option<BranchBits>,
    /// The writable bits of `IA32_DEBUGCTL`, if it exists.
    debugctl: Option<u64>,
    /// DTES64: the save area has the 64-bit format and a 64-bit address. Without it, the model writes no records.
    long: bool,
    pebs: Option<Pebs>,
}

impl Features {
    fn read(cpuid: &dyn Fn(u32, u32) -> [u32; 4], perf_capabilities: u64) -> Self {
        if vendor(cpuid) != b"GenuineIntel" {
            return Self::default();
        }
        let [signature, _, more, features] = cpuid(1, 0);
        let has = |number| bit(u64::from(features), number);
        let has_more = |number| bit(u64::from(more), number);
        let model = byte(signature, 19, 16) << 4 | byte(signature, 7, 4);
        // `IA32_MISC_ENABLE` exists from the Pentium M on; earlier P6 processors do not have it.
        let (misc_enable, branch_bits) = match (byte(signature, 11, 8), byte(signature, 27, 20)) {
            (0xF, 0) => (true, Some(FAMILY_15)),
            // Families 18 and 19, Nova Lake and Diamond Rapids, continue family 6.
            (0xF, _) => (true, Some(FAMILY_6)),
            (6, _) => (matches!(model, 0x09 | 0x0D..), Some(FAMILY_6)),
            _ => (false, None),
        };
        // A hypervisor that hides the PMU hides the Debug Store as well.
        let Some(bits) = branch_bits.filter(|_| !hidden_by_hypervisor(cpuid)) else {
            return Self { misc_enable, ..Self::default() };
        };
        let leaf = IntelLeaf::read(cpuid, perf_capabilities);
        let capabilities = leaf.as_ref().and_then(|leaf| leaf.perf_capabilities).unwrap_or_default();
        let version = leaf.as_ref().map_or(0, |leaf| leaf.version);
        let [last, ..] = cpuid(0, 0);
        let [_, structured, more_structured, _] = if last >= 7 { cpuid(7, 0) } else { [0; 4] };
        let debugctl = writable::debugctl(&DebugFacts {
            store: has(21).then_some(1 << bits.tr | 1 << bits.bts | 1 << bits.btint),
            modes: (has(21) && has_more(4)).then_some(1 << bits.off_os | 1 << bits.off_usr), // DS-CPL
            pdcm: has_more(15),
            version,
            freeze_while_smm: bit(capabilities, CAN_FREEZE_WHILE_SMM),
            bus_lock_detect: bit(u64::from(more_structured), 24),
            rtm: bit(u64::from(structured), 11),
            uncore_pmi: byte(signature, 11, 8) == 6 && NEHALEM_AND_WESTMERE.contains(&model),
        });
        // Without a Debug Store, the model has the register only with leaf 0AH.
        let debugctl = (has(21) || version > 0).then_some(debugctl);
        let pebs = leaf.and_then(|leaf| Pebs::read(&leaf, capabilities, signature, Recordable::read(cpuid)));
        if !has(21) {
            let pebs = pebs.filter(|pebs| pebs.format == ARCHITECTURAL);
            return Self { misc_enable, debugctl, pebs, ..Self::default() };
        }
        Self { misc_enable, store: Some(bits), debugctl, long: has_more(2), pebs }
    }
}

/// Models of family 6 that support PEBS on `IA32_PMC0` only: Silvermont and Airmont, Knights Landing and Mill, Goldmont
/// (SDM, "PEBS Support" of each).
const FIRST_ALONE: [u8; 10] = [0x37, 0x4A, 0x4C, 0x4D, 0x5A, 0x5D, 0x57, 0x85, 0x5C, 0x5F];

/// Models of family 6 (SDM Vol. 4, "CPUID Signature Values of DisplayFamily_DisplayModel").
const NEHALEM_AND_WESTMERE: [u8; 7] = [0x1A, 0x1E, 0x1F, 0x2E, 0x25, 0x2C, 0x2F];
const SANDY_AND_IVY_BRIDGE: [u8; 4] = [0x2A, 0x2D, 0x3A, 0x3E];
const GOLDMONT_PLUS: u8 = 0x7A;

impl Pebs {
    fn read(leaf: &IntelLeaf, capabilities: u64, signature: u32, recordable: Recordable) -> Option<Self> {
        let format = byte(u32::try_from(capabilities & ones(32)).ok()?, PEBS_FORMAT.0, PEBS_FORMAT.1);
        if leaf.features.architectural_pebs {
            let (general, fixed) = (leaf.general as u64, leaf.fixed);
            return (general > 0).then_some(Self {
                format: ARCHITECTURAL,
                writable: 0,
                has_latency_bits: false,
                fixed,
                baseline: false,
                recordable,
            });
        }
        if leaf.version < 2 || format > LAST_FORMAT {
            return None;
        }
        let model = byte(signature, 19, 16) << 4 | byte(signature, 7, 4);
        let is_alone = FIRST_ALONE.contains(&model);
        let most = match format {
            0 => 1,
            1..=3 if is_alone => 1,
            1..=3 => 4,
            4 | 5 => 8,
            _ => 32,
        };
        let baseline = leaf.pebs_baseline();
        let facts = PebsFacts {
            general: u32::try_from(leaf.general).ok()?.min(most),
            fixed: if baseline { leaf.fixed } else { 0 },
            load_latency: matches!(format, 1..=3) && !is_alone && model != GOLDMONT_PLUS,
            precise_store: SANDY_AND_IVY_BRIDGE.contains(&model),
        };
        Some(Self {
            format,
            writable: writable::pebs_enable(&facts),
            has_latency_bits: facts.load_latency,
            fixed: facts.fixed,
            baseline,
            recordable: if most == 1 { recordable.alone() } else { recordable },
        })
    }
}

/// The Debug Store registers of a processor.
pub(super) struct Registers {
    features: Features,
    misc_enable: u64,
    microcode: u32,
    debugctl: u64,
    area: u64,
    pebs_enable: u64,
    data_cfg: u64,
    architectural: Option<Architectural>,
}

impl Registers {
    /// Creates the registers after reset. `monitors`: the processor has counters.
    pub(super) fn new(cpuid: &dyn Fn(u32, u32) -> [u32; 4], perf_capabilities: u64, monitors: bool) -> Self {
        let features = Features::read(cpuid, perf_capabilities);
        let architectural =
            features.pebs.filter(|pebs| pebs.format == ARCHITECTURAL).map(|_| Architectural::read(cpuid));
        let unavailable = match features.store {
            // There is no IA32_PEBS_ENABLE. Whether the bit says so is not known; it must not matter.
            Some(_) if architectural.is_some() => PEBS_UNAVAILABLE,
            Some(_) => 0,
            None => BTS_UNAVAILABLE | PEBS_UNAVAILABLE,
        };
        let available = if monitors { MONITORING_AVAILABLE } else { 0 };
        Self {
            features,
            misc_enable: available | unavailable,
            microcode: NEWEST_MICROCODE,
            debugctl: 0,
            area: 0,
            pebs_enable: 0,
            data_cfg: 0,
            architectural,
        }
    }

    /// Returns the registers of architectural PEBS, if the processor has it.
    pub(super) fn architectural(&self) -> Option<&Architectural> {
        self.architectural.as_ref()
    }

    pub(super) fn architectural_mut(&mut self) -> Option<&mut Architectural> {
        self.architectural.as_mut()
    }

    /// Resets the registers, except `IA32_MISC_ENABLE`.
    pub(super) fn reset(&mut self) {
        (self.debugctl, self.area, self.pebs_enable, self.data_cfg) = (0, 0, 0, 0);
        if let Some(architectural) = &mut self.architectural {
            architectural.reset();
        }
    }

    /// Sets the availability bits of `IA32_MISC_ENABLE`.
    pub(super) fn set_misc_enable(&mut self, value: u64) {
        self.misc_enable = value & (MONITORING_AVAILABLE | BTS_UNAVAILABLE | PEBS_UNAVAILABLE);
    }

    /// Sets the revision of the microcode.
    pub(super) fn set_microcode(&mut self, revision: u32) {
        self.microcode = revision;
    }

    fn pebs(&self) -> Option<Pebs> {
        self.features.pebs.filter(|_| self.architectural.is_none() && self.misc_enable & PEBS_UNAVAILABLE == 0)
    }

    /// Reads a register. Returns `None` if the register does not exist.
    pub(super) fn rdmsr(&self, msr: u32) -> Option<u64> {
        match msr {
            MISC_ENABLE => self.features.misc_enable.then_some(self.misc_enable),
            BIOS_SIGN_ID => self.features.misc_enable.then_some(u64::from(self.microcode) << 32),
            DEBUGCTL => self.features.debugctl.map(|_| self.debugctl),
            DS_AREA => self.features.store.map(|_| self.area),
            PEBS_ENABLE => self.pebs().map(|_| self.pebs_enable),
            PEBS_DATA_CFG => self.pebs().filter(|pebs| pebs.baseline).map(|_| self.data_cfg),
            _ => self.architectural.as_ref()?.rdmsr(msr),
        }
    }

    /// Writes a register. Returns `None` if the register does not exist.
    pub(super) fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        self.rdmsr(msr)?;
        let (register, reserved) = match msr {
            DEBUGCTL => (&mut self.debugctl, !self.features.debugctl?),
            DS_AREA if !self.features.long => (&mut self.area, !ones(32)),
            DS_AREA if !is_canonical(value) => return Some(Err(GeneralProtection)),
            DS_AREA => (&mut self.area, 0),
            PEBS_ENABLE => (&mut self.pebs_enable, !self.features.pebs?.writable),
            PEBS_DATA_CFG => (&mut self.data_cfg, !writable::pebs_data_cfg(self.features.pebs?.format)),
            MISC_ENABLE | BIOS_SIGN_ID => return Some(Err(GeneralProtection)),
            _ => return self.architectural.as_mut()?.wrmsr(msr, value),
        };
        Some(refuse_reserved(value, reserved).map(|()| *register = value))
    }

    /// Returns what an interrupt of a counter freezes.
    pub(super) fn freeze(&self) -> Freeze {
        Freeze { counters: bit(self.debugctl, FREEZE_PERFMON), branches: bit(self.debugctl, FREEZE_LBRS) }
    }

    /// Clears `LBR` of `IA32_DEBUGCTL`.
    pub(super) fn end_last_branches(&mut self) {
        self.debugctl &= !1;
    }

    /// Returns whether counters stand still in System Management Mode.
    pub(super) fn freezes_in_smm(&self) -> bool {
        bit(self.debugctl, FREEZE_WHILE_SMM)
    }

    /// Returns `IA32_DS_AREA`.
    pub(super) fn area(&self) -> u64 {
        self.area
    }

    /// Returns whether branches of a mode interrupt at the threshold, or `None` if they are not written to memory.
    pub(super) fn branches(&self, kernel: bool) -> Option<bool> {
        let bits = self.features.store.filter(|_| self.features.long && self.misc_enable & BTS_UNAVAILABLE == 0)?;
        let off = if kernel { bits.off_os } else { bits.off_usr };
        let on = bit(self.debugctl, bits.tr) && bit(self.debugctl, bits.bts) && !bit(self.debugctl, off);
        on.then(|| bit(self.debugctl, bits.btint))
    }

    /// Returns the PEBS format if overflows of `counter` write records.
    pub(super) fn records(&self, counter: CounterId, selected: Selected) -> Option<u8> {
        let pebs = match self.architectural {
            Some(_) => self.features.pebs?,
            None => self.pebs().filter(|_| self.features.long)?,
        };
        let can_record = match counter {
            CounterId::General(number) => bit(pebs.recordable.counters(selected), number.into()),
            CounterId::Fixed(number) => bit(pebs.fixed, number.into()),
            CounterId::Metric(_) => false,
        };
        (can_record && self.has_pebs(counter)).then_some(pebs.format)
    }

    /// Returns whether the records of `counter` have precise distribution.
    pub(super) fn is_distributed(&self, counter: CounterId, selected: Selected) -> bool {
        match &self.architectural {
            Some(architectural) => architectural.is_distributed(counter),
            None => self.pebs().is_some_and(|pebs| pebs.recordable.is_distributed(counter, selected)),
        }
    }

    /// Returns whether PEBS is enabled for `counter`.
    pub(super) fn has_pebs(&self, counter: CounterId) -> bool {
        match &self.architectural {
            Some(architectural) => architectural.records(counter),
            None => self.pebs_enable & counter.bit() != 0,
        }
    }

    /// Returns whether a counter measures the latency of loads: its PEBS bit is set and, where the register has such
    /// bits, its load latency bit (SDM, "Load Latency Performance Monitoring Facility": `LL_EN`).
    pub(super) fn measures_latency(&self, counter: CounterId) -> bool {
        let CounterId::General(number) = counter else { return false };
        let enable = 1 << (LL_EN + u32::from(number));
        let needed = self.pebs().map_or(0, |pebs| if pebs.has_latency_bits { enable } else { 0 });
        self.has_pebs(counter) && self.pebs_enable & needed == needed
    }

    /// Returns whether `IA32_PEBS_ENABLE` lets stores be recorded (SDM, "Precise Store Facility").
    pub(super) fn records_stores(&self) -> bool {
        bit(self.pebs_enable, PS_EN)
    }

    /// Returns whether the overflows of any counter write records.
    pub(super) fn any_records(&self) -> bool {
        self.pebs_enable != 0 || self.architectural.as_ref().is_some_and(Architectural::any_records)
    }

    /// Returns `PEBS_DATA_CFG`, or 0 if it does not exist.
    pub(super) fn data_cfg(&self) -> u64 {
        self.data_cfg
    }
}

/// Returns whether bits 63 to 47 are equal (SDM Vol. 1, "Canonical Addressing").
fn is_canonical(address: u64) -> bool {
    [0, ones(17)].contains(&(address >> 47))
}
