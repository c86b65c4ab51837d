//! Starting programs on a busy machine, where Wine sometimes ends one before it begins, or hangs in a lock of its own.

use std::io::{Write, stderr};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

use crate::{is_soak, program::ProgramOutput};

/// How often something is started at most.
const TRIES: usize = 3;

/// Starts something of the bench, up to three times, whatever the error is; each is printed.
pub fn start_with_retries<T>(start: impl Fn() -> Result<T>) -> Result<T> {
    for _ in 1..TRIES {
        match start() {
            Ok(started) => return Ok(started),
            Err(error) => say(&format!("trying again: {error:#}")),
        }
    }
    start()
}

/// The programs of this process that were started again because they never began.
#[derive(Debug)]
pub struct Repeats {
    done: AtomicUsize,
    most: Option<usize>,
}

/// Those of all tests together.
pub static REPEATS: Repeats = Repeats { done: AtomicUsize::new(0), most: None };

impl Repeats {
    /// Starts a program, up to three times as long as it [never began](never_began).
    ///
    /// A program under test that is really silent at a failure still fails its test: the last result counts, and in all
    /// only as many repeats are allowed as a busy machine needs. Each is printed.
    pub fn start<T>(
        &self,
        line: &str,
        never_began: impl Fn(&T) -> bool,
        mut start: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        for _ in 1..TRIES {
            let started = start()?;
            if !never_began(&started) || !self.take() {
                return Ok(started);
            }
            say(&format!("trying again: {line} or what it starts ended before it began, or hung in a lock of Wine"));
        }
        start()
    }

    /// Returns whether another repeat is allowed, and counts it.
    fn take(&self) -> bool {
        let most = self.most.unwrap_or(if is_soak() { 100 } else { 5 });
        self.done.fetch_add(1, Ordering::Relaxed) < most
    }
}

/// Returns whether a program ended as Wine ends one before it begins: with exit code 1, and without a word.
///
/// Such a program has not acted: client.exe says what it did and why it failed, the tools of Wine too, and a crash or a
/// panic has another code.
pub fn never_began(code: Option<i32>, said_nothing: bool) -> bool {
    code == Some(1) && said_nothing
}

/// What a program says if one that it starts ended before it began: ERROR_INTERNAL_ERROR, as Wine's CreateProcess tells
/// it.
const CHILD_NEVER_BEGAN: &str = "(os error 1359)";

/// Runs a program until it exits, and again if it or one that it starts never began, or if Wine hung in it.
pub fn run(line: &str, mut command: impl FnMut() -> Result<Command>) -> Result<ProgramOutput> {
    let is_repeated = |ran: &ProgramOutput| {
        never_began(Some(ran.code), ran.out.is_empty() && ran.err.is_empty())
            || (ran.code != 0 && ran.err.contains(CHILD_NEVER_BEGAN))
            || ran.hung_in_wine
    };
    REPEATS.start(line, is_repeated, || ProgramOutput::run(&mut command()?, line.to_owned()))
}

/// Prints a line that the test harness does not hide if the test passes.
fn say(line: &str) {
    // An error has no consequence: the line is not part of the result.
    let _ = writeln!(stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn repeats(most: usize) -> Repeats {
        Repeats { done: AtomicUsize::new(0), most: Some(most) }
    }

    /// Runs programs with these exit codes and outputs, one after the other, and returns the result and the number of
    /// starts.
    fn started(repeats: &Repeats, programs: &[(i32, &'static str)]) -> ((i32, &'static str), usize) {
        let number = Cell::new(0);
        let start = || {
            number.set(number.get() + 1);
            Ok(programs[number.get() - 1])
        };
        let silent = |(code, out): &(i32, &str)| never_began(Some(*code), out.is_empty());
        (repeats.start("client.exe", silent, start).unwrap(), number.get())
    }

    #[test]
    fn only_a_program_that_said_nothing_with_code_1_is_started_again() {
        let once = repeats(9);
        for program in [(0, ""), (1, "error"), (2, ""), (-1, ""), (0, "counts")] {
            assert_eq!(started(&once, &[program]), (program, 1));
        }
        assert_eq!(started(&once, &[(1, ""), (0, "counts")]), ((0, "counts"), 2));
        assert_eq!(started(&once, &[(1, ""), (1, ""), (3, "error")]), ((3, "error"), 3));
    }

    #[test]
    fn a_program_that_is_really_silent_still_fails() {
        assert_eq!(started(&repeats(9), &[(1, ""); 3]), ((1, ""), 3));
        let few = repeats(3);
        assert_eq!(started(&few, &[(1, ""); 3]).1, 3);
        assert_eq!(started(&few, &[(1, ""), (0, "counts")]).1, 2);
        assert_eq!(started(&few, &[(1, ""), (0, "counts")]), ((1, ""), 1), "the repeats of the run are used up");
    }
}
