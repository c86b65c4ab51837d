//! Arguments of `encode`.

use std::path::PathBuf;

use clap::Args;
use halprof::event::label::labelled;
use halprof::event::{Malformed, SampledEvent};

use super::Json;

/// Text after the options of `encode` in `--help`.
pub const HELP: &str = "\
Needs no driver. Shows for each kind of cores of the processor: the value of the
event select register without interrupt and enable bits, the second register
that the event needs, the counters that count it, those that record it precisely
if the processor has PEBS, and why the driver refuses it, if it does. EVENT is
written as for `stat` and `record`. Of a dump the first processor is read; the
cores of the other type of a hybrid are taken to have the same number of
counters.

EXAMPLES
  .\\client encode MEM_LOAD_RETIRED.L3_MISS
  .\\client encode cycles:u --cpuid dump.txt --json
  .\\client encode cpu_atom/MEM_BOUND_STALLS.LOAD/ --cpuid alder-lake.txt
";

/// Arguments of `encode`.
#[derive(Debug, Args)]
pub struct EncodeArgs {
    /// The event, by its name or in the notation of perf
    #[arg(value_parser = event)]
    pub event: SampledEvent,
    /// A CPUID dump; - is standard input [default: this processor]
    #[arg(long, value_name = "FILE")]
    pub cpuid: Option<PathBuf>,
    #[command(flatten)]
    pub format: Json,
}

/// Parses an event of `stat` or `record`. The name that it gives a row of `stat` says nothing of its encoding.
fn event(text: &str) -> Result<SampledEvent, Malformed> {
    labelled(text, str::parse).map(|(event, _)| event)
}
