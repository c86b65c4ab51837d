//! Control areas of processors (PROCESSOR_PROFILE_CONTROL_AREA, HAL control area): their allocation and their users.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use pmu::ProcessorIndex;
use pmu::debug_store::architectural::BUFFER_PAGE;
use pmu::debug_store::{self, Facilities, MissingFeature};
use pmu::first_access::{Phase, RegisterGroup};
use protocol::NtStatus;
use protocol::status::{
    STATUS_ADDRESS_ALREADY_EXISTS, STATUS_DEVICE_BUSY, STATUS_INVALID_INFO_CLASS, STATUS_MEMORY_NOT_ALLOCATED,
    STATUS_NOT_IMPLEMENTED, STATUS_NOT_SUPPORTED, STATUS_RETRY, STATUS_SUCCESS,
};
use protocol::{AreaRecord, AreaRequest, ErrorCode, area};
use sample_ring::Slot;

use crate::platform::{AreaAllocator, AreaRefused, ControlArea, EngineContext, Platform};
use crate::processor_set::{choose, set_of};
use crate::reply::{Refusal, Reply, invalid, lacks};
use crate::try_vec::{NO_MEMORY, TryPush, try_collect};

/// The control areas of the driver.
#[derive(Debug, Default)]
pub struct Areas {
    all: Vec<Area>,
}

#[derive(Debug)]
struct Area {
    processor: ProcessorIndex,
    made: ControlArea,
    maker: AreaAllocator,
    /// NTSTATUS of the kernel's last operation.
    status: NtStatus,
    /// Whether a client allocated the area and has not freed it.
    kept: bool,
    /// Whether a session uses the area.
    used: bool,
    /// Whether a register of its processor held its address, or could not be read, when it was last to be freed.
    pointed_to: AtomicBool,
}

/// Purpose for which an area is acquired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AreaUse {
    /// A client allocates it.
    Kept,
    /// A session uses it.
    Used {
        /// Whether the session has precise events.
        precise: bool,
        /// Words that the processor may read.
        words: u16,
        /// Pages behind the first for the buffer of architectural PEBS, if there is one.
        pages: u16,
    },
}

impl AreaUse {
    /// Returns the size in bytes that the area has at least.
    const fn bytes(self) -> u32 {
        match self {
            Self::Kept => 0,
            Self::Used { pages: 0, words, .. } => words as u32 * 8,
            Self::Used { pages, .. } => (pages as u32 + 1) * BUFFER_PAGE,
        }
    }
}

impl Areas {
    fn find(&self, processor: ProcessorIndex) -> Option<&Area> {
        self.all.iter().find(|area| area.processor == processor)
    }

    /// Acquires the area of a processor and returns it. The kernel allocates it. The driver does so instead if the
    /// kernel has no such call, and for a session also if the kernel's is too small for the processor, if the kernel
    /// keeps an area of its own or, for branches alone, if the kernel does not support a processor without PEBS; and
    /// for a buffer of architectural PEBS, which lies in the same memory.
    pub fn take(
        &mut self,
        processor: ProcessorIndex,
        need: AreaUse,
        platform: &impl Platform,
    ) -> Result<ControlArea, Refusal> {
        if let Some(area) = self.all.iter_mut().find(|area| area.processor == processor) {
            return area.serve(need);
        }
        self.all.try_reserve(1).map_err(|_| NO_MEMORY)?;
        let (made, maker, status) = make(processor, need, platform)?;
        let pointed_to = AtomicBool::new(false);
        let mut area = Area { processor, made, maker, status, kept: false, used: false, pointed_to };
        area.serve(need)?;
        self.all.try_push(area).map(|()| made)
    }

    /// Marks the areas as unused by sessions, and frees those that are not needed.
    pub fn release<M: Platform>(&mut self, context: EngineContext<'_, M>) {
        for area in &mut self.all {
            area.used = false;
        }
        self.drop_unneeded(context);
    }

    /// Frees all areas.
    pub fn release_all<M: Platform>(&mut self, context: EngineContext<'_, M>) {
        for area in &mut self.all {
            (area.kept, area.used) = (false, false);
        }
        self.drop_unneeded(context);
    }

    /// Frees the areas that are not needed. An area is kept until the next call while a register holds its address,
    /// because another program may have saved and restored it; while its processor sleeps; and if the kernel
    /// refuses to free it.
    pub fn drop_unneeded<M: Platform>(&mut self, EngineContext { platform, hal, .. }: EngineContext<'_, M>) {
        if self.all.iter().all(Area::is_needed) {
            return;
        }
        let all = &self.all;
        let unneeded = set_of(all.iter().filter(|area| !area.is_needed()).map(|area| area.processor));
        platform.on_processors(&unneeded, &|current| {
            for area in all.iter().filter(|area| area.processor == current.index() && !area.is_needed()) {
                let ControlArea { address, physical, .. } = area.made;
                let buffer = physical.map(buffer_at);
                let pointed_to = hal.is_asleep(current.index()) || debug_store::is_at(current.cpu(), address, buffer);
                area.pointed_to.store(pointed_to, Ordering::Relaxed);
            }
        });
        self.all.retain_mut(|area| {
            if area.is_needed() || area.is_pointed_to() {
                return true;
            }
            let freed = platform.free_area(area.processor);
            area.status = freed.err().unwrap_or(STATUS_SUCCESS);
            freed.is_err()
        });
    }

