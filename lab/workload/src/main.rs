//! workload.exe: a program with known functions, for sampling it and for looking up its addresses in its PDB.
//!
//! It runs its three functions, prints one line of JSON, and exits when its standard input is closed:
//!
//! ```json
//! {"process":32,"thread":36,"functions":[{"name":"alpha","address":5368713216,"size":208},...]}
//! ```

#![cfg_attr(all(windows, target_env = "msvc"), no_std, no_main)]

#[cfg(all(windows, target_env = "msvc"))]
mod functions;
#[cfg(all(windows, target_env = "msvc"))]
mod program;

#[cfg(not(all(windows, target_env = "msvc")))]
fn main() {
    eprintln!("workload is a program for Windows, built for its PDB");
    std::process::exit(2);
}
