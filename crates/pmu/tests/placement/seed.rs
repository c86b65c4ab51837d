//! Seeds of random tests: printed, and set by the environment to repeat a run.

use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Write, stdout};

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// The variable with the seed to take, in hexadecimal.
const VARIABLE: &str = "HALPROF_SEED";

/// Returns a runner for the test with this name in this file, with a new seed or that of the environment. Prints the
/// seed. The number of cases is that of `PROPTEST_CASES`.
pub fn runner(test: &str, file: &'static str) -> TestRunner {
    let seed = env::var(VARIABLE)
        .ok()
        .map_or_else(|| RandomState::new().build_hasher().finish(), |text| u64::from_str_radix(&text, 16).unwrap());
    // The test harness hides the output of `println` if the test passes.
    let mut output = stdout();
    writeln!(output, "{test}: {VARIABLE}={seed:016x}").unwrap();
    let bytes = [seed; 4].map(u64::to_le_bytes).concat();
    let config = Config { source_file: Some(file), ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}
