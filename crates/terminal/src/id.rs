//! Process and thread IDs, which can be unknown.

use std::fmt;

use protocol::UNKNOWN;
use report::UNKNOWN_NAME;
use serde::Serialize;

/// A process or thread ID. If it is unknown, text shows `[unknown]`, and output for programs has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Id(Option<u32>);

impl From<u32> for Id {
    fn from(number: u32) -> Self {
        Self(Some(number).filter(|number| *number != UNKNOWN))
    }
}

impl Id {
    /// Returns the ID as a field of CSV.
    pub fn field(self) -> String {
        self.0.map_or_else(String::new, |number| number.to_string())
    }

    /// Formats the process with this ID and `name`.
    #[must_use]
    pub fn with_name(self, name: &str) -> String {
        self.0.map_or_else(|| self.to_string(), |number| format!("{name} ({number})"))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str(UNKNOWN_NAME),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_id_has_no_number_in_any_format() {
        for (number, text, field, named, json) in [
            (8, "8", "8", "app.exe (8)", "8"),
            (0, "0", "0", "app.exe (0)", "0"),
            (UNKNOWN, "[unknown]", "", "[unknown]", "null"),
        ] {
            let id = Id::from(number);
            assert_eq!((id.to_string().as_str(), id.field().as_str()), (text, field));
            assert_eq!(id.with_name("app.exe"), named);
            assert_eq!(serde_json::to_string(&id).unwrap(), json);
        }
    }
}
