//! The code that a processor executes when it is interrupted: sites with weights.

use bench_protocol::{InterruptSite, SiteInterrupts};

/// The default code: sixteen kernel addresses, sixteen bytes apart, in the idle process.
const IDLE_CODE: u64 = 0xFFFF_F800_0000_0000;
const SITES: u64 = 16;
const BYTES: u64 = 16;

/// The sites of one processor, chosen by weighted round robin.
#[derive(Debug)]
pub struct InterruptSites {
    sites: Vec<WeightedSite>,
    /// Sum of all weights.
    total: i64,
}

#[derive(Debug)]
struct WeightedSite {
    counted: SiteInterrupts,
    /// Weight times the number of all interrupts, minus the sum of the weights for each interrupt of this site.
    credit: i64,
}

impl Default for InterruptSites {
    fn default() -> Self {
        let site =
            |number| InterruptSite { ip: IDLE_CODE + number * BYTES, user: false, process: 0, thread: 0, weight: 1 };
        Self::of((0..SITES).map(site))
    }
}

impl InterruptSites {
    /// Returns the sites, or None if no site has a weight.
    #[must_use]
    pub fn new(sites: Vec<InterruptSite>) -> Option<Self> {
        Some(Self::of(sites)).filter(|sites| sites.total > 0)
    }

    fn of(sites: impl IntoIterator<Item = InterruptSite>) -> Self {
        let weighted = |site| WeightedSite { counted: SiteInterrupts { site, interrupts: 0 }, credit: 0 };
        let sites: Vec<_> = sites.into_iter().map(weighted).collect();
        let total = sites.iter().map(|site| i64::from(site.counted.site.weight)).sum();
        Self { sites, total }
    }

    /// Returns the index of the site with the highest credit, the first of equals. At any time, the shares are as
    /// close to the weights as whole interrupts allow.
    fn next(&self) -> Option<usize> {
        let possible = self.sites.iter().enumerate().filter(|(_, site)| site.counted.site.weight > 0);
        let owed = |site: &WeightedSite| site.credit + i64::from(site.counted.site.weight);
        possible.rev().max_by_key(|(_, site)| owed(site)).map(|(number, _)| number)
    }

    /// Returns the site of the next interrupt without counting it.
    #[must_use]
    pub fn peek(&self) -> Option<InterruptSite> {
        Some(self.sites.get(self.next()?)?.counted.site)
    }

    /// Returns the sites that have a weight.
    #[must_use]
    pub fn sites(&self) -> Vec<InterruptSite> {
        self.interrupts().map(|counted| counted.site).filter(|site| site.weight > 0).collect()
    }

    /// Counts an interrupt and returns its site.
    pub fn next_interrupt(&mut self) -> Option<InterruptSite> {
        let next = self.next()?;
        for site in &mut self.sites {
            site.credit += i64::from(site.counted.site.weight);
        }
        let chosen = self.sites.get_mut(next)?;
        chosen.credit -= self.total;
        chosen.counted.interrupts += 1;
        Some(chosen.counted.site)
    }

    /// Returns how often each site was interrupted.
    pub fn interrupts(&self) -> impl Iterator<Item = SiteInterrupts> {
        self.sites.iter().map(|site| site.counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sites(weights: &[u32]) -> Vec<InterruptSite> {
        let site = |(number, weight): (u64, &u32)| InterruptSite {
            ip: number,
            user: false,
            process: 1,
            thread: 2,
            weight: *weight,
        };
        (0..).zip(weights).map(site).collect()
    }

    fn times(sites: &InterruptSites) -> Vec<u64> {
        sites.interrupts().map(|counted| counted.interrupts).collect()
    }

    proptest! {
        #[test]
        fn each_round_of_interrupts_reaches_each_site_as_often_as_its_weight(
            weights in prop::collection::vec(0..40_u32, 1..12),
            rounds in 1..4_u64,
        ) {
            let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
            prop_assume!(total > 0);
            let mut sites = InterruptSites::new(sites(&weights)).unwrap();
            for round in 1..=rounds {
                for _ in 0..total {
                    let site = sites.next_interrupt().unwrap();
                    prop_assert!(site.weight > 0);
                }
                let expected: Vec<u64> = weights.iter().map(|weight| u64::from(*weight) * round).collect();
                prop_assert_eq!(times(&sites), expected);
            }
        }

        #[test]
        fn no_site_is_ever_ahead_of_its_share_by_an_interrupt(
            weights in prop::collection::vec(1..40_u64, 1..12),
            interrupts in 1..300_u64,
        ) {
            let total: u64 = weights.iter().sum();
            let narrow: Vec<u32> = weights.iter().map(|weight| u32::try_from(*weight).unwrap()).collect();
            let mut sites = InterruptSites::new(sites(&narrow)).unwrap();
            for _ in 0..interrupts {
                let expected = sites.peek();
                prop_assert!(expected.is_some());
                prop_assert_eq!(sites.next_interrupt(), expected);
            }
            for (times, weight) in times(&sites).into_iter().zip(weights) {
                prop_assert!(times * total < interrupts * weight + total, "{times} of {interrupts}, {weight}/{total}");
            }
        }
    }

    #[test]
    fn the_default_sites_take_turns() {
        let mut sites = InterruptSites::default();
        let first: Vec<u64> = (0..20).map(|_| sites.next_interrupt().unwrap().ip).collect();
        let expected: Vec<u64> = (0..20).map(|number| IDLE_CODE + number % SITES * BYTES).collect();
        assert_eq!(first, expected);
        assert_eq!(sites.interrupts().map(|counted| counted.interrupts).sum::<u64>(), 20);
    }

    #[test]
    fn a_site_without_weight_is_never_interrupted() {
        let sites = InterruptSites::new(sites(&[0, 3, 0, 1])).unwrap();
        assert_eq!(sites.sites().iter().map(|site| site.ip).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn sites_need_a_weight() {
        assert!(InterruptSites::new(Vec::new()).is_none());
        assert!(InterruptSites::new(sites(&[0, 0])).is_none());
    }
}
