//! Which thread and which process had an ID at a time. Windows gives the ID of a thread or process that has ended to
//! another one.

use std::collections::BTreeMap;

/// Maximum number of generations of processes that are followed from a process to the one that started it.
const MAX_GENERATIONS: usize = 64;

/// What had an ID since each time, and the process that it belongs to or comes from. The time of one that existed
/// before the session is 0.
type Starts = BTreeMap<u64, u32>;

/// The threads and processes that are known.
#[derive(Debug, Default)]
pub struct Lifetimes {
    threads: BTreeMap<u32, Starts>,
    processes: BTreeMap<u32, Starts>,
}

impl Lifetimes {
    /// Adds a thread of a process.
    pub fn add_thread(&mut self, id: u32, process: u32, started: u64) {
        add(&mut self.threads, id, process, started);
    }

    /// Adds a process.
    pub fn add_process(&mut self, id: u32, parent: u32, started: u64) {
        add(&mut self.processes, id, parent, started);
    }

    /// Returns when the thread started that had an ID at a time; `None` if it is unknown.
    #[must_use]
    pub fn thread_at(&self, id: u32, time: u64) -> Option<u64> {
        at(&self.threads, id, time).map(|(started, _)| started)
    }

    /// Returns the process of a thread, as [`thread_at`](Self::thread_at) identified it, with the start of the process.
    /// Of a thread that was unknown then, it is the process of the first one that has the ID.
    #[must_use]
    pub fn process_of(&self, thread: u32, started: Option<u64>) -> Option<(u32, u64)> {
        let starts = self.threads.get(&thread)?;
        let (started, process) = started.map_or_else(
            || starts.first_key_value().map(|(started, process)| (*started, *process)),
            |started| starts.get(&started).map(|process| (started, *process)),
        )?;
        Some((process, self.process_start(process, started)))
    }

    /// Returns whether a thread belongs to one of the processes that had IDs at a time, or to one that they started.
    #[must_use]
    pub fn belongs_to(&self, thread: u32, started: Option<u64>, roots: &[(u32, u64)]) -> bool {
        let is_root = |process: u32, started: u64| {
            roots.iter().any(|(root, time)| *root == process && self.process_start(*root, *time) == started)
        };
        let mut next = self.process_of(thread, started);
        for _ in 0..MAX_GENERATIONS {
            let Some((process, started)) = next else { return false };
            if is_root(process, started) {
                return true;
            }
            // The ID of the process that started one before the session may belong to another by now.
            let parent = self.processes.get(&process).and_then(|starts| starts.get(&started)).filter(|_| started != 0);
            next = parent.map(|parent| (*parent, self.process_start(*parent, started)));
        }
        false
    }

    /// Returns when the process started that had an ID at a time, or else the first one that is known to have had it.
    fn process_start(&self, id: u32, time: u64) -> u64 {
        let first = || self.processes.get(&id)?.first_key_value().map(|(started, of)| (*started, *of));
        at(&self.processes, id, time).or_else(first).map_or(0, |(started, _)| started)
    }
}

fn add(all: &mut BTreeMap<u32, Starts>, id: u32, of: u32, started: u64) {
    let starts = all.entry(id).or_default();
    // The event of an end, or of a rundown, says nothing new about one that started in the session.
    if started != 0 || starts.is_empty() {
        starts.insert(started, of);
    }
}

/// Returns the last start of an ID up to a time.
fn at(all: &BTreeMap<u32, Starts>, id: u32, time: u64) -> Option<(u64, u32)> {
    let starts = all.get(&id)?;
    let found = starts.range(..=time).next_back();
    found.map(|(started, of)| (*started, *of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_used_again_is_another_thread() {
        let mut lifetimes = Lifetimes::default();
        lifetimes.add_thread(8, 100, 0);
        lifetimes.add_thread(8, 200, 50);
        lifetimes.add_thread(8, 200, 0); // its end
        for (time, process) in [(10, 100), (49, 100), (50, 200), (90, 200)] {
            let started = lifetimes.thread_at(8, time);
            assert_eq!(lifetimes.process_of(8, started), Some((process, 0)), "{time}");
        }
        assert_eq!((lifetimes.thread_at(9, 90), lifetimes.process_of(9, None)), (None, None));
    }

    #[test]
    fn a_process_is_followed_to_those_that_it_started_and_not_to_others_with_its_id() {
        let mut lifetimes = Lifetimes::default();
        lifetimes.add_process(100, 4, 10); // the command
        lifetimes.add_process(200, 100, 20);
        lifetimes.add_process(100, 4, 40); // another one, after the command has ended
        lifetimes.add_process(300, 100, 50); // started by that one
        lifetimes.add_process(400, 200, 60);
        for (thread, process, started) in [(1, 100, 10), (2, 200, 20), (3, 100, 40), (4, 300, 50), (5, 400, 60)] {
            lifetimes.add_thread(thread, process, started);
        }
        let belongs = |thread| lifetimes.belongs_to(thread, lifetimes.thread_at(thread, 99), &[(100, 15)]);
        assert_eq!([1, 2, 3, 4, 5, 6].map(belongs), [true, true, false, false, true, false]);
    }

    #[test]
    fn the_parent_of_a_process_from_before_the_session_is_not_believed() {
        let mut lifetimes = Lifetimes::default();
        lifetimes.add_process(100, 4, 0);
        lifetimes.add_process(200, 100, 0);
        lifetimes.add_thread(1, 100, 0);
        lifetimes.add_thread(2, 200, 0);
        assert!(lifetimes.belongs_to(1, Some(0), &[(100, 9)]) && !lifetimes.belongs_to(2, Some(0), &[(100, 9)]));
        // Circles end.
        lifetimes.add_process(300, 400, 1);
        lifetimes.add_process(400, 300, 1);
        lifetimes.add_thread(3, 300, 1);
        assert!(!lifetimes.belongs_to(3, Some(1), &[(100, 9)]));
    }

    #[test]
    fn a_thread_whose_start_is_told_late_has_its_process() {
        let mut lifetimes = Lifetimes::default();
        let before = lifetimes.thread_at(7, 30);
        lifetimes.add_thread(7, 100, 40);
        assert_eq!((before, lifetimes.process_of(7, before)), (None, Some((100, 0))));
    }
}
