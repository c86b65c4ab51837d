//! The trace session of `record -g`, and what it says of the call stacks.

use std::io;
use std::time::Duration;

use halprof::OpenError;
use protocol::EventRequest;
use recording::{MissingStack, OffCpuSummary, StackEnd};
use stacks::StackCounts;
use thiserror::Error as ThisError;

use crate::cli::RecordArgs;
use counts::share::{self, percent};
use recorder::sampling::trace_plan;
use recorder::{TraceResult, Tracing};
use system::connection::Connection;
use system::trace::{TraceError, TraceLosses, TracePlan};
use terminal::context::Context;
use terminal::format::grouped;
use user_error::exit::Exit;
use user_error::win32;
use user_error::{Error, UserError};

/// Share of the samples without a call stack from which on a message says what to do.
const MANY: f64 = 0.03;

/// Windows does not write the file of `--etl`.
#[derive(Debug, ThisError)]
#[error("Windows does not start a trace session that writes the file")]
struct NoTraceFile(#[source] TraceError);

impl UserError for NoTraceFile {
    fn exit(&self) -> Exit {
        if OpenError::is_denied(&self.0.cause) { Exit::Denied } else { Exit::Failure }
    }

    fn remedy(&self) -> Option<String> {
        Some(remedy(&self.0.cause).to_owned())
    }
}

/// Returns what helps against a refused trace session.
fn remedy(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        _ if OpenError::is_denied(cause) => {
            "an elevated prompt   (trace sessions of the kernel are for administrators)"
        }
        Some(win32::ERROR_NO_SYSTEM_RESOURCES) => "logman query -ets, then end a session: logman stop NAME -ets",
        Some(win32::ERROR_PATH_NOT_FOUND | win32::ERROR_BAD_PATHNAME) => {
            "--etl with another file, in a folder that exists   (two trace sessions cannot write one file)"
        }
        Some(win32::ERROR_DISK_FULL) => {
            "--etl with a file on another drive   (Windows keeps 200 MB of its own drive free)"
        }
        _ => "logman query -ets   (lists the trace sessions)",
    }
}

/// Starts the trace session that the user asked for. If Windows refuses to deliver call stacks, a message says so, and
/// samples are recorded without them.
pub fn start(
    args: &RecordArgs,
    events: &[EventRequest],
    connection: &Connection,
    context: &mut Context,
) -> Result<Option<Tracing>, Error> {
    let Some(graph) = args.stacks.graph() else { return Ok(None) };
    if args.stacks.etl.is_some() {
        connection.check_driver("a trace file of the samples")?;
    }
    let plan = trace_plan(&args.session.header(), events, &connection.info()?, args.stacks.etl.clone());
    let plan = TracePlan { off_cpu: args.stacks.off_cpu, ..plan };
    let system = context.system()?;
    match Tracing::start(|plan, sink| connection.trace(system, plan, sink), &plan, graph, events) {
        Ok(tracing) => Ok(Some(tracing)),
        Err(error) if plan.file.is_some() => Err(NoTraceFile(error).into()),
        Err(error) => {
            let TraceError { step, cause } = &error;
            context.warn(&format!(
                "warning: samples are recorded without call stacks: Windows refuses the trace session\n  \
                 because: {step} failed: {cause}\n  try: {}",
                remedy(cause)
            ))?;
            Ok(None)
        }
    }
}

/// Returns the lines that say what became of the call stacks.
pub fn summary(result: &TraceResult) -> Vec<String> {
    let TraceResult { counts, file, losses, dropped, off_cpu } = result;
    let mut lines = Vec::new();
    if let Some(file) = file {
        lines.push(format!(
            "[ the call stacks are in {}, for Windows Performance Analyzer ]\n  \
             try: wpr -merge {} merged.etl   (it shows names of functions of a merged file only)",
            file.display(),
            file.display()
        ));
    }
    if let Some(counts) = counts {
        lines.push(format!("[ {} ]", shares(counts)));
        lines.extend(reasons(counts));
    }
    if let Some(off_cpu) = off_cpu {
        lines.extend(missing_waits(off_cpu));
    }
    match losses {
        Ok(TraceLosses { events: 0, buffers: 0 }) => {}
        Ok(TraceLosses { events, buffers }) => lines.push(format!(
            "warning: Windows lost {} events and {} buffers of the trace session\n  \
             try: a lower -F or a larger interval (-e SOURCE@INTERVAL), and fewer programs that use the processors",
            grouped(*events),
            grouped(*buffers)
        )),
        Err(cause) => lines.push(format!("warning: the trace session could not be stopped: {cause}")),
    }
    if *dropped > 0 {
        let dropped = grouped(*dropped);
        lines.push(format!("warning: {dropped} events about processes and images came too fast to be read"));
    }
    lines
}

