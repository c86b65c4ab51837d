//! A short run with a fixed seed.

use protocol::Code;
use request_fuzzer::{Catalog, Settings, run};

#[test]
fn every_reply_of_a_short_run_is_as_the_model_says() {
    let settings = Settings { seed: 1, requests: 30_000, time: None, threads: 1 };
    let outcome = run(&settings, &Catalog::new(None), &|_, _| ());
    let stats = outcome.unwrap_or_else(|failure| panic!("{}", failure.text));
    for spec in protocol::REQUESTS {
        assert!(stats.of(spec.code).accepted > 0, "no {} was accepted", spec.name);
    }
    assert!(stats.of(Code::Start).accepted > 500, "{stats}");
    assert!(stats.exact > 1_000 && stats.by_ledger > 1_000 && stats.accounts > 100, "{stats}");
    assert!(stats.sleeps > 10 && stats.added > 0 && stats.kills > 50 && stats.foreign > 0, "{stats}");
}
