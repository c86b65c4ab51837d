//! A short run with a fixed seed.

use std::time::Duration;

use protocol::{Code, ErrorCode};
use request_fuzzer::{Catalog, DAYS, Kind, SCARCE, Settings, day, replay, run};

const HONEST: Kind = Kind::Honest { scarce: SCARCE };

#[test]
fn every_reply_of_a_short_run_is_as_the_model_says() {
    let settings = Settings { seed: 1, requests: 30_000, time: None, threads: 1, kind: HONEST, last_steps: 60 };
    let outcome = run(&settings, &Catalog::new(None), &|_, _| ());
    let stats = outcome.unwrap_or_else(|failure| panic!("{}", failure.text));
    for spec in protocol::REQUESTS {
        assert!(stats.of(spec.code).accepted > 0, "no {} was accepted", spec.name);
    }
    assert!(stats.of(Code::Start).accepted > 500, "{stats}");
    assert!(stats.exact > 1_000 && stats.by_ledger > 1_000 && stats.accounts > 100, "{stats}");
    assert!(stats.sleeps > 10 && stats.added > 0 && stats.kills > 50 && stats.foreign > 0, "{stats}");
}

#[test]
fn a_short_run_meets_what_is_scarce() {
    let settings = Settings {
        seed: 1,
        requests: 25_000,
        time: None,
        threads: 1,
        kind: Kind::Honest { scarce: 100 },
        last_steps: 60,
    };
    let outcome = run(&settings, &Catalog::new(None), &|_, _| ());
    let stats = outcome.unwrap_or_else(|failure| panic!("{}", failure.text));
    for cause in [
        ErrorCode::TooManySessions,
        ErrorCode::RingsTooLarge,
        ErrorCode::TooManyRawEvents,
        ErrorCode::ExtraRegisterTaken,
        ErrorCode::ForeignUse,
        ErrorCode::CountersDoNotWork,
    ] {
        assert!(stats.refused_for(cause) > 0, "{cause:?}: {stats}");
    }
}

#[test]
fn an_engine_that_is_lied_to_keeps_its_rules() {
    let settings = Settings { seed: 1, requests: 30_000, time: None, threads: 1, kind: Kind::Lying, last_steps: 60 };
    let outcome = run(&settings, &Catalog::new(None), &|_, _| ());
    let stats = outcome.unwrap_or_else(|failure| panic!("{}", failure.text));
    assert!(stats.lies > 1_000 && stats.sessions > 300 && stats.interrupts > 300, "{stats}");
    assert!(stats.refused_for(ErrorCode::RegisterFault) > 100, "{stats}");
}

#[test]
fn minutes_of_a_day_pass_with_every_count_and_time_exact() {
    let catalog = Catalog::new(None);
    for (seed, name) in (1..).zip(DAYS) {
        let identity = cpuid_dumps::find(name).unwrap();
        let outcome = day(seed, Duration::from_mins(4), identity, &catalog);
        let stats = outcome.unwrap_or_else(|failure| panic!("{}", failure.text));
        assert!(stats.requests > 500 && stats.sessions > 20 && stats.interrupts > 500, "{name}: {stats}");
        assert!(stats.by_ledger > 100 && stats.times > 100 && stats.added == 2, "{name}: {stats}");
    }
}

#[test]
fn bytes_of_any_number_lead_to_an_episode_that_ends() {
    let catalog = Catalog::new(None);
    let bytes = [0x5A; 400];
    let requests: Vec<u64> =
        [0, 1, 40, 400].map(|count| replay(&bytes[..count], HONEST, 60, &catalog).unwrap().requests).into();
    assert!(requests.is_sorted() && requests[0] < requests[3], "{requests:?}");
    // The same bytes lead to the same episode.
    assert_eq!(replay(&bytes, HONEST, 60, &catalog).unwrap().requests, requests[3]);
}
