//! The last branches of each sample: read in the interrupt before the counters are served, which lets frozen records
//! run on, and delivered behind the samples.

use pmu::{Cpu, CurrentCpu};
use protocol::CounterSample;

use super::Sampler;
use super::branch_stack::BranchStack;
use super::per_cpu::PerCpuSampling;
use super::subscriptions::Subscribers;
use crate::boxed::Boxed;
use crate::time::Ticks;

impl Sampler {
    /// Begins to record the last branches of the current processor.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(crate) fn install_branch_stack(&self, current: CurrentCpu<'_, impl Cpu>, mut stack: Boxed<BranchStack>) {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return core::mem::forget(stack) };
        if !self.hal.is_asleep(current.index()) {
            stack.start(current.cpu());
        }
        per_cpu.put_branch_stack(stack);
    }

    /// Ends that recording, with the registers as they were found.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(crate) fn uninstall_branch_stack(&self, current: CurrentCpu<'_, impl Cpu>) -> Option<Boxed<BranchStack>> {
        let mut stack = self.per_cpu(current.index())?.take_branch_stack()?;
        stack.stop(current.cpu());
        Some(stack)
    }

    /// Ends the recording before a sleep.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(super) fn suspend_branch_stack(current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling) {
        per_cpu.with_branch_stack(|stack| stack.stop(current.cpu()));
    }

    /// Begins again after a sleep, unless it has left something else in the registers than what was tried.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(super) fn resume_branch_stack(current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling) {
        per_cpu.with_branch_stack(|stack| stack.start(current.cpu()));
    }

    /// Reads the last branches at the beginning of an interrupt.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[cold]
    #[inline(never)]
    pub(super) fn read_branches(current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling) {
        per_cpu.with_branch_stack(|stack| stack.read(current.cpu()));
    }

    /// Lets them be recorded further after an interrupt, also after one that was lost: it has frozen them.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[cold]
    #[inline(never)]
    pub(super) fn record_on(current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling) {
        per_cpu.with_branch_stack(|stack| stack.go_on(current.cpu()));
    }

    /// Pushes the last branches behind a sample that these subscribers got.
    #[cold]
    #[inline(never)]
    pub(super) fn deliver_branches(per_cpu: &PerCpuSampling, subscribers: Subscribers, sample: &CounterSample) {
        per_cpu.with_branch_stack(|stack| {
            if !subscribers.has(stack.subscriber()) {
                return;
            }
            for record in stack.of_sample(sample) {
                if per_cpu.push_to(Subscribers::default().with(stack.subscriber()), &record) {
                    per_cpu.note_watermark_hit();
                }
            }
        });
    }

    /// Compares the registers with what the start wrote. What another program changed disturbs the counters that are
    /// sampled.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[cold]
    #[inline(never)]
    pub(super) fn compare_branches(&self, current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling, now: Ticks) {
        let disturbance = per_cpu.with_branch_stack(|stack| stack.compare(current.cpu()));

        if let Some(disturbance) = disturbance.flatten() {
            self.hal.disturb(current, disturbance, now.0);
        }
    }
}
