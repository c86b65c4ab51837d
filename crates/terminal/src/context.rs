//! The machine and the streams that a verb uses.

use std::io::{Read, Write};

use halprof::event::event_cache::EventCache;

use crate::color;
use crate::document::{Document, write_json};
use crate::output::{Output, Painted, printable_lines};
use system::System;
use user_error::Error;
use user_error::exit::Exit;
use user_error::system_error::{NotX86, SystemError};

/// The machine and the streams that a verb uses.
pub struct Context<'a> {
    /// The machine, if it runs Windows.
    pub system: Option<&'a dyn System>,
    /// Standard input.
    pub input: &'a mut dyn Read,
    /// Standard output.
    pub out: Output<'a>,
    /// Standard error.
    pub err: Output<'a>,
    /// Exit code of a command that has ended; the client exits with the same code.
    pub command_code: Option<i32>,
    /// Columns that text can fill, if standard output is a terminal.
    pub columns: Option<usize>,
    /// The imported events.
    pub cache: EventCache,
}

impl<'a> Context<'a> {
    /// Creates a context in which no command has run yet.
    pub fn new(
        system: Option<&'a dyn System>,
        input: &'a mut dyn Read,
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
    ) -> Self {
        Self {
            system,
            input,
            out: Output::new(out),
            err: Output::text(err),
            command_code: None,
            columns: None,
            cache: EventCache::default(),
        }
    }

    /// Returns the machine.
    ///
    /// # Errors
    /// If it does not run Windows.
    pub fn system(&self) -> Result<&'a dyn System, Error> {
        Ok(self.system.ok_or(SystemError::NotWindows)?)
    }

    /// Checks that CPUID is that of this machine.
    ///
    /// # Errors
    /// If Windows emulates the processor.
    pub fn check_processor(&self) -> Result<(), Error> {
        let is_emulated = self.system.is_some_and(System::is_emulated);
        if is_emulated { Err(SystemError::Emulated(NotX86).into()) } else { Ok(()) }
    }

    /// Returns the width of tables on standard output. It is unlimited in a pipe, in a file, or if `is_wide`.
    #[must_use]
    pub fn width(&self, is_wide: bool) -> usize {
        self.columns.filter(|_| !is_wide).unwrap_or(usize::MAX)
    }

    /// Prints a line to standard output.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn say(&mut self, text: &str) -> Result<(), Error> {
        self.say_painted(&printable_lines(text))
    }

    /// Prints a line with the escape sequences of colors to standard output, if it can have them. All other parts of it
    /// are printable.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn say_painted(&mut self, text: &str) -> Result<(), Error> {
        Ok(self.out.write_painted(&format!("{text}\n"))?)
    }

    /// Prints a line to standard error, apart from the output of the verb.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn warn(&mut self, text: &str) -> Result<(), Error> {
        Ok(self.err.write_painted(&format!("{}\n", color::painted(&printable_lines(text))))?)
    }

    /// Prints a document as JSON to standard output.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn json<T: Document>(&mut self, document: &T) -> Result<(), Error> {
        write_json(&mut self.out, document)
    }

    /// Writes what is buffered, and returns how a verb ended. If the reader of the output has closed the pipe, that is
    /// no error.
    ///
    /// # Errors
    /// That of the verb, or of the output.
    pub fn finish(&mut self, mut ended: Result<i32, Error>) -> Result<i32, Error> {
        if ended.is_ok() {
            // An error while the rest of the buffer is written must be reported.
            ended = self.out.flush().map_err(Error::from).and(ended);
        }
        match ended {
            Err(_) if self.out.is_closed() || self.err.is_closed() => {
                Ok(self.command_code.unwrap_or(Exit::Done.code()))
            }
            ended => ended,
        }
    }
}
