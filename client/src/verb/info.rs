//! `info`: the profile interface, why it was chosen, and what it offers.

use protocol::InfoReply;
use serde::Serialize;

use super::Context;
use crate::cli::Json;
use crate::connection::{Connection, version};
use crate::error::Error;
use crate::format::{grouped, hexadecimal, properties, text};
use crate::reason;

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
    vendor: String,
    brand: Option<String>,
    signature: u32,
    family: u32,
    model: u32,
    stepping: u32,
    pmu_version: u32,
    driver_version: String,
    driver_protocol: u32,
}

impl From<&InfoReply> for Info {
    fn from(reply: &InfoReply) -> Self {
        let Signature { family, model, stepping } = signature(reply.signature);
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
            vendor: text(&reply.vendor),
            brand: Some(text(&reply.brand)).filter(|brand| !brand.is_empty()),
            signature: reply.signature,
            family,
            model,
            stepping,
            pmu_version: reply.pmu_version,
            driver_version: version(reply.driver),
            driver_protocol: reply.protocol,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Signature {
    family: u32,
    model: u32,
    stepping: u32,
}

/// Family, model and stepping of EAX of CPUID leaf 1 (SDM Vol. 2A, CPUID, "Version Information"; APM Vol. 3 E.3.2).
fn signature(eax: u32) -> Signature {
    let (base_family, base_model) = (eax >> 8 & 0xF, eax >> 4 & 0xF);
    let (extended_family, extended_model) = (eax >> 20 & 0xFF, eax >> 16 & 0xF);
    Signature {
        family: if base_family == 0xF { base_family + extended_family } else { base_family },
        model: if matches!(base_family, 6 | 0xF) { extended_model << 4 | base_model } else { base_model },
        stepping: eax & 0xF,
    }
}

pub fn run(args: &Json, context: &mut Context) -> Result<(), Error> {
    let connection = Connection::open(context.system)?;
    let info = Info::from(&connection.info()?);
    if args.json { context.json(&info) } else { context.say(&rows(&info)) }
}

fn rows(info: &Info) -> String {
    let agrees = info.interface == info.windows10_interface;
    let windows10 = format!("{}{}", info.windows10_interface, if agrees { " as well" } else { "" });
    let family = format!("family {:#x}, model {:#x}, stepping {}", info.family, info.model, info.stepping);
    properties(&[
        ("Interface", info.interface.clone()),
        ("Reason", info.reason.clone()),
        ("Windows 10 HAL", windows10),
        ("Counters", counters(info)),
        ("In use", format!("{} at most on a processor, by {}", info.counters_in_use, sessions(info.sessions))),
        ("Processors", format!("{} active, {} at most", info.processors, info.maximum_processors)),
        ("Counter state", format!("{} bytes", grouped(info.state_bytes))),
        ("Vendor", info.vendor.clone()),
        ("Processor", info.brand.clone().unwrap_or_else(|| "(no brand string)".to_owned())),
        ("Signature", format!("{}: {family}", hexadecimal(info.signature.into()))),
        ("PMU version", pmu_version(info.pmu_version)),
        ("Driver", format!("{}, protocol {}", info.driver_version, info.driver_protocol)),
    ])
}

fn counters(info: &Info) -> String {
    match info.counters {
        0 => "none: nothing can be counted on this machine".to_owned(),
        number => format!("{number} on each processor, {} bits wide", info.counter_width),
    }
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
    fn extended_family_and_model_count_only_where_the_manuals_say_so() {
        for (eax, family, model, stepping) in [
            (0x0001_067A, 6, 0x17, 10),   // Core 2: extended model with family 6
            (0x0000_0F29, 15, 2, 9),      // Pentium 4
            (0x0002_0FB1, 15, 0x2B, 1),   // Athlon 64 X2: extended model with family 15
            (0x0087_0F10, 0x17, 0x71, 0), // Zen 2: extended family
            (0x0FFF_0543, 5, 4, 3),       // Pentium: neither
        ] {
            assert_eq!(signature(eax), Signature { family, model, stepping }, "{eax:#x}");
        }
    }
}
