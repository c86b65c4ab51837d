//! The ends of branches in JSON and CSV.

use report::{SampleLocation, SymbolIndex};
use serde::Serialize;

use terminal::format::address;

/// Source or target of a branch.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BranchEnd {
    pub address: String,
    pub module: String,
    pub symbol: String,
}

impl BranchEnd {
    pub fn of(location: &SampleLocation, symbol_index: &SymbolIndex) -> Self {
        Self {
            address: address(location.ip),
            module: symbol_index.module(location).to_owned(),
            symbol: symbol_index.symbol(location).into_owned(),
        }
    }

    /// Returns its fields in CSV.
    pub fn fields(&self) -> [&str; 3] {
        [&self.address, &self.module, &self.symbol]
    }
}

/// Formats a field of CSV; empty if there is no number.
pub fn real_field(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.6}"))
}
