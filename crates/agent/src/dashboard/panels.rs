//! The table of panels.

use super::expression::{QueryPlace, SELECTED_EVENTS, sum_by};
use crate::family::Family;

/// The events of cycles and instructions: their names in the HAL, in perf, and of the makers.
pub const CYCLES_AND_INSTRUCTIONS: &str = concat!(
    r#"event=~"(?i)(totalcycles|totalissues|(cpu-)?cycles|instructions|cpu_clk_unhalted[.].*|inst_retired[.].*"#,
    r#"|ls_not_halted_cyc|ex_ret_instr)(:[a-z]+)?""#
);

/// How a panel shows its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Lines over time.
    Lines,
    /// The latest value of each series, below a threshold in red.
    State,
    /// The latest value of each series.
    Number,
    /// The legend of each series, without the value.
    Text,
}

/// A line or number of a panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The expression.
    pub expression: String,
    /// The legend, with labels in double braces.
    pub legend: &'static str,
}

/// A panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panel {
    /// Title.
    pub title: &'static str,
    /// What it shows; where one family says it, its description.
    pub description: String,
    /// How it shows that.
    pub view: View,
    /// The unit, by Grafana's identifiers.
    pub unit: &'static str,
    /// Width, of [`super::grafana::WIDTH`].
    pub width: u32,
    /// The values.
    pub queries: Vec<Query>,
}

/// Panels under a heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The heading.
    pub title: &'static str,
    /// Height of each panel.
    pub height: u32,
    /// The panels, from left to right.
    pub panels: Vec<Panel>,
}

/// Families that are neither on a panel nor in an alert, with the reason.
pub const OMITTED: &[(Family, &str)] = &[(
    Family::Events,
    "the extrapolated counts can be compared between events, and the share of time is shown beside",
)];

fn query(expression: String, legend: &'static str) -> Query {
    Query { expression, legend }
}

fn sentence(family: Family) -> String {
    format!("{}.", family.help())
}

fn panel(title: &'static str, description: String, unit: &'static str, width: u32, queries: Vec<Query>) -> Panel {
    Panel { title, description, view: View::Lines, unit, width, queries }
}

