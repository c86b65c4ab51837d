//! The command line of `annotate`.

use clap::Args;

use super::{Json, RecordingArgs};

/// Text after the options in `--help`.
pub const HELP: &str = "\
Shows the instructions of a function, each with its share of the samples of the
function, and above them the lines of source code that PDB or DWARF name. The
first event of the recording is used, or that of -e.

SYMBOL
  A name, as `.\\client report` shows it, shortened or not; or a part of one, or a
  pattern with * and ?, if only one function with samples matches. MODULE!NAME
  takes the functions of one module, such as ntdll!Rtl*.

SKID
  The address of a sample is that at which the interrupt came: a few
  instructions after the one that made the event happen, and often after a slow
  one. With :p (record -e SOURCE:p) the processor records the instruction
  itself. The output says which of the two it shows.

LAST BRANCHES
  If the recording has last branches (record -b), Runs says how often an
  instruction ran as a part of the code between two of them, and below a branch
  is how often it was taken, and the share that was mispredicted. Cycles is the
  mean of the code that ends at a branch, from the target before it, and IPC its
  instructions per cycle, where the processor reports cycles. These are of all
  selected samples, also of other functions.

FILES
  The machine code is read from the image of the recorded build, which is
  searched for like symbols, except on symbol servers: in --symbols, at the
  recorded path, and beside the recording. So is the source code.

DECODER
  Instructions of APX and AVX10.2 are shown as their bytes, with their samples;
  those after them are right.

EXAMPLES
  .\\client annotate main
  .\\client annotate \"ntdll!RtlpHp*\" app.rec -e TotalCycles
  .\\client annotate compress app.rec --symbols C:\\build --json
";

/// Arguments of `annotate`.
#[derive(Debug, Args)]
pub struct AnnotateArgs {
    /// The function: a name, a part of one, or a pattern
    #[arg(value_name = "SYMBOL")]
    pub function: String,
    #[command(flatten)]
    pub recording: RecordingArgs,
    #[command(flatten)]
    pub format: Json,
}
