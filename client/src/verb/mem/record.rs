//! `mem record`: samples loads and stores with the addresses of their data.

use halprof::Driver;
use halprof::core_types::qualified;
use pmu::CoreType;
use pmu::interface::emon::Microarchitecture;
use thiserror::Error as ThisError;
use x86_defs::cpuid::VENDOR_INTEL;

use crate::cli::{AccessType, MemRecordArgs, RecordArgs};
use crate::verb::record;
use halprof::text::format;
use terminal::context::Context;
use user_error::exit::Exit;
use user_error::{Error, UserError};

/// Threshold of loads without `--ldlat`, in core clock cycles: that of perf.
const USUAL_LATENCY: u32 = 30;

/// The cores of the chosen processors do not record such accesses.
#[derive(Debug, ThisError)]
#[error("no core of this machine records {what} with the addresses of their data")]
pub struct NoAccessEvent {
    /// Loads, or stores.
    what: &'static str,
    /// The processors that do.
    #[source]
    cause: Recording,
}

/// Which processors record accesses.
#[derive(Debug, ThisError)]
#[error("Intel's P cores do from Nehalem on (stores from Sandy Bridge on), its E cores from Gracemont on")]
struct Recording;

impl UserError for NoAccessEvent {
    fn exit(&self) -> Exit {
        Exit::UnsupportedSource
    }

    fn remedy(&self) -> Option<String> {
        Some(".\\client record -e cache-misses -- app.exe   (where loads miss, without addresses)".to_owned())
    }
}

pub fn run(args: &MemRecordArgs, context: &mut Context) -> Result<i32, Error> {
    let connection = args.record.backend.open(context)?;
    connection.check_driver("samples with the addresses of their data")?;
    if !args.record.events.is_empty() {
        return record::run_on(&args.record, context, &connection);
    }
    let texts = events(args, &connection)?;
    context.warn(&format!("[ sampling {} ]", texts.join(",\n  ")))?;
    let names = texts.iter().map(|text| text.parse()).collect::<Result<_, _>>().map_err(halprof::Error::from)?;
    record::run_on(&RecordArgs { events: names, ..args.record.clone() }, context, &connection)
}

/// Returns the events of the accesses that the user wants, in the notation of perf: those of each core type of the
/// chosen processors.
fn events(args: &MemRecordArgs, connection: &Driver) -> Result<Vec<String>, Error> {
    let wanted = |kind: AccessType| args.types.is_empty() || args.types.contains(&kind);
    let info = connection.info()?;
    let chosen = args.record.session.processors.map(|list| list.0);
    let is_chosen = |processor: &u32| chosen.is_none_or(|chosen| chosen.contains(*processor));
    let types = connection.core_types()?.iter().filter(|one| one.processors.iter().any(is_chosen));
    let types: Vec<u32> = types.map(|one| one.number).collect();
    let is_intel = format::text(&info.vendor).as_bytes() == VENDOR_INTEL;
    let cores = |number: &u32| {
        let of = || Microarchitecture::of_core_type(info.signature, CoreType::from_number(*number));
        (*number, if is_intel { of() } else { Microarchitecture::Unknown })
    };
    let cores: Vec<(u32, Microarchitecture)> =
        if types.is_empty() { &[0][..] } else { &types }.iter().map(cores).collect();
    let latency = format!(",ldlat={}", args.ldlat.unwrap_or(USUAL_LATENCY));
    let text = |core_type: u32, (event, umask): (u8, u8), latency: &str| {
        format!("{}p", qualified(&format!("cpu/event={event:#04x},umask={umask:#04x}{latency}/"), core_type))
    };
    let of_each = |encoding: fn(Microarchitecture) -> Option<(u8, u8)>, latency: &str| -> Vec<String> {
        cores.iter().filter_map(|(number, cores)| Some(text(*number, encoding(*cores)?, latency))).collect()
    };
    let loads = of_each(Microarchitecture::load_event, &latency);
    let stores = of_each(Microarchitecture::store_event, "");
    for (kind, what, found) in [(AccessType::Load, "loads", &loads), (AccessType::Store, "stores", &stores)] {
        // Without a choice, stores are recorded only where they can be.
        if found.is_empty() && (args.types.contains(&kind) || (args.types.is_empty() && kind == AccessType::Load)) {
            return Err(NoAccessEvent { what, cause: Recording }.into());
        }
    }
    let is_either = args.types.is_empty() && cores.iter().any(|(_, cores)| cores.has_one_access_counter());
    let stores = if is_either { Vec::new() } else { stores };
    let of_kind = |kind, found: Vec<String>| if wanted(kind) { found } else { Vec::new() };
    Ok([of_kind(AccessType::Load, loads), of_kind(AccessType::Store, stores)].concat())
}
