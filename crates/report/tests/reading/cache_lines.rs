//! Cache lines that several threads share.

use proptest::prelude::*;
use protocol::{AccessEncoding, AccessOperation, UNKNOWN};
use report::{AccessNames, CacheLines, DataAddress, Filter, LineLoads, LineSize, MemoryLevel, Sharing};

use super::access_table::{Random, Step, accesses, recording};
use super::support::{NT, NTDLL};

/// Codes of Skylake: a hit in the first-level cache, and modified copies.
const L1: u32 = 1;
const LOCAL: u32 = 7;
const REMOTE: u32 = 0xD;

/// The heap of a process.
const HEAP: u64 = 0x5000_0000;

fn lines(steps: &[Step], size: LineSize) -> CacheLines {
    let (_, symbol_index, accesses) = accesses(&recording(steps), &Filter::default());
    CacheLines::new(accesses.all(), size, None, &symbol_index, &AccessNames::default())
}

/// Returns an access of a thread of process 8, which stays on one processor.
fn at(thread: u32, address: u64, source: u32) -> Step {
    Step { thread, processor: thread, address, ..Step::load(source, 100) }
}

fn store(thread: u32, address: u64) -> Step {
    Step { operation: AccessOperation::Store, encoding: AccessEncoding::Store, ..at(thread, address, 1) }
}

proptest! {
    /// Two threads share a line falsely, among many lines of single threads, of which neighbours have their own line
    /// each. The shared line is found first, and no other one.
    #[test]
    fn false_sharing_is_found_first_and_none_is_invented_for_neighbours(
        seed in any::<u64>(), shared in 0_u64..200, hits in 1_usize..40, offsets in (0_u64..4, 4_u64..8)
    ) {
        let mut random = Random(seed);
        let line = HEAP + shared * 64;
        let mut steps: Vec<Step> = Vec::new();
        for number in 0..300 {
            let of = random.below(200);
            let thread = u32::try_from(of % 2).unwrap() + 1;
            if of != shared {
                // Neighbouring lines belong to different threads, and are in every level but a modified copy.
                let code = [1, 2, 3, 4, 5, 6, 0xC][usize::try_from(random.below(7)).unwrap()];
                steps.push(at(thread, HEAP + of * 64 + random.below(64), code));
            }
            if number % 300 < hits {
                steps.push(at(1, line + offsets.0 * 8, LOCAL));
                steps.push(store(2, line + offsets.1 * 8));
            }
        }
        let found = lines(&steps, LineSize::One);
        prop_assert_eq!(found.number, 1);
        let first = &found.lines[0];
        prop_assert_eq!(first.address, DataAddress::User(8.into(), line));
        prop_assert_eq!((first.sharing, first.threads, first.share), (Sharing::False, 2, 1.0));
        let hits = hits as u64;
        let wanted = LineLoads { loads: hits, stores: hits, stores_l1: hits, local_modified: hits, remote_modified: 0 };
        prop_assert_eq!(first.loads, wanted);
        let offsets_found: Vec<(u64, u32)> = first.accesses.iter().map(|one| (one.offset, one.thread)).collect();
        prop_assert_eq!(offsets_found, [(offsets.0 * 8, 1), (offsets.1 * 8, 2)]);
    }

    /// Lines are in the order of their modified copies, whose shares add up to 1.
    #[test]
    fn lines_are_in_the_order_of_their_modified_copies(numbers in prop::collection::vec(1_usize..20, 1..12)) {
        let steps: Vec<Step> = (0..).zip(&numbers).flat_map(|(line, number)| vec![at(1, HEAP + line * 64, LOCAL); *number]).collect();
        let found = lines(&steps, LineSize::One);
        let shown: Vec<u64> = found.lines.iter().map(|line| line.loads.modified()).collect();
        let mut wanted: Vec<u64> = numbers.iter().map(|number| *number as u64).collect();
        wanted.sort_unstable_by(|one, other| other.cmp(one));
        prop_assert_eq!(shown, wanted);
        let share: f64 = found.lines.iter().map(|line| line.share).sum();
        prop_assert!((share - 1.0).abs() < 1e-9);
        let all = report::real(found.loads.modified());
        for line in &found.lines {
            prop_assert!((line.error - (line.share * (1.0 - line.share) / all).sqrt()).abs() < 1e-9);
        }
    }
}

