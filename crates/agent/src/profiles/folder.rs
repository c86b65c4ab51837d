//! A folder of profiles, from which the oldest are deleted.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Profile, Statistics, files};
use crate::config;

/// Profiles of the same second that can be told apart.
const SAME_SECOND_LIMIT: u32 = 1_000;

/// Seconds to the end of the year 9999, beyond which a name would have another form.
const LAST_SECOND: u64 = 253_402_300_799;

/// A folder of profiles.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    keep: Duration,
    limit: u64,
    statistics: Statistics,
}

/// When a profile began in seconds since 1970, and its number among those of the same second. Older ones are less.
type Key = (u64, u32);

impl Folder {
    /// Opens a folder, which is created if it is not there.
    ///
    /// # Errors
    /// It cannot be created or read.
    pub fn open(config: &config::Folder) -> io::Result<Self> {
        fs::create_dir_all(&config.path)?;
        files::scan(&config.path)?;
        let limit = config.limit_mib.saturating_mul(1_024 * 1_024);
        Ok(Self { path: config.path.clone(), keep: config.keep, limit, statistics: Statistics::default() })
    }

    /// Writes a profile, after those are deleted that are too old or leave no room for it.
    ///
    /// # Errors
    /// The profile cannot be written, and is counted as failed; or it is written, but an old one cannot be deleted.
    pub fn write(&mut self, profile: &Profile) -> io::Result<PathBuf> {
        let begun = seconds(profile.begun);
        let expired = self.expire(SystemTime::now(), profile.pprof.len() as u64);
        let names = (0..SAME_SECOND_LIMIT).map(|number| name((begun, number)));
        match files::write_new(&self.path, &profile.pprof, names) {
            Ok(name) => {
                self.statistics.written += 1;
                expired.map(|()| self.path.join(name))
            }
            Err(cause) => {
                self.statistics.failed += 1;
                Err(cause)
            }
        }
    }

    /// Deletes the profiles that are too old at a time, and the oldest until there is room for `incoming` bytes. One
    /// that cannot be deleted, because another program has it open, is passed over.
    fn expire(&mut self, now: SystemTime, incoming: u64) -> io::Result<()> {
        let keys = files::scan(&self.path)?.into_iter().filter_map(|(name, size)| Some((parse(&name)?, size)));
        let profiles: BTreeMap<Key, u64> = keys.collect();
        let mut size = profiles.values().fold(incoming, |sum, size| sum.saturating_add(*size));
        let mut result = Ok(());
        for (key, own) in profiles {
            let age = seconds(now).saturating_sub(key.0);
            if size <= self.limit && age < self.keep.as_secs() {
                break;
            }
            match files::remove(&self.path.join(name(key))) {
                Ok(()) => {
                    self.statistics.expired += 1;
                    size = size.saturating_sub(own);
                }
                Err(cause) => result = Err(cause),
            }
        }
        result
    }

    /// Returns the numbers of profiles.
    #[must_use]
    pub const fn statistics(&self) -> Statistics {
        self.statistics
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().min(LAST_SECOND)
}

/// Returns the name of a profile, such as `halprof-20261126T133358Z.pb.gz`, or `halprof-20261126T133358Z-1.pb.gz` for
/// the second one of that second.
fn name((begun, number): Key) -> String {
    let time = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(begun)).to_string();
    let time: String = time.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    match number {
        0 => format!("halprof-{time}.pb.gz"),
        _ => format!("halprof-{time}-{number}.pb.gz"),
    }
}

