//! The DPCs and their queues, by the addresses of the DPC objects. This module runs no routine.

use std::{
    collections::{HashMap, VecDeque},
    ops::Range,
};

/// The error for an object that was not initialized at its address.
#[derive(Debug, PartialEq, Eq)]
pub struct Unknown;

/// A call of a DPC's routine. All fields are addresses or values of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The DPC.
    pub dpc: usize,
    /// DeferredRoutine.
    pub routine: usize,
    /// DeferredContext.
    pub context: usize,
    /// SystemArgument1 and SystemArgument2.
    pub arguments: [usize; 2],
    /// A timer queued it.
    pub by_timer: bool,
}

/// The reason why a DPC is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueuedBy {
    /// KeInsertQueueDpc, with its two arguments.
    Driver([usize; 2]),
    /// A timer that expired.
    Timer,
}

#[derive(Debug)]
struct Dpc {
    routine: usize,
    context: usize,
    target: Option<u32>,
    /// Whether the DPC is queued at the front.
    urgent: bool,
}

#[derive(Debug)]
struct Waiting {
    dpc: usize,
    queued_by: QueuedBy,
    ticket: u64,
}

/// The queue of one processor.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Routine and ticket of the running DPC.
    running: Option<(usize, u64)>,
    /// Number of calls for timers.
    timer_calls: u64,
    /// Number of calls that the driver directed to this processor.
    targeted_calls: u64,
    /// Number of calls that the driver queued on this processor from it.
    untargeted_calls: u64,
}

/// The DPCs of all processors.
#[derive(Debug)]
pub struct DpcQueues {
    known: HashMap<usize, Dpc>,
    queues: Vec<Queue>,
    /// The number of DPCs queued so far, which is the last ticket.
    tickets: u64,
}

impl DpcQueues {
    /// Returns empty queues for `processors` processors.
    #[must_use]
    pub fn new(processors: usize) -> Self {
        Self { known: HashMap::new(), queues: (0..processors).map(|_| Queue::default()).collect(), tickets: 0 }
    }

    /// Registers a DPC without a target, with medium importance. Returns false and changes nothing if it is queued.
    pub fn initialize(&mut self, dpc: usize, routine: usize, context: usize) -> bool {
        let free = !self.is_queued(dpc);
        if free {
            self.known.insert(dpc, Dpc { routine, context, target: None, urgent: false });
        }
        free
    }

    /// Sets the processor on which the DPC is queued.
    ///
    /// # Errors
    /// The DPC is unknown.
    pub fn set_target(&mut self, dpc: usize, processor: u32) -> Result<(), Unknown> {
        self.known.get_mut(&dpc).ok_or(Unknown)?.target = Some(processor);
        Ok(())
    }

    /// Sets whether the DPC is queued at the front.
    ///
    /// # Errors
    /// The DPC is unknown.
    pub fn set_urgent(&mut self, dpc: usize, urgent: bool) -> Result<(), Unknown> {
        self.known.get_mut(&dpc).ok_or(Unknown)?.urgent = urgent;
        Ok(())
    }

    /// Returns whether the DPC is registered.
    #[must_use]
    pub fn contains(&self, dpc: usize) -> bool {
        self.known.contains_key(&dpc)
    }

    /// Returns the target processor of the DPC, if it has one.
    #[must_use]
    pub fn target(&self, dpc: usize) -> Option<u32> {
        self.known.get(&dpc)?.target
    }

    /// Returns whether the DPC's routine is in the address range.
    #[must_use]
    pub fn calls_into(&self, dpc: usize, addresses: &Range<usize>) -> bool {
        self.known.get(&dpc).is_some_and(|dpc| addresses.contains(&dpc.routine))
    }

    /// Queues the DPC on its target processor, or on processor `here`. Returns false if it is already queued.
    ///
    /// # Errors
    /// The DPC is unknown.
    pub fn insert(&mut self, dpc: usize, here: u32, queued_by: QueuedBy) -> Result<bool, Unknown> {
        let Dpc { target, urgent, .. } = self.known.get(&dpc).ok_or(Unknown)?;
        let (processor, urgent) = (target.unwrap_or(here), *urgent);
        if self.is_queued(dpc) {
            return Ok(false);
        }
        self.tickets += 1;
        let waiting = Waiting { dpc, queued_by, ticket: self.tickets };
        let Some(queue) = self.queue(processor) else { return Ok(false) };
        if urgent {
            queue.waiting.push_front(waiting);
        } else {
            queue.waiting.push_back(waiting);
        }
        Ok(true)
    }

