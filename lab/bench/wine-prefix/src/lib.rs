//! A Wine prefix: the disk and the registry of one Windows environment, and the commands that run in it.

#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod patience;

#[cfg(not(target_os = "linux"))]
mod patience {
    pub fn never_kill() -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into()) // Wine's server does not run here
    }
}

use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    thread,
};

/// The library with which threads end. The C library loads it when the first thread ends, which takes long under its
/// lock, and a process that ends at that moment never gets the lock. A library that is there already is only found.
const UNWINDER: &str = "libgcc_s.so.1";

/// Wine's loader, where Debian installs it.
const WINE: &str = "/usr/lib/wine/wine64";
/// Wine's server.
const SERVER: &str = "/usr/lib/wine/wineserver64";

/// Returns whether Wine is where Debian installs it.
#[must_use]
pub fn is_installed() -> bool {
    Path::new(WINE).is_file() && Path::new(SERVER).is_file()
}

/// The folder of a prefix, and the debug output of its programs.
#[derive(Debug, Clone)]
pub struct Prefix {
    folder: PathBuf,
    /// WINEDEBUG.
    debug: &'static str,
}

impl Prefix {
    /// Returns a prefix without debug output. The folder need not exist.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), debug: "-all" }
    }

    /// Returns the prefix with the output of drivers (DbgPrint), on standard error.
    #[must_use]
    pub fn with_driver_output(self) -> Self {
        Self { debug: "-all,+debugstr", ..self }
    }

    /// Returns the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of a file on drive C:. `path` is relative to the root and uses `/`.
    #[must_use]
    pub fn drive_c(&self, path: &str) -> PathBuf {
        self.folder.join("drive_c").join(path)
    }

    /// Returns a command that runs Wine in the prefix.
    #[must_use]
    pub fn wine(&self) -> Command {
        self.command(WINE)
    }

    /// Starts Wine's server in the prefix. It stays, and with it the drivers, until [`stop`](Self::stop), and lets each
    /// program end by itself. It and all services inherit the output, which has to be a file: a pipe to them would
    /// never be closed.
    ///
    /// # Errors
    /// The server cannot be started, or the kernel allows no filter of system calls.
    pub fn start_server(&self, output: &File) -> io::Result<ExitStatus> {
        let mut server = self.command(SERVER);
        server.arg("-p").stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
        // The thread ends with its filter.
        let start = move || patience::never_kill().and_then(|()| server.status());
        thread::spawn(start)
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that starts the server panicked")))
    }

    /// Reserves the prefix for the caller until the returned file is dropped or the caller's process ends.
    ///
    /// # Errors
    /// Another process has reserved it ([`io::ErrorKind::WouldBlock`]), or the folder does not exist.
    pub fn reserve(&self) -> io::Result<File> {
        let file = File::create(self.folder.join("halprof-in-use"))?;
        file.try_lock().map_err(|error| match error {
            TryLockError::Error(error) => error,
            TryLockError::WouldBlock => io::Error::new(
                io::ErrorKind::WouldBlock,
                "another run of the test bench uses it; wait until that ends, or set HALPROF_PREFIX to another folder",
            ),
        })?;
        Ok(file)
    }

    /// Ends every process of the prefix and waits for the last one to exit.
    ///
    /// # Errors
    /// The server cannot be started.
    pub fn stop(&self) -> io::Result<()> {
        for option in ["-k", "-w"] {
            // The exit code does not matter: it is an error if no server runs.
            let mut server = self.command(SERVER);
            server.arg(option).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        }
        Ok(())
    }

    /// Returns a command that runs without a display and does not prompt to install Mono or Gecko.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("WINEPREFIX", &self.folder)
            .env("WINEDEBUG", self.debug)
            .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
            .env("LD_PRELOAD", UNWINDER)
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY");
        command
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A child that another test starts has the lock of the prefix too until it runs its program.
    pub static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    #[test]
    fn only_one_run_at_a_time_has_the_prefix() {
        let _alone = ONE_AT_A_TIME.lock().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let prefix = Prefix::new(folder.path());
        let first = prefix.reserve().unwrap();
        assert_eq!(prefix.reserve().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(first);
        drop(prefix.reserve().unwrap());
    }
}
