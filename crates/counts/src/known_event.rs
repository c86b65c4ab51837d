//! An event of a processor by its name, or why there is none.

use events::CoreTable;
use events::import::Imported;
use halprof::event::{EventName, SourceName, suggestions, vendor_event};
use pmu::Cpuid;
use user_error::exit::Exit;
use user_error::{Error, UserError};

use crate::cpuid;
use crate::encoding::{self, CoreEncoding};

/// No cores of a processor have an event.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The processor has no cores of this type.
    #[error("this processor has no cores of the type {0}")]
    NoSuchCores(String),
    /// No cores have the event.
    #[error("no event is called {given}{}", suggestions::elsewhere(.given, .near))]
    UnknownEvent {
        /// The name, as the user typed it.
        given: String,
        /// The most similar names, best first.
        near: Vec<String>,
        /// Why it is not found.
        #[source]
        cause: NotFound,
    },
}

/// Why an event is not found.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotFound(String);

impl UserError for EncodeError {
    fn exit(&self) -> Exit {
        Exit::UnknownSource
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::NoSuchCores(_) => Some(".\\client diagnose   (shows its core types)"),
            Self::UnknownEvent { given, near, .. } => events::other_of_perf(given)
                .map(|(_, who)| who)
                .or_else(|| near.is_empty().then_some(".\\client list PATTERN   (searches names and descriptions)")),
        };
        remedy.map(str::to_owned)
    }
}

/// [Encodes](encoding::encode) an event for each kind of cores of a processor, some of which have it.
///
/// # Errors
/// [`EncodeError`], or if the event cannot be encoded.
pub fn encode(event: &EventName, cpu: &impl Cpuid, imported: Option<&Imported>) -> Result<Vec<CoreEncoding>, Error> {
    let identity = cpuid::vendor_identity(cpu);
    let cores = encoding::encode(event, cpu, &vendor_event::tables(identity, None), imported)?;
    let Some(first) = cores.first() else {
        let core_type = pmu::CoreType::from_number(event.source.core_type());
        return Err(EncodeError::NoSuchCores(core_type.map_or("cpu", pmu::CoreType::name).to_owned()).into());
    };
    // An event without a select is known if it is a source of the HAL.
    let is_known = |core: &CoreEncoding| core.select.is_some() || core.note.is_some();
    match event.source.source() {
        SourceName::Name(given) if !cores.iter().any(is_known) && events::Generic::from_name(given).is_none() => {
            let core_type = pmu::CoreType::from_number(event.source.core_type());
            let near = near(given, cpu, &vendor_event::tables(identity, core_type));
            let cause = NotFound(first.error.clone().unwrap_or_default());
            Err(EncodeError::UnknownEvent { given: given.clone(), near, cause }.into())
        }
        _ => Ok(cores),
    }
}

fn near(given: &str, cpu: &impl Cpuid, tables: &[CoreTable]) -> Vec<String> {
    let sources: Vec<&str> = pmu::Hal::new(cpu, 1).map_or_else(
        |_| Vec::new(),
        |hal| {
            let supported = hal.source_list().filter(|source| source.support == pmu::Support::Supported);
            supported.map(|source| source.source.name).collect()
        },
    );
    suggestions::near(given, &sources, tables)
}