/// Returns what is missing of the times in which threads did not run.
fn missing_waits(summary: &OffCpuSummary) -> Vec<String> {
    let OffCpuSummary { lost, late, open, open_time, begun_before, without_stack } = *summary;
    let mut lines = Vec::new();
    if open + begun_before > 0 {
        let (open, time) = (grouped(open), Duration::from_nanos(open_time).as_secs_f64());
        let before = grouped(begun_before);
        lines.push(format!(
            "[ off the CPU: {open} threads did not run at the end, for {time:.1} s together, and have no stack;\n  \
             {before} had not run since before the begin, and are left out ]"
        ));
    }
    if without_stack > 0 {
        lines.push(format!("[ off the CPU: {} times without a stack ]", grouped(without_stack)));
    }
    if lost + late > 0 {
        let lost = grouped(lost + late);
        lines.push(format!(
            "warning: context switches were lost in {lost} places: times off the CPU are missing there, or too long\n  \
             try: -p with the processes that matter, and fewer programs that use the processors"
        ));
    }
    lines
}

/// Returns the shares of samples with a whole call stack, with a part of one, and without.
fn shares(counts: &StackCounts) -> String {
    let share = |number| percent(share::of(number, counts.samples()));
    let truncated = counts.with_end(StackEnd::Truncated) + counts.with_end(StackEnd::UserLost);
    format!(
        "stacks: {} of samples; {} truncated; {} missing",
        share(counts.with_end(StackEnd::Complete)),
        share(truncated),
        share(counts.missing())
    )
}

/// What lines say of a reason, and what the user can do about it.
pub fn explained(reason: MissingStack) -> (&'static str, &'static str) {
    const RATE: &str = "a lower -F, or a larger interval (-e SOURCE@INTERVAL)";
    match reason {
        MissingStack::TakenElsewhere => {
            // Windows does not tell the two apart.
            (
                "Windows walked other code: the sampled code ran at DISPATCH_LEVEL, or the walk ended before it",
                "-e SOURCE:u, or .\\client branches",
            )
        }
        MissingStack::Merged => ("the next sample came before Windows walked the stack", RATE),
        MissingStack::EventLost => ("Windows delivered no stack for the sample", RATE),
        MissingStack::UserLost => ("Windows did not deliver the part in user mode", RATE),
        MissingStack::Precise => ("the processor recorded the sample itself", "-e SOURCE without :p"),
        MissingStack::Untraced => {
            ("the driver wrote no event for the sample", "logman query -ets   (lists the trace sessions)")
        }
        MissingStack::Overflow => ("too many samples waited for their stacks", RATE),
    }
}

/// Returns the main reasons if many samples have no call stack, and what to do about the first.
fn reasons(counts: &StackCounts) -> Option<String> {
    if share::of(counts.missing(), counts.samples()) < MANY {
        return None;
    }
    let mut reasons: Vec<(u64, MissingStack)> =
        MissingStack::ALL.iter().map(|reason| (counts.missing_for(*reason), *reason)).collect();
    reasons.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    reasons.retain(|(count, _)| share::of(*count, counts.samples()) >= MANY / 3.0);
    let (_, first) = reasons.first()?;
    let line = |(count, reason): &(u64, MissingStack)| {
        let share = percent(share::of(*count, counts.samples()));
        format!("\n  because: {share}: {}", explained(*reason).0)
    };
    let missing = grouped(counts.missing());
    let lines: String = reasons.iter().map(line).collect();
    Some(format!("warning: {missing} samples have no call stack{lines}\n  try: {}", explained(*first).1))
}
