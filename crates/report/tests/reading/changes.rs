//! Intervals of changes between recordings whose true change is known.

use std::env;
use std::io::Cursor;

use protocol::{CounterSample, SampleRecord};
use recording::Block;
use report::{Change, Column, Confidence, Contents, Detail, Estimate, Filter, SymbolFinder, SymbolIndex, Table, Total};

use super::support::{APP, CYCLES, file, processes, sample};

/// Mean numbers of samples of the old recordings, in two functions.
const OLD: [f64; 2] = [120.0, 480.0];

/// What the new recordings have of them.
const GROWTH: [f64; 2] = [1.5, 1.0];

/// SplitMix64 (G. L. Steele, D. Lea and C. H. Flood, 2014).
struct Random(u64);

impl Random {
    /// Returns a number from 0 to 1, but neither of them.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (f64::from(u32::try_from((mixed ^ mixed >> 31) >> 32).unwrap()) + 0.5) / 4_294_967_296.0
    }

    /// Returns a number with Poisson's distribution: how many arrivals are in the time `mean`.
    fn poisson(&mut self, mean: f64) -> usize {
        let mut time = 0.0;
        std::iter::from_fn(|| {
            time -= self.uniform().ln();
            (time < mean).then_some(())
        })
        .count()
    }
}

/// Records samples of these mean numbers in two functions. The intervals are all equal, or a third of them is four
/// times as long as the others.
fn recorded(random: &mut Random, means: [f64; 2], uneven: bool) -> (Total, [f64; 2]) {
    let mut samples: Vec<CounterSample> = Vec::new();
    for (mean, ip) in means.into_iter().zip([APP, APP + 0x10]) {
        for _ in 0..random.poisson(mean) {
            let interval = if uneven && random.uniform() < 1.0 / 3.0 { 4000 } else { 1000 };
            samples.push(sample(CYCLES, 8, ip, interval));
        }
    }
    let mut blocks: Vec<Block> = processes().into_iter().map(Block::Process).collect();
    blocks.push(Block::Samples(samples.into_iter().map(SampleRecord::from).collect()));
    let contents = Contents::read(&mut Cursor::new(file(&blocks)), Detail::default()).unwrap();
    let finder = SymbolFinder::new(Vec::new(), None, None).unwrap();
    let symbol_index = SymbolIndex::new(&contents, &Filter::default(), &finder);
    let table = Table::new(&contents, &symbol_index, CYCLES, &[Column::Symbol], &Filter::default());
    let share = |name: &str| {
        table.sorted_rows().iter().find(|row| row.symbol.as_deref() == Some(name)).map_or(0.0, |row| row.share)
    };
    (table.total, [share("app.exe+0x0"), share("app.exe+0x10")])
}

fn soak() -> bool {
    env::var_os("HALPROF_SOAK").is_some()
}

/// Returns the rate at which intervals contain the true change: of the shares of both functions, and of the total.
fn rates(seeds: u32, uneven: bool) -> [f64; 3] {
    let new = [OLD[0] * GROWTH[0], OLD[1] * GROWTH[1]];
    let (sum, new_sum) = (OLD[0] + OLD[1], new[0] + new[1]);
    let wanted = [new[0] / new_sum - OLD[0] / sum, new[1] / new_sum - OLD[1] / sum, new_sum / sum - 1.0];
    let mut covered = [0; 3];
    for seed in 0..seeds {
        let mut random = Random(u64::from(seed) << 32);
        let (old_total, old_shares) = recorded(&mut random, OLD, uneven);
        let (new_total, new_shares) = recorded(&mut random, new, uneven);
        let [first, second] = [0, 1].map(|index: usize| {
            let [old, new] = [&old_shares, &new_shares].map(|shares| shares.get(index).copied().unwrap_or_default());
            Change::of_shares((old, &old_total), (new, &new_total), Confidence::OF_EACH)
        });
        let [old, new] = [&old_total, &new_total].map(Estimate::of_total);
        let changes = [first, second, Change::relative(&old, &new, Confidence::OF_EACH)];
        for ((change, wanted), covered) in changes.iter().zip(wanted).zip(&mut covered) {
            *covered += u32::from((change.low..=change.high).contains(&wanted));
        }
    }
    covered.map(|covered| f64::from(covered) / f64::from(seeds))
}

/// The interval contains the true change in 95 of 100 cases: 94 to 96.5 % of 2,000 recordings, and as far from 95 % as
/// fewer can be by chance.
#[test]
fn interval_contains_the_true_change_at_its_rate() {
    let (seeds, range) = if soak() { (2000, 0.94..=0.965) } else { (400, 0.92..=0.98) };
    for uneven in [false, true] {
        let rates = rates(seeds, uneven);
        assert!(rates.iter().all(|rate| range.contains(rate)), "{rates:?}, uneven: {uneven}");
    }
}

/// Means of five runs with a normal error: Student's quantile with Welch's degrees of freedom covers the true change.
#[test]
fn interval_of_repeated_counts_contains_the_true_change_at_its_rate() {
    let (seeds, range) = if soak() { (20_000, 0.935..=0.97) } else { (2000, 0.935..=0.975) };
    for (old_runs, new_runs) in [(5, 5), (3, 10)] {
        let mut random = Random(7);
        let mut measured = |mean: f64, runs: u32| {
            let mut normal = || {
                let angle = 2.0 * std::f64::consts::PI * random.uniform();
                (-2.0 * random.uniform().ln()).sqrt() * angle.cos()
            };
            let values: Vec<f64> = (0..runs).map(|_| mean * (1.0 + 0.02 * normal())).collect();
            let value = values.iter().sum::<f64>() / f64::from(runs);
            let squares: f64 = values.iter().map(|one| (one - value).powi(2)).sum();
            let freedom = f64::from(runs - 1);
            Estimate { value, variance: squares / freedom / f64::from(runs), freedom }
        };
        let covered = (0..seeds).filter(|_| {
            let (old, new) = (measured(1000.0, old_runs), measured(1070.0, new_runs));
            let change = Change::relative(&old, &new, Confidence::OF_EACH);
            (change.low..=change.high).contains(&0.07)
        });
        let rate = f64::from(u32::try_from(covered.count()).unwrap()) / f64::from(seeds);
        assert!(range.contains(&rate), "{rate} of {old_runs} and {new_runs} runs");
    }
}
