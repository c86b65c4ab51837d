//! What an interrupt costs from the overflow to the record in the ring: the accesses of `profile`, and none more.

use model::Mode;
use native_lab::{Board, Client};

use super::scene::{IDENTITIES, SHORT, engine, event, interrupted, on, started};

/// Far longer than what runs here.
const LONG: u32 = 0x7FFF_0000;

/// RDMSR, WRMSR, RDPMC of processor 0.
fn accesses(board: &Board) -> [u64; 3] {
    let accesses = board.processor(0).model().accesses();
    [accesses.rdmsr, accesses.wrmsr, accesses.rdpmc]
}

#[test]
fn an_interrupt_with_k_of_n_counters_overflowed_costs_what_the_design_allows_and_one_that_drops_no_less() {
    for name in IDENTITIES {
        let global = !matches!(name, "amd-legacy" | "intel-v1");
        for n in 1..=4_u64 {
            for k in 0..=n {
                for full in [false, true] {
                    let board = Board::named(name, 1);
                    let mut engine = engine(&board);
                    let client = Client::open(&mut engine, 1, 10);
                    let sources = [2, 6, 11, if name == "amd-legacy" { 8 } else { 10 }];
                    let events: Vec<_> = (0..n)
                        .zip(sources)
                        .map(|(number, source)| event(source, if number < k { SHORT } else { LONG }))
                        .collect();
                    started(client, &mut engine, 64, on(&[]), &events);
                    let serve = || {
                        board.run(0, Mode::User, &|_| SHORT.into());
                        let before = accesses(&board);
                        if k > 0 {
                            assert_eq!(board.deliver(&engine, 0, &interrupted(0)).0, 1);
                        } else {
                            engine.sampler().interrupt(board.processor(0), 0, || 0, &interrupted(0)); // spurious
                        }
                        let after = accesses(&board);
                        [after[0] - before[0], after[1] - before[1], after[2] - before[2]]
                    };
                    for _ in 0..if full { 70 } else { 0 } {
                        serve();
                    }
                    let budget = if global { [1, 3 + k, k] } else { [0, k, n] };
                    assert_eq!(serve(), budget, "{name}: {k} of {n}, the ring full: {full}");
                }
            }
        }
    }
}
