//! The sources of Windows' own HAL beside those that the driver has on the same processor.

use halprof::source::SourceInfo;
use pmu::hal::SourceInformation;
use pmu::{Hal, Kind, Support};
use serde::Serialize;

use counts::cpuid;
use user_error::{Error, OutOfMemory};

/// Which sources differ.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Differences {
    /// Sources of the driver that the HAL lacks.
    only_driver: Vec<String>,
    /// Sources of the HAL that the driver has on other processors only: those of AMD are the K8's.
    other_processors: Vec<String>,
    /// Sources of the HAL that are in no table of the driver.
    only_hal: Vec<String>,
}

impl Differences {
    /// Compares a list of the HAL with what the driver would list on the processor of this program.
    pub fn on_this_processor(listed: &[SourceInfo]) -> Result<Self, Error> {
        let hal = Hal::new(&cpuid::this_processor(), 1).map_err(|_| OutOfMemory)?;
        Ok(Self::between(listed, hal.source_list()))
    }

    fn between(listed: &[SourceInfo], driver: impl Iterator<Item = SourceInformation>) -> Self {
        let driver: Vec<&str> = driver
            .filter(|source| source.support == Support::Supported && source.source.source.0 != 0)
            .map(|source| source.source.name)
            .collect();
        let listed = || listed.iter().filter(|source| source.event.source != 0).map(|source| source.name.as_str());
        let is_in_a_table = |name: &&str| {
            [Kind::Emon, Kind::Amd64].iter().any(|kind| kind.sources().iter().any(|one| one.name == *name))
        };
        let (other, only): (Vec<&str>, Vec<&str>) =
            listed().filter(|name| !driver.contains(name)).partition(is_in_a_table);
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        Self {
            only_driver: owned(driver.iter().copied().filter(|name| !listed().any(|other| other == *name)).collect()),
            other_processors: owned(other),
            only_hal: owned(only),
        }
    }

    /// Returns a sentence for each kind of difference.
    pub fn sentences(&self) -> Vec<String> {
        let more = self.only_driver.len();
        let of_driver = (more > 0).then(|| format!("The driver has {more} more: .\\client diagnose"));
        let of_hal = [
            ("Names of other processors (AMD: of the K8), which may count something else", &self.other_processors),
            ("Only the HAL has", &self.only_hal),
        ];
        let of_hal = of_hal.into_iter().filter(|(_, names)| !names.is_empty());
        of_driver.into_iter().chain(of_hal.map(|(what, names)| format!("{what}: {}", names.join(", ")))).collect()
    }
}

#[cfg(test)]
mod tests {
    use protocol::SourceRecord;
    use zerocopy::FromZeros;

    use super::*;

    fn listed(names: &[&str]) -> Vec<SourceInfo> {
        let mut sources = Vec::new();
        for (name, number) in names.iter().zip(0..) {
            let mut record = SourceRecord { source: number, ..SourceRecord::new_zeroed() };
            record.name[..name.len()].copy_from_slice(name.as_bytes());
            record.name_length = u32::try_from(name.len()).unwrap();
            sources.push(SourceInfo::from(&record));
        }
        sources
    }

    fn differences(processor: &str, names: &[&str]) -> Differences {
        let hal = Hal::new(&cpuid::of_dump(cpuid_dumps::find(processor).unwrap().cpuid()), 1).unwrap();
        Differences::between(&listed(names), hal.source_list())
    }

    #[test]
    fn the_names_of_the_k8_are_those_of_another_processor_on_zen() {
        let Differences { only_driver, other_processors, only_hal } =
            differences("zen4-7700x", &["Timer", "TotalIssues", "FPDispatchedFPUOps", "Halprof12Event0"]);
        assert!(only_driver.contains(&"BranchInstructions".to_owned()), "{only_driver:?}");
        assert!(!only_driver.contains(&"TotalIssues".to_owned()), "{only_driver:?}");
        assert_eq!(other_processors, ["FPDispatchedFPUOps"]);
        assert_eq!(only_hal, ["Halprof12Event0"]);
    }

    #[test]
    fn equal_lists_have_no_sentence() {
        let hal = Hal::new(&cpuid::of_dump(cpuid_dumps::find("haswell-4710mq").unwrap().cpuid()), 1).unwrap();
        let names: Vec<&str> = hal.source_list().map(|source| source.source.name).collect();
        assert_eq!(differences("haswell-4710mq", &names), Differences::default());
        assert_eq!(Differences::default().sentences(), Vec::<String>::new());
        assert_eq!(differences("haswell-4710mq", &["Timer"]).sentences().len(), 1);
    }
}
