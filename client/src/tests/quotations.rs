//! Checks that docs/windows.md quotes the messages that the client prints.

use std::io;

use super::every_error::{self, refusals};
use counts::record_counts::RecordCounts;
use user_error::system_error::service_error;

const DOCUMENT: &str = include_str!("../../../docs/windows.md");

/// Words in italics that are no messages: where an output comes from, and how a claim was checked.
const NO_MESSAGES: [&str; 6] = ["(seen", "(not seen", "Binary", "Stand-in", "Source", "Untested"];

/// Returns the texts in italics outside of code blocks, with line ends as spaces.
fn quotations(document: &str) -> Vec<String> {
    let prose: String = document.split("```").step_by(2).collect::<Vec<_>>().join(" ").replace("**", "");
    let italics = prose.split('*').skip(1).step_by(2).map(one_line);
    italics.filter(|text| !NO_MESSAGES.iter().any(|other| text.starts_with(other))).collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns every message that the document may quote.
fn messages() -> Vec<String> {
    let stops = RecordCounts { silences: 1, disconnections: 1, ..RecordCounts::default() };
    let reports = refusals::reports().into_iter().chain(every_error::reports());
    let denied = service_error("create", io::Error::from_raw_os_error(5)).report();
    reports.chain(stops.warnings()).chain([denied]).map(|message| one_line(&message)).collect()
}

#[test]
fn every_message_in_italics_is_one_of_the_client() {
    let (messages, quotations) = (messages(), quotations(DOCUMENT));
    let unknown: Vec<_> =
        quotations.iter().filter(|quotation| !messages.iter().any(|message| message.contains(*quotation))).collect();
    assert!(unknown.is_empty(), "the client does not print: {unknown:#?}");
    assert!(quotations.len() > 15, "quotations are not found any more: {quotations:?}");
}

#[test]
fn each_row_of_windows_codes_has_the_message_of_that_code() {
    let mut codes = 0;
    for line in DOCUMENT.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, numbers, message, ..] = cells[..] else { continue };
        let Ok(numbers) = numbers.split(", ").map(str::parse).collect::<Result<Vec<i32>, _>>() else { continue };
        let Some(quoted) = message.strip_prefix('*').and_then(|rest| rest.strip_suffix('*')) else { continue };
        for code in numbers {
            let action = if code == 5 { "create" } else { "start" };
            let error = service_error(action, io::Error::from_raw_os_error(code));
            assert_eq!(error.to_string(), quoted, "{code}");
            codes += 1;
        }
    }
    assert_eq!(codes, 9);
}

#[test]
fn a_quotation_over_two_lines_and_beside_code_is_found() {
    let document = "a **bold** word, *the counters\n  are gone* (`*`)\n```\n*code*\n```\n- *(seen)* and *so on*";
    assert_eq!(quotations(&document.replace("(`*`)", "")), ["the counters are gone", "so on"]);
}
