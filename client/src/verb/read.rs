//! `read`: shows the counts of detached sessions.

use super::context::Context;
use super::events::{DetachedError, counts, detached};
use crate::cli::ReadArgs;
use crate::connection;
use crate::counts::counts_table;
use crate::error::Error;

pub fn run(args: &ReadArgs, context: &mut Context) -> Result<(), Error> {
    let connection = connection::open(context.system()?)?;
    let records = detached(&connection, &args.sources)?;
    if records.is_empty() {
        return Err(DetachedError::NoSource.into());
    }
    let counts = counts(&records, &connection)?;
    if args.format.json { context.json(&counts) } else { context.say(&counts_table(&counts.events, args.per_cpu)) }
}
