//! Events by their numbers: profile sources that this program adds to the HAL, and removes in whatever way it ends.

use std::any::Any;
use std::io;
use std::sync::Arc;

use halprof::HalError;
use halprof::pmu::interval::IntervalRange;
use halprof::pmu::source::RawEvent;
use halprof::pmu::{Kind, Source};
use protocol::EventRequest;

use super::HalCalls;
use super::source_list::HalSource;

/// EventTraceProfileSourceAddInformation and EventTraceProfileSourceRemoveInformation (phnt, ntexapi.h).
const ADD: u32 = 0x15;
const REMOVE: u32 = 0x16;

/// Versions of the structure that adds a source. The first Windows with the newer one is not documented.
const VERSIONS: [u8; 2] = [3, 2];

/// Selects every CPU, in each of the three levels of their hierarchy.
const ANY_CPU: [u32; 3] = [u32::MAX; 3];

/// What the names of the added sources begin with. Names are global, so those of a client that was killed stay.
const PREFIX: &str = "HalprofAdded";

/// Sources that were added, and the HAL's counters for this program. When this is dropped, the sources are removed,
/// and the counters are free for others.
pub struct AddedSources {
    calls: Arc<dyn HalCalls>,
    numbers: Vec<u32>,
    _reservation: Box<dyn Any + Send>,
}

impl AddedSources {
    /// Reserves the HAL's counters, and returns the source of each event. Removes what a client that was killed has
    /// left: no other one uses it now.
    pub fn of(events: &[EventRequest], calls: &Arc<dyn HalCalls>, kind: Kind) -> Result<(Vec<u32>, Self), HalError> {
        let reservation = calls.reserve().map_err(|cause| HalError::Reserved { cause })?;
        let mut added = Self { calls: Arc::clone(calls), numbers: Vec::new(), _reservation: reservation };
        added.numbers = added.found(|name| name.starts_with(PREFIX))?;
        added.remove();
        let source = |event: &EventRequest| match Source(event.event.source).raw() {
            Some(event) => added.add(event, kind),
            None => Ok(Source(event.event.source).number().unwrap_or_default()),
        };
        let sources = events.iter().map(source).collect::<Result<_, _>>()?;
        Ok((sources, added))
    }

    /// Adds an event, and returns the number that Windows gives it.
    fn add(&mut self, event: RawEvent, kind: Kind) -> Result<u32, HalError> {
        let refused = |cause| HalError::NotAdded { event: event.source(), cause };
        let name = format!("{PREFIX}{}", self.numbers.len());
        let mut answer = Err(HalError::NeedsDriver { what: "an event of a fixed counter, or with such fields," });
        for version in VERSIONS {
            let Some(structure) = addition(event, kind, version, &name) else { continue };
            answer = self.calls.set_profile_sources(&structure).map_err(refused);
            if answer.is_ok() {
                break;
            }
        }
        answer?;
        // Windows tells the number by the list alone.
        let number = self.found(|other| other == name)?.first().copied();
        let number = number.ok_or(io::ErrorKind::NotFound).map_err(|kind| refused(kind.into()))?;
        self.numbers.push(number);
        Ok(number)
    }

    /// Returns the numbers of the HAL's sources with such names.
    fn found(&self, is_it: impl Fn(&str) -> bool) -> Result<Vec<u32>, HalError> {
        let sources = super::machine::sources(&*self.calls)?;
        Ok(sources.iter().filter(|HalSource { name, .. }| is_it(name)).map(|source| source.number).collect())
    }

    fn remove(&mut self) {
        for number in self.numbers.drain(..) {
            // A failure has no remedy; the next session tries again.
            let _ = self.calls.set_profile_sources(&removal(number));
        }
    }
}

impl Drop for AddedSources {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Returns the structure that adds an event; `None` if the version of it has no field for a part of the event.
fn addition(event: RawEvent, kind: Kind, version: u8, name: &str) -> Option<Vec<u8>> {
    let umask = u8::try_from(event.umask()).ok()?;
    let (cmask, inv, edge) = (event.cmask(), u8::from(event.inv()), u8::from(event.edge()));
    if event.any() || event.eq() || event.selector() != 0 {
        return None;
    }
    let [low, high] = event.event().to_le_bytes();
    let fields = match (kind, version) {
        (Kind::Amd64, 3) => [low, high, umask, cmask, inv, edge, 0, 0],
        (Kind::Amd64, _) if (high, cmask, inv, edge) == (0, 0, 0, 0) => [low, umask, 0, 0, 0, 0, 0, 0],
        (Kind::Amd64, _) => return None,
        // Event 0 stands for the fixed counters.
        _ if high == 0 && low != 0 => [low, umask, cmask, inv, 0, edge, 0, 0],
        _ => return None,
    };
    let mut bytes = [ADD, version.into()].map(u32::to_le_bytes).concat();
    bytes.extend(fields);
    bytes.extend(ANY_CPU.map(u32::to_le_bytes).concat());
    bytes.extend(IntervalRange::COUNTER.default.to_le_bytes());
    bytes.extend([0, 0]); // not kept over a restart; padding
    bytes.extend(name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    Some(bytes)
}

/// Returns the structure that removes a source.
fn removal(source: u32) -> Vec<u8> {
    [&[REMOVE, source][..], &ANY_CPU].concat().into_iter().flat_map(u32::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: RawEvent = RawEvent::new().with_event(0xC2).with_umask(1).with_cmask(4).with_inv(true);

    #[test]
    fn fields_are_where_each_version_and_maker_has_them() {
        let event = |kind, version, event| addition(event, kind, version, "A1").map(|bytes| bytes[8..16].to_vec());
        for version in VERSIONS {
            assert_eq!(event(Kind::Emon, version, EVENT), Some(vec![0xC2, 1, 4, 1, 0, 0, 0, 0]));
        }
        let edge = RawEvent::new().with_event(0x1C2).with_umask(2).with_edge(true);
        assert_eq!(event(Kind::Amd64, 3, edge), Some(vec![0xC2, 1, 2, 0, 0, 1, 0, 0]));
        let plain = RawEvent::new().with_event(0xC2).with_umask(2);
        assert_eq!(event(Kind::Amd64, 2, plain), Some(vec![0xC2, 2, 0, 0, 0, 0, 0, 0]));
        for wrong in [edge, EVENT] {
            assert_eq!(event(Kind::Amd64, 2, wrong), None);
        }
        for wrong in [plain.with_any(true), plain.with_eq(true), plain.with_selector(1), plain.with_umask(0x100), edge]
        {
            assert_eq!(event(Kind::Emon, 3, wrong), None);
        }
    }

    #[test]
    fn the_structures_have_their_sizes_and_offsets() {
        let bytes = addition(EVENT, Kind::Emon, 3, "A1").unwrap();
        assert_eq!((bytes.len(), &bytes[..8]), (0x22 + 6, &[0x15, 0, 0, 0, 3, 0, 0, 0][..]));
        assert_eq!(bytes[0x10..0x1C], [0xFF; 12]);
        assert_eq!(bytes[0x1C..0x20], 65_536_u32.to_le_bytes());
        assert_eq!(bytes[0x20..], [0, 0, b'A', 0, b'1', 0, 0, 0]);
        let bytes = removal(0x204);
        assert_eq!((bytes.len(), &bytes[..8]), (0x14, &[0x16, 0, 0, 0, 4, 2, 0, 0][..]));
    }
}
