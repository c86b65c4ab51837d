//! The recording of the last branches of a processor.

use pmu::last_branches::{Branch, BranchType, Filter, FoundControls, LastBranches, MAX_DEPTH, SavedLastBranches};
use pmu::{Cpu, Disturbance};
use protocol::{BranchKind, BranchRecord, CounterSample, Mode, Prediction, SampleRecord, is_kernel_address};

use super::subscriptions::Subscriber;

/// The recording of the last branches of a processor, and those of its last interrupt.
#[derive(Debug)]
pub struct BranchStack {
    records: LastBranches,
    filter: Filter,
    /// The session.
    subscriber: Subscriber,
    /// What the trial of the registers found.
    found: FoundControls,
    /// What is to be put back, while branches are recorded.
    saved: Option<SavedLastBranches>,
    branches: [Branch; MAX_DEPTH as usize],
    count: usize,
}

impl BranchStack {
    /// Makes one that records nothing yet.
    pub const fn new(records: LastBranches, filter: Filter, subscriber: Subscriber) -> Self {
        let empty = Branch { from: 0, to: 0, cycles: 0, mispredicted: None, branch_type: None };
        let (found, branches) = (FoundControls::NONE, [empty; MAX_DEPTH as usize]);
        Self { records, filter, subscriber, found, saved: None, branches, count: 0 }
    }

    /// Returns the records of its processor.
    pub const fn records(&self) -> LastBranches {
        self.records
    }

    /// Sets what the trial of the registers found.
    pub const fn set_found(&mut self, found: FoundControls) {
        self.found = found;
    }

    /// Begins to record, unless the registers contain something else than what was tried.
    pub(super) fn start(&mut self, cpu: &impl Cpu) {
        self.saved = self.records.start(cpu, self.filter, self.found);
        self.count = 0;
    }

    /// Ends the recording, with the registers as they were found.
    pub(super) fn stop(&mut self, cpu: &impl Cpu) {
        if let Some(saved) = self.saved.take() {
            self.records.stop(cpu, self.filter, saved);
        }
        self.count = 0;
    }

    /// Reads the branches of an interrupt.
    pub(super) fn read(&mut self, cpu: &impl Cpu) {
        self.count = 0;
        if self.saved.is_none() {
            return;
        }
        let (mut places, mut count) = (self.branches.iter_mut(), 0);
        self.records.read(cpu, self.filter, |branch| {
            if let Some(place) = places.next() {
                *place = branch;
                count += 1;
            }
        });
        self.count = count;
    }

    /// Lets branches be recorded further after an interrupt.
    pub(super) fn go_on(&self, cpu: &impl Cpu) {
        if self.saved.is_some() {
            self.records.go_on(cpu, self.filter);
        }
    }

    /// Returns the session.
    pub(super) const fn subscriber(&self) -> Subscriber {
        self.subscriber
    }

    /// Compares the registers with what the start wrote. A recording that another program ended goes on. One for which
    /// it chose other branches is its own from then on; beside another value in a control register, the recording ends.
    pub(super) fn compare(&mut self, cpu: &impl Cpu) -> Option<Disturbance> {
        let saved = self.saved?;
        let disturbance = self.records.compare(cpu, self.filter)?;
        if !self.records.repair(cpu, self.filter, saved, disturbance) {
            self.stop(cpu);
        }
        Some(disturbance)
    }

    /// Returns the records of the branches behind a sample.
    pub(super) fn of_sample(&self, sample: &CounterSample) -> impl Iterator<Item = SampleRecord> {
        let CounterSample { time, process, thread, processor, event, .. } = *sample;
        self.branches.iter().take(self.count).map(move |branch| {
            let Branch { from, to, cycles, mispredicted, branch_type } = *branch;
            let record = BranchRecord {
                time,
                from,
                process,
                thread,
                processor,
                event,
                cycles,
                prediction: mispredicted.map_or(Prediction::NotReported, |mispredicted| {
                    if mispredicted { Prediction::Mispredicted } else { Prediction::Predicted }
                }),
                branch_type: branch_type.map_or(protocol::BranchType::NotReported, sent),
                kind: BranchKind::LastBranch,
                mode: if is_kernel_address(from) { Mode::Kernel } else { Mode::User },
                to,
            };
            record.into()
        })
    }
}

const fn sent(branch_type: BranchType) -> protocol::BranchType {
    match branch_type {
        BranchType::Conditional => protocol::BranchType::Conditional,
        BranchType::IndirectJump => protocol::BranchType::IndirectJump,
        BranchType::DirectJump => protocol::BranchType::DirectJump,
        BranchType::IndirectCall => protocol::BranchType::IndirectCall,
        BranchType::DirectCall => protocol::BranchType::DirectCall,
        BranchType::Return => protocol::BranchType::Return,
        BranchType::Other => protocol::BranchType::Other,
    }
}
