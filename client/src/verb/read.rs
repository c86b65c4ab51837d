//! `read`: shows the counts of detached sessions.

use crate::cli::ReadArgs;
use crate::context::Context;
use crate::counts::counts_table;
use crate::error::Error;
use crate::machine::connection;
use crate::requests::{DetachedError, counts, detached};

pub fn run(args: &ReadArgs, context: &mut Context) -> Result<(), Error> {
    let connection = connection::open(context.system()?)?;
    let records = detached(&connection, &args.sources)?;
    if records.is_empty() {
        return Err(DetachedError::NoSource.into());
    }
    let counts = counts(&records, &connection)?;
    if args.format.json { context.json(&counts) } else { context.say(&counts_table(&counts.events, args.per_cpu)) }
}
