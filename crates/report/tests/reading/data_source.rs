//! Every code of every encoding of data sources.

use protocol::{AccessEncoding as Encoding, AccessKind, AccessOperation, AccessRecord};
use report::{Blocked, DataSource, MemoryLevel as Level, ModifiedCopy, Snoop, Translation, reports_modified};

fn record(encoding: Encoding, source: u32) -> AccessRecord {
    AccessRecord {
        time: 1,
        address: 0x1000,
        process: 8,
        thread: 9,
        processor: 0,
        event: 0,
        latency: 30,
        kind: AccessKind::Access,
        number: 0,
        source,
        instruction_latency: 0,
        encoding,
        operation: AccessOperation::Load,
    }
}

fn decoded(encoding: Encoding, source: u32) -> DataSource {
    DataSource::of(&record(encoding, source))
}

/// Returns level and snoop of each code of a number of bits, as `L3 HITM`; without an answer of other caches, the level
/// alone.
fn codes(encoding: Encoding, bits: u32) -> Vec<String> {
    let text = |code| {
        let DataSource { level, snoop, .. } = decoded(encoding, code);
        match snoop {
            Snoop::NotReported => level.name().into_owned(),
            snoop => format!("{} {}", level.name(), snoop.name()),
        }
    };
    (0..1 << bits).map(text).collect()
}

const SANDY_BRIDGE: [&str; 16] = [
    "beyond L3",
    "L1 none",
    "fill buffer none",
    "L2 none",
    "L3 none",
    "L3 miss",
    "L3 hit",
    "L3 HITM",
    "remote cache hit",
    "remote cache HITM",
    "DRAM hit",
    "remote DRAM hit",
    "DRAM",
    "remote DRAM",
    "I/O",
    "uncached",
];

