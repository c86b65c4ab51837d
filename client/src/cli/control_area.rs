//! The command line of `control-area`.

use clap::{Args, ValueEnum};
use protocol::area;

use super::common::Json;
use crate::processors::ProcessorList;

/// Text after the options in `--help`.
pub const HELP: &str = "\
A PROCESSOR_PROFILE_CONTROL_AREA is where Intel's Debug Store has its pointers:
to the buffer of branches and to that of precise records (PEBS), with the values
from which counters begin anew. Windows makes one for a processor when a driver
asks for it (ZwSetSystemInformation, SystemProcessorProfileControlArea), and
from then on looks into its PebsIndex for its own events: a trace of context
switches can have with each how many records the processor had written by then.
An area stays until it is freed or the driver goes. `record` with :p events and
`branches` get what they need by themselves.

TABLE
  Size    0x60 bytes up to Windows 10 1809, 0xA0 (more counters) since 1903
  Whose   the kernel's, or halprof's own where the kernel made none
  State   how the last request for it there ended, as an NTSTATUS
  BTS     whether the processor can record its branches
  PEBS    the format of its precise records, if it has them

EXAMPLES
  client control-area
  client control-area allocate -C 0-3
  client control-area free --json
";

/// Arguments of `control-area`.
#[derive(Debug, Args)]
pub struct ControlAreaArgs {
    /// What to do
    #[arg(value_enum, ignore_case = true, default_value = "show")]
    pub operation: Operation,
    /// Processors, such as 0,2-3 [default: every active one]
    #[arg(short = 'C', long = "cpu", value_name = "LIST")]
    pub processors: Option<ProcessorList>,
    /// The processor on which the request happens to come
    #[arg(long, conflicts_with = "processors")]
    pub current: bool,
    #[command(flatten)]
    pub format: Json,
}

/// An operation on control areas, as users type it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// Nothing: tell what there is
    Show,
    /// Have Windows make them: on all of the processors, or on none
    Allocate,
    /// Give them back
    Free,
}

impl Operation {
    /// Returns the number of the operation in a request.
    pub fn number(self) -> u32 {
        match self {
            Self::Show => area::QUERY,
            Self::Allocate => area::ALLOCATE,
            Self::Free => area::FREE,
        }
    }
}
