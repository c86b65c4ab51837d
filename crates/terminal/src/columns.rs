//! Tables that fit a console.

use recording::printable;

/// Width of a console in characters.
pub const CONSOLE: usize = 80;

/// Spaces between two columns of a table.
const GAP: usize = 2;

/// Replaces the middle of a shortened name.
const ELLIPSIS: &str = "..";

/// Minimum width of a shortened column.
const NARROWEST: usize = 8;

/// Shortens the cells in the columns `names` until a table of `headings` and `rows` fits into `width`. The widest
/// columns are shortened first.
pub fn fit(headings: &[&str], rows: &mut [Vec<String>], names: &[&str], width: usize) {
    let widths: Vec<usize> = headings
        .iter()
        .enumerate()
        .map(|(index, heading)| {
            let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.chars().count());
            cells.chain([heading.len()]).max().unwrap_or_default()
        })
        .collect();
    let widths_of = |shortened: bool| -> Vec<usize> {
        let columns = headings.iter().zip(&widths).filter(|(heading, _)| names.contains(heading) == shortened);
        columns.map(|(_, width)| *width).collect()
    };
    let taken = widths_of(false).iter().sum::<usize>() + GAP * headings.len().saturating_sub(1);
    let max = widest_that_fits(&widths_of(true), width.saturating_sub(taken));
    for row in rows {
        for (cell, _) in row.iter_mut().zip(headings).filter(|(_, heading)| names.contains(heading)) {
            *cell = shortened(cell, max);
        }
    }
}

/// Returns the largest limit for the width of each column with which columns of these widths fit into `room`.
fn widest_that_fits(widths: &[usize], room: usize) -> usize {
    let taken = |limit: usize| widths.iter().map(|width| limit.min(*width)).sum::<usize>();
    let largest = widths.iter().copied().max().unwrap_or_default();
    (NARROWEST..=largest).rev().find(|limit| taken(*limit) <= room).unwrap_or(NARROWEST)
}

/// Returns the [printable] name, without its middle if it has more than `max` characters. Both ends of a name are more
/// informative.
#[must_use]
pub fn shortened(name: &str, max: usize) -> String {
    let characters: Vec<char> = printable(name).chars().collect();
    if characters.len() <= max {
        return characters.into_iter().collect();
    }
    let kept = max.saturating_sub(ELLIPSIS.len());
    let (head, tail) = (kept - kept / 2, kept / 2);
    let head: String = characters.iter().take(head).collect();
    let tail: String = characters.iter().skip(characters.len() - tail).collect();
    format!("{head}{ELLIPSIS}{tail}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_name_keeps_both_its_ends() {
        for (name, max, wanted) in [
            ("short", 8, "short"),
            ("exactly8", 8, "exactly8"),
            ("ntoskrnl.exe+0x1234", 13, "ntoskr..x1234"),
            ("two\nlines", 20, "two lines"),
        ] {
            assert_eq!(shortened(name, max), wanted);
        }
    }

    #[test]
    fn the_widest_column_gives_first() {
        for (widths, room, limit) in
            [(vec![10, 20, 60], 90, 60), (vec![10, 20, 60], 70, 40), (vec![30, 30, 60], 70, 23), (vec![60], 5, 8)]
        {
            assert_eq!(widest_that_fits(&widths, room), limit, "{widths:?} in {room}");
        }
    }

    proptest! {
        #[test]
        fn a_table_fits_and_cells_that_already_fit_are_unchanged(
            cells in prop::collection::vec(("[a-z+:]{0,120}", "[a-z ()0-9]{0,40}"), 1..8)
        ) {
            let headings = ["Overhead", "Process", "Symbol"];
            let row = |(symbol, process): &(String, String)| vec!["100.00%".to_owned(), process.clone(), symbol.clone()];
            let before: Vec<Vec<String>> = cells.iter().map(row).collect();
            let mut rows = before.clone();
            fit(&headings, &mut rows, &["Process", "Symbol"], CONSOLE);
            let width = |rows: &[Vec<String>], index: usize| {
                rows.iter().map(|row| row[index].chars().count()).chain([headings[index].len()]).max().unwrap()
            };
            prop_assert!((0..3).map(|index| width(&rows, index)).sum::<usize>() + 4 <= CONSOLE);
            if (0..3).map(|index| width(&before, index)).sum::<usize>() + 4 <= CONSOLE {
                prop_assert_eq!(rows, before);
            }
        }
    }
}
