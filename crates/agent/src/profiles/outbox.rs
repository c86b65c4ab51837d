//! Profiles that wait on the disk, in a folder of limited size.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use uuid::Uuid;

use super::{Profile, Statistics, files};

/// A waiting profile. Older ones are less. All of it is in the name of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Waiting {
    /// When it began, in nanoseconds since 1970.
    begun: u64,
    /// When it ended.
    ended: u64,
    /// Its random identifier.
    pub id: Uuid,
}

/// The profiles that wait, and the files that should be gone.
#[derive(Debug)]
pub(super) struct Outbox {
    folder: PathBuf,
    limit: u64,
    /// Profiles and the sizes of their files.
    waiting: BTreeMap<Waiting, u64>,
    /// The profile that is being sent. It is not dropped: whether the server takes it is open.
    sending: Option<Waiting>,
    /// Profiles that are done, but not deleted: on Windows, another program can have them open. If that lasts until the
    /// next start, they are sent again, with the same identifier.
    undeleted: BTreeMap<Waiting, u64>,
    statistics: Statistics,
}

impl Waiting {
    fn new(profile: &Profile) -> Self {
        Self { begun: nanoseconds(profile.begun), ended: nanoseconds(profile.ended), id: Uuid::new_v4() }
    }

    /// Returns when it began, in seconds since 1970.
    pub const fn begun(&self) -> u64 {
        Duration::from_nanos(self.begun).as_secs()
    }

    /// Returns when it ended, in seconds since 1970.
    pub const fn ended(&self) -> u64 {
        Duration::from_nanos(self.ended).as_secs()
    }

    fn name(&self) -> String {
        format!("halprof-waiting-{}-{}-{}.pb.gz", self.begun, self.ended, self.id.simple())
    }

    /// Returns the profile of a name, if it is one of [`Waiting::name`].
    fn parse(name: &str) -> Option<Self> {
        let stem = name.strip_prefix("halprof-waiting-")?.strip_suffix(".pb.gz")?;
        let mut parts = stem.splitn(3, '-');
        let (begun, ended) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let waiting = Self { begun, ended, id: Uuid::parse_str(parts.next()?).ok()? };
        (waiting.name() == name).then_some(waiting)
    }
}

impl Outbox {
    /// Opens a folder, which is created if it is not there, with the profiles that wait in it. If they are more than
    /// `limit` bytes, the oldest are dropped.
    ///
    /// # Errors
    /// The folder cannot be created or read.
    pub fn open(folder: &Path, limit: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let files = files::scan(folder)?.into_iter();
        let waiting = files.filter_map(|(name, size)| Some((Waiting::parse(&name)?, size))).collect();
        let mut outbox = Self {
            folder: folder.to_owned(),
            limit,
            waiting,
            sending: None,
            undeleted: BTreeMap::new(),
            statistics: Statistics::default(),
        };
        outbox.make_room(0)?;
        Ok(outbox)
    }

    /// Adds a profile. The oldest are dropped until there is room for it. If there is none at all, the new profile is
    /// dropped.
    ///
    /// # Errors
    /// It cannot be written, for example because the disk is full. It is counted as failed.
    pub fn put(&mut self, profile: &Profile) -> io::Result<()> {
        self.try_put(profile).inspect_err(|_| self.statistics.failed += 1)
    }

    fn try_put(&mut self, profile: &Profile) -> io::Result<()> {
        let size = profile.pprof.len() as u64;
        if !self.make_room(size)? {
            self.statistics.dropped += 1;
            return Ok(());
        }
        let waiting = Waiting::new(profile);
        files::write_new(&self.folder, &profile.pprof, [waiting.name()])?;
        self.waiting.insert(waiting, size);
        Ok(())
    }

    /// Drops the oldest profiles until there is room for `incoming` bytes. Drops none and returns false if there would
    /// still be none.
    fn make_room(&mut self, incoming: u64) -> io::Result<bool> {
        self.undeleted.retain(|waiting, _| files::remove(&self.folder.join(waiting.name())).is_err());
        let sending = self.sending.and_then(|waiting| self.waiting.get(&waiting)).copied().unwrap_or(0);
        let fixed = self.undeleted.values().sum::<u64>().saturating_add(sending);
        let Some(room) = self.limit.checked_sub(fixed).and_then(|room| room.checked_sub(incoming)) else {
            return Ok(false);
        };
        let mut droppable = self.waiting.values().sum::<u64>().saturating_sub(sending);
        // One that cannot be deleted, because another program has it open, is passed over.
        let mut result = Ok(true);
        let mut newer = Bound::Unbounded;
        while droppable > room {
            let Some((&oldest, &size)) = self.waiting.range((newer, Bound::Unbounded)).next() else { return result };
            newer = Bound::Excluded(oldest);
            if Some(oldest) == self.sending {
                continue;
            }
            match files::remove(&self.path(&oldest)) {
                Ok(()) => {
                    self.waiting.remove(&oldest);
                    self.statistics.dropped += 1;
                    droppable = droppable.saturating_sub(size);
                }
                Err(cause) => result = Err(cause),
            }
        }
        Ok(true)
    }

