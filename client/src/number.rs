//! Numbers as users type them: `100k`, `2M`.

/// Parses a number that can end in k (thousands), M (millions) or G (thousands of millions), in any case.
pub fn parse(text: &str) -> Result<u32, String> {
    let (digits, factor) = match text.char_indices().next_back() {
        Some((end, letter)) if letter.is_ascii_alphabetic() => {
            let factor = match letter.to_ascii_lowercase() {
                'k' => 1_000,
                'm' => 1_000_000,
                'g' => 1_000_000_000,
                _ => return Err(no_number(text)),
            };
            (text.get(..end).unwrap_or_default(), factor)
        }
        _ => (text, 1),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(no_number(text));
    }
    let number = digits.parse::<u32>().ok().and_then(|number| number.checked_mul(factor));
    number.ok_or_else(|| format!("{text} is more than {}", u32::MAX))
}

fn no_number(text: &str) -> String {
    format!("\"{text}\" is not a number; write 100000 or 100k")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_multiplies_by_its_power_of_a_thousand() {
        for (text, number) in [
            ("0", 0),
            ("65536", 65_536),
            ("100k", 100_000),
            ("100K", 100_000),
            ("2M", 2_000_000),
            ("2m", 2_000_000),
            ("4G", 4_000_000_000),
            ("4294967295", u32::MAX),
        ] {
            assert_eq!(parse(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn an_invalid_or_too_large_number_is_rejected() {
        for text in ["", "k", "1x", "1kk", "-1", "+1", "1.5k", " 1", "1 k", "0x10", "\u{e9}", "1\u{e9}"] {
            assert_eq!(parse(text), Err(format!("\"{text}\" is not a number; write 100000 or 100k")));
        }
        for text in ["5G", "4294967296", "4294968k", "99999999999"] {
            assert_eq!(parse(text), Err(format!("{text} is more than 4294967295")));
        }
    }
}
