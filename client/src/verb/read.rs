//! `read`: shows the counts of detached sessions.

use crate::cli::ReadArgs;
use counts::counts_table;
use counts::requests::{DetachedError, counts, detached};
use system::connection;
use terminal::context::Context;
use user_error::Error;

pub fn run(args: &ReadArgs, context: &mut Context) -> Result<(), Error> {
    let connection = connection::open(context.system()?)?;
    let records = detached(&connection, &args.sources)?;
    if records.is_empty() {
        return Err(DetachedError::NoSource.into());
    }
    let counts = counts(&records, &connection)?;
    if args.format.json { context.json(&counts) } else { context.say(&counts_table(&counts.events, args.per_cpu)) }
}
