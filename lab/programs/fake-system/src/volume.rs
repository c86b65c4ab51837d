//! A stand-in for the protection of files: real files of a test, with descriptors that the test sets.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use halprof::protected::{Found, Sid, Volume};

use system::VolumeUser;
use user_error::win32;

/// `O:BAD:(A;;FA;;;BA)`, self-relative.
const PROTECTED: [u8; 68] = descriptor([32, 544]);
/// The same of the account `S-1-5-21-1001`.
const OF_USER: [u8; 68] = descriptor([21, 1001]);

const fn descriptor(owner: [u32; 2]) -> [u8; 68] {
    let mut bytes = [0; 68];
    let [a, b] = owner;
    let words = [
        0x8004_0001,
        20,
        0,
        0,
        36,
        0x201,
        0x0500_0000,
        a,
        b,
        0x20_0002,
        1,
        0x18_0000,
        0x1F_01FF,
        0x201,
        0x0500_0000,
        a,
        b,
    ];
    let mut at = 0;
    while at < words.len() {
        let word: [u8; 4] = u32::to_le_bytes(words[at]);
        let mut byte = 0;
        while byte < 4 {
            bytes[4 * at + byte] = word[byte];
            byte += 1;
        }
        at += 1;
    }
    bytes
}

/// What a test sets.
#[derive(Debug, Default)]
pub struct VolumeState {
    /// What belongs to an ordinary user.
    pub of_user: BTreeSet<PathBuf>,
    /// What is a link.
    pub links: BTreeSet<PathBuf>,
    /// Programs that run: they can be renamed, but not replaced or removed.
    pub running: BTreeMap<PathBuf, Vec<u8>>,
    /// Whether the process is not elevated.
    pub is_limited: bool,
    /// Number of the change that fails, counted from 0.
    pub failing: Option<usize>,
    changes: usize,
}

/// The file system.
#[derive(Debug, Clone, Default)]
pub struct FakeVolume {
    state: Arc<Mutex<VolumeState>>,
    /// Whether it is that of a service, which trusts its own account, here the user.
    is_of_service: bool,
}

impl FakeVolume {
    /// Returns what the test sets.
    pub fn state(&self) -> MutexGuard<'_, VolumeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the same file system for a program of an administrator, or for a service.
    pub fn used_by(&self, user: VolumeUser) -> Self {
        Self { is_of_service: user == VolumeUser::Service, ..self.clone() }
    }

    /// Returns how many changes there were.
    pub fn changes(&self) -> usize {
        self.state().changes
    }

    fn change(&self) -> io::Result<()> {
        let mut state = self.state();
        state.changes += 1;
        if state.failing == Some(state.changes - 1) { Err(io::Error::other("the disk is broken")) } else { Ok(()) }
    }

    fn create(&self) -> io::Result<()> {
        self.change()?;
        if self.state().is_limited { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(()) }
    }

    fn check_unused(&self, path: &Path) -> io::Result<()> {
        let runs =
            self.state().running.get(path).is_some_and(|program| fs::read(path).is_ok_and(|file| file == *program));
        if runs { Err(io::Error::from_raw_os_error(win32::ERROR_ACCESS_DENIED)) } else { Ok(()) }
    }
}

impl Volume for FakeVolume {
    fn own(&self) -> Option<Sid> {
        Sid::parse(&OF_USER[20..]).filter(|_| self.is_of_service)
    }

    fn look(&self, path: &Path) -> io::Result<Found> {
        let is_folder = fs::metadata(path)?.is_dir();
        let state = self.state();
        let descriptor = if state.of_user.contains(path) { OF_USER } else { PROTECTED };
        Ok(Found { is_link: state.links.contains(path), is_folder, descriptor: descriptor.to_vec() })
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.create()?;
        fs::create_dir(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.change()?;
        fs::remove_dir(path)
    }

    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let bytes = fs::read(path)?;
        if bytes.len() as u64 > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
    }

    fn create(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.create()?;
        OpenOptions::new().write(true).create_new(true).open(path)?.write_all(content)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change()?;
        self.check_unused(to)?;
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if !path.exists() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change()?;
        self.check_unused(path)?;
        fs::remove_file(path)
    }
}
