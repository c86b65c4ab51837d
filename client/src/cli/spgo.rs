//! The command line of `spgo`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;

use super::record::file;

/// Text after the options in `--help`.
pub const HELP: &str = "\
Records COMMAND with the last branches of user mode (LBR) at every so many taken
branches, and makes a profile of its program for a compiler: FILE.rec has the
recording, FILE.txt the branches of the program, and FILE is the profile that
llvm-profgen makes of them, if it is found. Every step is read back: branches
that the image does not have, and a profile without functions, are errors.

llvm-profgen reads lines from DWARF in the image, not from a PDB. Build with
  clang-cl:  /clang:-gdwarf /clang:-fdebug-info-for-profiling, and link with
             lld-link /debug:dwarf
  rustc:     -g -Zdebug-info-for-profiling, for x86_64-pc-windows-gnu
Then build again with FILE; .\\client spgo prints the options. Microsoft's compiler
reads only what its own tools make (SPGO: xperf, SPTAggregate, SPDConvert).

EXAMPLES
  .\\client spgo -- app.exe --option
  .\\client spgo -o app.prof --module engine.dll -- app.exe
  .\\client spgo --recording app.rec --module app.exe
";

/// Arguments of `spgo`.
#[derive(Debug, Args)]
pub struct SpgoArgs {
    /// Write the profile to FILE
    #[arg(short, long, value_name = "FILE", default_value = "halprof.prof", value_parser = file)]
    pub output: PathBuf,
    /// Make the profile of FILE, a recording of record -j any,u, and run nothing
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub recording: Option<PathBuf>,
    /// The program or library, if it is not the program of COMMAND
    #[arg(long, value_name = "NAME")]
    pub module: Option<String>,
    /// A folder with the image that ran; can be repeated
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
    /// The program that makes the profile
    #[arg(long, value_name = "FILE", default_value = "llvm-profgen")]
    pub profgen: PathBuf,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required_unless_present = "recording")]
    pub command: Vec<OsString>,
}

impl SpgoArgs {
    /// Returns the file beside the profile with this extension.
    pub fn beside(&self, extension: &str) -> PathBuf {
        let mut name = self.output.as_os_str().to_owned();
        name.push(extension);
        Path::new(&name).to_owned()
    }
}
