//! Building a group with the best grade that the machine has.

use std::sync::Arc;
use std::time::Duration;

use protocol::{CountRecord, EventRequest, InfoReply, MAX_GROUP, ProcessorSet, StartHeader, flags, modes};

use super::{Slot, ThreadEvent, ThreadGroup};
use crate::availability::{Availability, Unavailable};
use crate::error::Error;
use crate::group_error::{GroupError, in_one_line};
use crate::guards::{Pinned, Profiling, SessionGuard};
use crate::machine::Machine;
use crate::named_requests::{NamedRequests, only};
use crate::quality::Grade;
use crate::system::MAX_THREAD_COUNTERS;
use crate::truncation::Modulus;
use crate::verification::{ThreadReading, Verification};

/// Age of the sums over all CPUs that limit the events of a region, if Windows may keep 32 bits only. In this time a
/// CPU counts about a tenth of 2^32 instructions.
const SHORT_BASE_AGE: Duration = Duration::from_millis(50);

/// The same if Windows keeps as many bits as a counter has: 40 at least.
const LONG_BASE_AGE: Duration = Duration::from_secs(10);

/// What the user wants of a group.
pub(crate) struct Options {
    /// The worst grade that will do.
    pub(crate) require: Grade,
    /// The CPU to which the thread is restricted.
    pub(crate) pin: Option<u32>,
    /// Bits of [`flags`].
    pub(crate) flags: u32,
    /// Whether counters are read without RDPMC although that is not verified.
    pub(crate) unverified: bool,
}

/// What a group of some grade holds.
struct Held {
    profiling: Option<Profiling>,
    session: SessionGuard,
    pinned: Option<Pinned>,
    events: Vec<ThreadEvent>,
    /// How counters of the thread are read, if they are.
    reading: Option<ThreadReading>,
}

/// Why a group does not have a grade.
enum NotBuilt {
    /// The next grade may be available.
    Unavailable(Unavailable),
    /// No group can be built.
    Failed(Error),
}

impl From<Error> for NotBuilt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<GroupError> for NotBuilt {
    fn from(error: GroupError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Unavailable> for NotBuilt {
    fn from(why: Unavailable) -> Self {
        Self::Unavailable(why)
    }
}

/// Returns the CPU of a counter that does not count under the hypervisor, or only a part.
fn uncounted_cpu(records: &[CountRecord]) -> Option<u32> {
    records.iter().find(|record| record.movement != 0).map(|record| record.processor)
}

/// Returns the grade of a group with a counter on `cpu` that does not count: no count of it is exact.
fn lowered(
    grade: Grade,
    cpu: u32,
    required: Grade,
    unavailable: &mut Vec<(Grade, Unavailable)>,
) -> Result<Grade, GroupError> {
    let why = || Unavailable::DoesNotCount { cpu };
    if required != Grade::Disturbed {
        return Err(GroupError::Unavailable { grade: required, why: why() });
    }
    let lost = [Grade::Virtualized, Grade::Undisturbed].into_iter().filter(|better| *better >= grade);
    unavailable.extend(lost.map(|better| (better, why())));
    Ok(Grade::Disturbed)
}

/// Builds groups of each grade.
struct Attempt<'a> {
    machine: &'a Machine,
    events: &'a [NamedRequests],
    options: &'a Options,
    verification: Option<Verification>,
}

impl ThreadGroup {
    /// Builds a group with the best grade, and notes why the better ones are unavailable.
    pub(crate) fn build(machine: &Machine, events: Vec<NamedRequests>, options: &Options) -> Result<Self, Error> {
        let given = events.iter().map(|event| event.requests.len()).sum();
        if given > MAX_GROUP {
            return Err(GroupError::TooManyEvents { given }.into());
        }
        let attempt = Attempt { machine, events: &events, options, verification: machine.verification()? };
        let mut unavailable = Vec::new();
        let (grade, held) = attempt.best(&mut unavailable)?;
        let Held { profiling, session, pinned, events: counted, reading } = held;
        let verified = reading.and_then(|reading| attempt.record_of(reading));
        let (is_verified, keeps_64_bits) = (verified.is_some(), verified.is_some_and(|record| record.keeps_64_bits));
        let InfoReply { width, hypervisor, .. } = machine.driver().info()?;
        let does_not_count = if hypervisor == 0 { None } else { uncounted_cpu(&session.read()?) };
        let grade = match does_not_count {
            Some(cpu) => lowered(grade, cpu, options.require, &mut unavailable)?,
            None => grade,
        };
        let names: Vec<_> = events.into_iter().map(|event| event.name).collect();
        Ok(Self {
            profiling,
            session,
            pinned,
            system: machine.system(),
            names: Arc::from(names),
            events: counted,
            availability: Availability::new(grade, reading, is_verified, unavailable),
            width,
            does_not_count,
            modulus: Modulus::new(keeps_64_bits, width),
            base_age: if keeps_64_bits { LONG_BASE_AGE } else { SHORT_BASE_AGE },
            base: None,
            region: None,
            overhead: None,
        })
    }
}

impl Attempt<'_> {
    fn best(&self, unavailable: &mut Vec<(Grade, Unavailable)>) -> Result<(Grade, Held), Error> {
        let builds: [(_, fn(&Self) -> _); 2] =
            [(Grade::Virtualized, Self::virtualized), (Grade::Undisturbed, Self::undisturbed)];
        for (grade, build) in builds {
            match build(self) {
                Ok(held) => return Ok((grade, held)),
                Err(NotBuilt::Unavailable(why)) if self.options.require == grade => {
                    return Err(GroupError::Unavailable { grade, why }.into());
                }
                Err(NotBuilt::Unavailable(why)) => unavailable.push((grade, why)),
                Err(NotBuilt::Failed(error)) => return Err(error),
            }
        }
        Ok((Grade::Disturbed, self.disturbed()?))
    }

