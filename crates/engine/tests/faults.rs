//! Calls that can fail do so once with each call stack, in every kind of request: allocations of the engine, calls of
//! the platform, and first accesses of registers. The request fails with a cause or goes without the thing, the same
//! request succeeds next, counts are exact, and nothing is left behind. This test has its own program because its
//! allocator makes allocations fail.

#![expect(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "faults/injection.rs"]
mod injection;
#[path = "faults/life.rs"]
mod life;

use std::collections::BTreeMap;

use cpuid_dumps::GENERATIONS;
use protocol::Code;
use request_generator::SCENES;

use injection::{Allocator, Injection};
use life::{Expected, Life};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The processors of a plain test, which have precise records, control areas and extra registers.
const USUAL: [&str; 1] = ["skylake-6600k"];

#[test]
fn a_failure_with_any_call_stack_leaves_nothing_behind_and_the_request_works_next() {
    let is_soak = std::env::var_os("HALPROF_SOAK").is_some();
    for identity in if is_soak { GENERATIONS.to_vec() } else { USUAL.to_vec() } {
        let mut failed: BTreeMap<&str, u32> = BTreeMap::new();
        let mut codes = BTreeMap::new();
        let mut lives = 0;
        Injection::forget_stacks();
        for (name, scene) in SCENES {
            let mut expected = Expected::default();
            Life::run(identity, name, scene, &mut expected, false);
            expected.codes(&mut codes);
            loop {
                lives += 1;
                let live = Injection::live_bytes();
                let function = Life::run(identity, name, scene, &mut expected, true);
                assert_eq!(Injection::live_bytes(), live, "{identity}, {name}: a leak after {function:?} failed");
                let Some(function) = function else { break };
                *failed.entry(function).or_default() += 1;
            }
        }
        println!("{identity}: {} stacks in {lives} lives: {failed:?}", failed.values().sum::<u32>());
        for spec in protocol::REQUESTS {
            let is_served = codes.get(&(spec.code as u32)).is_some_and(|accepted| *accepted);
            assert!(is_served || spec.code == Code::Samples && identity == "pentium-p55c", "{identity}: {}", spec.name);
        }
        for (function, least) in [
            ("alloc", 40),
            ("try_rdmsr", 1),
            ("try_wrmsr", 1),
            ("on_processor", 2),
            ("reserve_counters", 1),
            ("free_counters", 1),
            ("open_local_apic", 1),
            ("begin_sampling", 1),
            ("run_ticks", 1),
            ("start_timers", 1),
            ("add_processor", 1),
            ("allocate_area", 1),
            ("free_area", 1),
            ("ask_hal", 1),
            ("configure_thread_profiling", 1),
            ("release_thread_profiling", 1),
        ] {
            let times = failed.get(function).copied().unwrap_or_default();
            assert!(times >= least || !USUAL.contains(&identity), "{identity}: {function} of {failed:?}");
        }
    }
}