    /// Returns the oldest profile and marks it as being sent, until [`Outbox::keep`], [`Outbox::sent`],
    /// [`Outbox::refused`] or [`Outbox::unreadable`] follows.
    pub fn begin(&mut self) -> Option<Waiting> {
        self.sending = self.waiting.keys().next().copied();
        self.sending
    }

    /// Returns the file of a profile.
    pub fn path(&self, waiting: &Waiting) -> PathBuf {
        self.folder.join(waiting.name())
    }

    /// Keeps the profile for another attempt.
    pub const fn keep(&mut self) {
        self.sending = None;
        self.statistics.send_failures += 1;
    }

    /// Deletes the profile, which the server has taken.
    pub fn sent(&mut self) {
        self.delete();
        self.statistics.sent += 1;
    }

    /// Deletes the profile, which the server has refused for good.
    pub fn refused(&mut self) {
        self.delete();
        self.statistics.failed += 1;
        self.statistics.send_failures += 1;
    }

    /// Deletes the profile, which cannot be read.
    pub fn unreadable(&mut self, cause: ErrorKind) {
        self.delete();
        // An operator has deleted it.
        let gone = cause == ErrorKind::NotFound;
        self.statistics.dropped += u64::from(gone);
        self.statistics.failed += u64::from(!gone);
    }

    fn delete(&mut self) {
        let Some(waiting) = self.sending.take() else { return };
        let size = self.waiting.remove(&waiting).unwrap_or(0);
        if files::remove(&self.path(&waiting)).is_err() {
            self.undeleted.insert(waiting, size);
        }
    }

