//! Numbers and tables as text, in ASCII because a Windows console can have any code page.

use comfy_table::{CellAlignment, Table, presets};
use halprof::text::format::grouped_digits;

/// Units of 100 ns in a second.
const TICKS_PER_SECOND: f64 = 1e7;

pub use halprof::text::format::{bytes, grouped, select, text};
pub use report::real;

/// Converts units of 100 ns to seconds.
#[must_use]
pub fn seconds(ticks: u64) -> f64 {
    real(ticks) / TICKS_PER_SECOND
}

/// Returns the rate per second; `None` if no time passed.
#[must_use]
pub fn per_second(count: u64, ticks: u64) -> Option<f64> {
    (ticks > 0).then(|| real(count) / seconds(ticks))
}

/// Formats a rate without its fraction, with commas; `-` without a rate.
#[must_use]
pub fn rounded(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| grouped_digits(&format!("{rate:.0}")))
}

/// Scales a number by powers of a thousand. Returns it with the letter of its scale.
#[must_use]
pub fn scaled(number: f64) -> (f64, &'static str) {
    for (limit, letter) in [(1e9, "G"), (1e6, "M"), (1e3, "K")] {
        if number >= limit {
            return (number / limit, letter);
        }
    }
    (number, "")
}

/// Formats a bit pattern.
#[must_use]
pub fn hexadecimal(number: u64) -> String {
    format!("0x{number:08X}")
}

/// Formats an address in the output for programs: always 16 digits.
#[must_use]
pub fn address(address: u64) -> String {
    format!("{address:#018x}")
}

/// Formats a number with its noun, in the plural unless the number is 1.
#[must_use]
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Formats a table without borders. The columns with a heading in `numbers` are aligned to the right.
#[must_use]
pub fn table(headings: &[&str], numbers: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let rules = headings.iter().enumerate().map(|(index, heading)| {
        let widest = rows.iter().filter_map(|row| row.get(index)).map(String::len).max().unwrap_or_default();
        "-".repeat(widest.max(heading.len()))
    });
    table.set_header(headings.iter().copied());
    table.add_row(rules);
    table.add_rows(rows.iter().cloned());
    for (column, heading) in table.column_iter_mut().zip(headings) {
        column.set_padding((0, 2));
        if numbers.contains(heading) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Formats lines of a name and a value, with the values in one column.
#[must_use]
pub fn properties(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let lines: Vec<String> = rows.iter().map(|(name, value)| format!("{name:width$}  {value}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_rate_without_elapsed_time() {
        assert_eq!(per_second(5, 0), None);
        assert_eq!(per_second(5, 20_000_000), Some(2.5));
        assert_eq!(rounded(per_second(5_000_000, 10_000_000)), "5,000,000");
        assert_eq!(rounded(None), "-");
    }

    #[test]
    fn a_scaled_number_has_one_to_three_digits_before_the_point() {
        for (number, scale) in
            [(0.0, (0.0, "")), (999.0, (999.0, "")), (1e3, (1.0, "K")), (5e6, (5.0, "M")), (7e11, (700.0, "G"))]
        {
            assert_eq!(scaled(number), scale);
        }
    }

    #[test]
    fn numbers_are_right_aligned_and_no_line_ends_in_blanks() {
        let rows = [vec!["7".to_owned(), "a".to_owned()], vec!["123".to_owned(), "long".to_owned()]];
        assert_eq!(table(&["Id", "Name"], &["Id"], &rows), " Id  Name\n---  ----\n  7  a\n123  long");
    }
}