    /// Checks that Windows can profile the thread.
    fn check_profiling(&self) -> Result<(), Unavailable> {
        let system = self.machine.system();
        system.find_profiling().map_err(|name| Unavailable::MissingFunction { name })?;
        match system.is_profiled() {
            Ok(false) => Ok(()),
            Ok(true) => Err(Unavailable::AlreadyProfiled),
            Err(cause) => Err(Unavailable::ProfilingFailed { reason: cause.to_string() }),
        }
    }

    fn enable(&self, counters: u64) -> Result<Profiling, Unavailable> {
        let failed = |cause: std::io::Error| Unavailable::ProfilingFailed { reason: cause.to_string() };
        Profiling::enable(self.machine.system(), counters).map_err(failed)
    }

    /// Returns the record of a self-test that read the counters in this way.
    fn record_of(&self, reading: ThreadReading) -> Option<&Verification> {
        self.verification.as_ref().filter(|record| record.reading == reading)
    }

    /// Chooses how the counters of the thread are read, and checks that they can be. A call of ReadThreadProfilingData
    /// for counters ends the program where CR4.PCE is clear, so the driver is asked first.
    fn choose_reading(
        &self,
        session: &SessionGuard,
        profiling: &Profiling,
        counters: u64,
    ) -> Result<ThreadReading, Unavailable> {
        if self.may_execute_rdpmc(session)? {
            let failed = |cause: std::io::Error| Unavailable::ProfilingFailed { reason: cause.to_string() };
            let read = u32::from(profiling.read_counters().map_err(failed)?.count);
            let enabled = counters.count_ones();
            return if read < enabled {
                Err(Unavailable::TooFewCounters { enabled, read })
            } else {
                Ok(ThreadReading::Function)
            };
        }
        profiling.read_memory().map_err(|cause| Unavailable::NoThreadMemory { reason: cause.to_string() })?;
        if self.options.unverified || self.record_of(ThreadReading::Memory).is_some() {
            Ok(ThreadReading::Memory)
        } else {
            Err(Unavailable::Unverified)
        }
    }

