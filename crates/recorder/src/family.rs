//! The processes of the command: its own, and those that they start.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use system::{OpenTask, ProcessChange, StartedProcesses};

/// Time after its end within which the last samples of a process arrive.
const LATE: Duration = Duration::from_secs(10);

/// A process of the command.
struct Member {
    /// Keeps its ID from others.
    _open: Option<Box<dyn OpenTask>>,
    /// When its end was noticed.
    ended: Option<Instant>,
}

/// The processes of the command.
pub struct Family {
    source: Box<dyn StartedProcesses>,
    members: BTreeMap<u32, Member>,
    /// Number of starts that Windows told of.
    starts: u64,
}

/// What is left of the processes of the command at the end of a recording.
#[derive(Debug, Default)]
pub struct Remaining {
    /// IDs of those that run.
    pub running: Vec<u32>,
    /// Number of those that Windows did not tell of, so that their samples were filtered.
    pub untold: u64,
}

impl Family {
    /// Follows the processes that this one starts from now on.
    #[must_use]
    pub fn new(source: Box<dyn StartedProcesses>) -> Self {
        Self { source, members: BTreeMap::new(), starts: 0 }
    }

    /// Notes the starts and ends until now. A process starts before it is sampled, so samples that were fetched before
    /// this call are only of processes that are known after it.
    ///
    /// # Errors
    /// If Windows does not tell.
    pub fn update(&mut self, now: Instant) -> io::Result<()> {
        while let Some(change) = self.source.next_change()? {
            match change {
                ProcessChange::Started(id, open) => {
                    self.starts += 1;
                    self.members.insert(id, Member { _open: open, ended: None });
                }
                ProcessChange::Ended(id) => {
                    if let Some(member) = self.members.get_mut(&id) {
                        member.ended = Some(now);
                    }
                }
            }
        }
        self.members.retain(|_, member| member.ended.is_none_or(|ended| now.saturating_duration_since(ended) < LATE));
        Ok(())
    }

    /// Returns whether samples with the ID of a process are of the command.
    #[must_use]
    pub fn contains(&self, process: u32) -> bool {
        self.members.contains_key(&process)
    }

    /// Returns what is left.
    ///
    /// # Errors
    /// If Windows does not tell.
    pub fn remaining(mut self, now: Instant) -> io::Result<Remaining> {
        let total = self.source.total()?;
        self.update(now)?;
        let running = self.members.iter().filter(|(_, member)| member.ended.is_none()).map(|(id, _)| *id);
        Ok(Remaining { running: running.collect(), untold: total.saturating_sub(self.starts) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fake_system::FakeStarts;

    #[test]
    fn a_process_belongs_to_the_command_until_its_last_samples_have_arrived() {
        let (begin, starts) = (Instant::now(), FakeStarts::default());
        let mut family = Family::new(Box::new(starts.clone()));
        let mut members = |changes: &[(u32, bool)], seconds| {
            starts.add(changes);
            family.update(begin + Duration::from_secs(seconds)).unwrap();
            [12, 16].map(|id| family.contains(id))
        };
        assert_eq!(members(&[], 0), [false, false]);
        assert_eq!(members(&[(12, true), (16, true), (16, false)], 1), [true, true], "it ended between two looks");
        assert_eq!(members(&[], 10), [true, true]);
        assert_eq!(members(&[], 11), [true, false]);
        assert_eq!(members(&[(16, true)], 12), [true, true], "another process of the command with the same ID");
        assert_eq!(members(&[(12, false), (12, true)], 13), [true, true]);
        assert_eq!(members(&[], 99), [true, true], "the successor runs");
        starts.lose(2);
        let remaining = family.remaining(begin).unwrap();
        assert_eq!((remaining.running, remaining.untold), (vec![12, 16], 2));
    }
}
