//! From a processor and a name to an event.

use thiserror::Error;

use crate::database::Table;
use crate::event::Event;
use crate::identity::{CoreType, Identity};
use crate::similar::nearest;

/// Maximum number of suggestions for an unknown name.
const SUGGESTIONS: usize = 3;

/// Why there is no event.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum LookupError {
    /// No table is for this processor.
    #[error("no table has the events of this processor ({0})")]
    UnknownProcessor(Identity),
    /// The processor has no cores of this type.
    #[error("{0} has no cores of the type {1}")]
    NoSuchCoreType(Identity, CoreType),
    /// The table has no event of this name.
    #[error("no event is called {name}")]
    UnknownEvent {
        /// The name.
        name: String,
        /// The most similar names, best first.
        near: Vec<String>,
    },
}

/// The events of a kind of cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreTable {
    /// The core type, on a hybrid.
    pub core_type: Option<CoreType>,
    /// Native model in CPUID leaf 0x1A, EAX\[23:0\], if cores of this type are of two kinds and this is the rarer one;
    /// otherwise 0.
    pub native_model: u8,
    /// The events.
    pub table: Table,
}

/// Iterates over all tables.
pub fn tables() -> impl Iterator<Item = Table> {
    Table::all()
}

/// Returns the maker of processors that have an event of this name: Intel or AMD; `None` if none has.
#[must_use]
pub fn maker(name: &str) -> Option<&'static str> {
    let table = tables().find(|table| table.find(name).is_some())?;
    Some(if table.name().starts_with("amd") { "AMD" } else { "Intel" })
}

/// Returns the tables of a processor: one, or on a hybrid one for each kind of cores, P cores first. Empty if no table
/// is for it.
#[must_use]
pub fn core_tables(identity: Identity) -> Vec<CoreTable> {
    let found = Table::of(identity);
    let mut tables: Vec<CoreTable> =
        found.map(|(table, core_type, native_model)| CoreTable { core_type, native_model, table }).collect();
    tables.sort_by_key(|one| (std::cmp::Reverse(one.core_type), one.native_model));
    tables
}

/// Returns the table of a processor, on a hybrid that of a core type. A hybrid whose core types are hidden is taken for
/// its P cores.
///
/// # Errors
/// If no table is for the processor, or it has no such cores.
pub fn table(identity: Identity, core_type: Option<CoreType>) -> Result<Table, LookupError> {
    let tables = core_tables(identity);
    let first = tables.first().ok_or(LookupError::UnknownProcessor(identity))?;
    let Some(wanted) = core_type else { return Ok(first.table) };
    // A processor that is no hybrid can report the type of its cores, too.
    let matching = tables.iter().find(|one| one.core_type.is_none_or(|core_type| core_type == wanted));
    matching.map(|one| one.table).ok_or(LookupError::NoSuchCoreType(identity, wanted))
}

impl Table {
    /// Returns the event of this name, in any case of letters.
    ///
    /// # Errors
    /// If there is none; the error has the most similar names.
    pub fn event(self, name: &str) -> Result<Event, LookupError> {
        self.find(name).ok_or_else(|| {
            let names: Vec<String> = self.events().map(|event| event.name).collect();
            let near = nearest(name, names.iter().map(String::as_str), SUGGESTIONS);
            LookupError::UnknownEvent { name: name.to_owned(), near }
        })
    }
}
