//! The machine and the streams that a verb uses.

use std::io::{Read, Write};

use halprof::event::event_cache::EventCache;

use crate::error::Error;
use crate::error::system_error::{NotX86, SystemError};
use crate::system::System;
use crate::terminal::document::{Document, write_json};
use crate::terminal::output::{Output, printable_lines};

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
    /// Whether standard output can have colors.
    pub colors: bool,
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
            colors: false,
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

    /// Prints a line to standard output.
    pub fn say(&mut self, text: &str) -> Result<(), Error> {
        self.say_painted(&printable_lines(text))
    }

    /// Prints a line with the escape sequences of colors to standard output. All other parts of it are printable.
    pub fn say_painted(&mut self, text: &str) -> Result<(), Error> {
        Ok(writeln!(self.out, "{text}")?)
    }

    /// Prints a line to standard error, apart from the output of the verb.
    pub fn warn(&mut self, text: &str) -> Result<(), Error> {
        Ok(writeln!(self.err, "{text}")?)
    }

    /// Prints a document as JSON to standard output.
    pub fn json<T: Document>(&mut self, document: &T) -> Result<(), Error> {
        write_json(&mut self.out, document)
    }
}