#[test]
fn threads_share_a_line_truly_falsely_both_or_not() {
    for (steps, sharing) in [
        (vec![at(1, HEAP, LOCAL), at(1, HEAP + 8, L1)], Sharing::OneThread),
        (vec![at(1, HEAP, LOCAL), at(2, HEAP + 8, L1)], Sharing::False),
        (vec![at(1, HEAP, LOCAL), at(2, HEAP, L1)], Sharing::True),
        (vec![at(1, HEAP, LOCAL), at(2, HEAP, L1), at(2, HEAP + 8, L1)], Sharing::Mixed),
        // The neighbour of the line belongs to another thread.
        (vec![at(1, HEAP, LOCAL), at(2, HEAP + 64, L1)], Sharing::OneThread),
        (vec![at(1, HEAP, LOCAL), at(UNKNOWN, HEAP + 8, L1)], Sharing::OneThread),
    ] {
        let found = lines(&steps, LineSize::One);
        assert_eq!((found.number, found.lines[0].sharing), (1, sharing), "{steps:?}");
    }
    let neighbours = [at(1, HEAP, LOCAL), at(2, HEAP + 64, L1)];
    assert_eq!(lines(&neighbours, LineSize::Two).lines[0].sharing, Sharing::False);
}

#[test]
fn user_addresses_are_compared_within_a_process_and_kernel_addresses_over_all() {
    let of = |process, address| Step { process, ..at(process, address, LOCAL) };
    let found = lines(&[of(8, HEAP), of(12, HEAP), of(8, NT + 0x2000), of(12, NT + 0x2008)], LineSize::One);
    let shown: Vec<(DataAddress, u64, Sharing)> =
        found.lines.iter().map(|line| (line.address, line.loads.modified(), line.sharing)).collect();
    let user = |process: u32| (DataAddress::User(process.into(), HEAP), 1, Sharing::OneThread);
    assert_eq!(shown, [(DataAddress::Kernel(NT + 0x2000), 2, Sharing::False), user(8), user(12)]);
}

#[test]
fn accesses_without_an_address_or_a_process_are_in_no_line() {
    let unknown = Step { process: UNKNOWN, ..at(1, HEAP, LOCAL) };
    let found = lines(&[at(1, 0, REMOTE), unknown, at(1, HEAP, L1)], LineSize::One);
    assert_eq!((found.number, found.without_line, found.modified_without_line), (0, 2, 2));
    assert_eq!(found.loads.modified(), 2);
}

#[test]
fn records_that_cannot_tell_a_modified_copy_are_counted() {
    let ibs = |encoding| Step { encoding, ..at(1, HEAP, 1 << 31 | 2 << 22 | 1 << 20 | 1 << 17 | 1 << 7) };
    let steps = [AccessEncoding::IbsZen3, AccessEncoding::IbsZen3Client, AccessEncoding::Ibs].map(ibs);
    let found = lines(&[steps[0], steps[1], steps[2], store(1, HEAP)], LineSize::One);
    assert_eq!((found.silent, found.loads.modified(), found.loads.stores), (2, 1, 1));
}

#[test]
fn a_line_has_its_loads_by_level_and_its_cycles_by_place() {
    let slow = |step: Step, latency| Step { latency, ..step };
    let moved = Step { processor: 7, ..at(1, HEAP, LOCAL) };
    let steps = [
        slow(at(1, HEAP, REMOTE), 400),
        slow(at(1, HEAP, LOCAL), 100),
        slow(moved, 200),
        slow(at(1, HEAP, L1), 4),
        slow(at(1, HEAP, L1), 0),
        store(1, HEAP),
        Step { encoding: AccessEncoding::Store, operation: AccessOperation::Store, ..at(1, HEAP, 0) },
        Step { ip: NTDLL + 0x20, operation: AccessOperation::LoadStore, ..at(2, HEAP + 8, LOCAL) },
    ];
    let found = lines(&steps, LineSize::One);
    let line = &found.lines[0];
    let levels: Vec<(MemoryLevel, u64)> = line.levels.iter().map(|(level, number)| (*level, *number)).collect();
    assert_eq!(levels, [(MemoryLevel::L1, 2), (MemoryLevel::L3, 3), (MemoryLevel::RemoteCache, 1)]);
    let wanted = LineLoads { loads: 6, stores: 3, stores_l1: 1, local_modified: 3, remote_modified: 1 };
    assert_eq!(line.loads, wanted);
    let [first, second] = &line.accesses[..] else { panic!("{line:?}") };
    assert_eq!((first.module.as_str(), first.symbol.as_str(), first.processors), ("app.exe", "app.exe+0x1000", 2));
    assert_eq!([first.remote_cycles, first.local_cycles, first.other_cycles], [Some(400.0), Some(150.0), Some(4.0)]);
    assert_eq!((second.offset, second.thread, second.symbol.as_str()), (8, 2, "ntdll.dll+0x20"));
}
