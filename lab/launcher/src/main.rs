//! etw-launcher.exe PROGRAM ARGUMENTS...: starts an unmodified program with etw.dll, which is beside the launcher, and
//! exits with its exit code. The program has the console, the environment and the arguments that it would have without
//! the launcher, and is terminated if the launcher is.

#[cfg(windows)]
mod process;

#[cfg(windows)]
fn main() {
    match process::run() {
        Ok(code) => std::process::exit(code),
        Err(why) => {
            eprintln!("etw-launcher: {why}");
            std::process::exit(process::FAILED);
        }
    }
}

#[cfg(not(windows))]
fn main() {
    eprintln!("etw-launcher loads a library into a program of Windows");
    std::process::exit(2);
}
