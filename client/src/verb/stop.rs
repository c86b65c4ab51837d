//! `stop`: stops detached sources and shows their final counts.

use protocol::{DETACHED, Event};

use crate::cli::StopArgs;
use counts::counts_table;
use counts::requests::{counts, detached, wanted};
use system::connection;
use terminal::context::Context;
use user_error::Error;

pub fn run(args: &StopArgs, context: &mut Context) -> Result<(), Error> {
    let connection = connection::open(context.system()?)?;
    // If one of the named sources is not running, nothing is stopped.
    let running = detached(&connection, &args.sources)?;
    let mut records = Vec::new();
    if args.all {
        if !running.is_empty() {
            records = connection.stop_all(DETACHED)?;
        }
    } else {
        let mut wanted = wanted(&connection, &args.sources)?;
        wanted.sort_unstable_by_key(|one| (one.source, one.core_type));
        // Without a core type all events of the source are stopped.
        wanted.dedup_by(|one, before| {
            one.source == before.source && (before.core_type == 0 || one.core_type == before.core_type)
        });
        for Event { source, core_type, .. } in wanted {
            records.extend(connection.stop(DETACHED, source, core_type)?);
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
