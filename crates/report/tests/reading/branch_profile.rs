//! What last branches say of the code of a module.

use std::io::Cursor;

use proptest::prelude::*;
use protocol::{BranchRecord, CounterSample, SampleRecord};
use report::{BlockCount, BranchProfile, BranchProfiles, CodeAgreement, Filter, branch_profiles};

use super::last_branches::{last_branch, recorded, with_branches};
use super::support::{APP, CYCLES, NT, NTDLL, read, sample};

/// An image with two functions, of which `foo` has a loop from 0x1040 to 0x1083; built as README.md says.
const IMAGE: &[u8] = include_bytes!("../fixtures/branches.exe");

/// The branch of the loop.
const BACK: (u64, u64) = (APP + 0x1083, APP + 0x1040);

/// The call of `foo` in `bar`.
const CALL: (u64, u64) = (APP + 0x10B8, APP + 0x1000);

/// Returns the profiles of samples with these branches, each so many times.
fn profiles(samples: &[(u32, &[(u64, u64)])]) -> Vec<(String, BranchProfile)> {
    let mut records: Vec<SampleRecord> = Vec::new();
    for (times, branches) in samples {
        for _ in 0..*times {
            let time = 1_000 + records.len() as u64;
            records.extend(with_branches(CounterSample { time, ..sample(CYCLES, 8, APP + 0x1075, 1_000) }, branches));
        }
    }
    let file = recorded(records);
    let contents = read(&file);
    let profiles = branch_profiles(&contents, &Filter::default(), &mut Cursor::new(&file)).unwrap().modules;
    let name = |profile: &BranchProfile| contents.processes.modules().name(profile.module).to_owned();
    profiles.into_iter().map(|profile| (name(&profile), profile)).collect()
}

