//! `stop`: stops detached sources and shows their final counts.

use protocol::DETACHED;

use super::context::Context;
use super::events::{counts, detached};
use crate::cli::StopArgs;
use crate::connection::Connection;
use crate::counts::counts_table;
use crate::error::Error;

pub fn run(args: &StopArgs, context: &mut Context) -> Result<(), Error> {
    let connection = Connection::open(context.system()?)?;
    // If one of the named sources is not running, nothing is stopped.
    let running = detached(&connection, &args.sources)?;
    let mut records = Vec::new();
    if args.all {
        if !running.is_empty() {
            records = connection.stop_all(DETACHED)?;
        }
    } else {
        let mut sources: Vec<u32> = running.iter().map(|record| record.source).collect();
        sources.sort_unstable();
        sources.dedup();
        for source in sources {
            records.extend(connection.stop(DETACHED, source)?);
        }
    }
    let counts = counts(&records, &connection)?;
    if args.format.json {
        return context.json(&counts);
    }
    if counts.events.is_empty() {
        return context.say("no source runs detached; nothing to stop");
    }
    context.say(&counts_table(&counts.events, args.per_cpu))
}
