//! BranchCounts by source and target.

use proptest::prelude::*;
use protocol::{Prediction, SampleRecord, UNKNOWN};
use report::{Branch, BranchCount, BranchCounts};

use super::support::{self, APP, CYCLES, NT, NTDLL, sample};

fn branch(process: u32, from: u64, to: u64, is_predicted: bool) -> SampleRecord {
    let prediction = if is_predicted { Prediction::Predicted } else { Prediction::NotReported };
    support::branch(process, from, to, prediction).into()
}

fn counted(samples: &[SampleRecord]) -> BranchCounts {
    let mut branches = BranchCounts::default();
    branches.record(samples);
    branches
}

#[test]
fn branches_are_counted_by_source_and_target_across_processes() {
    for (from, to) in [(NT, NT + 8), (NT, APP), (APP, NT), (APP, APP + 8)] {
        let branches = counted(&[branch(8, from, to, true), branch(12, from, to, false)]);
        let one = Branch { kernel: from == NT, from, to };
        assert_eq!(branches.top(2), [(one, BranchCount { count: 2, predicted: 1 })], "{from:#x} to {to:#x}");
        assert_eq!((branches.distinct(), branches.total()), (1, BranchCount { count: 2, predicted: 1 }));
    }
}

#[test]
fn branch_ends_are_in_the_kernel_if_their_addresses_are() {
    for (from, to, kernel) in [(APP, NT, [false, true]), (NT, NTDLL, [true, false]), (APP, NTDLL, [false, false])] {
        let (branch, _) = counted(&[branch(8, from, to, false)]).top(1)[0];
        let locations = [branch.source(), branch.target()];
        assert_eq!(locations.map(|location| location.kernel), kernel);
        assert_eq!(locations.map(|location| (location.process.id, location.ip)), [(UNKNOWN, from), (UNKNOWN, to)]);
    }
}

proptest! {
    #[test]
    fn most_frequent_branches_come_first_and_counts_add_up(
        taken in prop::collection::vec((0_u64..4, 0_u64..4, any::<bool>()), 0..80), number in 0_usize..20
    ) {
        let mut samples: Vec<SampleRecord> =
            taken.iter().map(|(from, to, predicted)| branch(8, APP + from, APP + to, *predicted)).collect();
        samples.push(sample(CYCLES, 8, APP, 5).into());
        let branches = counted(&samples);
        let all = branches.top(usize::MAX);
        prop_assert_eq!(all.len(), branches.distinct());
        prop_assert!(all.is_sorted_by(|(_, one), (_, other)| one.count >= other.count));
        for (branch, found) in &all {
            let same = || taken.iter().filter(|(from, to, _)| (APP + from, APP + to) == (branch.from, branch.to));
            let predicted = same().map(|(_, _, predicted)| u64::from(*predicted)).sum();
            prop_assert_eq!(*found, BranchCount { count: same().count() as u64, predicted });
        }
        prop_assert_eq!(branches.total().count, taken.len() as u64);
        prop_assert_eq!(&branches.top(number)[..], &all[..number.min(all.len())]);
    }
}
