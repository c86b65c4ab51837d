//! The columns of a decompressed block of samples, each of which is decoded where it is needed.

use protocol::SampleRecord;

use crate::column::{Column, Columns, unzigzag};
use crate::error::BlockError;
use crate::frame::SamplesHead;
use crate::sample_place::{SamplePlace, is_branch};
use crate::stack::StackId;
use crate::tree::Numbers;

/// The columns of a block that are not decoded.
pub struct DividedColumns<'a> {
    pub head: &'a SamplesHead,
    numbers: Numbers,
    kinds: Column<'a, u16>,
    modes: Column<'a, u16>,
    sources: Column<'a, u32>,
    processes: Column<'a, u32>,
    threads: Column<'a, u32>,
    addresses: Column<'a, u64>,
    targets: Column<'a, u64>,
    stacks: Column<'a, u64>,
    pub processor: Column<'a, u32>,
    pub place: Column<'a, u32>,
    pub time: Column<'a, u64>,
    pub number: Column<'a, u32>,
    pub last: Column<'a, u64>,
}

impl<'a> DividedColumns<'a> {
    pub fn of(head: &'a SamplesHead, numbers: Numbers, bytes: &'a [u8]) -> Result<Self, BlockError> {
        let [count, places] = [head.samples, head.places].map(|number| number as usize);
        let mut columns = Columns(bytes);
        let divided = Self {
            head,
            numbers,
            kinds: columns.column(places)?,
            modes: columns.column(places)?,
            sources: columns.column(places)?,
            processes: columns.column(places)?,
            threads: columns.column(places)?,
            addresses: columns.column(places)?,
            targets: columns.column(places)?,
            stacks: columns.column(places)?,
            processor: columns.column(count)?,
            place: columns.column(count)?,
            time: columns.column(count)?,
            number: columns.column(count)?,
            last: columns.column(count)?,
        };
        columns.0.is_empty().then_some(divided).ok_or(BlockError::Columns)
    }

    /// Returns what the samples of each place have in common, except its address, its target and its call stack.
    pub fn place_groups(&self) -> impl Iterator<Item = SamplePlace> {
        let Self { kinds, modes, sources, processes, threads, .. } = self;
        let kinds_and_modes = kinds.values().into_iter().zip(modes.values());
        let ids = processes.values().into_iter().zip(threads.values());
        let each = kinds_and_modes.zip(sources.values()).zip(ids);
        each.map(|(((kind, mode), source), (process, thread))| SamplePlace {
            address: 0,
            target: 0,
            ids: [process, thread],
            source,
            kind,
            mode,
            stack: 0,
        })
    }

    /// Returns the address of each place.
    pub fn place_addresses(&self) -> impl Iterator<Item = u64> {
        let mut address = 0_u64;
        self.addresses.values().into_iter().map(move |difference| {
            address = address.wrapping_add(unzigzag(difference));
            address
        })
    }

    /// Returns a record of each place, with the fields that all its samples have.
    pub fn place_records(&self) -> Vec<SampleRecord> {
        let each = self.place_groups().zip(self.place_addresses()).zip(self.targets.values());
        let records = each.map(|((common, address), target)| {
            let target = if is_branch(common.kind) { address.wrapping_add(unzigzag(target)) } else { 0 };
            SamplePlace { address, target, ..common }.record()
        });
        records.collect()
    }

    /// Returns the call stack of each place.
    pub fn place_stacks(&self) -> Result<Vec<StackId>, BlockError> {
        let mut stack = 0_u64;
        let each = self.stacks.values().into_iter().map(|difference| {
            stack = stack.wrapping_add(unzigzag(difference));
            self.numbers.global(u32::try_from(stack).map_err(|_| BlockError::Columns)?)
        });
        each.collect()
    }
}