/// Returns the key of a name, if it is one of [`name`].
fn parse(text: &str) -> Option<Key> {
    let stem = text.strip_prefix("halprof-")?.strip_suffix(".pb.gz")?;
    let (time, number) = stem.split_once('-').unwrap_or((stem, "0"));
    let part = |range| time.get(range);
    let (year, month, day) = (part(0..4)?, part(4..6)?, part(6..8)?);
    let (hour, minute, second) = (part(9..11)?, part(11..13)?, part(13..15)?);
    let time = humantime::parse_rfc3339(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z")).ok()?;
    let key = (seconds(time), number.parse().ok()?);
    (name(key) == text).then_some(key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    fn folder(keep: Duration, limit: u64) -> (TempDir, Folder) {
        let place = TempDir::new().unwrap();
        let config = config::Folder { path: place.path().join("profiles"), keep, limit_mib: 0 };
        let folder = Folder { limit, ..Folder::open(&config).unwrap() };
        (place, folder)
    }

    fn profile(begun: SystemTime, size: usize) -> Profile {
        Profile { pprof: vec![7; size], begun, ended: begun + Duration::from_secs(10) }
    }

    fn names(folder: &Folder) -> Vec<String> {
        let mut names: Vec<_> = files::scan(&folder.path).unwrap().into_iter().map(|(name, _)| name).collect();
        names.sort();
        names
    }

    proptest! {
        #[test]
        fn names_keep_keys_and_their_order(left in (0..=LAST_SECOND, 0_u32..), right in (0..=LAST_SECOND, 0_u32..)) {
            prop_assert_eq!(parse(&name(left)), Some(left));
            prop_assert_eq!(parse(&name(right)), Some(right));
            prop_assert_eq!(name(left) == name(right), left == right);
        }

        #[test]
        fn other_names_are_not_taken(text in "halprof-[0-9]{8}T[0-9]{6}Z(-[0-9]{1,2})?(.pb.gz)?") {
            prop_assert!(parse(&text).is_none_or(|key| name(key) == text));
        }
    }

    #[test]
    fn files_of_others_stay() {
        let (_place, mut folder) = folder(Duration::ZERO, 0);
        let others = [
            "halprof-20260101T000000Z-0.pb.gz",
            "halprof-20260101T000000Z-copy.pb.gz",
            "halprof-20260101T000000Z.pb",
            "halprof-20261301T000000Z.pb.gz",
            "halprof-waiting-1-2-3.pb.gz",
            "notes.txt",
        ];
        for other in others {
            fs::write(folder.path.join(other), "x").unwrap();
        }
        folder.expire(SystemTime::now(), 1).unwrap();
        assert_eq!(names(&folder), others);
        assert_eq!(folder.statistics().expired, 0);
    }

    #[test]
    fn profiles_of_the_same_second_have_names_of_their_own() {
        let (_place, mut folder) = folder(Duration::from_secs(u64::MAX), u64::MAX);
        let begun = UNIX_EPOCH + Duration::from_secs(1_764_164_038);
        for _ in 0..3 {
            let path = folder.write(&profile(begun, 10)).unwrap();
            assert_eq!(fs::read(path).unwrap(), [7; 10]);
        }
        let expected = ["20251126T133358Z-1", "20251126T133358Z-2", "20251126T133358Z"];
        assert_eq!(names(&folder), expected.map(|time| format!("halprof-{time}.pb.gz")));
        assert_eq!(folder.statistics(), Statistics { written: 3, ..Statistics::default() });
    }

    #[test]
    fn old_profiles_are_deleted_by_age() {
        let (_place, mut folder) = folder(Duration::from_secs(100), u64::MAX);
        let now = SystemTime::now();
        for age in [300, 200, 50] {
            folder.write(&profile(now - Duration::from_secs(age), 10)).unwrap();
        }
        folder.write(&profile(now, 10)).unwrap();
        assert_eq!(names(&folder).len(), 2);
        assert_eq!(folder.statistics(), Statistics { written: 4, expired: 2, ..Statistics::default() });
    }

    #[test]
    fn the_oldest_are_deleted_by_size_and_the_newest_stays() {
        let (_place, mut folder) = folder(Duration::from_hours(1), 100);
        let now = SystemTime::now();
        let mut written = Vec::new();
        for (age, size) in [(50, 40), (40, 40), (30, 40), (20, 60)] {
            written.push(folder.write(&profile(now - Duration::from_secs(age), size)).unwrap());
            let size: u64 = files::scan(&folder.path).unwrap().iter().map(|(_, size)| size).sum();
            assert!(size <= 100, "{size}");
        }
        assert_eq!(written.iter().map(|path| path.exists()).collect::<Vec<_>>(), [false, false, true, true]);
        let large = folder.write(&profile(now, 500)).unwrap();
        assert!(large.exists(), "a profile beyond the limit replaces all");
        assert_eq!(names(&folder).len(), 1);
        assert_eq!(folder.statistics(), Statistics { written: 5, expired: 4, ..Statistics::default() });
    }

    #[test]
    fn a_folder_that_vanished_is_an_error_and_is_counted() {
        let (place, mut folder) = folder(Duration::from_hours(1), 100);
        fs::remove_dir_all(place.path()).unwrap();
        assert!(folder.write(&profile(SystemTime::now(), 10)).is_err());
        assert_eq!(folder.statistics(), Statistics { failed: 1, ..Statistics::default() });
    }

    #[test]
    fn what_a_crash_left_is_removed() {
        let (_place, folder) = folder(Duration::from_hours(1), 100);
        fs::write(folder.path.join(".halprof-abc.tmp"), "half").unwrap();
        Folder::open(&config::Folder { path: folder.path.clone(), keep: folder.keep, limit_mib: 1 }).unwrap();
        assert_eq!(names(&folder), [""; 0]);
    }
}
