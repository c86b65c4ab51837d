//! The profiles that the agent pushes, as `go tool pprof` decodes them.

use std::collections::BTreeMap;
use std::process::Command;
use std::{fs, str};

use base64ct::{Base64, Encoding};
use bench_protocol::TraceScript;
use http_server::{Request, Server, answer};
use serde_json::Value;
use tests::{Agent, Lab, SHARES};

/// Returns the configuration of an agent that takes one profile at once and pushes it.
fn configuration(server: &Server, to: &str, stacks: bool) -> String {
    format!(
        "[counting]\nevents = [\"TotalIssues\"]\ninterval = \"1s\"\n\
         [budget]\nregister-accesses-per-second = 100000\ninterrupts-per-second = 10000\n\
         [profiles]\nevent = \"TotalIssues\"\nfrequency = 1000\nduration = \"2s\"\nevery = \"1h\"\nstacks = {stacks}\n\
         push = {{ to = \"{to}\", url = \"http://{}\", buffer = 'C:\\buffer' }}\n",
        server.address()
    )
}

/// Returns the profile in a request.
fn pprof(request: &Request) -> Vec<u8> {
    if request.header("content-type") != "application/json" {
        assert!(request.target.starts_with("POST /ingest?name=halprof"), "{}", request.target);
        return request.body.clone();
    }
    assert_eq!(request.target, "POST /api/profiles/writeraw");
    let json: Value = serde_json::from_slice(&request.body).unwrap();
    let profile = &json["series"][0]["samples"][0]["rawProfile"];
    Base64::decode_vec(profile.as_str().unwrap()).unwrap()
}

/// Returns the samples of each function that `go tool pprof -top` prints: in it, and in what it calls. The names are
/// without their arguments: no function of the workload has a namesake.
fn decoded(pprof: &[u8]) -> BTreeMap<String, [u64; 2]> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.pb.gz");
    fs::write(&file, pprof).unwrap();
    let mut go = Command::new("go");
    go.args(["tool", "pprof", "-top", "-sample_index=samples", "-nodecount=1000000", "-nodefraction=0"]).arg(&file);
    let output = go.env("HOME", folder.path()).output().expect("run `cargo xtask test --consumers`");
    assert!(output.status.success(), "{}", str::from_utf8(&output.stderr).unwrap());
    let text = str::from_utf8(&output.stdout).unwrap();
    let rows = text.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1);
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = words[5..].join(" ");
        let alone = if name.starts_with('[') { &name } else { name.split('(').next().unwrap() };
        (alone.to_owned(), [words[0], words[3]].map(|number| number.parse().unwrap()))
    };
    rows.map(row).collect()
}

/// Returns the value of a counter without labels.
fn metric(metrics: &str, name: &str) -> u64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
}

#[test]
fn pushed_profiles_have_the_interrupts_of_the_bench() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    let workload = lab.workload().unwrap();
    for (to, stacks) in [("pyroscope", true), ("parca", false)] {
        lab.execute_with_stacks(&workload.description).unwrap();
        // The first attempt fails.
        let mut attempts = 0;
        let server = Server::start(usize::MAX, move |_| {
            attempts += 1;
            answer(if attempts == 1 { "503 Service Unavailable" } else { "200 OK" }, b"")
        });
        lab.run_in_real_time().unwrap();
        let agent = Agent::start_traced(&lab, &TraceScript::default(), &configuration(&server, to, stacks)).unwrap();
        let [first, second] = [server.request(), server.request()];
        lab.run_by_script().unwrap();
        agent.reaches("halprof_profiles_total{outcome=\"sent\"}", 1.0).unwrap();
        agent.reaches("halprof_export_failures_total{to=\"profiles\"}", 1.0).unwrap();
        assert!(first.body == second.body, "the second attempt is another profile");
        let metrics = agent.scrape().unwrap();
        drop(agent);

        let decoded = decoded(&pprof(&second));
        let interrupts = lab.interrupts_by_address().unwrap();
        let all: u64 = interrupts.values().sum();
        let samples = metric(&metrics, "halprof_profile_samples_total");
        let lost = metric(&metrics, "halprof_profile_samples_lost_total");
        assert_eq!((samples + lost, decoded.values().map(|[flat, _]| flat).sum()), (all, samples), "{to}");
        assert!(samples > 500 && lost < 10, "{to}: {samples} samples, {lost} lost");
        for function in &workload.description.functions {
            let Some([_, found]) = decoded.get(&format!("workload::functions::{}", function.name)) else { continue };
            let inside = function.address..function.address + function.size;
            let expected: u64 = interrupts.range(inside).map(|(_, interrupts)| interrupts).sum();
            assert!((expected - lost..=expected).contains(found), "{to}: {} has {found} of {expected}", function.name);
        }
        assert!(SHARES.iter().all(|(name, _)| decoded.contains_key(&format!("workload::functions::{name}"))));
        let without: u64 =
            decoded.iter().filter(|(name, _)| name.starts_with("[no stack")).map(|(_, [_, all])| all).sum();
        let called = decoded.get("workload::callers::run").map(|[_, called]| called + without);
        assert_eq!(called, stacks.then_some(samples), "{to}: {decoded:#?}");
    }
    drop(workload);
    lab.finish().unwrap();
}
