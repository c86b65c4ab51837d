//! A session that samples by the HAL's counters.

use std::sync::{Arc, Mutex};

use halprof::HalError;
use halprof::pmu::Kind;
use halprof::text::processors::named;
use protocol::{CountRecord, EventRequest, modes};
use zerocopy::FromZeros;

use super::added_sources::AddedSources;
use super::samples::Samples;
use super::session::{WINDOW_SECONDS, lock, started};
use super::{Carrier, HalCalls, HalPlan, SwitchSession};
use crate::trace::{RawTraceEvent, TraceLosses, TraceSink};

/// What receives samples with their stacks and the events of code, if anything does.
pub type StackSink = Arc<Mutex<Option<TraceSink>>>;

/// The intervals of sources that this program has set. They are put back when this is dropped, unless another program
/// has changed them meanwhile.
struct Intervals {
    calls: Arc<dyn HalCalls>,
    /// Source, interval before, and interval of the session.
    set: Vec<(u32, u32, u32)>,
}

impl Intervals {
    fn set(&mut self, source: u32, interval: u32) -> Result<(), HalError> {
        let failed = |cause| HalError::Call { function: "TraceSetInformation for the interval", cause };
        let before = self.calls.interval(source).map_err(failed)?;
        if before != interval {
            self.calls.set_interval(source, interval).map_err(failed)?;
        }
        // Windows can use another one.
        self.set.push((source, before, self.calls.interval(source).map_err(failed)?));
        Ok(())
    }
}

impl Drop for Intervals {
    fn drop(&mut self) {
        for (source, before, ours) in self.set.iter().rev() {
            if before != ours && self.calls.interval(*source).ok() == Some(*ours) {
                // A failure has no remedy.
                let _ = self.calls.set_interval(*source, *before);
            }
        }
    }
}

/// A session that samples.
pub struct SamplingSession {
    events: Vec<EventRequest>,
    names: Vec<String>,
    // They end in this order.
    session: Box<dyn SwitchSession>,
    intervals: Intervals,
    _added: AddedSources,
    /// The samples, for the thread that fetches them.
    pub samples: Arc<Mutex<Samples>>,
    sink: StackSink,
}

impl SamplingSession {
    /// Starts a session with room for so many samples that were not fetched yet.
    pub fn start(
        events: &[EventRequest],
        names: Vec<String>,
        (calls, kind): (&Arc<dyn HalCalls>, Kind),
        room: usize,
        (sink, off_cpu): (&StackSink, bool),
    ) -> Result<Self, HalError> {
        let (sources, added) = AddedSources::of(events, calls, kind)?;
        let mut intervals = Intervals { calls: Arc::clone(calls), set: Vec::new() };
        for (source, event) in sources.iter().zip(events) {
            intervals.set(*source, event.interval)?;
        }
        let (_, frequency) = calls.clock();
        let with_event = |((source, _, interval), event): (&(u32, u32, u32), &EventRequest)| {
            (*source, event.event.source, *interval)
        };
        let requested: Vec<_> = intervals.set.iter().zip(events).map(with_event).collect();
        let mut samples = Samples::new(&requested, WINDOW_SECONDS * frequency, room);
        // Windows' own rundown of threads can come later than their samples.
        let threads = calls.threads().map_err(|cause| HalError::Call { function: "the list of threads", cause })?;
        for (process, thread) in threads {
            samples.add_thread(process, thread);
        }
        let samples = Arc::new(Mutex::new(samples));
        let (receiver, stacks) = (Arc::clone(&samples), Arc::clone(sink));
        let receive = Box::new(move |event: &RawTraceEvent| lock(&receiver).add(event, lock(&stacks).as_mut()));
        let per_second = events.iter().map(|event| u64::from(event.frequency.max(USUAL_RATE))).sum();
        let carrier = Carrier::Samples { per_second, with_stacks: lock(sink).is_some(), off_cpu };
        let plan = HalPlan { sources, processors: calls.processors(), carrier };
        let session = started(calls.start(&plan, receive), &**calls)?;
        let (events, sink) = (events.to_vec(), Arc::clone(sink));
        Ok(Self { events, names, session, intervals, _added: added, samples, sink })
    }

    /// Stops the session. Returns the counts of samples, and what is to be said of them.
    pub fn stop(mut self, number: u64, calls: &dyn HalCalls) -> Result<(Vec<CountRecord>, Vec<String>), HalError> {
        let losses = self.session.stop().map_err(|cause| HalError::Call { function: "ControlTrace", cause })?;
        let mut samples = lock(&self.samples);
        // Nothing receives stacks any more when this returns.
        samples.finish(lock(&self.sink).take().as_mut());
        let mut records = Vec::new();
        for (event, index) in self.events.iter().zip(0..) {
            for processor in 0..calls.processors() {
                let account = samples.accounts.get(&(index, processor)).copied();
                let account = account.unwrap_or_else(CountRecord::new_zeroed);
                let (event, modes) = (event.event, modes::BOTH);
                records.push(CountRecord { session: number, event, modes, processor, index, ..account });
            }
        }
        // Windows does not say of which CPU they were; each can have been a sample.
        if let Some(first) = records.first_mut() {
            first.lost += losses.events;
        }
        Ok((records, self.remarks(&samples, losses, calls)))
    }

    /// Returns what is missing or has changed, in sentences.
    fn remarks(&self, samples: &Samples, losses: TraceLosses, calls: &dyn HalCalls) -> Vec<String> {
        let (mut remarks, processors) = (Vec::new(), calls.processors());
        for (name, index) in self.names.iter().zip(0..) {
            let has_none = |cpu: &u32| !samples.accounts.contains_key(&(index, *cpu));
            let silent: Vec<u32> = (0..processors).filter(has_none).collect();
            if silent.len() == processors as usize {
                remarks.push(format!(
                    "{name} was never sampled: another program or a hypervisor has its counters, or it is rare"
                ));
            } else if !silent.is_empty() {
                remarks
                    .push(format!("{name} was never sampled on {}: nothing ran, or it does not work", named(silent)));
            }
        }
        for ((name, index), (source, _, ours)) in self.names.iter().zip(0..).zip(&self.intervals.set) {
            let told = samples.interval(index, u64::MAX);
            let found = calls.interval(*source).unwrap_or(*ours);
            let weights =
                if told == *ours { "the weights of some samples are wrong" } else { "later samples weigh that" };
            if let Some(now) = [told, found].into_iter().find(|one| one != ours) {
                remarks.push(format!("another program changed the interval of {name} from {ours} to {now}: {weights}"));
            }
        }
        if losses != TraceLosses::default() {
            remarks.push(format!(
                "Windows lost {} events and {} buffers of the trace session: samples, stacks, or starts of threads; \
                 the events count as lost samples",
                losses.events, losses.buffers
            ));
        }
        if samples.foreign > 0 {
            remarks.push(format!("{} samples of another session were left out", samples.foreign));
        }
        if samples.late > 0 {
            remarks.push(format!("{} samples came too late, or twice, and were left out", samples.late));
        }
        if self.events.iter().any(|event| event.frequency != 0) {
            let intervals = self.names.iter().zip(&self.intervals.set);
            let intervals: Vec<String> = intervals.map(|(name, (_, _, ours))| format!("{name}@{ours}")).collect();
            remarks.push(format!(
                "the intervals were fixed ({}): the HAL does not adjust them to a frequency",
                intervals.join(", ")
            ));
        }
        remarks
    }
}

/// Samples per second and CPU for which a session has buffers at least.
const USUAL_RATE: u32 = 4_000;
