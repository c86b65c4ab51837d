//! The Wine prefix: disk and registry of the Windows environment that the driver runs in.

use std::{
    fs::{self, File},
    path::Path,
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use wine_prefix::Prefix;

use crate::{artifacts::PRNG, files, run, workspace::Workspace};

/// Increased when prefixes of an earlier version can no longer be used.
const PREFIX_VERSION: u32 = 3;

/// Registry values: the options of the boot loader (test signing is on, because the driver is signed for tests), and
/// the milliseconds after which the service manager gives up a driver that does not answer: 10,000 are too few on a
/// machine that is busy with something else.
const CONTROL: &str = "HKLM\\System\\CurrentControlSet\\Control";
const VALUES: [[&str; 2]; 2] = [["SystemStartOptions", "TESTSIGNING"], ["ServicesPipeTimeout", "120000"]];

/// Time limit for creating a prefix, which takes 2 to 5 seconds on an idle machine.
const BOOT_LIMIT: Duration = Duration::from_mins(3);

/// Bytes of a prefix: Wine copies all its DLLs. On a full disk it leaves some out, and says only later that
/// kernel32.dll is missing.
const PREFIX_BYTES: u64 = 800_000_000;

/// Gives a prefix the DLL that Wine lacks. Creates the prefix if it is missing or of another version.
pub fn ensure(workspace: &Workspace, prefix: &Path) -> Result<()> {
    let stamp = prefix.join("halprof-stamp");
    let wanted = format!("{PREFIX_VERSION} {}", run::output(Prefix::new(prefix).wine().arg("--version"))?);
    if !fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        remove(prefix)?;
        files::make_folder(prefix)?;
        let free = run::output(Command::new("df").args(["--output=avail", "--block-size=1"]).arg(prefix))?;
        ensure_room(&free).with_context(|| format!("cannot make {}", prefix.display()))?;
        let made = Prefix::new(prefix);
        let log = workspace.log("wineserver");
        log.parent().map_or(Ok(()), files::make_folder)?;
        let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let started = made.start_server(&output).context("cannot start wineserver")?;
        ensure!(started.success(), "wineserver failed ({started}): {}", log.display());
        let boot = &mut made.wine();
        run::logged("Wine prefix", boot.args(["wineboot", "-i"]), &workspace.log("wineboot"), BOOT_LIMIT)?;
        for [name, value] in VALUES {
            run::quiet(made.wine().args(["reg", "add", CONTROL, "/v", name, "/d", value, "/t", "REG_SZ", "/f"]))?;
        }
        // A service created while this first server shuts down would be lost.
        stop_server(prefix)?;
        files::write(&stamp, wanted)?;
    }
    let system = prefix.join("drive_c/windows/system32");
    files::copy_if_different(&workspace.artifacts().join(PRNG), &system.join(PRNG))
}

/// Stops the Wine of every prefix and removes target/lab.
pub fn clean_lab(workspace: &Workspace) -> Result<()> {
    let lab = workspace.lab();
    if !lab.exists() {
        println!("Nothing to remove: {} does not exist", lab.display());
        return Ok(());
    }
    let prefixes = workspace.prefixes();
    if prefixes.is_dir() {
        for prefix in fs::read_dir(&prefixes).with_context(|| format!("cannot read {}", prefixes.display()))? {
            remove(&prefix?.path())?;
        }
    }
    files::remove_folder(&lab)?;
    println!("Removed {}", lab.display());
    Ok(())
}

/// Fails if a prefix does not fit into what `df --output=avail` says is free.
fn ensure_room(df: &str) -> Result<()> {
    let free = df.lines().nth(1).and_then(|bytes| bytes.trim().parse::<u64>().ok());
    let free = free.with_context(|| format!("df printed no number of bytes: {df}"))?;
    ensure!(
        free >= PREFIX_BYTES,
        "{} MB of the disk are free, and Wine needs {} MB: remove what is not needed, such as target folders",
        free / 1_000_000,
        PREFIX_BYTES / 1_000_000
    );
    Ok(())
}

fn remove(prefix: &Path) -> Result<()> {
    if !prefix.exists() {
        return Ok(());
    }
    if wine_prefix::is_installed() {
        stop_server(prefix)?;
    }
    files::remove_folder(prefix)
}

/// Ends every process of the prefix and waits for the last one to exit.
pub fn stop_server(prefix: &Path) -> Result<()> {
    Prefix::new(prefix).stop().context("cannot start wineserver")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_made_only_where_it_fits() {
        let refusal = |free: &str| ensure_room(free).unwrap_err().to_string();
        assert!(ensure_room("     Avail\n800000000\n").is_ok());
        assert!(refusal("Avail\n799999999\n").starts_with("799 MB of the disk are free, and Wine needs 800 MB"));
        assert!(refusal("Avail\n-\n").starts_with("df printed no number"));
    }
}
