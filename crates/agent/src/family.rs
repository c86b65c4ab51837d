//! The table of metrics. Every output takes its names, units and descriptions from here.

/// How a metric behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, and begins again at zero when the agent or the driver restarts.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of something, or a number by its own unit.
    None,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// Returns the suffix of the name in Prometheus, without the underscore; empty for none.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
        }
    }

    /// Returns the unit by the Unified Code for Units of Measure, as OpenTelemetry has it.
    #[must_use]
    pub const fn ucum(self) -> &'static str {
        match self {
            Self::None => "1",
            Self::Seconds => "s",
            Self::Bytes => "By",
        }
    }
}

macro_rules! families {
    ($($family:ident $name:literal $kind:ident $unit:ident [$($label:literal)*] $help:literal;)*) => {
        /// A metric.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Family {
            $(#[doc = $help] $family,)*
        }

        impl Family {
            /// Every metric, in the order of the outputs.
            pub const ALL: &[Self] = &[$(Self::$family),*];

            /// Returns the name, with dots as in OpenTelemetry, and without the suffixes of Prometheus.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$family => $name,)* }
            }

            /// Returns how it behaves.
            #[must_use]
            pub const fn kind(self) -> Kind {
                match self { $(Self::$family => Kind::$kind,)* }
            }

            /// Returns its unit.
            #[must_use]
            pub const fn unit(self) -> Unit {
                match self { $(Self::$family => Unit::$unit,)* }
            }

            /// Returns the names of its labels.
            #[must_use]
            pub const fn labels(self) -> &'static [&'static str] {
                match self { $(Self::$family => &[$($label),*],)* }
            }

            /// Returns its description: a sentence without the period.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $(Self::$family => $help,)* }
            }
        }
    };
}

families! {
    BuildInfo "halprof.build" Gauge None ["version" "driver" "interface" "processor"]
        "1, with the versions of agent and driver, the profile interface and the processor";
    Up "halprof.counting" Gauge None []
        "1 while the agent counts, 0 while it has no counters";
    Cpus "halprof.cpus" Gauge None []
        "CPUs on which the agent counts, for sums over CPUs that are compared with a budget of each";
    Events "halprof.events" Counter None ["event" "core_type" "cpu"]
        "Events that were counted while the event had a counter";
    EventsScaled "halprof.events.scaled" Counter None ["event" "core_type" "cpu"]
        "Events extrapolated from the time with a counter to all the time in which the agent counted";
    EventEnabled "halprof.event.enabled" Counter Seconds ["event" "core_type" "cpu"]
        "Time in which the agent counted, summed over CPUs";
    EventRunning "halprof.event.running" Counter Seconds ["event" "core_type" "cpu"]
        "Part of the enabled time in which the event had a counter, summed over CPUs";
    EventDisturbed "halprof.event.disturbed" Gauge None ["event"]
        "1 if counts of the last interval are wrong: another program changed a register, or the counter does not count";
    Metric "halprof.metric" Gauge None ["metric" "unit" "core_type"]
        "Value of a metric in the last interval";
    Gaps "halprof.gaps" Counter None ["reason"]
        "Number of times the agent lost its counters";
    GapTime "halprof.gap" Counter Seconds ["reason"]
        "Time in which the agent had no counters";
    AgentAccesses "halprof.agent.register.accesses" Counter None []
        "Accesses of performance registers for the agent, summed over CPUs: at most so many";
    AgentInterrupts "halprof.agent.interrupts" Counter None []
        "Performance monitor interrupts and timer expiries for the agent, summed over CPUs: at most so many";
    AccessBudget "halprof.agent.register.accesses.budget" Gauge None []
        "Register accesses per second that the configuration allows on a CPU";
    InterruptBudget "halprof.agent.interrupts.budget" Gauge None []
        "Interrupts per second that the configuration allows on a CPU";
    AgentTime "halprof.agent.cpu.time" Counter Seconds []
        "Processor time of the agent's process";
    ProfileSamples "halprof.profile.samples" Counter None []
        "Samples in profiles";
    ProfileSamplesLost "halprof.profile.samples.lost" Counter None []
        "Samples that are missing in profiles: lost or throttled";
    Profiles "halprof.profiles" Counter None ["outcome"]
        "Profiles by what became of them: written, sent, expired, dropped, failed, or skipped because no samples could be taken";
    ProfilesWaiting "halprof.profiles.waiting" Gauge None []
        "Profiles that wait on the disk to be sent";
    ProfilesWaitingSize "halprof.profiles.waiting.size" Gauge Bytes []
        "Size of the profiles that wait on the disk to be sent";
    ExportFailures "halprof.export.failures" Counter None ["to"]
        "Failed attempts to send metrics or a profile";
    DriverInterrupts "halprof.driver.interrupts" Counter None []
        "Performance monitor interrupts since the driver was loaded";
    DriverSpurious "halprof.driver.interrupts.spurious" Counter None []
        "Interrupts without an overflowed counter since the driver was loaded";
    DriverThrottles "halprof.driver.throttles" Counter None []
        "Number of times a CPU used up the time for interrupts since the driver was loaded";
    DriverSamples "halprof.driver.samples" Counter None []
        "Samples that the driver delivered to all clients since it was loaded";
    DriverSamplesLost "halprof.driver.samples.lost" Counter None []
        "Samples lost or throttled by the driver since it was loaded";
    DriverSleeps "halprof.driver.sleeps" Counter None []
        "Number of times the machine slept since the driver was loaded";
}

impl Family {
    /// Returns the name in OpenMetrics: that of the family, without the suffix `_total` that a counter's sample has.
    #[must_use]
    pub fn prometheus(self) -> String {
        let name = self.name().replace('.', "_");
        match self.unit().suffix() {
            "" => name,
            suffix => format!("{name}_{suffix}"),
        }
    }

    /// Returns whether it begins again at zero when the agent opens the driver again.
    #[must_use]
    pub const fn begins_with_driver(self) -> bool {
        matches!(
            self,
            Self::Events
                | Self::EventsScaled
                | Self::EventEnabled
                | Self::EventRunning
                | Self::DriverInterrupts
                | Self::DriverSpurious
                | Self::DriverThrottles
                | Self::DriverSamples
                | Self::DriverSamplesLost
                | Self::DriverSleeps
        )
    }

    /// Returns the name of its samples in PromQL.
    #[must_use]
    pub fn promql(self) -> String {
        match self.kind() {
            Kind::Counter => format!("{}_total", self.prometheus()),
            Kind::Gauge => self.prometheus(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_valid_everywhere() {
        let mut seen = BTreeSet::new();
        for family in Family::ALL {
            let name = family.prometheus();
            assert!(name.starts_with("halprof_"), "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert!(!name.ends_with("_total") && !name.ends_with("_info"), "{name}: a suffix of OpenMetrics");
            assert!(seen.insert(name.clone()), "{name} is there twice");
            assert!(!family.help().ends_with('.'), "{name}");
        }
    }
}