    /// Removes the DPC from its queue. Returns false if it is not queued.
    ///
    /// # Errors
    /// The DPC is unknown.
    pub fn remove(&mut self, dpc: usize) -> Result<bool, Unknown> {
        let queued = self.is_queued(dpc);
        for queue in &mut self.queues {
            queue.waiting.retain(|waiting| waiting.dpc != dpc);
        }
        if self.contains(dpc) { Ok(queued) } else { Err(Unknown) }
    }

    /// Removes the first DPC from the queue of a processor, and marks it as running.
    pub fn begin(&mut self, processor: u32) -> Option<Call> {
        let queue = self.queues.get_mut(usize::try_from(processor).ok()?)?;
        let Waiting { dpc, queued_by, ticket } = queue.waiting.pop_front()?;
        let Dpc { routine, context, target, .. } = *self.known.get(&dpc)?;
        queue.running = Some((routine, ticket));
        let arguments = match queued_by {
            QueuedBy::Driver(arguments) => {
                queue.targeted_calls += u64::from(target.is_some());
                queue.untargeted_calls += u64::from(target.is_none());
                arguments
            }
            QueuedBy::Timer => {
                queue.timer_calls += 1;
                [0; 2]
            }
        };
        Some(Call { dpc, routine, context, arguments, by_timer: queued_by == QueuedBy::Timer })
    }

    /// Marks the running DPC of the processor as finished.
    pub fn end(&mut self, processor: u32) {
        if let Some(queue) = self.queue(processor) {
            queue.running = None;
        }
    }

    /// Returns whether a DPC is queued on the processor.
    #[must_use]
    pub fn has_waiting(&self, processor: u32) -> bool {
        let queue = usize::try_from(processor).ok().and_then(|index| self.queues.get(index));
        queue.is_some_and(|queue| !queue.waiting.is_empty())
    }

    /// Returns a mark for [`done`](Self::done) that covers every DPC queued so far.
    #[must_use]
    pub const fn mark(&self) -> u64 {
        self.tickets
    }

    /// Returns whether every DPC queued before the mark has run or was removed.
    #[must_use]
    pub fn done(&self, mark: u64) -> bool {
        self.queues.iter().all(|queue| {
            queue.running.is_none_or(|(_, ticket)| ticket > mark)
                && queue.waiting.iter().all(|waiting| waiting.ticket > mark)
        })
    }

    /// Returns whether a routine in the address range runs.
    #[must_use]
    pub fn runs_in(&self, addresses: &Range<usize>) -> bool {
        self.queues.iter().any(|queue| queue.running.is_some_and(|(routine, _)| addresses.contains(&routine)))
    }

    /// Removes the DPCs with an object or a routine in the address range. Returns whether one was queued.
    pub fn forget(&mut self, addresses: &Range<usize>) -> bool {
        let gone = |dpc: &usize, known: &Dpc| addresses.contains(dpc) || addresses.contains(&known.routine);
        let gone: Vec<usize> = self.known.iter().filter(|(dpc, known)| gone(dpc, known)).map(|(dpc, _)| *dpc).collect();
        let mut queued = false;
        for dpc in gone {
            queued |= self.remove(dpc) == Ok(true);
            self.known.remove(&dpc);
        }
        queued
    }

    /// Returns the number of calls for timers on each processor.
    #[must_use]
    pub fn timer_calls(&self) -> Vec<u64> {
        self.queues.iter().map(|queue| queue.timer_calls).collect()
    }

    /// Returns the number of calls that the driver directed to each processor.
    #[must_use]
    pub fn targeted_calls(&self) -> Vec<u64> {
        self.queues.iter().map(|queue| queue.targeted_calls).collect()
    }

    /// Returns the number of calls of DPCs without a target that the driver queued on each processor.
    #[must_use]
    pub fn untargeted_calls(&self) -> Vec<u64> {
        self.queues.iter().map(|queue| queue.untargeted_calls).collect()
    }

    /// Resets the number of calls for timers.
    pub fn reset_timer_calls(&mut self) {
        for queue in &mut self.queues {
            queue.timer_calls = 0;
        }
    }

    fn queue(&mut self, processor: u32) -> Option<&mut Queue> {
        self.queues.get_mut(usize::try_from(processor).ok()?)
    }

