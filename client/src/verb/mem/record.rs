//! `mem record`: samples loads and stores with the addresses of their data.

use halprof::Driver;
use halprof::core_types::qualified;
use pmu::CoreType;
use pmu::interface::emon::Microarchitecture;
use thiserror::Error as ThisError;
use x86_defs::cpuid::{VENDOR_AMD, VENDOR_INTEL};

use crate::cli::{AccessType, MemRecordArgs, RecordArgs};
use crate::verb::record;
use halprof::text::format;
use terminal::context::Context;
use user_error::exit::Exit;
use user_error::{Error, UserError};

/// Threshold of loads without `--ldlat`, in core clock cycles: that of perf.
const USUAL_LATENCY: u32 = 30;

/// Why `mem record` cannot choose events.
#[derive(Debug, ThisError)]
pub enum MemError {
    /// The cores of the chosen processors do not record such accesses.
    #[error("no core of this machine records {what} with the addresses of their data")]
    NoEvent {
        /// Loads, or stores.
        what: &'static str,
        /// The processors that do.
        #[source]
        cause: Recording,
    },
    /// `--ldlat` on a processor without a threshold.
    #[error("--ldlat is for Intel's processors: AMD's IBS samples loads of any latency")]
    NoThreshold,
}

/// Which processors record accesses.
#[derive(Debug, ThisError)]
#[error("Intel's P cores do from Nehalem on, its E cores from Gracemont on,\n  and AMD's processors by IBS")]
pub struct Recording;

impl MemError {
    /// Returns the error of a machine that records no loads, or no stores.
    pub const fn no_event(what: &'static str) -> Self {
        Self::NoEvent { what, cause: Recording }
    }
}

impl UserError for MemError {
    fn exit(&self) -> Exit {
        match self {
            Self::NoEvent { .. } => Exit::UnsupportedSource,
            Self::NoThreshold => Exit::Usage,
        }
    }

    fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::NoEvent { .. } => ".\\client record -e cache-misses -- app.exe   (without addresses)",
            Self::NoThreshold => ".\\client mem record without it",
        };
        Some(text.to_owned())
    }
}

pub fn run(args: &MemRecordArgs, context: &mut Context) -> Result<i32, Error> {
    let connection = args.record.backend.open(context)?;
    connection.check_driver("samples with the addresses of their data")?;
    if !args.record.events.is_empty() {
        return record::run_on(&args.record, context, &connection);
    }
    let events = choose(args, &connection)?;
    context.warn(&format!("[ sampling {} ]", events.join(",\n  ")))?;
    let names = events.iter().map(|text| text.parse()).collect::<Result<_, _>>().map_err(halprof::Error::from)?;
    record::run_on(&RecordArgs { events: names, ..args.record.clone() }, context, &connection)
}

/// Returns the events of the accesses that the user wants, in the notation of perf.
fn choose(args: &MemRecordArgs, connection: &Driver) -> Result<Vec<String>, Error> {
    let vendor = format::text(&connection.info()?.vendor);
    if vendor.as_bytes() != VENDOR_AMD {
        return events(args, vendor.as_bytes() == VENDOR_INTEL, connection);
    }
    if args.ldlat.is_some() {
        return Err(MemError::NoThreshold.into());
    }
    let is_wanted = |kind: &AccessType| args.types.is_empty() || args.types.contains(kind);
    let kinds = [(AccessType::Load, "loads"), (AccessType::Store, "stores")].into_iter();
    let terms: Vec<&str> = kinds.filter(|(kind, _)| is_wanted(kind)).map(|(_, term)| term).collect();
    Ok(vec![format!("ibs_op/{}/{}", terms.join(","), args.mode())])
}

/// Returns the events of the accesses that the user wants of Intel's processors: those of each core type of the chosen
/// processors.
fn events(args: &MemRecordArgs, is_intel: bool, connection: &Driver) -> Result<Vec<String>, Error> {
    let wanted = |kind: AccessType| args.types.is_empty() || args.types.contains(&kind);
    let info = connection.info()?;
    let chosen = args.record.session.processors.map(|list| list.0);
    let is_chosen = |processor: &u32| chosen.is_none_or(|chosen| chosen.contains(*processor));
    let types = connection.core_types()?.iter().filter(|one| one.processors.iter().any(is_chosen));
    let types: Vec<u32> = types.map(|one| one.number).collect();
    let cores = |number: &u32| {
        let of = || Microarchitecture::of_core_type(info.signature, CoreType::from_number(*number));
        (*number, if is_intel { of() } else { Microarchitecture::Unknown })
    };
    let cores: Vec<(u32, Microarchitecture)> =
        if types.is_empty() { &[0][..] } else { &types }.iter().map(cores).collect();
    let latency = format!(",ldlat={}", args.ldlat.unwrap_or(USUAL_LATENCY));
    let text = |core_type: u32, (event, umask): (u8, u8), latency: &str| {
        let event = qualified(&format!("cpu/event={event:#04x},umask={umask:#04x}{latency}/"), core_type);
        format!("{event}{}p", args.mode())
    };
    let of_each = |encoding: fn(Microarchitecture) -> Option<(u8, u8)>, latency: &str| -> Vec<String> {
        cores.iter().filter_map(|(number, cores)| Some(text(*number, encoding(*cores)?, latency))).collect()
    };
    let loads = of_each(Microarchitecture::load_event, &latency);
    let stores = of_each(Microarchitecture::store_event, "");
    for (kind, what, found) in [(AccessType::Load, "loads", &loads), (AccessType::Store, "stores", &stores)] {
        // Without a choice, stores are recorded only where they can be.
        if found.is_empty() && (args.types.contains(&kind) || (args.types.is_empty() && kind == AccessType::Load)) {
            return Err(MemError::no_event(what).into());
        }
    }
    let is_either = args.types.is_empty() && cores.iter().any(|(_, cores)| cores.has_one_access_counter());
    let stores = if is_either { Vec::new() } else { stores };
    let of_kind = |kind, found: Vec<String>| if wanted(kind) { found } else { Vec::new() };
    Ok([of_kind(AccessType::Load, loads), of_kind(AccessType::Store, stores)].concat())
}
