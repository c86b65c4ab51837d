//! What a run did.

use std::fmt;
use std::time::Duration;

use protocol::REQUESTS;

/// Numbers of one kind of request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CodeStats {
    /// Sent.
    pub sent: u64,
    /// Accepted: with a reply without an error.
    pub accepted: u64,
}

/// Number of rows of codes: those of the protocol, and all others.
const CODES: usize = REQUESTS.len() + 1;

/// Profile interfaces, in the order of the rows.
const INTERFACES: [&str; 6] = ["Emon", "Amd64", "NetBurst", "P6", "Pentium", "Default"];

/// Number of causes of refusals.
const CAUSES: usize = protocol::ErrorCode::ALL.len();

/// Numbers of a run.
#[derive(Debug, Clone, Copy)]
pub struct Stats {
    codes: [CodeStats; CODES],
    interfaces: [(u64, u64); INTERFACES.len()],
    causes: [u64; CAUSES],
    /// Steps: requests, and what happens between them.
    pub steps: u64,
    /// Requests.
    pub requests: u64,
    /// Machines.
    pub episodes: u64,
    /// Sessions that began.
    pub sessions: u64,
    /// Sessions that yielded.
    pub yields: u64,
    /// Final counts that equal what happened, independently of the engine.
    pub exact: u64,
    /// Final counts that equal the model's ledger.
    pub by_ledger: u64,
    /// Counts beside foreign writes, equal or marked.
    pub marked: u64,
    /// Times of counts that equal the time since their begin.
    pub times: u64,
    /// Accounts of overflows.
    pub accounts: u64,
    /// Records fetched.
    pub records: u64,
    /// Those that are samples.
    pub records_of_samples: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Sleeps.
    pub sleeps: u64,
    /// Processors added.
    pub added: u64,
    /// Handles closed with sessions.
    pub kills: u64,
    /// Foreign writes of registers.
    pub foreign: u64,
    /// Lies of processors.
    pub lies: u64,
    /// Simulated time, in units of 100 ns.
    pub time: u64,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            codes: [CodeStats::default(); CODES],
            interfaces: Default::default(),
            causes: [0; CAUSES],
            steps: 0,
            requests: 0,
            episodes: 0,
            sessions: 0,
            yields: 0,
            exact: 0,
            by_ledger: 0,
            marked: 0,
            times: 0,
            accounts: 0,
            records: 0,
            records_of_samples: 0,
            interrupts: 0,
            sleeps: 0,
            added: 0,
            kills: 0,
            foreign: 0,
            lies: 0,
            time: 0,
        }
    }
}

impl Stats {
    /// Counts a request with this control code. `cause` is that of its reply, if there was one.
    pub fn count(&mut self, code: u32, cause: Option<u32>) {
        self.requests += 1;
        let row = REQUESTS.iter().position(|spec| spec.code as u32 == code).unwrap_or(REQUESTS.len());
        if let Some(stats) = self.codes.get_mut(row) {
            stats.sent += 1;
            stats.accepted += u64::from(cause == Some(0));
        }
        if let Some(count) = cause.and_then(|cause| self.causes.get_mut(cause as usize)) {
            *count += 1;
        }
    }

    /// Counts the requests of an episode for a profile interface.
    pub fn count_episode(&mut self, interface: &str, requests: u64) {
        self.episodes += 1;
        let row = INTERFACES.iter().position(|name| *name == interface);
        if let Some((episodes, sent)) = row.and_then(|row| self.interfaces.get_mut(row)) {
            *episodes += 1;
            *sent += requests;
        }
    }

    /// Returns the requests of this control code.
    #[must_use]
    pub fn of(&self, code: protocol::Code) -> CodeStats {
        let row = REQUESTS.iter().position(|spec| spec.code == code);
        row.and_then(|row| self.codes.get(row)).copied().unwrap_or_default()
    }

    /// Returns how many requests were refused for this cause.
    #[must_use]
    pub fn refused_for(&self, cause: protocol::ErrorCode) -> u64 {
        self.causes.get(cause as usize).copied().unwrap_or_default()
    }

    /// Adds the numbers of another run.
    pub fn add(&mut self, other: &Self) {
        for (one, more) in self.codes.iter_mut().zip(&other.codes) {
            one.sent += more.sent;
            one.accepted += more.accepted;
        }
        for (one, more) in self.interfaces.iter_mut().zip(&other.interfaces) {
            one.0 += more.0;
            one.1 += more.1;
        }
        self.causes.iter_mut().zip(&other.causes).for_each(|(one, more)| *one += more);
        self.steps += other.steps;
        self.requests += other.requests;
        self.episodes += other.episodes;
        self.sessions += other.sessions;
        self.yields += other.yields;
        self.exact += other.exact;
        self.by_ledger += other.by_ledger;
        self.marked += other.marked;
        self.times += other.times;
        self.accounts += other.accounts;
        self.records += other.records;
        self.records_of_samples += other.records_of_samples;
        self.interrupts += other.interrupts;
        self.sleeps += other.sleeps;
        self.added += other.added;
        self.kills += other.kills;
        self.foreign += other.foreign;
        self.lies += other.lies;
        self.time += other.time;
    }

    /// Returns the simulated time.
    #[must_use]
    pub const fn simulated(&self) -> Duration {
        Duration::from_micros(self.time / 10)
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:16} {:>14} {:>14} {:>14}", "request", "sent", "accepted", "refused")?;
        let names = REQUESTS.iter().map(|spec| spec.name).chain(["(unknown)"]);
        for (name, CodeStats { sent, accepted }) in names.zip(self.codes) {
            writeln!(f, "{name:16} {sent:>14} {accepted:>14} {:>14}", sent - accepted)?;
        }
        writeln!(f, "{:16} {:>14} {:>14}", "interface", "requests", "machines")?;
        for (name, (episodes, sent)) in INTERFACES.iter().zip(self.interfaces) {
            writeln!(f, "{name:16} {sent:>14} {episodes:>14}")?;
        }
        let causes = protocol::ErrorCode::ALL.iter().zip(self.causes).skip(1);
        let causes: Vec<String> =
            causes.filter(|(_, count)| *count > 0).map(|(cause, count)| format!("{cause:?} {count}")).collect();
        writeln!(f, "refusals: {}", causes.join(", "))?;
        let missing = protocol::ErrorCode::ALL.iter().zip(self.causes).filter(|(_, count)| *count == 0);
        let missing: Vec<String> = missing.map(|(cause, _)| format!("{cause:?}")).collect();
        writeln!(f, "causes that did not occur: {}", missing.join(", "))?;
        let rows = [
            ("steps", self.steps),
            ("requests", self.requests),
            ("machines", self.episodes),
            ("sessions", self.sessions),
            ("yields", self.yields),
            ("counts equal to what happened", self.exact),
            ("counts equal to the model's ledger", self.by_ledger),
            ("counts beside foreign writes", self.marked),
            ("times equal to the clock", self.times),
            ("accounts of overflows", self.accounts),
            ("records fetched", self.records),
            ("samples among them", self.records_of_samples),
            ("interrupts", self.interrupts),
            ("sleeps", self.sleeps),
            ("processors added", self.added),
            ("kills", self.kills),
            ("foreign writes", self.foreign),
            ("lies of processors", self.lies),
            ("seconds of simulated time", self.simulated().as_secs()),
        ];
        rows.iter().try_for_each(|(name, number)| writeln!(f, "{name:36} {number:>14}"))
    }
}
