//! `info`: the profile interface, why it was chosen, and what it offers.

use protocol::InfoReply;
use serde::Serialize;

use super::Context;
use crate::cli::Json;
use crate::connection::{Connection, version};
use crate::error::Error;
use crate::format::{grouped, properties};
use crate::identity::Identity;
use crate::reason;
use crate::totals::Totals;

#[derive(Serialize)]
struct Info {
    interface: String,
    reason: String,
    reason_number: u32,
    windows10_interface: String,
    counters: u32,
    counter_width: u32,
    counters_in_use: u32,
    sessions: u32,
    processors: u32,
    maximum_processors: u32,
    state_bytes: u64,
    #[serde(flatten)]
    identity: Identity,
    pmu_version: u32,
    driver_version: String,
    driver_protocol: u32,
    sampling: Totals,
}

impl From<&InfoReply> for Info {
    fn from(reply: &InfoReply) -> Self {
        Self {
            interface: reason::interface(reply.interface),
            reason: reason::text(reply.reason),
            reason_number: reply.reason,
            windows10_interface: reason::interface(reply.windows10),
            counters: reply.counters,
            counter_width: reply.width,
            counters_in_use: reply.counters_in_use,
            sessions: reply.sessions,
            processors: reply.processors,
            maximum_processors: reply.maximum_processors,
            state_bytes: reply.state_bytes,
            identity: Identity::new(&reply.vendor, &reply.brand, reply.signature),
            pmu_version: reply.pmu_version,
            driver_version: version(reply.driver),
            driver_protocol: reply.protocol,
            sampling: Totals::from(reply),
        }
    }
}

pub fn run(args: &Json, context: &mut Context) -> Result<(), Error> {
    let connection = Connection::open(context.system()?)?;
    let info = Info::from(&connection.info()?);
    if args.json { context.json(&info) } else { context.say(&rows(&info)) }
}

fn rows(info: &Info) -> String {
    let [vendor, processor, signature] = info.identity.rows();
    let mut rows = vec![
        ("Interface", info.interface.clone()),
        ("Reason", info.reason.clone()),
        ("Windows 10 HAL", windows10(&info.windows10_interface, &info.interface)),
        ("Counters", counters(info.counters, info.counter_width)),
        ("In use", format!("{} at most on a processor, by {}", info.counters_in_use, sessions(info.sessions))),
        ("Processors", format!("{} active, {} at most", info.processors, info.maximum_processors)),
        ("Counter state", format!("{} bytes", grouped(info.state_bytes))),
        vendor,
        processor,
        signature,
        ("PMU version", pmu_version(info.pmu_version)),
        ("Driver", format!("{}, protocol {}", info.driver_version, info.driver_protocol)),
    ];
    rows.extend(info.sampling.rows());
    properties(&rows)
}

/// What the HAL of the original Windows 10 takes, beside what this driver takes.
pub fn windows10(theirs: &str, ours: &str) -> String {
    format!("{theirs}{}", if theirs == ours { " as well" } else { "" })
}

/// The counters of a processor.
pub fn counters(number: u32, width: u32) -> String {
    match number {
        0 => "none: nothing but Time can be counted on this machine".to_owned(),
        number => format!("{number} on each processor, {width} bits wide"),
    }
}

fn sessions(number: u32) -> String {
    format!("{number} {}", if number == 1 { "session" } else { "sessions" })
}

fn pmu_version(version: u32) -> String {
    if version == 0 { "none (no architectural performance monitoring)".to_owned() } else { version.to_string() }
}