    /// Returns the numbers of profiles.
    pub fn statistics(&self) -> Statistics {
        let waiting = self.waiting.len() as u64;
        Statistics { waiting, waiting_size: self.waiting.values().sum(), ..self.statistics }
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    fn profile(begun: u64, size: usize) -> Profile {
        let begun = UNIX_EPOCH + Duration::from_secs(begun);
        Profile { pprof: vec![u8::try_from(size % 256).unwrap(); size], begun, ended: begun + Duration::from_secs(10) }
    }

    fn disk(folder: &Path) -> u64 {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    }

    /// Returns when each waiting profile began, in the order in which they would be sent.
    fn order(outbox: &mut Outbox) -> Vec<u64> {
        let mut order = Vec::new();
        while let Some(waiting) = outbox.begin() {
            order.push(waiting.begun());
            outbox.sent();
        }
        order
    }

    #[test]
    fn it_survives_a_restart_and_leaves_the_files_of_others() {
        let place = TempDir::new().unwrap();
        let mut outbox = Outbox::open(place.path(), 1_000).unwrap();
        for begun in [9, 1_000_000, 5] {
            outbox.put(&profile(begun, 100)).unwrap();
        }
        let others = ["halprof-waiting-1-2-3.pb.gz", "halprof-20260101T000000Z.pb.gz", "notes.tmp"];
        for other in others {
            fs::write(place.path().join(other), "x").unwrap();
        }
        fs::write(place.path().join(".halprof-abc.tmp"), "half a profile").unwrap();
        drop(outbox);
        let mut outbox = Outbox::open(place.path(), 1_000).unwrap();
        assert_eq!(outbox.statistics(), Statistics { waiting: 3, waiting_size: 300, ..Statistics::default() });
        let waiting = outbox.begin().unwrap();
        assert_eq!((waiting.begun(), waiting.ended()), (5, 15));
        assert_eq!(fs::read(outbox.path(&waiting)).unwrap(), [100; 100]);
        assert_eq!(order(&mut outbox), [5, 9, 1_000_000]);
        let mut left: Vec<_> = files::scan(place.path()).unwrap().into_iter().map(|(name, _)| name).collect();
        left.sort();
        assert_eq!(left, ["halprof-20260101T000000Z.pb.gz", "halprof-waiting-1-2-3.pb.gz", "notes.tmp"]);
        assert!(!place.path().join(".halprof-abc.tmp").exists());
    }

    #[test]
    fn a_smaller_limit_drops_the_oldest_at_the_start() {
        let place = TempDir::new().unwrap();
        let mut outbox = Outbox::open(place.path(), 1_000).unwrap();
        for begun in 1..=5 {
            outbox.put(&profile(begun, 100)).unwrap();
        }
        let mut outbox = Outbox::open(place.path(), 250).unwrap();
        assert_eq!(outbox.statistics().dropped, 3);
        assert_eq!(order(&mut outbox), [4, 5]);
    }

    #[test]
    fn the_profile_that_is_being_sent_is_not_dropped() {
        let place = TempDir::new().unwrap();
        let mut outbox = Outbox::open(place.path(), 250).unwrap();
        outbox.put(&profile(1, 100)).unwrap();
        outbox.put(&profile(2, 100)).unwrap();
        let sending = outbox.begin().unwrap();
        outbox.put(&profile(3, 100)).unwrap();
        assert!(outbox.path(&sending).exists());
        outbox.put(&profile(4, 200)).unwrap();
        assert_eq!(outbox.statistics().dropped, 2, "2 made room for 3, and 4 would find none");
        outbox.keep();
        assert_eq!(order(&mut outbox), [1, 3]);
    }

    #[test]
    fn a_folder_that_vanished_is_an_error_until_it_is_back() {
        let place = TempDir::new().unwrap();
        let folder = place.path().join("outbox");
        let mut outbox = Outbox::open(&folder, 1_000).unwrap();
        outbox.put(&profile(1, 100)).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert!(outbox.put(&profile(2, 100)).is_err());
        fs::create_dir(&folder).unwrap();
        outbox.put(&profile(3, 100)).unwrap();
        let gone = outbox.begin().unwrap();
        outbox.unreadable(fs::read(outbox.path(&gone)).unwrap_err().kind());
        let expected = Statistics { failed: 1, dropped: 1, waiting: 1, waiting_size: 100, ..Statistics::default() };
        assert_eq!(outbox.statistics(), expected);
        assert_eq!(order(&mut outbox), [3]);
    }

    #[test]
    fn a_file_that_cannot_be_deleted_is_passed_over_and_takes_room_until_it_can() {
        let place = TempDir::new().unwrap();
        let mut outbox = Outbox::open(place.path(), 250).unwrap();
        outbox.put(&profile(1, 100)).unwrap();
        outbox.put(&profile(2, 100)).unwrap();
        // A folder in its place cannot be deleted as a file.
        let first = outbox.path(outbox.waiting.keys().next().unwrap());
        fs::remove_file(&first).unwrap();
        fs::create_dir(&first).unwrap();
        outbox.put(&profile(3, 100)).unwrap();
        assert_eq!(outbox.begin().unwrap().begun(), 1, "2 was dropped instead");
        outbox.sent();
        outbox.put(&profile(4, 100)).unwrap();
        assert_eq!((outbox.statistics().dropped, outbox.statistics().waiting), (2, 1));
        fs::remove_dir(&first).unwrap();
        outbox.put(&profile(5, 100)).unwrap();
        assert_eq!(order(&mut outbox), [4, 5]);
        assert_eq!(outbox.statistics().dropped, 2);
    }

    /// What can happen to an outbox.
    #[derive(Debug, Clone)]
    enum Step {
        Put(usize),
        Begin,
        Keep,
        Sent,
        Refused,
        Restart,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0_usize..600).prop_map(Step::Put),
            3 => Just(Step::Begin),
            1 => Just(Step::Keep),
            1 => Just(Step::Sent),
            1 => Just(Step::Refused),
            1 => Just(Step::Restart),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_disk_stays_within_the_limit_and_every_profile_is_accounted_for(
            steps in proptest::collection::vec(step(), 1..60),
        ) {
            let place = TempDir::new().unwrap();
            let mut outbox = Outbox::open(place.path(), 1_000).unwrap();
            let (mut put, mut ended) = (0, 0);
            for (begun, step) in (1..).zip(steps) {
                let sending = outbox.sending.is_some();
                match step {
                    Step::Put(size) => {
                        outbox.put(&profile(begun, size)).unwrap();
                        put += 1;
                    }
                    Step::Begin if !sending => {
                        outbox.begin();
                    }
                    Step::Keep if sending => outbox.keep(),
                    Step::Sent if sending => outbox.sent(),
                    Step::Refused if sending => outbox.refused(),
                    Step::Restart => {
                        let Statistics { sent, dropped, failed, waiting, .. } = outbox.statistics();
                        ended += sent + dropped + failed;
                        outbox = Outbox::open(place.path(), 1_000).unwrap();
                        prop_assert_eq!(outbox.statistics().waiting, waiting);
                    }
                    _ => {}
                }
                let Statistics { sent, dropped, failed, waiting, waiting_size, .. } = outbox.statistics();
                prop_assert_eq!(ended + sent + dropped + failed + waiting, put);
                prop_assert_eq!(disk(place.path()), waiting_size);
                prop_assert!(waiting_size <= 1_000);
            }
        }
    }
}
