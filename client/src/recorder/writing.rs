//! The thread that writes the file, which can stall for seconds.

use std::io::Write;
use std::sync::mpsc::{Receiver, Sender};

use recording::{WriteError, Writer};

use super::{Event, Output};

/// Writes what it receives until all senders have ended, and returns the writer. An error is reported once, and the
/// rest is dropped.
pub fn run<W: Write>(mut writer: Writer<W>, input: &Receiver<Output>, events: &Sender<Event>) -> Option<Writer<W>> {
    for output in input {
        if let Err(cause) = write(&mut writer, &output) {
            // It is dropped if another error ended the recording.
            let _ = events.send(Event::Unwritten(cause));
            return None;
        }
    }
    Some(writer)
}

fn write<W: Write>(writer: &mut Writer<W>, output: &Output) -> Result<(), WriteError> {
    match output {
        Output::Samples(batch) => writer.samples(batch.records()),
        Output::Process(process) => writer.process(process),
    }
}
