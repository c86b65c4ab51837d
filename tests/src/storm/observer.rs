//! A second program during a storm: it has a session of its own, and the driver's account at the end.

use anyhow::{Context, Result, ensure};
use protocol::{
    ALL_SOURCES, Code, CountRecord, DETACHED, Event, EventRequest, InfoReply, StartHeader, StopRequest, modes,
};
use zerocopy::{FromBytes, IntoBytes};

use super::disturb::Disturber;
use crate::lab::Lab;
use crate::requests::{Client, ROOM};
use crate::wait_for;

/// TotalIssues.
const SOURCE: u64 = 2;

pub struct Observer {
    client: Client,
    /// The session, and the event and unit mask that it counts.
    witness: Option<(u64, u16, u16)>,
}

impl Observer {
    /// Opens the device.
    pub fn start(lab: &Lab) -> Result<Self> {
        Ok(Self { client: Client::connect(lab)?, witness: None })
    }

    /// Starts to count an event on all processors, if the machine has it.
    pub fn start_witness(&mut self, lab: &mut Lab) -> Result<()> {
        let header = StartHeader::EMPTY;
        let event = EventRequest { event: Event::of(SOURCE), modes: modes::BOTH, ..EventRequest::EMPTY };
        let (reply, _) = self.client.send(Code::Start, &[header.as_bytes(), event.as_bytes()].concat(), ROOM)?;
        if reply.status == 0 {
            let enabled = lab.wire.enabled_counters()?;
            let counter = enabled.iter().flatten().next().context("no counter of the session is enabled")?;
            self.witness = Some((reply.detail[0], counter.event, counter.umask));
        }
        Ok(())
    }

    /// Stops the session and compares its counts with the events that occurred. Returns the number of counts, or `None`
    /// if there is no session.
    pub fn stop_witness(&mut self, lab: &mut Lab, disturber: &Disturber) -> Result<Option<u64>> {
        let Some((session, event, umask)) = self.witness.take() else { return Ok(None) };
        let records = self.client.stop(session)?;
        let (counted, active) = (records.len(), lab.processors()? as usize);
        ensure!(
            (active - disturber.added_asleep..=active).contains(&counted),
            "{counted} of {active} processors counted; {} were added while a sleep was announced",
            disturber.added_asleep
        );
        for CountRecord { processor, count, disturbed_register, .. } in &records {
            let occurred = disturber.events.get(&(*processor, event, umask)).copied().unwrap_or(0);
            let ledger = lab.ledger(*processor as usize, event, umask)?;
            let between = ledger.end() - ledger.start();
            ensure!(
                (occurred..=occurred + between).contains(count) && *disturbed_register == 0,
                "processor {processor} counted {count} of {occurred} and {between} events {event:#x}:{umask:#x}; a \
                 foreign write to {disturbed_register:#x}"
            );
        }
        Ok(Some(records.len() as u64))
    }

    /// Ends the detached sessions, waits until all others have ended, and returns the driver's account.
    pub fn end_sessions(&mut self) -> Result<InfoReply> {
        wait_for(|| {
            let detached = StopRequest { session: DETACHED, source: ALL_SOURCES, core_type: 0, reserved: 0 };
            self.client.send(Code::Stop, detached.as_bytes(), ROOM)?;
            let (_, bytes) = self.client.send(Code::Info, &[], ROOM)?;
            let info = InfoReply::read_from_bytes(&bytes).ok().context("the reply to Info has another length")?;
            let still = info.sessions.saturating_sub(u32::from(self.witness.is_some()));
            ensure!(still == 0, "{still} sessions of an ended program still run");
            Ok(info)
        })
    }
}
