//! Which events a group counts, where and in which modes.

use protocol::{ProcessorSet, flags, modes};

use crate::cpu_group::CpuGroup;
use crate::driver::Driver;
use crate::error::Error;
use crate::event::EventName;
use crate::group_error::GroupError;
use crate::machine::Machine;
use crate::named_requests::{NamedRequests, only};
use crate::quality::Grade;
use crate::thread_group::{Options, ThreadGroup};

/// Builds a group of events that are counted together.
///
/// ```no_run
/// use halprof::{Builder, Grade};
///
/// let builder = Builder::new().event("instructions")?.event("branch-misses")?.user();
/// let mut group = builder.require(Grade::Undisturbed).build_for_thread()?;
/// # Ok::<(), halprof::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Builder {
    names: Vec<String>,
    modes: u32,
    require: Grade,
    pin: Option<u32>,
    flags: u32,
    unverified: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            modes: modes::USER,
            require: Grade::Disturbed,
            pin: None,
            flags: 0,
            unverified: false,
        }
    }
}

impl Builder {
    /// Returns a builder without events, for user mode.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event by a name that `.\client stat -e` accepts: `instructions`, `BranchMispredictions`,
    /// `MEM_LOAD_RETIRED.L3_MISS`, `cpu/event=0xC0,umask=0x00/`, each with `:u` or `:k` for modes of its own.
    ///
    /// # Errors
    /// If no event can have this name. Whether the machine has the event is checked when the group is built.
    pub fn event(mut self, name: &str) -> Result<Self, Error> {
        EventName::parse(name, modes::USER)?;
        self.names.push(name.to_owned());
        Ok(self)
    }

    /// Counts in user mode. This is the default.
    #[must_use]
    pub fn user(self) -> Self {
        Self { modes: modes::USER, ..self }
    }

    /// Counts in kernel mode. Exact counts of a thread then need [`Grade::Virtualized`], and include the interrupts
    /// that arrived while the thread ran, as far as Windows does not leave them out.
    #[must_use]
    pub fn kernel(self) -> Self {
        Self { modes: modes::KERNEL, ..self }
    }

    /// Counts in both modes. See [`kernel`](Self::kernel).
    #[must_use]
    pub fn both(self) -> Self {
        Self { modes: modes::BOTH, ..self }
    }

    /// Refuses to build a group for a thread whose best grade is worse than this. Without it, every grade will do.
    #[must_use]
    pub fn require(self, grade: Grade) -> Self {
        Self { require: grade, ..self }
    }

    /// Restricts the thread to a CPU as long as the group exists. Without it, a virtualized group does not restrict the
    /// thread, and any other restricts it to the CPU on which it is built.
    #[must_use]
    pub fn pin(self, cpu: u32) -> Self {
        Self { pin: Some(cpu), ..self }
    }

    /// Reads the counters of a thread without RDPMC in user mode even if `.\client selftest --threads` has not verified
    /// that on this machine. It is for the self-test: the counts may be wrong.
    #[must_use]
    pub fn allow_unverified(self) -> Self {
        Self { unverified: true, ..self }
    }

    /// Uses counters even if another program has enabled them.
    #[must_use]
    pub fn force(self) -> Self {
        Self { flags: self.flags | flags::FORCE, ..self }
    }

    /// Lets events take turns if there are more events than counters, in a group for CPUs. Their counts are then
    /// scaled, and graded [disturbed](crate::Disturbance::TookTurns).
    #[must_use]
    pub fn multiplex(self) -> Self {
        Self { flags: self.flags | flags::MULTIPLEX, ..self }
    }

    /// Opens the driver and begins to count for the current thread.
    ///
    /// # Errors
    /// If the driver cannot be opened, the machine lacks an event, no counter is free, or the [required](Self::require)
    /// grade is unavailable.
    pub fn build_for_thread(self) -> Result<ThreadGroup, Error> {
        let machine = Machine::open()?;
        self.build_for_thread_on(&machine)
    }

    /// Begins to count for the current thread.
    ///
    /// # Errors
    /// As [`build_for_thread`](Self::build_for_thread).
    pub fn build_for_thread_on(self, machine: &Machine) -> Result<ThreadGroup, Error> {
        let events = self.resolve(machine.driver(), &ProcessorSet::EMPTY)?;
        let Self { require, pin, flags, unverified, .. } = self;
        ThreadGroup::build(machine, events, &Options { require, pin, flags: flags & !flags::MULTIPLEX, unverified })
    }

    /// Opens the driver and begins to count everything on a CPU.
    ///
    /// # Errors
    /// If the driver cannot be opened, the CPU is not active, the machine lacks an event, or no counter is free.
    pub fn build_for_cpu(self, cpu: u32) -> Result<CpuGroup, Error> {
        let machine = Machine::open()?;
        self.build_for_cpu_on(&machine, cpu)
    }

    /// Begins to count everything on a CPU.
    ///
    /// # Errors
    /// As [`build_for_cpu`](Self::build_for_cpu).
    pub fn build_for_cpu_on(self, machine: &Machine, cpu: u32) -> Result<CpuGroup, Error> {
        self.build_for_cpus(machine, only(cpu)?)
    }

    /// Opens the driver and begins to count everything on all CPUs.
    ///
    /// # Errors
    /// If the driver cannot be opened, the machine lacks an event, or no counter is free.
    pub fn build_for_all_cpus(self) -> Result<CpuGroup, Error> {
        let machine = Machine::open()?;
        self.build_for_all_cpus_on(&machine)
    }

    /// Begins to count everything on all CPUs.
    ///
    /// # Errors
    /// As [`build_for_all_cpus`](Self::build_for_all_cpus).
    pub fn build_for_all_cpus_on(self, machine: &Machine) -> Result<CpuGroup, Error> {
        self.build_for_cpus(machine, ProcessorSet::EMPTY)
    }

    /// Begins to count everything on CPUs, an empty set being all.
    fn build_for_cpus(self, machine: &Machine, cpus: ProcessorSet) -> Result<CpuGroup, Error> {
        let events = self.resolve(machine.driver(), &cpus)?;
        CpuGroup::build(machine, events, self.flags, cpus)
    }

    /// Returns the events of the request for each name.
    fn resolve(&self, driver: &Driver, cpus: &ProcessorSet) -> Result<Vec<NamedRequests>, Error> {
        if self.names.is_empty() {
            return Err(GroupError::NoEvent.into());
        }
        let resolve = |name: &String| {
            let events = driver.events(name, self.modes, cpus)?;
            let requests = events.iter().map(|event| event.request).collect();
            Ok(NamedRequests { name: name.clone(), requests })
        };
        self.names.iter().map(resolve).collect()
    }
}
