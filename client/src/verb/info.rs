//! `info`: shows the profile interface, why it was chosen, and its properties.

use std::fmt::Write;

use halprof::core_types::CoreTypeInfo;
use halprof::errata::{self, ProcessorErratum};
use halprof::text::unavailable::{self, Unavailable};
use halprof::version;
use pmu::errata::workarounds::Workarounds;
use protocol::{InfoReply, NtStatus};
use serde::Serialize;

use crate::cli::Json;
use crate::machine::core_types::core_types_table;
use crate::machine::workarounds::{self, AppliedWorkaround};
use counts::encoding::unknown_model;
use counts::movement::{Tried, scope_note};
use counts::processor_identity::ProcessorIdentity;
use counts::totals::Totals;
use system::connection;
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::{grouped, properties};
use user_error::Error;
use user_error::reason;

/// The value of `InfoReply::reserved` while the counters are reserved.
const RESERVED: u32 = 1;

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Info {
    interface: String,
    reason: String,
    reason_number: u32,
    windows10_interface: String,
    counters: u32,
    least_counters: u32,
    fixed_counters: u32,
    counter_width: u32,
    /// The core types of a hybrid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    core_types: Vec<CoreTypeInfo>,
    counters_in_use: u32,
    /// Which counters count; tried in a virtual machine only.
    #[serde(skip_serializing_if = "Option::is_none")]
    tried_counters: Option<Tried>,
    /// What the counts of different events do not have in common: VMware.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope_note: Option<&'static str>,
    sessions: u32,
    processors: u32,
    maximum_processors: u32,
    state_bytes: u64,
    #[serde(flatten)]
    identity: ProcessorIdentity,
    pmu_version: u32,
    hypervisor: String,
    hypervisor_number: u32,
    counters_reserved: bool,
    /// The NTSTATUS with which the HAL refused to reserve the counters again, or to free them.
    reservation_refused: Option<String>,
    /// Why there are no counters, and what makes them available.
    #[serde(rename = "blocker")]
    unavailable: Option<Unavailable>,
    /// Errata that make named sources count wrongly.
    errata: Vec<ProcessorErratum>,
    /// Errata and traits of the processor that the driver works around.
    workarounds: Vec<AppliedWorkaround>,
    /// Whether the counts of some CPU include System Management Mode. Not known before the first session.
    includes_smm: Option<bool>,
    driver_version: String,
    driver_protocol: u32,
    sampling: Totals,
    /// What is said of a model that this version does not know.
    #[serde(skip)]
    unknown_model: Option<&'static str>,
}

impl Document for Info {
    const SCHEMA: &'static str = "halprof.info/1";
}

impl Info {
    pub fn new(reply: &InfoReply, core_types: &[CoreTypeInfo]) -> Self {
        Self {
            interface: reason::interface(reply.interface),
            reason: reason::text(reply.reason),
            reason_number: reply.reason,
            windows10_interface: reason::interface(reply.windows10),
            counters: reply.counters,
            least_counters: reply.least_counters,
            fixed_counters: reply.fixed_counters,
            counter_width: reply.width,
            core_types: core_types.to_vec(),
            counters_in_use: reply.counters_in_use,
            tried_counters: Tried::of(reply),
            scope_note: scope_note(reply),
            sessions: reply.sessions,
            processors: reply.processors,
            maximum_processors: reply.maximum_processors,
            state_bytes: reply.state_bytes,
            identity: ProcessorIdentity::new(&reply.vendor, &reply.brand, reply.signature),
            pmu_version: reply.pmu_version,
            hypervisor: unavailable::hypervisor(reply.hypervisor),
            hypervisor_number: reply.hypervisor,
            counters_reserved: reply.reserved == RESERVED,
            reservation_refused: (reply.reserved > RESERVED).then(|| NtStatus::new(reply.reserved).to_string()),
            unavailable: Unavailable::of_machine(reply),
            errata: errata::all(reply),
            workarounds: workarounds::all(Workarounds::from_bits(reply.workarounds)),
            includes_smm: match reply.smm {
                1 => Some(false),
                2 => Some(true),
                _ => None,
            },
            driver_version: version(reply.driver),
            driver_protocol: reply.protocol,
            sampling: Totals::from(reply),
            unknown_model: unknown_model(reply.interface, reply.signature),
        }
    }

