//! The format of the metrics that a request accepts (RFC 9110, 12.5.1).

use hyper::HeaderMap;
use hyper::header::ACCEPT;

/// A format of the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format of Prometheus, version 0.0.4.
    Text,
}

impl Format {
    const fn media_type(self) -> [&'static str; 2] {
        match self {
            Self::OpenMetrics => ["application", "openmetrics-text"],
            Self::Text => ["text", "plain"],
        }
    }

    const fn version(self) -> &'static str {
        match self {
            Self::OpenMetrics => "1.0.0",
            Self::Text => "0.0.4",
        }
    }
}

/// What a request says about a format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Wish {
    /// How precisely the media range names the format: 1 for `*/*`, up to 4 for the type with a version.
    precision: u8,
    /// Thousandths of the quality.
    quality: u16,
}

/// Returns the better format for a request. OpenMetrics needs a better quality, or the same one and its name: programs
/// that accept everything (`*/*`), or say nothing, read the text format alone.
pub(super) fn format(headers: &HeaderMap) -> Format {
    let [open, text] = [Format::OpenMetrics, Format::Text].map(|format| wish(headers, format));
    let is_named = open.precision >= 3;
    if open.quality > text.quality || is_named && open.quality > 0 && open.quality == text.quality {
        Format::OpenMetrics
    } else {
        Format::Text
    }
}

/// Returns the most precise wish for a format; the best one of several that are equally precise.
fn wish(headers: &HeaderMap, format: Format) -> Wish {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let ranges = lines.flat_map(|line| line.split(','));
    ranges.filter_map(|range| wish_of(range, format)).max().unwrap_or_default()
}

/// Returns what a media range says about a format; `None` if it is about others, or malformed.
fn wish_of(range: &str, format: Format) -> Option<Wish> {
    let mut parts = range.split(';').map(str::trim);
    let (kind, subtype) = parts.next()?.split_once('/')?;
    let [own_kind, own_subtype] = format.media_type();
    let is_own = |text: &str, own: &str| text.eq_ignore_ascii_case(own);
    let mut wish = Wish { precision: 0, quality: 1_000 };
    wish.precision = match (kind, subtype) {
        ("*", "*") => 1,
        (kind, "*") if is_own(kind, own_kind) => 2,
        (kind, subtype) if is_own(kind, own_kind) && is_own(subtype, own_subtype) => 3,
        _ => return None,
    };
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        let value = value.trim().trim_matches('"');
        match name.trim().to_ascii_lowercase().as_str() {
            "q" => wish.quality = quality(value)?,
            "version" if value != format.version() => return None,
            "version" => wish.precision += 1,
            // The character set and the escapes of names that no family has.
            _ => {}
        }
    }
    Some(wish)
}

/// Parses a quality: 0 to 1 with up to three decimals.
fn quality(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_short = decimals.len() <= 3 && decimals.bytes().all(|byte| byte.is_ascii_digit());
    match whole {
        "1" if is_short && decimals.bytes().all(|byte| byte == b'0') => Some(1_000),
        "0" if is_short => format!("{decimals:0<3}").parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    /// The header of Prometheus 2.42, `scrape/scrape.go`.
    const PROMETHEUS_2: &str = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;\
                                q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

    fn of(accepted: &[&str]) -> Format {
        let mut headers = HeaderMap::new();
        for value in accepted {
            headers.append(ACCEPT, HeaderValue::from_str(value).unwrap());
        }
        format(&headers)
    }

    #[test]
    fn a_program_gets_the_format_that_it_prefers() {
        use Format::{OpenMetrics, Text};
        for (accepted, expected) in [
            (&[][..], Text),
            (&["*/*"], Text),
            (&["*/*;q=0.1"], Text),
            (&[PROMETHEUS_2], OpenMetrics),
            (&["application/openmetrics-text"], OpenMetrics),
            (&["Application/OpenMetrics-Text; Version=1.0.0; charset=utf-8"], OpenMetrics),
            (&["application/openmetrics-text; version=\"1.0.0\""], OpenMetrics),
            (&["application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5, text/plain;q=0.4"], OpenMetrics),
            (&["application/openmetrics-text;q=0.4,text/plain;version=0.0.4;q=0.5"], Text),
            (&["text/plain;version=0.0.4;q=0.500 , application/openmetrics-text;q=0.5"], OpenMetrics),
            (&["text/plain", "application/openmetrics-text"], OpenMetrics),
            // Another version of it, and its refusal.
            (&["application/openmetrics-text;version=0.0.1,text/plain;q=0.5"], Text),
            (&["application/openmetrics-text;version=2.0.0"], Text),
            (&["application/openmetrics-text;q=0,*/*"], Text),
            (&["application/openmetrics-text;q=0"], Text),
            // A range that names one of them more precisely decides, not the one with the better quality.
            (&["application/*;q=0.9,application/openmetrics-text;q=0.1,text/plain;q=0.5"], Text),
            (&["*/*;q=1,text/plain;q=0.2"], OpenMetrics),
            (&["application/*,text/*"], Text),
            (&["application/*,text/*;q=0.9"], OpenMetrics),
            (&["application/*"], OpenMetrics),
            // What the agent has not, and nonsense.
            (&["application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"], Text),
            (&["application/json"], Text),
            (&["application/openmetrics-text;q=2,text/plain;q=0.001"], Text),
            (&["application/openmetrics-text;q=0.0001", ";", "/", "", ",,", "\u{e9}"], Text),
            (&["text/plain;version=1.0.0;q=0.9,application/openmetrics-text;version=1.0.0;q=0.8"], OpenMetrics),
        ] {
            assert_eq!(of(accepted), expected, "{accepted:?}");
        }
    }
}
