//! The calls into the driver.

use std::fmt;
use std::str::FromStr;

/// A call into the driver that is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// The start of a session that samples, beside another one.
    Start,
    /// The start of the first session, which takes the counters and registers the handler.
    FirstStart,
    /// The stop of a session that samples, beside another one.
    Stop,
    /// The stop of the last session, which gives back the counters and the handler.
    LastStop,
    /// A read of a session that samples.
    Read,
    /// The handler of the interrupt itself.
    Handler,
    /// The handler when its budget is exceeded: it stops the counters.
    Throttle,
    /// A tick of a processor that samples.
    Tick,
    /// A tick that resumes sampling after a throttle.
    Resume,
    /// The callback before the machine sleeps.
    Sleep,
    /// The callback after the machine has slept.
    Wake,
    /// What the other processor does before the machine sleeps, in the call of the first one.
    SleepElsewhere,
    /// What the other processor does after the machine has slept.
    WakeElsewhere,
    /// A fetch of samples from the rings.
    Fetch,
    /// The handler when the PEBS buffer has reached its threshold.
    Drain,
    /// A tick that drains the PEBS buffer.
    DrainByTick,
}

impl Scenario {
    /// All scenarios.
    pub const ALL: [Self; 16] = [
        Self::Start,
        Self::FirstStart,
        Self::Stop,
        Self::LastStop,
        Self::Read,
        Self::Handler,
        Self::Throttle,
        Self::Tick,
        Self::Resume,
        Self::Sleep,
        Self::Wake,
        Self::SleepElsewhere,
        Self::WakeElsewhere,
        Self::Fetch,
        Self::Drain,
        Self::DrainByTick,
    ];

    /// Returns the name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::FirstStart => "first-start",
            Self::Stop => "stop",
            Self::LastStop => "last-stop",
            Self::Read => "read",
            Self::Handler => "handler",
            Self::Throttle => "throttle",
            Self::Tick => "tick",
            Self::Resume => "resume",
            Self::Sleep => "sleep",
            Self::Wake => "wake",
            Self::SleepElsewhere => "sleep-elsewhere",
            Self::WakeElsewhere => "wake-elsewhere",
            Self::Fetch => "fetch",
            Self::Drain => "drain",
            Self::DrainByTick => "drain-by-tick",
        }
    }

    /// Returns the stepped processor, of two.
    #[must_use]
    pub const fn processor(self) -> u32 {
        matches!(self, Self::SleepElsewhere | Self::WakeElsewhere) as u32
    }

    /// Returns whether the processor must have PEBS.
    #[must_use]
    pub const fn needs_pebs(self) -> bool {
        matches!(self, Self::Drain | Self::DrainByTick)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|scenario| scenario.name() == text);
        found.ok_or_else(|| format!("no scenario has this name; there are {}", names()))
    }
}
