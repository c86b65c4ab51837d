//! launcher.exe PROGRAM ARGUMENTS...: starts an unmodified program with stand-ins for libraries of Windows, which are
//! beside the launcher, and exits with its exit code. The environment says which: etw.dll if it has a
//! [`TRACE_SCRIPT`](bench_protocol::TRACE_SCRIPT), thread-profiling.dll if it has a
//! [`THREAD_SCRIPT`](bench_protocol::THREAD_SCRIPT), processor-identity.dll if it has a
//! [`PROCESSOR_IDENTITY`](bench_protocol::PROCESSOR_IDENTITY). The program has the console, the environment and the
//! arguments that it would have without the launcher, and is terminated if the launcher is.

#[cfg(windows)]
mod process;

#[cfg(windows)]
fn main() {
    match process::run() {
        Ok(code) => std::process::exit(code),
        Err(why) => {
            eprintln!("launcher: {why}");
            std::process::exit(process::FAILED);
        }
    }
}

#[cfg(not(windows))]
fn main() {
    eprintln!("launcher loads libraries into a program of Windows");
    std::process::exit(2);
}
