//! A session of profile objects: how often the interrupts of sources have met a process, in each mode. It needs no
//! administrator (studies of NtCreateProfile; phnt, ntexapi.h), and one hit stands for as many events as an interval
//! has.

use std::io;

use halprof::{HalError, Task};
use protocol::{CountRecord, EventRequest, modes};
use zerocopy::FromZeros;

use super::HalCalls;
use super::session::ticks;

/// A profile object that counts hits.
pub trait ProfileObject: Send {
    /// Stops it, and returns its hits.
    fn stop(&mut self) -> io::Result<u64>;
}

/// A session that counts hits.
pub struct ProfileObjectSession {
    events: Vec<EventRequest>,
    names: Vec<String>,
    /// The objects, with the indices of their events.
    objects: Vec<(usize, Box<dyn ProfileObject>)>,
    begun: u64,
}

impl ProfileObjectSession {
    /// Prepares a session that counts in no process yet.
    pub fn new(events: &[EventRequest], names: Vec<String>, calls: &dyn HalCalls) -> Self {
        Self { events: events.to_vec(), names, objects: Vec::new(), begun: calls.clock().0 }
    }

    /// Starts to count in a process. Processes that it starts are not counted.
    pub fn follow(&mut self, task: Task, calls: &dyn HalCalls) -> Result<(), HalError> {
        let Task::Process(process) = task else {
            return Err(HalError::NeedsElevation { what: "a count of a thread" });
        };
        let failed = |cause| HalError::Call { function: "NtCreateProfileEx", cause };
        for (index, EventRequest { event, modes: wanted, .. }) in self.events.iter().enumerate() {
            let source = u32::try_from(event.source).unwrap_or_default();
            for is_kernel in [false, true] {
                let mode = if is_kernel { modes::KERNEL } else { modes::USER };
                if wanted & mode != 0 {
                    self.objects.push((index, calls.profile(process, source, is_kernel).map_err(failed)?));
                }
            }
        }
        Ok(())
    }

    /// Stops the session. Returns the counts, and how exact they are.
    pub fn stop(self, session: u64, calls: &dyn HalCalls) -> Result<(Vec<CountRecord>, Vec<String>), HalError> {
        if self.objects.is_empty() {
            return Err(HalError::NeedsElevation { what: "a count of the whole machine" });
        }
        let (now, frequency) = calls.clock();
        let time = ticks(now.saturating_sub(self.begun), frequency);
        let mut hits = vec![0_u64; self.events.len()];
        for (index, mut object) in self.objects {
            let found = object.stop().map_err(|cause| HalError::Call { function: "NtStopProfile", cause })?;
            hits.iter_mut().skip(index).take(1).for_each(|sum| *sum += found);
        }
        let (mut records, mut remarks) = (Vec::new(), Vec::new());
        for (((event, name), hits), index) in self.events.iter().zip(self.names).zip(hits).zip(0..) {
            let source = u32::try_from(event.event.source).unwrap_or_default();
            let interval =
                calls.interval(source).map_err(|cause| HalError::Call { function: "the interval", cause })?;
            remarks.push(match hits {
                0 => {
                    format!("no interrupt of {name} met the process: fewer than {interval} events, or none is counted")
                }
                _ => format!("{name} is {hits} interrupts, one for {interval} events, and so true to {}", error(hits)),
            });
            records.push(CountRecord {
                session,
                event: event.event,
                modes: event.modes,
                counter: index,
                index,
                count: hits.saturating_mul(interval.into()),
                enabled: time,
                running: time,
                ..CountRecord::new_zeroed()
            });
        }
        Ok((records, remarks))
    }
}

/// Returns the standard error of a number of hits: its square root, as a part of it.
fn error(hits: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
    let part = 100.0 / (hits as f64).sqrt();
    format!("{part:.1} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_hits_are_true_to_one_percent() {
        assert_eq!([1, 4, 10_000].map(error), ["100.0 %", "50.0 %", "1.0 %"]);
    }
}
