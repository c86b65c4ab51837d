//! Compares counts of `stat --json`.

use std::collections::HashMap;

use report::{Change, Estimate};
use serde::{Deserialize, Serialize};

use super::{ChangedRow, Comparison, DiffError, Judge, Kind, Section};
use crate::cli::{FailAbove, Work};
use terminal::format::real;
use user_error::Error;

/// Half the width of the 95 % interval of a normal variable, in standard deviations.
const NORMAL: f64 = 1.959_964;

/// The members of `halprof.stat/1` that are compared.
#[derive(Debug, Deserialize)]
pub struct SavedStat {
    elapsed_seconds: Option<f64>,
    events: Vec<SavedEvent>,
}

#[derive(Debug, Deserialize)]
struct SavedEvent {
    name: String,
    stands_for: Option<String>,
    modes: String,
    scaled: u64,
    error: Option<f64>,
    percent_running: f64,
    repeated: Option<SavedSpread>,
}

#[derive(Debug, Deserialize)]
struct SavedSpread {
    runs: Vec<u64>,
    mean: f64,
    standard_error: Option<f64>,
}

impl SavedStat {
    /// Returns the counts of `stat` as they would be saved.
    pub fn of(stat: &impl Serialize) -> Result<Self, Error> {
        Ok(serde_json::from_slice(&serde_json::to_vec(stat)?)?)
    }
}

impl SavedEvent {
    /// Returns the event with its modes: `cycles:u`.
    fn label(&self) -> String {
        self.with_modes(&self.name)
    }

    /// Returns the same for all names that the user can give an event: `TotalCycles:u`.
    fn key(&self) -> String {
        self.with_modes(self.stands_for.as_ref().unwrap_or(&self.name))
    }

    fn with_modes(&self, name: &str) -> String {
        if self.modes == "uk" { name.to_owned() } else { format!("{name}:{}", self.modes) }
    }

    /// Returns the count: the mean of several runs.
    fn value(&self) -> f64 {
        self.repeated.as_ref().map_or_else(|| real(self.scaled), |repeated| repeated.mean)
    }

    /// Returns the count with its error: that of the mean of several runs, or that of a scaled count. Other counts of
    /// one run have none.
    fn estimate(&self) -> Option<Estimate> {
        let value = self.value();
        match &self.repeated {
            Some(SavedSpread { runs, standard_error: Some(error), .. }) => {
                let freedom = real(runs.len().saturating_sub(1) as u64);
                Some(Estimate { value, variance: error * error, freedom })
            }
            _ if self.percent_running < 100.0 => {
                let deviation = self.error? / NORMAL;
                Some(Estimate { value, variance: deviation * deviation, freedom: f64::INFINITY })
            }
            _ => None,
        }
    }
}

/// Returns the events by their keys. A file has thousands of them if every event of a processor was counted.
fn by_key(stat: &SavedStat) -> HashMap<String, &SavedEvent> {
    // The first one of several with the same key is kept.
    stat.events.iter().rev().map(|event| (event.key(), event)).collect()
}

/// Compares the events that both have.
pub fn compare(old: &SavedStat, new: &SavedStat, fail: FailAbove, work: Option<Work>) -> Result<Comparison, DiffError> {
    let (in_old, in_new) = (by_key(old), by_key(new));
    let old_of = |event: &SavedEvent| in_old.get(&event.key()).copied();
    let pairs: Vec<(&SavedEvent, &SavedEvent)> =
        new.events.iter().filter_map(|event| Some((old_of(event)?, event))).collect();
    let both = |event: &&SavedEvent| in_old.contains_key(&event.key()) && in_new.contains_key(&event.key());
    let alone = old.events.iter().chain(&new.events).filter(|event| !both(event));
    let mut unmatched: Vec<String> = alone.map(SavedEvent::label).collect();
    unmatched.dedup();
    if pairs.is_empty() {
        return Err(DiffError::NothingInCommon { events: unmatched });
    }
    let judge = Judge::new(fail, pairs.len());
    let units = work.unwrap_or(Work::SAME);
    let rows = pairs.into_iter().map(|(old, new)| {
        let of_each = |event: &SavedEvent, units: f64| event.estimate().map(|estimate| estimate.per(units));
        let estimates = of_each(old, units.old).zip(of_each(new, units.new));
        if fail.fail_above.is_some() && estimates.is_none() {
            return Err(DiffError::NoError { event: new.label() });
        }
        Ok(ChangedRow::new(
            vec![new.label()],
            [old.value() / units.old, new.value() / units.new],
            true,
            &judge,
            |confidence| {
                let (old, new) = estimates?;
                Some(Change::relative(&old, &new, confidence))
            },
        ))
    });
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let section = Section { event: None, total: None, lost_shares: None, rows };
    Ok(Comparison::new(Kind::Counts, vec!["event"], fail, vec![section], unmatched)
        .with_work(work, [old, new].map(|stat| stat.elapsed_seconds)))
}