    fn is_queued(&self, dpc: usize) -> bool {
        self.queues.iter().any(|queue| queue.waiting.iter().any(|waiting| waiting.dpc == dpc))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY_DRIVER: QueuedBy = QueuedBy::Driver([7, 8]);

    /// Returns three DPCs on two processors. The third has processor 1 as its target.
    fn three() -> DpcQueues {
        let mut dpcs = DpcQueues::new(2);
        for dpc in [0x100, 0x200, 0x300] {
            assert!(dpcs.initialize(dpc, dpc + 1, dpc + 2));
        }
        dpcs.set_target(0x300, 1).unwrap();
        dpcs
    }

    fn order(dpcs: &mut DpcQueues, processor: u32) -> Vec<usize> {
        std::iter::from_fn(|| dpcs.begin(processor)).map(|call| call.dpc).collect()
    }

    #[test]
    fn a_dpc_runs_with_its_arguments_on_its_target_or_where_it_was_queued() {
        let mut dpcs = three();
        assert_eq!(dpcs.insert(0x100, 0, BY_DRIVER), Ok(true));
        assert_eq!(dpcs.insert(0x300, 0, QueuedBy::Timer), Ok(true));
        let first = Call { dpc: 0x100, routine: 0x101, context: 0x102, arguments: [7, 8], by_timer: false };
        assert_eq!(dpcs.begin(0), Some(first));
        assert_eq!(
            dpcs.begin(1),
            Some(Call { dpc: 0x300, routine: 0x301, context: 0x302, arguments: [0, 0], by_timer: true })
        );
        assert_eq!((dpcs.begin(0), dpcs.begin(1)), (None, None));
        assert_eq!((dpcs.timer_calls(), dpcs.targeted_calls()), (vec![0, 1], vec![0, 0]));
        assert_eq!(dpcs.insert(0x300, 0, BY_DRIVER), Ok(true));
        assert!(dpcs.begin(1).is_some());
        assert_eq!(dpcs.targeted_calls(), [0, 1], "the other DPC of the driver has no target");
        assert_eq!(dpcs.untargeted_calls(), [1, 0]);
        dpcs.reset_timer_calls();
        assert_eq!(dpcs.timer_calls(), [0, 0]);
    }

    #[test]
    fn a_dpc_is_queued_once_and_can_be_queued_again_while_it_runs() {
        let mut dpcs = three();
        assert_eq!(dpcs.insert(0x100, 0, BY_DRIVER), Ok(true));
        assert_eq!(dpcs.insert(0x100, 1, BY_DRIVER), Ok(false));
        assert!(!dpcs.initialize(0x100, 1, 2));
        assert!(dpcs.begin(0).is_some());
        assert_eq!(dpcs.insert(0x100, 0, BY_DRIVER), Ok(true));
        assert_eq!((dpcs.remove(0x100), dpcs.remove(0x100)), (Ok(true), Ok(false)));
        assert!(!dpcs.has_waiting(0));
    }

    #[test]
    fn a_dpc_of_high_importance_runs_first() {
        let mut dpcs = three();
        dpcs.set_urgent(0x200, true).unwrap();
        assert_eq!([0x100, 0x200].map(|dpc| dpcs.insert(dpc, 0, BY_DRIVER)), [Ok(true), Ok(true)]);
        assert_eq!(order(&mut dpcs, 0), [0x200, 0x100]);
    }

    #[test]
    fn a_mark_covers_only_dpcs_queued_before_it() {
        let mut dpcs = three();
        assert_eq!([0x100, 0x300].map(|dpc| dpcs.insert(dpc, 0, BY_DRIVER)), [Ok(true), Ok(true)]);
        let mark = dpcs.mark();
        assert!(dpcs.begin(0).is_some());
        assert_eq!(dpcs.insert(0x200, 0, BY_DRIVER), Ok(true));
        assert_eq!(dpcs.remove(0x300), Ok(true));
        assert!(!dpcs.done(mark));
        dpcs.end(0);
        assert!(dpcs.done(mark) && !dpcs.done(dpcs.mark()));
    }

    #[test]
    fn a_forgotten_dpc_is_unknown_and_does_not_run() {
        let mut dpcs = three();
        assert_eq!([0x100, 0x200].map(|dpc| dpcs.insert(dpc, 0, BY_DRIVER)), [Ok(true), Ok(true)]);
        assert!(!dpcs.forget(&(0x300..0x301)));
        assert!(dpcs.forget(&(0x201..0x202)), "the routine is in the range");
        assert_eq!(dpcs.insert(0x200, 0, BY_DRIVER), Err(Unknown));
        assert!(dpcs.calls_into(0x100, &(0x101..0x102)));
        assert_eq!(order(&mut dpcs, 0), [0x100]);
        assert!(dpcs.runs_in(&(0x101..0x102)));
        dpcs.end(0);
        assert!(!dpcs.runs_in(&(0..usize::MAX)));
    }

    #[test]
    fn every_operation_fails_for_an_uninitialized_dpc() {
        let mut dpcs = three();
        assert_eq!(dpcs.insert(1, 0, BY_DRIVER), Err(Unknown));
        assert_eq!(dpcs.remove(1), Err(Unknown));
        assert_eq!((dpcs.set_target(1, 0), dpcs.set_urgent(1, true)), (Err(Unknown), Err(Unknown)));
        assert!(!dpcs.contains(1) && dpcs.target(1).is_none() && dpcs.target(0x300) == Some(1));
    }
}