fn text(profile: &BranchProfile) -> String {
    let mut text = Vec::new();
    profile.write(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// The first ranges are those that llvm-profgen 19 finds in the same branches. It leaves out what is across an
/// unconditional jump when it reads a text of ours.
#[test]
fn the_text_has_the_ranges_and_the_branches_that_llvm_profgen_reads() {
    let stack = [BACK, BACK, BACK, BACK, BACK, BACK, CALL];
    let [(name, profile)] = &profiles(&[(10, &stack)])[..] else { panic!() };
    assert_eq!(name, "app.exe");
    assert_eq!(text(profile), "2\n1000-1083:10\n1040-1083:50\n2\n1083->1040:60\n10b8->1000:10\n");
    assert_eq!((profile.taken(), profile.broken), (70, 0));
}

#[test]
fn a_range_is_in_one_module_and_begins_before_its_end() {
    let leaves = (APP + 0x1090, NTDLL + 0x40);
    let returns = (NTDLL + 0x50, APP + 0x1096);
    let system_call = (NTDLL + 0x60, NT + 0x100);
    for (stack, wanted) in [
        // From the target in ntdll to its return; from the target in the program to the call out of it.
        (
            vec![returns, leaves, BACK],
            vec![("app.exe", "1\n1040-1090:1\n1\n1083->1040:1\n"), ("ntdll.dll", "1\n40-50:1\n0\n")],
        ),
        (vec![system_call, returns], vec![("ntdll.dll", "0\n0\n")]),
        // A branch is missing between the two: the code cannot run backwards, nor for more than 64 KiB.
        (vec![(APP + 0x1020, APP + 0x1000), BACK], vec![("app.exe", "0\n2\n1020->1000:1\n1083->1040:1\n")]),
        (vec![(APP + 0x1_1041, APP), BACK], vec![("app.exe", "0\n2\n1083->1040:1\n11041->0:1\n")]),
        (vec![(APP + 0x1_1040, APP), BACK], vec![("app.exe", "1\n1040-11040:1\n2\n1083->1040:1\n11040->0:1\n")]),
    ] {
        let found = profiles(&[(1, &stack)]);
        let found: Vec<(&str, String)> = found.iter().map(|(name, profile)| (name.as_str(), text(profile))).collect();
        let mut wanted: Vec<(&str, String)> = wanted.into_iter().map(|(name, text)| (name, text.to_owned())).collect();
        wanted.sort_unstable();
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, wanted, "{stack:x?}");
    }
    let [(_, broken)] = &profiles(&[(3, &[(APP + 0x1020, APP + 0x1000), BACK])])[..] else { panic!() };
    assert_eq!(broken.broken, 3);
}

#[test]
fn branch_instructions_agree_with_the_image_or_are_corrected_or_removed() {
    // cmp edx, r8d is at 0x1080, and jne at 0x1083; 0x1066 is no branch.
    let fused = (APP + 0x1080, APP + 0x1040);
    let wrong = (APP + 0x1066, APP + 0x1040);
    let into_loop = (APP + 0x100A, APP + 0x1019);
    let mut found = profiles(&[(5, &[BACK, into_loop, CALL]), (3, &[fused, fused]), (2, &[wrong, CALL])]);
    let profile = &mut found[0].1;
    assert_eq!(profile.agree(IMAGE).unwrap(), CodeAgreement { right: 17, fused: 6, wrong: 2 });
    let ranges = "1000-100a:5\n1019-1083:5\n1040-1083:3\n";
    assert_eq!(text(profile), format!("3\n{ranges}3\n100a->1019:5\n1083->1040:11\n10b8->1000:7\n"));
    assert!(profile.agree(b"MZ").is_err());
    // Between the entry and the end of the loop there is an unconditional jump.
    let mut found = profiles(&[(4, &[BACK, CALL])]);
    let profile = &mut found[0].1;
    profile.agree(IMAGE).unwrap();
    assert_eq!((profile.ranges.len(), profile.broken), (0, 4));
}

/// Returns the image with other bytes at an address of its code.
fn patched(address: usize, bytes: &[u8]) -> Vec<u8> {
    let (mut image, offset) = (IMAGE.to_vec(), address - 0xC00);
    image.splice(offset..offset + bytes.len(), bytes.iter().copied());
    image
}

#[test]
fn a_block_with_a_corrected_end_has_its_instructions_and_the_counts_of_both_addresses() {
    let fused = (APP + 0x1080, APP + 0x1040);
    let profile = &mut profiles(&[(3, &[fused, fused]), (2, &[BACK, BACK])])[0].1;
    profile.agree(IMAGE).unwrap();
    let block = profile.ranges[&(0x1040, 0x1083)];
    assert_eq!((block.count, block.instructions, profile.sources[&0x1083].count), (5, Some(23), 10));
}

#[test]
fn code_that_is_not_decoded_is_a_block_but_code_that_misses_the_branch_is_none() {
    // Three bytes that are no instruction in 64-bit mode, and a jump within an instruction.
    let (unknown, within) = (patched(0x1066, &[6; 3]), patched(0x1033, &[0x75, 0]));
    let profile = &mut profiles(&[(1, &[BACK, BACK])])[0].1;
    profile.agree(&unknown).unwrap();
    assert_eq!((profile.ranges[&(0x1040, 0x1083)].instructions, profile.broken), (None, 0));
    let profile = &mut profiles(&[(1, &[(APP + 0x1033, APP + 0x1035), (APP + 0x100A, APP + 0x1019)])])[0].1;
    assert_eq!(profile.agree(&within).unwrap(), CodeAgreement { right: 2, fused: 0, wrong: 0 });
    assert_eq!((profile.ranges.len(), profile.broken), (0, 1));
}

/// The loop of the program calls `bar` each time, from 0x10F2.
#[test]
fn code_with_a_call_in_it_is_no_range() {
    let again = (APP + 0x1101, APP + 0x10F0);
    let returns = (APP + 0x10D5, APP + 0x10F7);
    for (stack, ranges) in [([again, again], 0), ([again, returns], 1)] {
        let profile = &mut profiles(&[(2, &stack)])[0].1;
        profile.agree(IMAGE).unwrap();
        assert_eq!((profile.ranges.len(), profile.broken), (ranges, 2 - 2 * ranges as u64), "{stack:x?}");
    }
}

/// Returns the profiles of one sample with branches of these sources, targets and cycles.
fn profiles_of(branches: &[(u64, u64, u16)]) -> BranchProfiles {
    let first = sample(CYCLES, 8, APP + 0x1075, 1_000);
    let record =
        |&(from, to, cycles): &(u64, u64, u16)| BranchRecord { cycles, ..last_branch(&first, from, to) }.into();
    let file = recorded([first.into()].into_iter().chain(branches.iter().map(record)).collect());
    branch_profiles(&read(&file), &Filter::default(), &mut Cursor::new(&file)).unwrap()
}

/// The loop runs from 0x1040 to 0x1083. It has 23 instructions there, as GNU objdump lists them.
#[test]
fn a_block_has_the_instructions_and_the_mean_cycles_of_its_executions() {
    let (from, to) = BACK;
    let mut found = profiles_of(&[(from, to, 8), (from, to, 12), (from, to, 0), (from, to, 10), (from, to, 99)]);
    let profile = &mut found.modules[0];
    let count = BlockCount { count: 4, timed: 3, cycles: 30, squares: 308, instructions: None };
    assert_eq!(profile.ranges[&(0x1040, 0x1083)], count);
    assert_eq!((count.mean_cycles(), count.ipc()), (Some(10.0), None));
    // The deviations are -2, 2 and 0.
    let error = (8.0_f64 / 2.0 / 3.0).sqrt();
    assert!((count.standard_error().unwrap() - error).abs() < 1e-12);
    profile.agree(IMAGE).unwrap();
    let compared = profile.ranges[&(0x1040, 0x1083)];
    assert_eq!(compared, BlockCount { instructions: Some(23), ..count });
    assert_eq!(compared.ipc(), Some(2.3));
    assert_eq!(profile.instructions(&[0x1083])[0].ipc, Some(2.3), "executions without cycles are left out");
    let once = BlockCount { count: 1, timed: 1, cycles: 5, squares: 25, instructions: Some(1) };
    assert_eq!((once.standard_error(), BlockCount::default().mean_cycles()), (None, None));
}

#[test]
fn an_instruction_runs_as_often_as_the_blocks_around_it() {
    let (from, to) = BACK;
    let mut found =
        profiles_of(&[(from, to, 10), (from, to, 10), (APP + 0x100A, APP + 0x1019, 4), (CALL.0, CALL.1, 7)]);
    let profile = &mut found.modules[0];
    profile.agree(IMAGE).unwrap();
    let of = |offset: u32| profile.instructions(&[offset])[0];
    for (offset, executions) in
        [(0x0FFF, 0), (0x1000, 1), (0x100A, 1), (0x100F, 0), (0x1019, 1), (0x1040, 2), (0x1083, 2)]
    {
        assert_eq!(of(offset).executions, executions, "{offset:x}");
    }
    let end = of(0x1083);
    assert_eq!((end.taken.count, end.taken.cycles, end.blocks.count, end.blocks.timed), (2, 20, 2, 2));
    let both = [(0x1019, 0x1083), (0x1040, 0x1083)].map(|block| profile.ranges[&block].instructions.unwrap());
    assert_eq!(end.ipc, Some(f64::from(both[0] + both[1]) / 20.0));
    assert_eq!((of(0x1040).ipc, end.blocks.instructions), (None, None), "they differ in it");
}

proptest! {
    /// Nothing is lost between two branches, and the executions of an instruction are those of the blocks that hold it.
    #[test]
    fn every_pair_of_branches_is_an_execution_or_is_counted_as_none(
        branches in prop::collection::vec((0_u64..0x40, 0_u64..0x40, any::<bool>(), any::<bool>(), 0_u16..9), 1..33),
    ) {
        let place = |offset, is_program| if is_program { APP + offset } else { NTDLL + offset };
        let branch = |(from, to, is_from_program, is_to_program, cycles)| {
            (place(from, is_from_program), place(to, is_to_program), cycles)
        };
        let branches: Vec<(u64, u64, u16)> = branches.into_iter().map(branch).collect();
        let found = profiles_of(&branches);
        let counts = |profile: &BranchProfile| profile.ranges.values().map(|block| block.count).sum::<u64>();
        let pairs: u64 = found.modules.iter().map(|profile| counts(profile) + profile.broken).sum();
        prop_assert_eq!(pairs + found.outside, branches.len() as u64 - 1);
        let taken: u64 = found.modules.iter().flat_map(|one| one.sources.values()).map(|count| count.count).sum();
        prop_assert_eq!(taken, branches.len() as u64);
        for profile in &found.modules {
            let offsets: Vec<u32> = (0..0x40).collect();
            for (offset, instruction) in offsets.iter().zip(profile.instructions(&offsets)) {
                let around = profile.ranges.iter().filter(|((begin, end), _)| (begin..=end).contains(&offset));
                prop_assert_eq!(instruction.executions, around.map(|(_, block)| block.count).sum::<u64>());
                let ending = profile.ranges.iter().filter(|((_, end), _)| end == offset);
                prop_assert_eq!(instruction.blocks.cycles, ending.map(|(_, block)| block.cycles).sum::<u64>());
            }
        }
    }
}
