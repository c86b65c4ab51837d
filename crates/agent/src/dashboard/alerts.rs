//! The table of recording rules and alerts.

use super::expression::{QueryPlace, sum_by};
use crate::family::Family;

/// The job of the agents in the configuration of Prometheus. Only an absent job needs it: no sample tells its name.
pub const JOB: &str = "halprof";

/// How urgent an alert is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Nothing is measured.
    Critical,
    /// What is measured is incomplete or wrong, or costs too much.
    Warning,
}

/// An expression that Prometheus records.
#[derive(Debug)]
pub struct Recording {
    /// Name: level, metric and operation, as Prometheus recommends.
    pub name: String,
    /// The expression.
    pub expression: String,
}

/// An alert.
#[derive(Debug)]
pub struct Alert {
    /// Name.
    pub name: &'static str,
    /// The expression.
    pub expression: String,
    /// How long it must hold.
    pub lasting: &'static str,
    /// How urgent it is.
    pub severity: Severity,
    /// One line.
    pub summary: &'static str,
    /// What it means.
    pub description: &'static str,
    /// What to run and to look at.
    pub runbook: &'static str,
}

/// The range of rates: four scrapes of a minute fit into it.
const SHORT: QueryPlace = QueryPlace::Rule("5m");

/// The range of what occurs now and then.
const LONG: QueryPlace = QueryPlace::Rule("1h");

/// Returns what is recorded: sums over CPUs and core types that panels over weeks would compute slowly.
pub fn recordings() -> Vec<Recording> {
    let events = Family::EventsScaled;
    let recording = |level: &str, family: Family, operation: &str, expression| Recording {
        name: format!("{level}:{}:{operation}", family.prometheus()),
        expression,
    };
    vec![
        recording("instance_event", events, "rate5m", sum_by(&["event"], &SHORT.rate(events, &[]))),
        recording("instance_event", Family::EventRunning, "share5m", SHORT.running_share(&[])),
        recording("instance", Family::AgentAccesses, "rate5m_per_cpu", SHORT.rate_per_cpu(Family::AgentAccesses)),
        recording("instance", Family::AgentInterrupts, "rate5m_per_cpu", SHORT.rate_per_cpu(Family::AgentInterrupts)),
    ]
}

fn up() -> String {
    format!("up{{job=\"{JOB}\"}}")
}

/// Returns every alert.
pub fn alerts() -> Vec<Alert> {
    let mut alerts = counting();
    alerts.extend(cost());
    alerts.extend(profiles());
    alerts.extend(driver());
    alerts
}

fn counting() -> Vec<Alert> {
    vec![
        Alert {
            name: "HalprofAgentDown",
            expression: format!("{} == 0", up()),
            lasting: "5m",
            severity: Severity::Critical,
            summary: "The agent on {{ $labels.instance }} cannot be scraped",
            description: "Prometheus has not reached the agent for 5 minutes: it has ended, or the network blocks it.",
            runbook: "Run `.\\client status` on {{ $labels.instance }}: if the driver runs without a session of the \
                      agent, start the agent again.",
        },
        Alert {
            name: "HalprofAgentAbsent",
            expression: format!("absent({})", up()),
            lasting: "5m",
            severity: Severity::Critical,
            summary: "Prometheus has no agent in the job {{ $labels.job }}",
            description: "No target of the job {{ $labels.job }} exists: its discovery or the name of the job changed.",
            runbook: "Look at the targets of Prometheus, then run `.\\client status` on a machine that should be there.",
        },
        Alert {
            name: "HalprofNotCounting",
            expression: format!("{} == 0", SHORT.select(Family::Up, &[])),
            lasting: "15m",
            severity: Severity::Critical,
            summary: "The agent on {{ $labels.instance }} has no counters",
            description: "For 15 minutes the agent has counted nothing: other sessions or programs hold the counters, \
                          or the driver does not run.",
            runbook: "Run `.\\client status` on {{ $labels.instance }}, which shows the driver and its sessions, and \
                      `.\\client info`, which shows why there are no counters.",
        },
        Alert {
            name: "HalprofGapsFrequent",
            expression: format!("{} > 6", LONG.increase_of_known(Family::Gaps, &[])),
            lasting: "10m",
            severity: Severity::Warning,
            summary: "The agent on {{ $labels.instance }} often loses its counters ({{ $labels.reason }})",
            description: "It lost its counters {{ $value | humanize }} times in an hour: the counts of that time are \
                          missing.",
            runbook: "Run `.\\client status` on {{ $labels.instance }}: its sessions show which program takes the \
                      counters.",
        },
        Alert {
            name: "HalprofCountsDisturbed",
            expression: format!("{} > 0", SHORT.over("max_over_time", Family::EventDisturbed, &[])),
            lasting: "5m",
            severity: Severity::Warning,
            summary: "Another program disturbs {{ $labels.event }} on {{ $labels.instance }}",
            description: "Another program writes to registers of the event, so that its counts are wrong.",
            runbook: "End other profilers on {{ $labels.instance }}. `.\\client info` shows how many counters are in use, \
                      and `.\\client status` the sessions that use them through the driver.",
        },
    ]
}

