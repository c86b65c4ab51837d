//! The log of the service, which has no console.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Size at which a log is kept as the old one, and a new one begins.
const LIMIT: u64 = 1 << 20;

/// A log of at most twice [`LIMIT`].
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
}

impl Log {
    /// Writes to a file.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Writes a line with the time in front.
    ///
    /// # Errors
    /// Of the system.
    pub fn write(&self, line: &str) -> io::Result<()> {
        if fs::metadata(&self.path).is_ok_and(|metadata| metadata.len() >= LIMIT) {
            fs::rename(&self.path, old(&self.path))?;
        }
        let mut file: File = OpenOptions::new().append(true).create(true).open(&self.path)?;
        writeln!(file, "{} {line}", humantime::format_rfc3339_seconds(SystemTime::now()))
    }
}

fn old(path: &Path) -> PathBuf {
    path.with_extension("log.old")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_a_limit_and_one_predecessor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.log");
        let log = Log::new(path.clone());
        log.write("begun").unwrap();
        assert!(fs::read_to_string(&path).unwrap().ends_with("Z begun\n"));
        fs::write(&path, vec![b'x'; usize::try_from(LIMIT).unwrap()]).unwrap();
        log.write("again").unwrap();
        log.write("and again").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
        assert_eq!(fs::metadata(old(&path)).unwrap().len(), LIMIT);
    }
}
