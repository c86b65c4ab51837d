//! A second program during a storm: it has a session of its own, and the driver's account at the end.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use protocol::{
    ALL_SOURCES, Code, CountRecord, DETACHED, EventRequest, Hello, InfoReply, PROTOCOL_VERSION, ProcessorSet,
    ReplyHeader, StartHeader, StopRequest, modes,
};
use zerocopy::{FromBytes, IntoBytes};

use super::PROCESSORS;
use super::disturb::Disturber;
use crate::lab::Lab;
use crate::probe::{Probe, Reply, hex};

/// TotalIssues.
const SOURCE: u32 = 2;

/// Time limit for the sessions of a killed program to end.
const END_LIMIT: Duration = Duration::from_secs(10);

/// Room for the reply to any request of this module.
const ROOM: usize = 1 << 15;

pub struct Observer {
    probe: Probe,
    handle: u32,
    /// The session, and the event and unit mask that it counts.
    witness: Option<(u64, u16, u8)>,
}

impl Observer {
    /// Opens the device.
    pub fn start(lab: &Lab) -> Result<Self> {
        let mut probe = lab.probe()?;
        let handle = probe.open("")?.map_err(|error| anyhow::anyhow!("the device does not open: {error}"))?;
        let mut observer = Self { probe, handle, witness: None };
        observer.ask(Code::Hello, Hello { version: PROTOCOL_VERSION, reserved: 0 }.as_bytes())?;
        Ok(observer)
    }

    fn ask(&mut self, code: Code, input: &[u8]) -> Result<(ReplyHeader, Vec<u8>)> {
        let input = if input.is_empty() { "-".to_owned() } else { hex(input) };
        match self.probe.control(self.handle, code as u32, &input, &ROOM.to_string())? {
            Reply::Done(bytes) => {
                let header = ReplyHeader::read_from_prefix(&bytes).ok().context("a reply without a header")?.0;
                Ok((header, bytes))
            }
            Reply::Failed(error) => bail!("{code:?} failed: {error}"),
        }
    }

    /// Starts to count an event on all processors, if the machine has it.
    pub fn start_witness(&mut self, lab: &mut Lab) -> Result<()> {
        let header = StartHeader { flags: 0, ring: 0, budget: 0, batch: 0, processors: ProcessorSet::EMPTY };
        let event = EventRequest { source: SOURCE, modes: modes::BOTH, ..EventRequest::EMPTY };
        let (reply, _) = self.ask(Code::Start, &[header.as_bytes(), event.as_bytes()].concat())?;
        if reply.status == 0 {
            let enabled = lab.wire.enabled_counters()?;
            let counter = enabled.iter().flatten().next().context("no counter of the session is enabled")?;
            self.witness = Some((reply.detail[0], counter.event, counter.umask));
        }
        Ok(())
    }

    /// Stops the session and compares its counts with the events that occurred. Returns the number of counts, or `None`
    /// if there is no session.
    pub fn stop_witness(&mut self, disturber: &Disturber) -> Result<Option<u64>> {
        let Some((session, event, umask)) = self.witness.take() else { return Ok(None) };
        let request = StopRequest { session, source: ALL_SOURCES, core_type: 0 };
        let (reply, bytes) = self.ask(Code::Stop, request.as_bytes())?;
        ensure!(reply.status == 0, "the session cannot be stopped: {reply:?}");
        let records = bytes.get(size_of::<ReplyHeader>()..).unwrap_or_default();
        let records = records.chunks_exact(size_of::<CountRecord>());
        let records: Vec<CountRecord> = records.filter_map(|bytes| CountRecord::read_from_bytes(bytes).ok()).collect();
        // A session may stay away from an added processor.
        ensure!(records.len() >= PROCESSORS.0 as usize, "only {} processors counted", records.len());
        for CountRecord { processor, count, disturbed_register, .. } in &records {
            let occurred = disturber.events.get(&(*processor, event, umask)).copied().unwrap_or(0);
            ensure!(
                (*count, *disturbed_register) == (occurred, 0),
                "processor {processor} counted {count} of {occurred} events {event:#x}:{umask:#x}; a foreign write to \
                 {disturbed_register:#x}"
            );
        }
        Ok(Some(records.len() as u64))
    }

    /// Ends the detached sessions, waits until all others have ended, and returns the driver's account.
    pub fn end_sessions(&mut self) -> Result<InfoReply> {
        let begun = Instant::now();
        loop {
            let detached = StopRequest { session: DETACHED, source: ALL_SOURCES, core_type: 0 };
            self.ask(Code::Stop, detached.as_bytes())?;
            let (_, bytes) = self.ask(Code::Info, &[])?;
            let info = InfoReply::read_from_bytes(&bytes).ok().context("the reply to Info has another length")?;
            if info.sessions <= u32::from(self.witness.is_some()) {
                return Ok(info);
            }
            ensure!(begun.elapsed() < END_LIMIT, "{} sessions of an ended program still run", info.sessions);
        }
    }
}
