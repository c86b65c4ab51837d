//! `mem`: loads and stores with the addresses of their data, like perf mem.

pub mod record;
pub mod report;

use crate::cli::{MemArgs, MemVerb};
use terminal::context::Context;
use user_error::Error;

pub fn run(args: &MemArgs, context: &mut Context) -> Result<i32, Error> {
    match &args.verb {
        MemVerb::Record(args) => record::run(args, context),
        MemVerb::Report(args) => report::run(args, context),
    }
}
