//! The command line of `control-area`.

use clap::{Args, ValueEnum};
use halprof::text::processors::ProcessorList;
use protocol::area;

use super::common::Json;

/// Text after the options in `--help`.
pub const HELP: &str = "\
A PROCESSOR_PROFILE_CONTROL_AREA contains the pointers of Intel's Debug Store to
the buffers of branches and of precise records (PEBS), and the reset values of
counters. Windows allocates one for a processor when a driver requests it
(ZwSetSystemInformation, SystemProcessorProfileControlArea), and then reads its
PebsIndex for its own events: a trace of context switches can contain the number
of records that the processor had written at each. An area exists until it is
freed or the driver is unloaded. `record` with :p events and `branches` allocate
what they need.

TABLE
  Size    0x60 bytes up to Windows 10 1809, 0xA0 (more counters) since 1903
  Whose   of the kernel, or of halprof if the kernel allocated none
  State   result of the last request for this area, as an NTSTATUS, or none
  BTS     whether the processor can record its branches
  PEBS    format of its precise records, if it supports them: of its
          own with architectural PEBS, which needs no area

EXAMPLES
  .\\client control-area
  .\\client control-area allocate -C 0-3
  .\\client control-area free --json
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
    /// The processor on which the request happens to run
    #[arg(long, conflicts_with = "processors")]
    pub current: bool,
    #[command(flatten)]
    pub format: Json,
}

/// An operation on control areas, as users type it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// Show the areas
    Show,
    /// Have Windows allocate areas: on all of the processors, or on none
    Allocate,
    /// Free the areas
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