    /// Serves a request, on all requested processors or on none.
    pub fn serve<M: Platform>(
        &mut self,
        request: &AreaRequest,
        context: EngineContext<'_, M>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Refusal> {
        let platform = context.platform;
        let processors = match request.current {
            0 => choose(&request.processors, platform.processors())?,
            1 if request.processors.is_empty() => try_collect([platform.current_processor()], 1)?,
            bits => return Err(invalid(ErrorCode::BadFlags, bits.into())),
        };
        let found = Examined::of(&processors, context)?;
        match request.operation {
            area::QUERY => {}
            area::ALLOCATE => self.allocate(&processors, &found, context)?,
            area::FREE => self.free(&processors, context)?,
            operation => return Err(invalid(ErrorCode::BadFlags, operation.into())),
        }
        let freed = request.operation == area::FREE;
        for (processor, facilities) in processors.iter().zip(found.iter()) {
            reply.push(&self.area_record(*processor, facilities, freed));
        }
        Ok(())
    }

    fn allocate<M: Platform>(
        &mut self,
        processors: &[ProcessorIndex],
        found: &Examined,
        context: EngineContext<'_, M>,
    ) -> Result<(), Refusal> {
        for (processor, facilities) in processors.iter().zip(found.iter()) {
            // These are the only features that the kernel requires.
            if let Err(
                missing_feature @ (MissingFeature::NotIntel
                | MissingFeature::NoDebugStore
                | MissingFeature::NoMonitoring),
            )
            | Ok(Facilities { precise: Err(missing_feature @ MissingFeature::PebsUnavailable), .. }) = facilities
            {
                return Err(lacks(missing_feature, ErrorCode::NoDebugStore).processor(*processor));
            }
        }
        // A read tells when an area may be freed.
        context.access_first(processors, RegisterGroup::SaveArea, Phase::Read)?;
        for (index, processor) in processors.iter().enumerate() {
            if let Err(refusal) = self.take(*processor, AreaUse::Kept, context.platform) {
                for taken in processors.iter().take(index) {
                    self.all.iter_mut().filter(|area| area.processor == *taken).for_each(|area| area.kept = false);
                }
                self.drop_unneeded(context);
                return Err(refusal);
            }
        }
        Ok(())
    }

    fn free<M: Platform>(
        &mut self,
        processors: &[ProcessorIndex],
        context: EngineContext<'_, M>,
    ) -> Result<(), Refusal> {
        for processor in processors {
            match self.find(*processor) {
                Some(area) if area.used => {
                    return Err(refused(*processor, STATUS_DEVICE_BUSY, area.made.address));
                }
                Some(area) if area.kept => {}
                _ => return Err(refused(*processor, STATUS_MEMORY_NOT_ALLOCATED, 0)),
            }
        }
        for area in self.all.iter_mut().filter(|area| processors.contains(&area.processor)) {
            area.kept = false;
        }
        self.drop_unneeded(context);
        let left = self.all.iter().find(|area| processors.contains(&area.processor));
        left.map_or(Ok(()), |area| {
            let status = if area.is_pointed_to() { STATUS_RETRY } else { area.status };
            Err(refused(area.processor, status, area.made.address))
        })
    }

    fn area_record(
        &self,
        processor: ProcessorIndex,
        facilities: Result<Facilities, MissingFeature>,
        freed: bool,
    ) -> AreaRecord {
        let known = self.find(processor);
        let of_area = known.map_or(0, |known| {
            (if known.maker == AreaAllocator::Kernel { area::OF_KERNEL } else { 0 })
                | (if known.used { area::USED } else { 0 })
        });
        let (flags, format, missing_feature) = record_fields(facilities);
        AreaRecord {
            processor: processor.number(),
            status: match known {
                Some(known) => known.status,
                None if freed => STATUS_SUCCESS,
                None => STATUS_MEMORY_NOT_ALLOCATED,
            }
            .number(),
            address: known.map_or(0, |known| known.made.address),
            size: known.map_or(0, |known| known.made.size),
            flags: flags | of_area,
            format,
            missing_feature,
        }
    }
}

impl Area {
    const fn is_needed(&self) -> bool {
        self.kept || self.used
    }

    fn is_pointed_to(&self) -> bool {
        self.pointed_to.load(Ordering::Relaxed)
    }

