//! `sched`: shows how long threads ran, waited and were ready.

use std::cmp::Reverse;

use recording::OffCpuSummary;
use report::{Detail, ThreadSchedule, schedule, wait_reason};
use serde::Serialize;
use thiserror::Error as ThisError;

use crate::cli::SchedArgs;
use crate::reading::load::LoadedRecording;
use crate::reading::losses::finish_export;
use terminal::columns::fitted;
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::{counted, grouped, real};
use user_error::exit::Exit;
use user_error::{Error, UserError};

const HEADINGS: [&str; 9] = ["Process", "TID", "Run ms", "Wait ms", "Ready ms", "Switches", "Moved", "Longest", "For"];

const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;

/// The recording has no times in which threads did not run.
#[derive(Debug, ThisError)]
#[error("the recording does not tell when threads did not run")]
pub struct NoSchedule;

impl UserError for NoSchedule {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn remedy(&self) -> Option<String> {
        Some(".\\client record --off-cpu -p app.exe".to_owned())
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sched {
    /// Number of threads that did not run at the end, and how long they had not, in milliseconds.
    open: u64,
    open_ms: f64,
    /// Number of threads that had not run since before the recording.
    begun_before: u64,
    /// Number of places where switches are missing.
    lost: u64,
    threads: Vec<SchedThread>,
}

/// A thread between the first and the last time that it ran on.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SchedThread {
    process: u32,
    process_name: String,
    thread: u32,
    run_ms: f64,
    wait_ms: f64,
    ready_ms: f64,
    switches: u64,
    migrations: u64,
    longest_wait_ms: f64,
    /// What it waited for then; `None` if it never waited.
    longest_wait_reason: Option<String>,
    longest_ready_ms: f64,
    reasons: Vec<WaitReason>,
    wakers: Vec<Waker>,
}

/// How long a thread waited for a reason.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WaitReason {
    reason: String,
    ms: f64,
}

/// How often a thread made another one ready.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Waker {
    thread: u32,
    times: u64,
}

impl Document for Sched {
    const SCHEMA: &'static str = "halprof.sched/1";
}

pub fn run(args: &SchedArgs, context: &mut Context) -> Result<i32, Error> {
    let loaded = LoadedRecording::open(&args.recording, Detail::default())?;
    let LoadedRecording { contents, symbol_index, filter, .. } = &loaded;
    if !contents.session.events.iter().any(recording::RecordedEvent::is_off_cpu) {
        return Err(NoSchedule.into());
    }
    let schedule = schedule(contents, symbol_index, filter, &mut loaded.reopen(None)?);
    let schedule = schedule.map_err(|error| loaded.export_error(error, None))?;
    let name = |process| contents.processes.name_or_unknown(process).to_owned();
    let each = schedule.iter().map(|((process, thread), times)| row((process.id, name(*process)), *thread, times));
    let mut threads: Vec<SchedThread> = each.collect();
    threads.sort_by(|one, other| other.wait_ms.total_cmp(&one.wait_ms));
    let missing = contents.summary.as_ref().and_then(|summary| summary.off_cpu).unwrap_or_default();
    let OffCpuSummary { lost, late, open, open_time, begun_before, .. } = missing;
    let sched = Sched { open, open_ms: milliseconds(open_time), begun_before, lost: lost + late, threads };
    if args.format.json {
        context.json(&sched)?;
    } else {
        context.say(&text(&sched, args.top, context.width(false)))?;
    }
    finish_export(&loaded, context)
}

fn milliseconds(nanoseconds: u64) -> f64 {
    real(nanoseconds) / NANOSECONDS_PER_MILLISECOND
}

fn row((process, process_name): (u32, String), thread: u32, times: &ThreadSchedule) -> SchedThread {
    let (longest, reason) = times.longest_wait;
    let mut reasons: Vec<(u64, u8)> = times.reasons.iter().map(|(reason, time)| (*time, *reason)).collect();
    reasons.sort_by_key(|(time, _)| Reverse(*time));
    let reasons = reasons.iter().map(|(time, one)| WaitReason { reason: wait_reason(*one), ms: milliseconds(*time) });
    SchedThread {
        process,
        process_name,
        thread,
        run_ms: milliseconds(times.run),
        wait_ms: milliseconds(times.waited),
        ready_ms: milliseconds(times.ready),
        switches: times.switches,
        migrations: times.migrations,
        longest_wait_ms: milliseconds(longest),
        longest_wait_reason: (times.waited > 0).then(|| wait_reason(reason)),
        longest_ready_ms: milliseconds(times.longest_ready),
        reasons: reasons.collect(),
        wakers: times.wakers.iter().map(|(thread, times)| Waker { thread: *thread, times: *times }).collect(),
    }
}

fn text(sched: &Sched, max: usize, width: usize) -> String {
    let time = |ms: f64| format!("{ms:.1}");
    let row = |one: &SchedThread| {
        vec![
            one.process_name.clone(),
            one.thread.to_string(),
            time(one.run_ms),
            time(one.wait_ms),
            time(one.ready_ms),
            grouped(one.switches),
            grouped(one.migrations),
            time(one.longest_wait_ms),
            one.longest_wait_reason.clone().unwrap_or_default(),
        ]
    };
    let rows = sched.threads.iter().take(max).map(row).collect();
    let numbers = &HEADINGS[1..8];
    let mut parts = vec![match sched.threads.len() {
        0 => "no thread ran on".to_owned(),
        _ => fitted(&HEADINGS, numbers, &["Process", "For"], rows, width),
    }];
    if let more @ 1.. = sched.threads.len().saturating_sub(max) {
        parts.push(format!("{} left out; --top N shows N", counted(more as u64, "thread")));
    }
    if sched.open + sched.begun_before > 0 {
        let (open, before) = (grouped(sched.open), grouped(sched.begun_before));
        parts.push(format!(
            "Not in the table: {open} threads did not run at the end, for {:.1} s together, and\n\
             {before} had not run since before the begin.",
            sched.open_ms / 1e3
        ));
    }
    if let lost @ 1.. = sched.lost {
        let lost = grouped(lost);
        parts.push(format!("Context switches were lost in {lost} places; times are missing there, or too long."));
    }
    parts.join("\n\n")
}
