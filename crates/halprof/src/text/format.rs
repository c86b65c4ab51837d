//! Numbers and fields of records as text.

/// Formats a number with a comma before every third digit.
#[must_use]
pub fn grouped(number: u64) -> String {
    grouped_digits(&number.to_string())
}

/// Inserts a comma before every third digit, from the end.
#[must_use]
pub fn grouped_digits(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats the event select of a source for JSON. Other tools depend on this format.
#[must_use]
pub fn select(select: u64) -> String {
    format!("{select:#010x}")
}

/// Returns the text in a field of fixed length, without control characters, which a terminal could execute.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    let text: String =
        until_nul(bytes).iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { ' ' }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the bytes before the first zero, or all bytes.
#[must_use]
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Formats a number of bytes with few digits.
#[must_use]
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
    fn a_field_of_bytes_ends_at_its_zero_and_holds_no_control_characters() {
        assert_eq!(text(b"GenuineIntel\0\0\0\0"), "GenuineIntel");
        assert_eq!(text(b"  Intel(R)  CPU \x1b[2J \0x"), "Intel(R) CPU [2J");
        assert_eq!(text(b"\0\0"), "");
        assert_eq!(text(b"AuthenticAMD"), "AuthenticAMD");
    }
}
