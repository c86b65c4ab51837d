//! No PMU: the processor enumerates none, or a hypervisor hides it.

use super::{Pmu, Running};
use crate::{
    counter::{Counter, CounterId},
    fault::GeneralProtection,
};

pub(crate) struct Absent;

impl Pmu for Absent {
    fn rdmsr(&self, _: u32) -> Option<u64> {
        None
    }

    fn wrmsr(&mut self, _: u32, _: u64) -> Option<Result<(), GeneralProtection>> {
        None
    }

    fn rdpmc(&self, _: u32) -> Option<u64> {
        None
    }

    fn running(&self) -> Vec<Running> {
        Vec::new()
    }

    fn counter(&self, _: CounterId) -> Option<&Counter> {
        None
    }

    fn count(&mut self, _: CounterId, _: u64) -> u64 {
        0
    }

    fn is_there(&self) -> bool {
        false
    }

    fn masks_lvt_on_delivery(&self) -> bool {
        false
    }
}
