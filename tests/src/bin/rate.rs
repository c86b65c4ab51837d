//! Measures the sample rate that the bench sustains, with the driver and client as they ship, under Wine.

use anyhow::{Context, Result};
use serde_json::Value;
use tests::Lab;

/// Events between two samples. A processor generates some billions of events per second.
const INTERVALS: [u32; 6] = [4_000_000, 1_000_000, 400_000, 200_000, 100_000, 40_000];

const SECONDS: u64 = 3;
const RECORDING: &str = "C:\\windows\\temp\\halprof.rec";

fn main() -> Result<()> {
    println!("processor        interval  overflows/s  samples/s      lost  throttled  skipped Mticks");
    for identity in ["zen4-7700x", "haswell-4710mq"] {
        let mut lab = Lab::boot(identity)?;
        lab.install()?;
        for interval in INTERVALS {
            lab.wire.clear_ledger()?;
            let skipped = skipped_mticks(&mut lab)?;
            lab.run_in_real_time()?;
            let (event, seconds) = (format!("TotalIssues@{interval}"), format!("{SECONDS}s"));
            let arguments = ["record", "-a", "--duration", &seconds, "--budget", "90", "-e", &event, "-o", RECORDING];
            lab.client(&arguments)?.success()?;
            lab.run_by_script()?;
            let skipped = skipped_mticks(&mut lab)?.saturating_sub(skipped);
            let ledger = lab.wire.ledger()?;
            let overflows: u64 = ledger.iter().flatten().map(|entry| entry.overflows).sum();
            let report = lab.client(&["report", RECORDING, "--json"])?.json()?;
            let samples = number(&report, "/sources/0/samples")?;
            let [lost, throttled] = [number(&report, "/sources/0/lost")?, number(&report, "/sources/0/throttled")?];
            println!(
                "{identity:15} {interval:>9} {:>12} {:>10} {lost:>9} {throttled:>10} {skipped:>15}",
                overflows / SECONDS,
                samples / SECONDS,
            );
        }
        lab.finish()?;
    }
    Ok(())
}

/// Returns the time, in millions of ticks of the time-stamp counter on all processors together, in which interrupts
/// came faster than the handler could be called.
fn skipped_mticks(lab: &mut Lab) -> Result<u64> {
    Ok(lab.wire.skipped()?.iter().sum::<u64>() / 1_000_000)
}

fn number(report: &Value, path: &str) -> Result<u64> {
    report.pointer(path).and_then(Value::as_u64).with_context(|| format!("no {path} in {report}"))
}
