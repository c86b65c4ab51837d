//! Numbers and tables as text, in ASCII because a Windows console can have any code page.

use comfy_table::{CellAlignment, Table, presets};

/// Units of 100 ns in a second.
const TICKS_PER_SECOND: f64 = 1e7;

pub use report::real;

/// Converts units of 100 ns to seconds.
pub fn seconds(ticks: u64) -> f64 {
    real(ticks) / TICKS_PER_SECOND
}

/// Returns the rate per second; `None` if no time passed.
pub fn per_second(count: u64, ticks: u64) -> Option<f64> {
    (ticks > 0).then(|| real(count) / seconds(ticks))
}

/// Formats a number with a comma before every third digit.
pub fn grouped(number: u64) -> String {
    group(&number.to_string())
}

/// Formats a rate without its fraction, with commas; `-` without a rate.
pub fn rounded(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| group(&format!("{rate:.0}")))
}

fn group(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Scales a number by powers of a thousand. Returns it with the letter of its scale.
pub fn scaled(number: f64) -> (f64, &'static str) {
    for (limit, letter) in [(1e9, "G"), (1e6, "M"), (1e3, "K")] {
        if number >= limit {
            return (number / limit, letter);
        }
    }
    (number, "")
}

/// Formats a bit pattern.
pub fn hexadecimal(number: u64) -> String {
    format!("0x{number:08X}")
}

/// Formats an address in the output for programs: always 16 digits.
pub fn address(address: u64) -> String {
    format!("{address:#018x}")
}

/// Formats a number with its noun, in the plural unless the number is 1.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Formats the event select of a source for JSON. Other tools depend on this format.
pub fn select(select: u64) -> String {
    format!("{select:#010x}")
}

/// Formats a table without borders. The columns with a heading in `numbers` are aligned to the right.
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
pub fn properties(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let lines: Vec<String> = rows.iter().map(|(name, value)| format!("{name:width$}  {value}")).collect();
    lines.join("\n")
}

/// Returns the text in a field of fixed length, without control characters, which a terminal could execute.
pub fn text(bytes: &[u8]) -> String {
    let text: String =
        until_nul(bytes).iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { ' ' }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the bytes before the first zero, or all bytes.
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Formats a number of bytes with few digits.
pub fn bytes(number: u64) -> String {
    match number {
        0..10_000 => format!("{} bytes", grouped(number)),
        10_000..10_000_000 => format!("{} kB", grouped(number / 1_000)),
        _ => format!("{} MB", grouped(number / 1_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_precedes_every_third_digit() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (123_456, "123,456"),
            (1_234_567, "1,234,567"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn a_number_of_bytes_has_at_most_four_digits_below_ten_gigabytes() {
        for (number, text) in [
            (0, "0 bytes"),
            (9_999, "9,999 bytes"),
            (10_000, "10 kB"),
            (9_999_999, "9,999 kB"),
            (10_000_000, "10 MB"),
            (12_345_678_901, "12,345 MB"),
        ] {
            assert_eq!(bytes(number), text);
        }
    }

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

    #[test]
    fn a_field_of_bytes_ends_at_its_zero_and_holds_no_control_characters() {
        assert_eq!(text(b"GenuineIntel\0\0\0\0"), "GenuineIntel");
        assert_eq!(text(b"  Intel(R)  CPU \x1b[2J \0x"), "Intel(R) CPU [2J");
        assert_eq!(text(b"\0\0"), "");
        assert_eq!(text(b"AuthenticAMD"), "AuthenticAMD");
    }
}