/// Returns a panel of the latest values of a gauge.
fn latest(title: &'static str, view: View, unit: &'static str, width: u32, one: (Family, &'static str)) -> Panel {
    let (family, legend) = one;
    let queries = vec![query(QueryPlace::Panel.select(family, &[]), legend)];
    Panel { view, ..panel(title, sentence(family), unit, width, queries) }
}

/// Returns a panel of the growth per second of one family.
fn rate(title: &'static str, unit: &'static str, width: u32, (family, legend): (Family, &'static str)) -> Panel {
    panel(title, sentence(family), unit, width, vec![query(QueryPlace::Panel.rate(family, &[]), legend)])
}

/// Returns a panel of the growth of one family.
fn increase(title: &'static str, width: u32, (family, legend): (Family, &'static str)) -> Panel {
    panel(title, sentence(family), "short", width, vec![query(QueryPlace::Panel.increase(family, &[]), legend)])
}

/// Returns every panel.
pub fn rows() -> Vec<Row> {
    vec![
        Row { title: "Overview", height: 4, panels: state() },
        Row { title: "Metrics", height: 8, panels: metrics() },
        Row { title: "Events", height: 9, panels: events() },
        Row { title: "Quality", height: 8, panels: quality() },
        Row { title: "Agent", height: 8, panels: agent() },
        Row { title: "Driver", height: 8, panels: driver() },
    ]
}

fn state() -> Vec<Panel> {
    let versions = "{{instance}}: agent {{version}}, driver {{driver}}, {{interface}}, {{processor}}";
    vec![
        latest("Counting", View::State, "bool_on_off", 8, (Family::Up, "{{instance}}")),
        latest("CPUs", View::Number, "none", 4, (Family::Cpus, "{{instance}}")),
        latest("Versions", View::Text, "none", 12, (Family::BuildInfo, versions)),
    ]
}

fn metrics() -> Vec<Panel> {
    let metric = |matcher| QueryPlace::Panel.select(Family::Metric, &[matcher]);
    let counts = QueryPlace::Panel.rate(Family::EventsScaled, &[CYCLES_AND_INSTRUCTIONS]);
    let description = "Growth of the extrapolated counts of cycles and instructions, summed over CPUs.";
    vec![
        panel(
            "Instructions per cycle",
            "The metric IPC, if the agent is configured with it.".to_owned(),
            "none",
            8,
            vec![query(metric(r#"metric=~"(?i)ipc""#), "{{instance}} {{core_type}}")],
        ),
        panel(
            "Cycles and instructions per second",
            description.to_owned(),
            "short",
            8,
            vec![query(sum_by(&["event"], &counts), "{{instance}} {{event}}")],
        ),
        panel(
            "Other metrics",
            sentence(Family::Metric),
            "short",
            8,
            vec![query(metric(r#"metric!~"(?i)ipc""#), "{{instance}} {{metric}} {{unit}} {{core_type}}")],
        ),
    ]
}

fn events() -> Vec<Panel> {
    let counts = QueryPlace::Panel.rate(Family::EventsScaled, &[SELECTED_EVENTS]);
    vec![
        panel(
            "Events per second",
            format!("{}, summed over CPUs.", Family::EventsScaled.help()),
            "short",
            12,
            vec![query(sum_by(&["event", "core_type"], &counts), "{{instance}} {{event}} {{core_type}}")],
        ),
        panel(
            "Share of time with a counter",
            "Where it is below 100 %, events share counters and their counts are extrapolated.".to_owned(),
            "percentunit",
            12,
            vec![query(QueryPlace::Panel.running_share(&[SELECTED_EVENTS]), "{{instance}} {{event}}")],
        ),
    ]
}

fn quality() -> Vec<Panel> {
    let disturbed = QueryPlace::Panel.select(Family::EventDisturbed, &[SELECTED_EVENTS]);
    let lost = |lost, delivered, legend| query(QueryPlace::Panel.lost_share(lost, delivered), legend);
    vec![
        increase("Gaps", 6, (Family::Gaps, "{{instance}} {{reason}}")),
        rate("Share of time without counters", "percentunit", 6, (Family::GapTime, "{{instance}} {{reason}}")),
        panel(
            "Disturbed events",
            sentence(Family::EventDisturbed),
            "short",
            6,
            vec![query(disturbed, "{{instance}} {{event}}")],
        ),
        panel(
            "Share of samples lost",
            "Samples that were lost or throttled: of the agent's profiles, and of all clients of the driver."
                .to_owned(),
            "percentunit",
            6,
            vec![
                lost(Family::ProfileSamplesLost, Family::ProfileSamples, "{{instance}} profiles"),
                lost(Family::DriverSamplesLost, Family::DriverSamples, "{{instance}} driver"),
            ],
        ),
    ]
}

/// Returns a panel of a cost beside its budget. The cost is the mean of the CPUs, so that a single CPU can be above it.
fn cost(title: &'static str, spent: Family, budget: Family) -> Panel {
    let queries = vec![
        query(QueryPlace::Panel.rate_per_cpu(spent), "{{instance}}"),
        query(QueryPlace::Panel.select(budget, &[]), "{{instance}} budget"),
    ];
    let description = format!("{}. Here divided by the number of CPUs: the mean of a CPU.", spent.help());
    panel(title, description, "short", 8, queries)
}

fn agent() -> Vec<Panel> {
    vec![
        cost("Register accesses per second and CPU", Family::AgentAccesses, Family::AccessBudget),
        cost("Interrupts per second and CPU", Family::AgentInterrupts, Family::InterruptBudget),
        rate("Processor time of the agent", "percentunit", 8, (Family::AgentTime, "{{instance}}")),
        increase("Profiles", 6, (Family::Profiles, "{{instance}} {{outcome}}")),
        latest("Waiting profiles", View::Lines, "short", 6, (Family::ProfilesWaiting, "{{instance}}")),
        latest("Size of waiting profiles", View::Lines, "bytes", 6, (Family::ProfilesWaitingSize, "{{instance}}")),
        increase("Export failures", 6, (Family::ExportFailures, "{{instance}} to {{to}}")),
    ]
}

fn driver() -> Vec<Panel> {
    let interrupts = [(Family::DriverInterrupts, "{{instance}}"), (Family::DriverSpurious, "{{instance}} spurious")];
    let queries = interrupts.map(|(family, legend)| query(QueryPlace::Panel.rate(family, &[]), legend)).to_vec();
    let description = format!("{}, and those without an overflowed counter.", Family::DriverInterrupts.help());
    vec![
        panel("Interrupts of the driver per second", description, "short", 8, queries),
        increase("Throttles", 8, (Family::DriverThrottles, "{{instance}}")),
        increase("Sleeps", 8, (Family::DriverSleeps, "{{instance}}")),
    ]
}