    fn serve(&mut self, need: AreaUse) -> Result<ControlArea, Refusal> {
        match need {
            AreaUse::Kept if self.kept => {
                Err(refused(self.processor, STATUS_ADDRESS_ALREADY_EXISTS, self.made.address))
            }
            AreaUse::Kept => {
                self.kept = true;
                Ok(self.made)
            }
            AreaUse::Used { pages, .. }
                if self.made.size < need.bytes() || pages > 0 && self.made.physical.is_none() =>
            {
                Err(refused(self.processor, STATUS_ADDRESS_ALREADY_EXISTS, self.made.address))
            }
            AreaUse::Used { .. } => {
                self.used = true;
                Ok(self.made)
            }
        }
    }
}

/// Allocates an area; returns it with its allocator and the NTSTATUS of the kernel.
fn make(
    processor: ProcessorIndex,
    need: AreaUse,
    platform: &impl Platform,
) -> Result<(ControlArea, AreaAllocator, NtStatus), Refusal> {
    let from_driver = |status| {
        let maker = match need {
            AreaUse::Used { pages: pages @ 1.., .. } => AreaAllocator::Contiguous(pages.saturating_add(1)),
            _ => AreaAllocator::Driver,
        };
        let made = platform.allocate_area(processor, maker);
        let made = made.map_err(|AreaRefused { status, address }| refused(processor, status, address))?;
        Ok((made, maker, status))
    };
    if matches!(need, AreaUse::Used { pages: 1.., .. }) {
        return from_driver(STATUS_SUCCESS);
    }
    let AreaRefused { status, address } = match platform.allocate_area(processor, AreaAllocator::Kernel) {
        Ok(made) if made.size >= need.bytes() => return Ok((made, AreaAllocator::Kernel, STATUS_SUCCESS)),
        Ok(made) => {
            platform.free_area(processor).map_err(|status| refused(processor, status, made.address))?;
            return from_driver(STATUS_SUCCESS);
        }
        Err(refused) => refused,
    };
    let is_missing = matches!(status, STATUS_INVALID_INFO_CLASS | STATUS_NOT_IMPLEMENTED);
    // Windows does not use its own area while the registers are idle.
    let is_kept = status == STATUS_ADDRESS_ALREADY_EXISTS && need != AreaUse::Kept;
    let is_no_matter =
        is_kept || status == STATUS_NOT_SUPPORTED && matches!(need, AreaUse::Used { precise: false, .. });
    if !is_missing && !is_no_matter {
        return Err(refused(processor, status, address));
    }
    from_driver(status)
}

/// Returns the physical address of the buffer of architectural PEBS in contiguous memory: behind the page with the save
/// area.
pub const fn buffer_at(physical: u64) -> u64 {
    physical.wrapping_add(BUFFER_PAGE as u64)
}

fn refused(processor: ProcessorIndex, status: NtStatus, address: u64) -> Refusal {
    Refusal::new(status, ErrorCode::ControlArea).processor(processor).detail(status.into(), address)
}

/// Returns the features of a processor as in an [`AreaRecord`]: flags, format, and one more than the number of the
/// missing feature.
fn record_fields(facilities: Result<Facilities, MissingFeature>) -> (u32, u32, u32) {
    let Facilities { branches, precise, modes, .. } = match facilities {
        Ok(facilities) => facilities,
        Err(missing_feature) => return (0, 0, missing_feature.numbers().0 + 1),
    };
    let flag = |there: bool, flag| if there { flag } else { 0 };
    let flags =
        flag(branches.is_ok(), area::BRANCHES) | flag(precise.is_ok(), area::PRECISE) | flag(modes, area::MODES);
    let format = match precise {
        Ok(format) => format as u32,
        Err(missing_feature) => missing_feature.numbers().1.into(),
    };
    (flags, format, precise.err().or(branches.err()).map_or(0, |missing_feature| missing_feature.numbers().0 + 1))
}

/// Debug Store features of some processors, in their order.
#[derive(Debug)]
pub struct Examined(Vec<Slot<Result<Facilities, MissingFeature>>>);

impl Examined {
    /// Examines each processor on itself. Refuses while one of them sleeps, or if one lacks a register.
    pub fn of<M: Platform>(processors: &[ProcessorIndex], context: EngineContext<'_, M>) -> Result<Self, Refusal> {
        context.access_first(processors, RegisterGroup::DebugStoreFeatures, Phase::Read)?;
        let found = try_collect(processors.iter().map(|_| Slot::empty()), processors.len())?;
        context.on_awake(processors, |current| {
            if let Some(slot) = processors.binary_search(&current.index()).ok().and_then(|index| found.get(index)) {
                // The slot is new, so it is empty.
                let _ = slot.try_put(debug_store::examine(current.cpu()));
            }
        })?;
        Ok(Self(found))
    }

    /// Iterates over the features of the processors.
    pub fn iter(&self) -> impl Iterator<Item = Result<Facilities, MissingFeature>> + '_ {
        self.0.iter().map(|slot| slot.try_with(|found| *found).unwrap_or(Err(MissingFeature::NoDebugStore)))
    }
}
