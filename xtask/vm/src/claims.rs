//! The claims about Windows: the rows of the table in docs/claims.md. The last cell of a row has the identifier of its
//! claim, which stays when the wording changes, and what the steps leave open.

use std::sync::LazyLock;

const DOCUMENT: &str = include_str!("../../../docs/claims.md");

/// A claim of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its identifier, to which steps refer.
    pub id: &'static str,
    /// The first cell of its row.
    pub text: &'static str,
    /// What the steps that decide it leave open.
    pub scope: Scope,
}

/// How much of a claim a run in one guest can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of it: it is proved if every step that decides it passes.
    Complete,
    /// A part: the steps can refute it, and this remains if they pass.
    InPart(&'static str),
    /// Nothing, for this reason.
    NoStep(&'static str),
}

/// The claims, in the order of the table.
pub static CLAIMS: LazyLock<Vec<Claim>> = LazyLock::new(|| DOCUMENT.lines().filter_map(claim).collect());

/// Returns the claim of a row; `None` for any other line.
fn claim(line: &'static str) -> Option<Claim> {
    let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
    let (text, rest) = row.split_once(" | ")?;
    let (_, cell) = rest.rsplit_once(" | ")?;
    let (id, left) = cell.strip_prefix('`')?.split_once('`')?;
    let scope = match left.strip_prefix(", except ") {
        Some(remaining) => Scope::InPart(remaining),
        None if left.is_empty() => Scope::Complete,
        None => Scope::NoStep(left.strip_prefix(", no step: ")?),
    };
    Some(Claim { id, text, scope })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_of_the_table_is_a_claim() {
        let rows: Vec<&str> = DOCUMENT.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
        assert!(rows.len() > 50, "the table is not found any more: {}", rows.len());
        let faulty: Vec<&&str> = rows.iter().filter(|row| claim(row).is_none()).collect();
        assert!(faulty.is_empty(), "{faulty:#?}");
        assert_eq!(CLAIMS.len(), rows.len());
    }

    #[test]
    fn the_last_cell_says_what_a_guest_can_decide() {
        let row = |scope| Some(Claim { id: "id-1", text: "`a` holds", scope });
        assert_eq!(claim("| `a` holds | stand-in | `id-1` |"), row(Scope::Complete));
        assert_eq!(claim("| `a` holds | stand-in | `id-1`, except b, c |"), row(Scope::InPart("b, c")));
        assert_eq!(claim("| `a` holds | stand-in | `id-1`, no step: d |"), row(Scope::NoStep("d")));
        for line in ["| claim | how | guest |", "|---|---|---|", "| a | b |", "| a | b | `id-1` some |", "", "text"] {
            assert_eq!(claim(line), None, "{line}");
        }
    }

    #[test]
    fn identifiers_are_unique_and_fit_an_address() {
        let ids: BTreeSet<&str> = CLAIMS.iter().map(|claim| claim.id).collect();
        assert_eq!(ids.len(), CLAIMS.len());
        let plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
        assert!(ids.iter().all(|id| id.chars().all(plain)), "{ids:?}");
    }
}