fn cost() -> Vec<Alert> {
    let above = |spent, budget| format!("{} > {}", SHORT.rate_per_cpu(spent), SHORT.select(budget, &[]));
    vec![
        Alert {
            name: "HalprofRegisterAccessesAboveBudget",
            expression: above(Family::AgentAccesses, Family::AccessBudget),
            lasting: "15m",
            severity: Severity::Warning,
            summary: "The agent on {{ $labels.instance }} accesses registers more often than allowed",
            description: "It makes at most {{ $value | humanize }} register accesses per second and CPU, which is \
                          above register-accesses-per-second in its configuration.",
            runbook: "Run `.\\client status` on {{ $labels.instance }}, then count fewer events or lengthen the interval \
                      in agent.toml.",
        },
        Alert {
            name: "HalprofInterruptsAboveBudget",
            expression: above(Family::AgentInterrupts, Family::InterruptBudget),
            lasting: "15m",
            severity: Severity::Warning,
            summary: "The agent on {{ $labels.instance }} causes more interrupts than allowed",
            description: "It causes at most {{ $value | humanize }} interrupts per second and CPU, which is above \
                          interrupts-per-second in its configuration.",
            runbook: "Run `.\\client status` on {{ $labels.instance }}, then lower the frequency of the profiles in \
                      agent.toml.",
        },
    ]
}

fn profiles() -> Vec<Alert> {
    let lost = LONG.increase_of_known(Family::Profiles, &[r#"outcome=~"dropped|failed""#]);
    let share = SHORT.lost_share(Family::ProfileSamplesLost, Family::ProfileSamples);
    vec![
        Alert {
            name: "HalprofProfilesLost",
            expression: format!("{lost} > 0"),
            lasting: "5m",
            severity: Severity::Warning,
            summary: "Profiles of {{ $labels.instance }} are {{ $labels.outcome }}",
            description: "In an hour {{ $value | humanize }} profiles were {{ $labels.outcome }}: sampling failed, or \
                          the server did not take them before their folder was full.",
            runbook: "Run `.\\client record -a --duration 10s` on {{ $labels.instance }}: if it succeeds, look for the \
                      fault at the server of the profiles.",
        },
        Alert {
            name: "HalprofExportsFailing",
            expression: format!("{} > 0", QueryPlace::Rule("15m").increase_of_known(Family::ExportFailures, &[])),
            lasting: "15m",
            severity: Severity::Warning,
            summary: "The agent on {{ $labels.instance }} cannot send to {{ $labels.to }}",
            description: "{{ $value | humanize }} attempts failed in 15 minutes. Profiles wait on the disk and are \
                          dropped when their folder is full; metrics are lost.",
            runbook: "Check the address and the headers in agent.toml on {{ $labels.instance }}. `.\\client status` shows \
                      whether the agent still counts.",
        },
        Alert {
            name: "HalprofSamplesLost",
            expression: format!("{share} > 0.01"),
            lasting: "10m",
            severity: Severity::Warning,
            summary: "Profiles of {{ $labels.instance }} lack {{ $value | humanizePercentage }} of their samples",
            description: "More than 1 % of the samples were lost or throttled, so that the profiles are biased.",
            runbook: "Run `.\\client status` on {{ $labels.instance }} for other sessions that sample, then lower the \
                      frequency of the profiles in agent.toml.",
        },
    ]
}

fn driver() -> Vec<Alert> {
    vec![Alert {
        name: "HalprofDriverThrottled",
        expression: format!("{} > 0", QueryPlace::Rule("15m").increase_of_known(Family::DriverThrottles, &[])),
        lasting: "5m",
        severity: Severity::Warning,
        summary: "The driver on {{ $labels.instance }} throttles its sessions",
        description: "{{ $value | humanize }} times in 15 minutes a CPU used up the time for interrupts, so that \
                      samples are missing.",
        runbook: "Run `.\\client status` on {{ $labels.instance }} for the sessions that sample, and `.\\client interval` \
                  to lengthen the interval of their source.",
    }]
}
