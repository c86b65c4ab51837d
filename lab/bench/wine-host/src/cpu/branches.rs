//! The branches that a processor takes in real time.

use bench_protocol::InterruptSite;
use model::{Branch, BranchKind, Mode, TakenBranch};

/// Of every ten branches, the first seven are taken in user mode, the others in kernel mode.
const USER_OF_TEN: u64 = 7;

/// Branches before an interrupt: more than any processor keeps.
const LAST_BRANCHES: u16 = 40;

/// The branches of one processor.
#[derive(Debug, Default)]
pub struct Branches {
    /// Ticks since the last branch.
    since: u64,
    /// Number of branches so far.
    taken: u64,
}

impl Branches {
    /// Returns the number of ticks until the next branch, at least 1, if branches are `interval` ticks apart.
    #[must_use]
    pub fn ticks_until(&self, interval: u64) -> u64 {
        interval.saturating_sub(self.since).max(1)
    }

    /// Advances the time by `ticks`, at most [`ticks_until`](Self::ticks_until). Returns true if a branch is due now.
    pub fn advance(&mut self, ticks: u64, interval: u64) -> bool {
        self.since = self.since.saturating_add(ticks);
        let due = self.since >= interval;
        if due {
            self.since = 0;
        }
        due
    }

    /// Returns the branches before an interrupt: each from a site to the next, with some that were predicted wrong.
    pub fn last_branches(&mut self, sites: &[InterruptSite]) -> impl Iterator<Item = TakenBranch> {
        (0..LAST_BRANCHES).filter_map(|number| {
            let (_, Branch { from, to, .. }) = self.next_branch(sites)?;
            let (kind, mispredicted) = (BranchKind::DirectJump, number % 10 == 0);
            Some(TakenBranch { from, to, kind, mispredicted, cycles: 1 + number })
        })
    }

    /// Returns the next branch. It goes from one site to the next of its mode, or of any mode if none has the right
    /// one.
    pub fn next_branch(&mut self, sites: &[InterruptSite]) -> Option<(Mode, Branch)> {
        let number = self.taken;
        self.taken = number.wrapping_add(1);
        let user = number % 10 < USER_OF_TEN;
        let of_mode: Vec<_> = sites.iter().filter(|site| site.user == user).collect();
        let of_mode = if of_mode.is_empty() { sites.iter().collect() } else { of_mode };
        let site = |number: u64| {
            let count = u64::try_from(of_mode.len()).ok()?;
            of_mode.get(usize::try_from(number.checked_rem(count)?).ok()?)
        };
        let (from, to) = (site(number)?.ip, site(number.wrapping_add(1))?.ip);
        let mode = if user { Mode::User } else { Mode::Kernel };
        Some((mode, Branch { from, to, predicted: number.is_multiple_of(2) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn site(ip: u64, user: bool) -> InterruptSite {
        InterruptSite { ip, user, process: 0, thread: 0, weight: 1 }
    }

    proptest! {
        #[test]
        fn the_interval_of_branches_does_not_depend_on_the_steps(
            interval in 1..500_u64,
            steps in prop::collection::vec(1..700_u64, 1..100),
        ) {
            let mut branches = Branches::default();
            let (mut now, mut taken) = (0, Vec::new());
            for step in steps {
                let mut left = step;
                while left > 0 {
                    let ticks = branches.ticks_until(interval).min(left);
                    now += ticks;
                    left -= ticks;
                    if branches.advance(ticks, interval) {
                        taken.push(now);
                    }
                }
            }
            let expected: Vec<u64> = (1..=now / interval).map(|number| number * interval).collect();
            prop_assert_eq!(taken, expected);
        }
    }

    #[test]
    fn seven_of_ten_branches_are_in_user_mode_and_connect_their_sites() {
        let sites = [site(0x1000, true), site(0x2000, true), site(0x9000, false)];
        let mut branches = Branches::default();
        let taken: Vec<_> = (0..100).map(|_| branches.next_branch(&sites).unwrap()).collect();
        let user: Vec<_> = taken.iter().filter(|(mode, _)| *mode == Mode::User).map(|(_, branch)| *branch).collect();
        assert_eq!(user.len(), 70);
        assert!(user.iter().all(|branch| [0x1000, 0x2000].contains(&branch.from) && branch.to == branch.from ^ 0x3000));
        let kernel = taken.iter().filter(|(mode, _)| *mode == Mode::Kernel);
        assert!(kernel.into_iter().all(|(_, branch)| (branch.from, branch.to) == (0x9000, 0x9000)));
        assert_eq!(taken.iter().filter(|(_, branch)| branch.predicted).count(), 50);
    }

    #[test]
    fn a_branch_uses_any_site_if_none_has_its_mode() {
        let mut branches = Branches::default();
        let sites = [site(0x9000, false)];
        let froms: Vec<_> = (0..10).map(|_| branches.next_branch(&sites).unwrap().1.from).collect();
        assert_eq!(froms, [0x9000; 10]);
        assert_eq!(branches.next_branch(&[]), None);
    }
}
