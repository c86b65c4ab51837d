//! Requests of a client to the driver, in its own layouts.

use anyhow::{Context, Result, bail, ensure};
use protocol::{
    ALL_SOURCES, Code, CountRecord, EventRequest, Hello, PROTOCOL_VERSION, ReplyHeader, SamplesRequest, SessionRequest,
    StartHeader, StopRequest,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::lab::Lab;
use crate::probe::{Probe, Reply, hex};

/// Room for the reply of any request but that for samples.
pub const ROOM: usize = 1 << 15;

/// A client with an open handle.
#[derive(Debug)]
pub struct Client {
    probe: Probe,
    handle: u32,
}

impl Client {
    /// Starts a client, which opens the device and agrees on the version.
    ///
    /// # Errors
    /// The program cannot be started, or the driver refuses it.
    pub fn connect(lab: &Lab) -> Result<Self> {
        let mut client = Self { probe: lab.probe()?, handle: 0 };
        client.open()?;
        Ok(client)
    }

    /// Closes the handle, which ends its sessions, and opens another one.
    ///
    /// # Errors
    /// The program has ended, or the driver refuses it.
    pub fn reopen(&mut self) -> Result<()> {
        self.probe.command(&format!("close {}", self.handle))?;
        self.open()
    }

    fn open(&mut self) -> Result<()> {
        match self.probe.open("")? {
            Ok(handle) => self.handle = handle,
            Err(error) => bail!("the device does not open: {error}"),
        }
        let hello = Hello { version: PROTOCOL_VERSION, reserved: 0 };
        self.ask(Code::Hello, hello.as_bytes(), ROOM).map(drop)
    }

    /// Sends a request, and returns its reply with the header.
    ///
    /// # Errors
    /// The program has ended, or the request has no reply.
    pub fn send(&mut self, code: Code, input: &[u8], room: usize) -> Result<(ReplyHeader, Vec<u8>)> {
        let input = if input.is_empty() { "-".to_owned() } else { hex(input) };
        match self.probe.control(self.handle, code as u32, &input, &room.to_string())? {
            Reply::Failed(error) => bail!("{code:?} failed: {error}"),
            Reply::Done(bytes) => {
                let header = ReplyHeader::read_from_prefix(&bytes).ok();
                Ok((header.with_context(|| format!("{code:?} without a header"))?.0, bytes))
            }
        }
    }

    /// Sends a request that is not refused, and returns the header of its reply and what follows.
    ///
    /// # Errors
    /// As [`send`](Self::send), or the driver refuses the request.
    pub fn ask(&mut self, code: Code, input: &[u8], room: usize) -> Result<(ReplyHeader, Vec<u8>)> {
        let (header, mut bytes) = self.send(code, input, room)?;
        ensure!((header.status, header.cause) == (0, 0), "{code:?} was refused: {header:?}");
        Ok((header, bytes.split_off(size_of::<ReplyHeader>())))
    }

    /// Starts a session of these events on all processors, and returns its number.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn start(&mut self, ring: u32, budget: u32, batch: u32, events: &[EventRequest]) -> Result<u64> {
        let header = StartHeader { ring, budget, batch, ..StartHeader::EMPTY };
        let (header, _) = self.ask(Code::Start, &[header.as_bytes(), events.as_bytes()].concat(), ROOM)?;
        let [session, ..] = header.detail;
        Ok(session)
    }

    /// Reads a session.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn read(&mut self, session: u64) -> Result<Vec<CountRecord>> {
        self.counts(Code::Read, SessionRequest { session }.as_bytes())
    }

    /// Stops a session and returns its final counts.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn stop(&mut self, session: u64) -> Result<Vec<CountRecord>> {
        self.counts(Code::Stop, StopRequest { session, source: ALL_SOURCES, core_type: 0, reserved: 0 }.as_bytes())
    }

    fn counts(&mut self, code: Code, input: &[u8]) -> Result<Vec<CountRecord>> {
        let (header, bytes) = self.ask(code, input, ROOM)?;
        let records = bytes.chunks_exact(size_of::<CountRecord>()).take(usize::try_from(header.count)?);
        records.map(|bytes| CountRecord::read_from_bytes(bytes).ok().context("a count")).collect()
    }

    /// Fetches at most `most` samples, without a wait, and returns their number.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn fetch(&mut self, session: u64, most: usize) -> Result<u32> {
        let wanted = SamplesRequest { session, wait: 0, reserved: 0 };
        let room = size_of::<ReplyHeader>() + most * size_of::<protocol::SampleRecord>();
        self.ask(Code::Samples, wanted.as_bytes(), room).map(|(header, _)| header.count)
    }
}
