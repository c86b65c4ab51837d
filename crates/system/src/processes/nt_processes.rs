//! The list of processes, as NtQuerySystemInformation returns it.

use zerocopy::FromBytes;

use crate::RunningProcess;
use crate::processes::loader_list::utf16;

/// Units of system time per second.
const SYSTEM_TIME_UNITS: u128 = 10_000_000;

/// SYSTEM_PROCESS_INFORMATION of 64-bit Windows up to the process ID (phnt, ntexapi.h), with names for the used fields.
#[derive(FromBytes)]
#[repr(C)]
struct Entry {
    next: u32,
    threads: u32,
    _sizes: [u32; 6],
    created: u64,
    _times: [u64; 2],
    name_length: u16,
    _name_room: [u16; 3],
    name: u64,
    _priority: u64,
    id: u64,
}

const _: () = assert!(size_of::<Entry>() == 0x58);

/// Size of the whole SYSTEM_PROCESS_INFORMATION, which the SYSTEM_THREAD_INFORMATION of each thread follows, the size
/// of that, and the offset of the thread ID in it.
const ENTRY_BYTES: usize = 0x100;
const THREAD_BYTES: usize = 0x50;
const THREAD_ID: usize = 0x30;

/// A moment in the two clocks of Windows: that of samples, KeQueryPerformanceCounter, was read first.
#[derive(Debug, Clone, Copy)]
pub struct ClockReading {
    /// Counter of the clock of samples.
    pub counter: u64,
    /// Units of the counter per second.
    pub frequency: u64,
    /// System time in units of 100 ns since 1601.
    pub system_time: u64,
}

impl ClockReading {
    /// Converts a system time before the reading, or returns an earlier time: the time between the two readings is
    /// added to its age. System time can be set and slewed, so the result is exact only for a recent time.
    fn on_counter(&self, system_time: u64) -> Option<u64> {
        let age = self.system_time.checked_sub(system_time).filter(|_| system_time != 0)?;
        let age = u128::from(age) * u128::from(self.frequency) / SYSTEM_TIME_UNITS;
        Some(self.counter.saturating_sub(age.try_into().unwrap_or(u64::MAX)))
    }
}

/// Parses a list that Windows wrote at `address`, to which its pointers refer, before the clocks were read.
#[must_use]
pub fn parse(bytes: &[u8], address: u64, clocks: Option<ClockReading>) -> Vec<RunningProcess> {
    let mut processes = Vec::new();
    for (entry, _) in entries(bytes) {
        let start = usize::try_from(entry.name.wrapping_sub(address)).unwrap_or(usize::MAX);
        let name = bytes.get(start..).and_then(|name| name.get(..usize::from(entry.name_length)));
        if let Ok(id) = u32::try_from(entry.id) {
            let name = utf16(name.unwrap_or_default()).to_string_lossy().into_owned();
            let created = entry.created;
            let created_on_clock = clocks.and_then(|clocks| clocks.on_counter(created));
            processes.push(RunningProcess { id, name, created, created_on_clock });
        }
    }
    processes
}

/// Returns the threads in a list that Windows wrote: the ID of the process and that of the thread.
pub fn threads(bytes: &[u8]) -> impl Iterator<Item = (u32, u32)> {
    entries(bytes).flat_map(|(Entry { id: process, threads, .. }, rest)| {
        let each = rest.get(ENTRY_BYTES..).unwrap_or_default().chunks_exact(THREAD_BYTES).take(threads as usize);
        let id = |thread: &[u8]| u32::try_from(u64::from_le_bytes(*thread.get(THREAD_ID..)?.first_chunk()?)).ok();
        let process = u32::try_from(process).ok();
        each.filter_map(move |thread| Some((process?, id(thread)?)))
    })
}

/// Returns the entries of a list, each with the bytes from its beginning on.
fn entries(bytes: &[u8]) -> impl Iterator<Item = (Entry, &[u8])> {
    let mut next = Some(bytes);
    std::iter::from_fn(move || {
        let rest = next.take()?;
        let (entry, _) = Entry::read_from_prefix(rest).ok()?;
        next = rest.get(entry.next as usize..).filter(|_| entry.next != 0);
        Some((entry, rest))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ADDRESS: u64 = 0x7FF0_0000_1000;

    fn list(processes: &[(u32, u64, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (index, (id, created, name)) in processes.iter().enumerate() {
            let text: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let start = bytes.len();
            let size = 0x100 + text.len().next_multiple_of(8);
            let next = if index + 1 < processes.len() { u32::try_from(size).unwrap() } else { 0 };
            bytes.resize(start + size, 0xEE);
            let mut put = |offset: usize, field: &[u8]| {
                bytes[start + offset..start + offset + field.len()].copy_from_slice(field);
            };
            put(0, &next.to_le_bytes());
            put(0x20, &created.to_le_bytes());
            put(0x38, &u16::try_from(text.len()).unwrap().to_le_bytes());
            put(0x40, &(ADDRESS + start as u64 + 0x100).to_le_bytes());
            put(0x50, &u64::from(*id).to_le_bytes());
            put(0x100, &text);
        }
        bytes
    }

    #[test]
    fn every_process_is_listed_with_its_name_and_creation() {
        let processes =
            [(0, 0, ""), (4, 133_000_000_000_000_000, "System"), (712, 133_000_000_000_000_001, "Übung.exe")];
        let wanted =
            |on_clock: [Option<u64>; 3]| {
                let with_clock = processes.into_iter().zip(on_clock);
                let running = |((id, created, name), created_on_clock): ((u32, u64, &str), Option<u64>)| {
                    RunningProcess { id, name: name.into(), created, created_on_clock }
                };
                with_clock.map(running).collect::<Vec<_>>()
            };
        assert_eq!(parse(&list(&processes), ADDRESS, None), wanted([None; 3]));
        assert_eq!(parse(&[], ADDRESS, None), []);
        // One second after the creation of the second process, whose creation the third one follows by 100 ns.
        let system_time = 133_000_000_010_000_000;
        let clocks = ClockReading { counter: 50_000_000, frequency: 30_000_000, system_time };
        let on_clock = [None, Some(20_000_000), Some(20_000_003)];
        assert_eq!(parse(&list(&processes), ADDRESS, Some(clocks)), wanted(on_clock));
        // A creation before the first unit of the counter, and one after the reading.
        let clocks = ClockReading { counter: 5, system_time: 133_000_000_000_000_000, ..clocks };
        assert_eq!(parse(&list(&processes), ADDRESS, Some(clocks)), wanted([None, Some(5), None]));
        let clocks = ClockReading { system_time, ..clocks };
        assert_eq!(parse(&list(&processes), ADDRESS, Some(clocks)), wanted([None, Some(0), Some(0)]));
    }

    proptest! {
        #[test]
        fn any_bytes_give_at_most_one_process_per_entry(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
            prop_assert!(parse(&bytes, ADDRESS, None).len() <= bytes.len());
        }
    }
}
