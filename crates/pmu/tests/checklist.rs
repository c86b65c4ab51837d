//! The behaviors that test suites for virtual PMUs check (kvm-unit-tests and the KVM selftests), from the driver's
//! side: one test for each, by its number in the checklist.
//!
//! 13 and 21 concern only the hardware and are in the tests of `model`. 29 is in the tests of `engine`. 30 does not
//! apply, because this driver does not filter events.
//!
//! | numbers | file |
//! |---|---|
//! | 1 to 4, 23, 27, 28, 31: discovery | `discovery.rs` |
//! | 5 to 8, 10, 11, 15, 18, 22, 26: register writes | `registers.rs` |
//! | 9, 12, 14, 16, 17, 19, 20, 24, 25: counting and overflow | `counting.rs` |
//! | behaviors that no other suite checks | `unlisted.rs`; `interrupts.rs` for interrupts |
//! | raw events | `raw.rs` |
//! | HAL PMU design's steps and peculiarities of NetBurst, P6, Pentium | `netburst.rs`, `p6.rs`, `pentium.rs` |
//! | NetBurst: counter assignment; two threads of a core | `assignment.rs`, `threads.rs` |

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod assignment;
mod bench;
mod counting;
mod discovery;
mod interrupts;
mod netburst;
mod p6;
mod pentium;
mod raw;
mod registers;
mod threads;
mod unlisted;