    /// Returns the properties as rows of a name and a value.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let [vendor, processor, signature] = self.identity.rows();
        let mut rows = vec![
            ("Interface", self.interface.clone()),
            ("Reason", self.reason.clone()),
            ("Windows 10 HAL", windows10(&self.windows10_interface, &self.interface)),
            ("Counters", counters_of(self)),
            ("In use", in_use(self)),
            ("Processors", format!("{} active, {} at most", self.processors, self.maximum_processors)),
            ("Counter state", format!("{} bytes", grouped(self.state_bytes))),
            vendor,
            processor,
            signature,
            ("PMU version", pmu_version(self.pmu_version)),
            ("Hypervisor", self.hypervisor.clone()),
            ("Driver", format!("{}, protocol {}", self.driver_version, self.driver_protocol)),
        ];
        if let Some(text) = self.unknown_model {
            rows.push(("Model", text.to_owned()));
        }
        if self.includes_smm == Some(true) {
            rows.push(("SMM", "counts may include System Management Mode (firmware)".to_owned()));
        }
        if let Some(tried) = &self.tried_counters {
            rows.push(("Tried", tried.text()));
        }
        rows.extend(self.scope_note.map(|note| ("VMware", note.to_owned())));
        if !self.errata.is_empty() {
            let numbers = errata::numbers(self.errata.iter().map(|of| &of.erratum));
            rows.push(("Errata", format!("{numbers}; .\\client list names the sources")));
        }
        rows.extend(workarounds::rows(&self.workarounds));
        if let Some(status) = &self.reservation_refused {
            let what = if self.counters_in_use > 0 { "to reserve the counters again" } else { "to free the counters" };
            rows.push(("Reservation", format!("the HAL refused {what}: {status}")));
        }
        rows.extend(self.sampling.rows());
        rows
    }
}

pub fn run(args: &Json, context: &mut Context) -> Result<(), Error> {
    let connection = connection::open(context.system()?)?;
    let info = Info::new(&connection.info()?, connection.core_types()?);
    if args.json { context.json(&info) } else { context.say(&text_of(&info)) }
}

fn text_of(info: &Info) -> String {
    let mut text = properties(&info.rows());
    if !info.core_types.is_empty() {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "\n\n{}", core_types_table(&info.core_types));
    }
    if let Some(unavailable) = &info.unavailable {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "\n\n{}", unavailable.paragraph());
    }
    text
}

/// Formats the counters; on a hybrid a table has the rest.
fn counters_of(info: &Info) -> String {
    if info.core_types.is_empty() {
        return counters(info.least_counters, info.counters, info.fixed_counters, info.counter_width);
    }
    let each = info.core_types.iter().map(|one| format!("{} on each {}", one.counters, one.name));
    format!("{} processor", each.collect::<Vec<_>>().join(", "))
}

/// Formats the interface that the HAL of the original Windows 10 uses, compared with that of this driver.
pub fn windows10(theirs: &str, ours: &str) -> String {
    format!("{theirs}{}", if theirs == ours { " as well" } else { "" })
}

/// Formats the numbers of counters: the minimum and the maximum over the processors, and the fixed counters of the
/// latter.
pub fn counters(least: u32, most: u32, fixed: u32, width: u32) -> String {
    let number = match (least, most) {
        (_, 0) => return "none: nothing but Time can be counted on this machine".to_owned(),
        (least, most) if least == most => most.to_string(),
        (least, most) => format!("{least} to {most}"),
    };
    let of_them = if fixed == 0 { String::new() } else { format!(" ({fixed} of them fixed)") };
    format!("{number} on each processor{of_them}, {width} bits wide")
}

fn in_use(info: &Info) -> String {
    let by = sessions(info.sessions);
    let reserved = if info.counters_reserved { "; reserved with the HAL" } else { "" };
    format!("{} at most on a processor, by {by}{reserved}", info.counters_in_use)
}

fn sessions(number: u32) -> String {
    format!("{number} {}", if number == 1 { "session" } else { "sessions" })
}

fn pmu_version(version: u32) -> String {
    if version == 0 { "none (no architectural performance monitoring)".to_owned() } else { version.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_shown_for_the_processors_with_fewest_and_most() {
        for (least, most, fixed, words) in [
            (0, 0, 0, "none: nothing but Time can be counted on this machine"),
            (6, 6, 0, "6 on each processor, 48 bits wide"),
            (7, 7, 3, "7 on each processor (3 of them fixed), 48 bits wide"),
            (8, 11, 3, "8 to 11 on each processor (3 of them fixed), 48 bits wide"),
        ] {
            assert_eq!(counters(least, most, fixed, 48), words);
        }
    }
}
