//! halprof.inf: its date and version, and the rules for drivers without a device.

use std::time::SystemTime;

use anyhow::{Context, Result, ensure};

/// The file in the repository. Its DriverVer is `*` instead of date and version, as in the WDK's .inx files.
pub const TEMPLATE: &str = include_str!("../../../inf/halprof.inf");

/// The line of the template that [`stamp`] completes.
const PLACEHOLDER: &str = "DriverVer   = *";

/// Returns the template with date and version filled in and with CR LF line ends.
pub fn stamp(template: &str, now: SystemTime, version: &str) -> Result<String> {
    ensure!(template.matches(PLACEHOLDER).count() == 1, "halprof.inf does not contain `{PLACEHOLDER}` exactly once");
    let date = humantime::format_rfc3339(now).to_string();
    let (year, rest) = date.split_once('-').context("invalid date")?;
    let (month, day) = rest.split_once('T').and_then(|(date, _)| date.split_once('-')).context("invalid date")?;
    let numbers = version.split(['-', '+']).next().unwrap_or(version);
    let stamped = template.replace(PLACEHOLDER, &format!("DriverVer   = {month}/{day}/{year},{numbers}.0"));
    Ok(stamped.replace("\r\n", "\n").replace('\n', "\r\n"))
}

#[cfg(test)]
mod rules;
#[cfg(test)]
mod sddl;
#[cfg(test)]
mod text;

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_stamp_contains_the_date_and_the_version() {
        // 2026-11-21, 23:59:59
        let now = UNIX_EPOCH + Duration::from_secs(1_795_305_599);
        for (version, wanted) in [("0.1.0", "0.1.0.0"), ("2.13.4-rc.1", "2.13.4.0"), ("1.2.3+build", "1.2.3.0")] {
            let stamped = stamp("[Version]\nDriverVer   = *\n", now, version).unwrap();
            assert_eq!(stamped, format!("[Version]\r\nDriverVer   = 11/21/2026,{wanted}\r\n"));
        }
    }

    #[test]
    fn a_template_without_exactly_one_placeholder_is_an_error() {
        for template in ["", "DriverVer   = 01/01/2026,1.0.0.0\n", "DriverVer   = *\nDriverVer   = *\n"] {
            assert!(stamp(template, UNIX_EPOCH, "1.0.0").is_err(), "{template:?}");
        }
    }
}