    /// Returns whether the thread, which is profiled, may execute RDPMC in user mode on each CPU on which it may run.
    /// Windows might allow it to such threads alone, so the driver looks at CR4 in a request of the thread; another
    /// driver might have set CR4.PCE on one CPU only.
    fn may_execute_rdpmc(&self, session: &SessionGuard) -> Result<bool, Unavailable> {
        let may_here = || session.may_execute_rdpmc().map_err(|error| refused(&error));
        let may = may_here()?;
        if !may || self.options.pin.is_some() {
            return Ok(may);
        }
        let cpus = self.machine.driver().info().map_err(|error| refused(&error))?.processors;
        for cpu in 0..cpus {
            match self.pin(cpu) {
                Ok(_pinned) if may_here()? => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Starts the session. The driver's refusal of the flags is a reason for another grade.
    fn start(&self, flags: u32, cpus: ProcessorSet) -> Result<SessionGuard, Error> {
        let header = StartHeader { flags: self.options.flags | flags, processors: cpus, ..StartHeader::EMPTY };
        let requests: Vec<EventRequest> = self.events.iter().flat_map(|event| &event.requests).copied().collect();
        SessionGuard::start(self.machine.shared_driver(), &header, &requests)
    }

    /// Checks that the driver reads the session by group readings.
    fn check_readable(session: &SessionGuard) -> Result<(), Unavailable> {
        session.read_group().map(drop).map_err(|error| refused(&error))
    }

    fn virtualized(&self) -> Result<Held, NotBuilt> {
        self.check_profiling()?;
        let pinned = self.options.pin.map(|cpu| self.pin(cpu)).transpose()?;
        let session = self.start(flags::THREADS, ProcessorSet::EMPTY).map_err(|error| refused(&error))?;
        Self::check_readable(&session)?;
        let events = self.slots(&session.read().map_err(|error| refused(&error))?)?;
        let counters = events.iter().flat_map(|event| &event.slots).fold(0, |mask, slot| mask | 1 << slot.counter);
        let profiling = self.enable(counters)?;
        let reading = Some(self.choose_reading(&session, &profiling, counters)?);
        Ok(Held { profiling: Some(profiling), session, pinned, events, reading })
    }

    fn undisturbed(&self) -> Result<Held, NotBuilt> {
        if self.events.iter().any(counts_kernel) {
            return Err(Unavailable::KernelMode.into());
        }
        self.check_profiling()?;
        let (pinned, cpus) = self.pin_here()?;
        let session = self.start(0, cpus)?;
        Self::check_readable(&session)?;
        let profiling = Some(self.enable(0)?);
        Ok(Held { profiling, session, pinned, events: self.unslotted(), reading: None })
    }

    fn disturbed(&self) -> Result<Held, Error> {
        let (pinned, cpus) = self.pin_here()?;
        let session = self.start(0, cpus)?;
        session.read_group()?;
        // Context switches are reported if Windows counts them, though they are not why the grade is unavailable.
        let profiling = self.check_profiling().and_then(|()| self.enable(0)).ok();
        Ok(Held { profiling, session, pinned, events: self.unslotted(), reading: None })
    }

    /// Restricts the thread to the wanted CPU, or to the one on which it runs. Returns the CPUs of the session.
    /// Without a wanted CPU, a thread that cannot be restricted is counted on all: to move it is a context switch.
    fn pin_here(&self) -> Result<(Option<Pinned>, ProcessorSet), Error> {
        if let Some(cpu) = self.options.pin {
            return Ok((Some(self.pin(cpu)?), only(cpu)?));
        }
        let cpu = self.machine.system().current_cpu();
        match self.pin(cpu) {
            Ok(pinned) => Ok((Some(pinned), only(cpu)?)),
            Err(_) => Ok((None, ProcessorSet::EMPTY)),
        }
    }

    fn pin(&self, cpu: u32) -> Result<Pinned, GroupError> {
        Pinned::to(self.machine.system(), cpu).map_err(|cause| GroupError::NotPinned { cpu, cause })
    }

    /// Returns the counters of each event, which are the same on every CPU.
    fn slots(&self, records: &[CountRecord]) -> Result<Vec<ThreadEvent>, Unavailable> {
        let mut first = 0;
        let of_event = |event: &NamedRequests| {
            let requests = first..first + event.requests.len();
            first = requests.end;
            let mut slots: Vec<Slot> = Vec::new();
            for request in requests {
                let of_request = records.iter().filter(|record| record.index as usize == request);
                for record in of_request {
                    let counter = record.counter as usize;
                    if counter >= MAX_THREAD_COUNTERS {
                        return Err(Unavailable::NoThreadCounter { event: event.name.clone() });
                    }
                    match slots.iter_mut().find(|slot| slot.counter == counter) {
                        Some(slot) if slot.requests.contains(&request) => {}
                        Some(slot) => slot.requests.push(request),
                        None => slots.push(Slot { counter, requests: vec![request] }),
                    }
                }
            }
            if slots.is_empty() {
                return Err(Unavailable::NoThreadCounter { event: event.name.clone() });
            }
            Ok(ThreadEvent { slots, counts_kernel: counts_kernel(event) })
        };
        self.events.iter().map(of_event).collect()
    }

    /// Returns the events of a group whose values the driver reads.
    fn unslotted(&self) -> Vec<ThreadEvent> {
        let mut first = 0;
        let of_event = |event: &NamedRequests| {
            let requests: Vec<_> = (first..first + event.requests.len()).collect();
            first += requests.len();
            ThreadEvent { slots: vec![Slot { counter: 0, requests }], counts_kernel: counts_kernel(event) }
        };
        self.events.iter().map(of_event).collect()
    }
}

fn counts_kernel(event: &NamedRequests) -> bool {
    event.requests.iter().any(|request| request.modes & modes::KERNEL != 0)
}

fn refused(error: &Error) -> Unavailable {
    Unavailable::Refused { reason: in_one_line(error) }
}
