//! Tables that fit a console.

pub use report::shortened;
use terminal_size::{Width, terminal_size};

use crate::format::table;

/// Columns of a terminal that does not tell its width.
const USUAL: u16 = 80;

/// Spaces between two columns of a table.
const GAP: usize = 2;

/// Minimum width of a shortened column.
const NARROWEST: usize = 8;

/// Returns the number of columns of the terminal that text can fill. Without the last: a character there moves the
/// cursor of a Windows console to the next line.
#[must_use]
pub fn of_terminal() -> usize {
    let columns = terminal_size().map_or(USUAL, |(Width(columns), _)| columns);
    usize::from(columns.saturating_sub(1))
}

/// Formats a [table] that fits into `width`: the cells in the columns `names` are shortened.
#[must_use]
pub fn fitted(headings: &[&str], numbers: &[&str], names: &[&str], mut rows: Vec<Vec<String>>, width: usize) -> String {
    fit(headings, &mut rows, names, width);
    table(headings, numbers, &rows)
}

/// Shortens the cells in the columns `names` until a table of `headings` and `rows` fits into `width`. The widest
/// columns are shortened first.
fn fit(headings: &[&str], rows: &mut [Vec<String>], names: &[&str], width: usize) {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use report::NamePattern;

    use super::*;

    const CONSOLE: usize = 80;

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

        #[test]
        fn a_name_as_it_is_printed_finds_what_it_was_made_from(
            names in prop::collection::vec("[ab.:*? ()\u{7}\u{e9}]{0,40}", 1..6),
            width in 0..60_usize
        ) {
            let before: Vec<Vec<String>> = names.iter().map(|name| vec![name.clone()]).collect();
            let mut rows = before.clone();
            fit(&["Symbol"], &mut rows, &["Symbol"], width);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            for (row, name) in rows.iter().zip(&names) {
                let found = NamePattern::new(&*row[0]).resolve(&names, NamePattern::matches);
                prop_assert!(found.contains(name), "{row:?}: {found:?}");
                for other in found {
                    prop_assert_eq!(&shortened(other, row[0].chars().count()), &row[0]);
                }
            }
        }
    }
}