fn changed(changes: &[(usize, &'static str)]) -> Vec<&'static str> {
    let of = |(code, usual)| changes.iter().find(|(changed, _)| *changed == code).map_or(usual, |(_, text)| *text);
    SANDY_BRIDGE.into_iter().enumerate().map(of).collect()
}

#[test]
fn each_generation_has_its_own_codes() {
    assert_eq!(codes(Encoding::SandyBridge, 4), SANDY_BRIDGE);
    assert_eq!(codes(Encoding::Nehalem, 4), changed(&[(5, "L3 hit"), (6, "L3 HITM")]));
    let skylake = [
        (8, "L4 or PMEM"),
        (9, "remote PMEM"),
        (11, "remote DRAM"),
        (12, "remote cache forward"),
        (13, "remote cache HITM"),
    ];
    assert_eq!(codes(Encoding::Skylake, 4), changed(&skylake));
    assert_eq!(codes(Encoding::Gracemont, 4), changed(&[(5, "L3 hit"), (6, "L3 HITM"), (8, "L3 forward")]));
    let crestmont = [
        (5, "L3 hit"),
        (6, "L3 HITM"),
        (7, "L3 forward"),
        (8, "L3 HITM"),
        (10, "DRAM"),
        (11, "remote DRAM"),
        (12, "remote cache forward"),
        (13, "remote cache HITM"),
    ];
    let found = codes(Encoding::Crestmont, 5);
    assert_eq!(found[..16], changed(&crestmont));
    assert_eq!([&found[16], &found[31]], ["unknown (0x10)", "unknown (0x1f)"]);
    assert!(found[16..].iter().all(|text| text.starts_with("unknown")), "{found:?}");
}

#[test]
fn lion_cove_has_eight_bits_of_which_few_mean_something() {
    let known = [
        (0x01, "L1 none"),
        (0x02, "L1 none"),
        (0x03, "fill buffer none"),
        (0x05, "L2 none"),
        (0x06, "L2 miss buffer none"),
        (0x08, "L3 none"),
        (0x0C, "L3 forward"),
        (0x0D, "L3 HITM"),
        (0x0F, "other cache HITM"),
        (0x10, "memory-side cache none"),
        (0x11, "DRAM none"),
    ];
    for (code, found) in codes(Encoding::LionCove, 8).iter().enumerate() {
        let known = known.iter().find(|(one, _)| *one == code).map(|(_, text)| (*text).to_owned());
        assert_eq!(*found, known.unwrap_or(format!("unknown ({code:#x})")));
    }
}

/// Bits of the page walk, the lock, the data and the address of an earlier store; where there is none, 31.
#[test]
fn bits_beside_the_code_differ_by_generation() {
    for (encoding, [walk, lock, data, address]) in [
        (Encoding::SandyBridge, [4, 5, 31, 31]),
        (Encoding::Skylake, [4, 5, 6, 7]),
        (Encoding::Gracemont, [5, 4, 6, 31]),
        (Encoding::Crestmont, [6, 5, 7, 31]),
        (Encoding::LionCove, [10, 11, 12, 13]),
        (Encoding::Store, [4, 5, 31, 31]),
    ] {
        let of = |bits: u32| {
            let DataSource { translation, locked, blocked, .. } = decoded(encoding, 1 | bits);
            (translation, locked, blocked)
        };
        assert_eq!(of(0), (Translation::Hit, false, Blocked::No), "{encoding:?}");
        assert_eq!(of(1 << walk), (Translation::Miss, false, Blocked::No), "{encoding:?}");
        assert_eq!(of(1 << lock), (Translation::Hit, true, Blocked::No), "{encoding:?}");
        let blocked = |bit, wanted| if bit == 31 { Blocked::No } else { wanted };
        assert_eq!(of(1 << data).2, blocked(data, Blocked::Data), "{encoding:?}");
        assert_eq!(of(1 << address).2, blocked(address, Blocked::Address), "{encoding:?}");
        if address != 31 {
            assert_eq!(of(1 << data | 1 << address).2, Blocked::Both);
        }
    }
    let DataSource { translation, locked, .. } = decoded(Encoding::Nehalem, 0x31);
    assert_eq!((translation, locked), (Translation::NotReported, false), "Nehalem has neither bit");
}

#[test]
fn stores_say_only_whether_they_hit_the_first_cache() {
    assert_eq!(decoded(Encoding::Store, 1).level, Level::L1);
    assert_eq!(decoded(Encoding::Store, 0).level, Level::BeyondL1);
}

/// Fields of the source of IBS.
const MISS: u32 = 1 << 7;
const UNCACHEABLE: u32 = 1 << 14;
const LOCKED: u32 = 1 << 15;
const NO_BUFFER: u32 = 1 << 16;
const LINEAR: u32 = 1 << 17;
const PHYSICAL: u32 = 1 << 18;
const L2_MISS: u32 = 1 << 20;
const PREFETCH: u32 = 1 << 21;
const REMOTE: u32 = 1 << 27;
const NOT_MODIFIED: u32 = 1 << 28;
const HAS_SOURCE: u32 = 1 << 31;

/// A load that missed both caches, with this code.
const fn beyond(code: u32) -> u32 {
    MISS | L2_MISS | HAS_SOURCE | code << 22
}

fn level(encoding: Encoding, source: u32) -> String {
    decoded(encoding, source).level.name().into_owned()
}

#[test]
fn ibs_has_three_bits_of_source_before_zen_4() {
    let known = [(2, "L3"), (3, "DRAM"), (4, "remote cache"), (7, "I/O")];
    for encoding in [Encoding::Ibs, Encoding::IbsZen3, Encoding::IbsZen3Client] {
        for code in 0..32 {
            let low = code & 7;
            let known = known.iter().find(|(one, _)| *one == low).map(|(_, text)| (*text).to_owned());
            let unknown = if low == 0 { "not reported".to_owned() } else { format!("unknown ({low:#x})") };
            assert_eq!(level(encoding, beyond(code)), known.unwrap_or(unknown), "{encoding:?} {code}");
        }
        assert_eq!(level(encoding, beyond(3) | REMOTE), "remote DRAM");
    }
}

#[test]
fn ibs_has_five_bits_of_source_from_zen_4_on() {
    let known = [
        (1, "L3", "L3"),
        (2, "other cache", "other cache"),
        (3, "DRAM", "remote DRAM"),
        (5, "remote cache", "remote cache"),
        (6, "PMEM", "remote PMEM"),
        (7, "I/O", "I/O"),
        (8, "CXL", "remote CXL"),
    ];
    for code in 0..32 {
        let unknown = if code == 0 { "not reported".to_owned() } else { format!("unknown ({code:#x})") };
        let [local, remote] = match known.iter().find(|(one, ..)| *one == code) {
            Some((_, local, remote)) => [(*local).to_owned(), (*remote).to_owned()],
            None => [unknown.clone(), unknown],
        };
        assert_eq!(level(Encoding::IbsZen4, beyond(code)), local, "{code}");
        assert_eq!(level(Encoding::IbsZen4, beyond(code) | REMOTE), remote, "{code}");
    }
}

#[test]
fn ibs_decides_in_the_order_of_perf() {
    for encoding in [Encoding::Ibs, Encoding::IbsZen3, Encoding::IbsZen3Client, Encoding::IbsZen4] {
        for (source, wanted) in [
            (0, "L1"),
            // What the code says of a hit is stale.
            (HAS_SOURCE | 3 << 22, "L1"),
            (MISS, "L2"),
            (MISS | HAS_SOURCE | 3 << 22, "L2"),
            (UNCACHEABLE, "uncached"),
            (UNCACHEABLE | beyond(3), "uncached"),
            (UNCACHEABLE | HAS_SOURCE | 7 << 22, "I/O"),
            // Without a valid code, as of stores.
            (MISS | L2_MISS | 3 << 22, "beyond L2"),
            (MISS | L2_MISS | NO_BUFFER, "fill buffer"),
            (beyond(0) | NO_BUFFER, "fill buffer"),
        ] {
            assert_eq!(level(encoding, source), wanted, "{encoding:?} {source:#x}");
        }
    }
}

#[test]
fn erratum_1293_leaves_the_source_unknown() {
    for (encoding, is_wrong) in [
        (Encoding::Ibs, false),
        (Encoding::IbsZen3, true),
        (Encoding::IbsZen3Client, false),
        (Encoding::IbsZen4, false),
    ] {
        let wanted = |right: &str, wrong: &str| if is_wrong { wrong.to_owned() } else { right.to_owned() };
        assert_eq!(level(encoding, beyond(3) | PREFETCH), wanted("DRAM", "not reported"));
        assert_eq!(level(encoding, MISS | PREFETCH), wanted("L2", "not reported"));
        assert_eq!(level(encoding, beyond(3) | NO_BUFFER), wanted("DRAM", "fill buffer"));
        assert_eq!(level(encoding, MISS | NO_BUFFER), wanted("L2", "fill buffer"));
    }
}

#[test]
fn a_modified_copy_is_claimed_only_of_caches_and_where_the_state_is_valid() {
    for (encoding, code, wanted) in [
        (Encoding::Ibs, 2, Some(ModifiedCopy::Local)),
        (Encoding::Ibs, 4, Some(ModifiedCopy::Remote)),
        (Encoding::Ibs, 3, None),
        (Encoding::IbsZen3, 2, None),
        (Encoding::IbsZen3Client, 4, None),
        (Encoding::IbsZen4, 1, Some(ModifiedCopy::Local)),
        (Encoding::IbsZen4, 2, Some(ModifiedCopy::Local)),
        (Encoding::IbsZen4, 5, Some(ModifiedCopy::Remote)),
        (Encoding::IbsZen4, 3, None),
        (Encoding::IbsZen4, 4, None),
    ] {
        assert_eq!(decoded(encoding, beyond(code)).modified_copy(), wanted, "{encoding:?} {code}");
        assert_eq!(decoded(encoding, beyond(code) | NOT_MODIFIED).modified_copy(), None);
    }
    assert_eq!(decoded(Encoding::Skylake, 0xD).modified_copy(), Some(ModifiedCopy::Remote));
    assert_eq!(decoded(Encoding::Skylake, 0x7).modified_copy(), Some(ModifiedCopy::Local));
    assert_eq!(decoded(Encoding::LionCove, 0xF).modified_copy(), Some(ModifiedCopy::Local));
    let silent = [Encoding::Store, Encoding::IbsZen3, Encoding::IbsZen3Client];
    assert!(silent.iter().all(|one| !reports_modified(*one)) && reports_modified(Encoding::Nehalem));
}

#[test]
fn ibs_says_how_an_address_was_translated_if_it_has_one() {
    let of = |encoding, source| decoded(encoding, source).translation;
    for encoding in [Encoding::Ibs, Encoding::IbsZen3, Encoding::IbsZen3Client, Encoding::IbsZen4] {
        let valid = LINEAR | PHYSICAL;
        assert_eq!(of(encoding, valid), Translation::L1Hit);
        assert_eq!(of(encoding, valid | 1 << 2), Translation::L2Hit);
        assert_eq!(of(encoding, valid | 1 << 2 | 1 << 3), Translation::Miss);
        assert_eq!(of(encoding, 1 << 2 | PHYSICAL), Translation::NotReported);
        assert!(decoded(encoding, LOCKED).locked);
    }
    assert_eq!(of(Encoding::Ibs, LINEAR), Translation::L1Hit);
    assert_eq!(of(Encoding::IbsZen4, LINEAR), Translation::NotReported);
}

/// Bits of the source of a fetch.
const COMPLETE: u32 = 1 << 2;
const CACHE_MISS: u32 = 1 << 3;
const HAS_PHYSICAL: u32 = 1 << 4;
const L1_TLB_MISS: u32 = 1 << 7;
const L2_TLB_MISS: u32 = 1 << 8;
const FETCH_L2_MISS: u32 = 1 << 10;
const OP_CACHE_MISS: u32 = 1 << 12;
const L3_MISS: u32 = 1 << 13;

const FETCHES: [Encoding; 4] =
    [Encoding::IbsFetch, Encoding::IbsFetchZen, Encoding::IbsFetchZen3, Encoding::IbsFetchZen4];

#[test]
fn a_fetch_says_which_cache_delivered_it_as_far_as_its_generation_does() {
    let delivered = COMPLETE | HAS_PHYSICAL;
    for (misses, wanted) in [
        (0, ["L1", "L1", "not reported", "op cache"]),
        (OP_CACHE_MISS, ["L1", "L1", "not reported", "L1"]),
        (OP_CACHE_MISS | CACHE_MISS, ["beyond L1", "L2", "not reported", "L2"]),
        (OP_CACHE_MISS | CACHE_MISS | FETCH_L2_MISS, ["beyond L1", "beyond L2", "beyond L2", "L3"]),
        (OP_CACHE_MISS | CACHE_MISS | FETCH_L2_MISS | L3_MISS, ["beyond L1", "beyond L2", "beyond L2", "beyond L3"]),
    ] {
        assert_eq!(FETCHES.map(|encoding| level(encoding, delivered | misses)), wanted, "{misses:x}");
        assert_eq!(FETCHES.map(|encoding| level(encoding, HAS_PHYSICAL | misses)), ["abandoned"; 4], "{misses:x}");
    }
    // From Zen 5 on nothing else is valid without a physical address.
    assert_eq!(FETCHES.map(|encoding| level(encoding, COMPLETE)), ["L1", "L1", "not reported", "not reported"]);
}

#[test]
fn a_fetch_says_how_its_address_was_translated() {
    for (misses, wanted) in
        [(0, Translation::L1Hit), (L1_TLB_MISS, Translation::L2Hit), (L1_TLB_MISS | L2_TLB_MISS, Translation::Miss)]
    {
        for encoding in FETCHES {
            let of = |valid| decoded(encoding, COMPLETE | valid | misses).translation;
            assert_eq!(of(HAS_PHYSICAL), wanted, "{encoding:?}");
            let is_zen4 = encoding == Encoding::IbsFetchZen4;
            assert_eq!(of(0), if is_zen4 { Translation::NotReported } else { wanted }, "{encoding:?}");
        }
    }
}
