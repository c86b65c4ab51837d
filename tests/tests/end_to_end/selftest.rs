//! `client selftest` as it ships. The model stands in for the processor that executes its loops: it has their events
//! between the same two requests.

use bench_protocol::{EventCount, InterruptSite, ScriptedRequest};
use json_schemas::Writer;
use object::{Object, ObjectSymbol};
use protocol::Code;
use tests::{Lab, first_or_all, package};

/// The rounds of a count, and what the client executes in each: iterations of eight instructions and a branch.
const ROUNDS: usize = 10;
const ITERATIONS: [u64; 2] = [250_000, 500_000];

/// Events that the code around the loops has.
const AROUND: u64 = 900;

/// Iterations of the loops while the client samples, in steps that are shorter than an interval.
const SAMPLED: u64 = 20_000_000;
const STEP: u64 = 10_000;

/// Instructions and branches retired on Intel's processors and on AMD's (SDM Vol. 3B, tables of architectural events;
/// PPR, PMCx0C0 and PMCx0C2).
const INTEL: [(u16, u8); 2] = [(0xC0, 0), (0xC4, 0)];
const AMD: [(u16, u8); 2] = [(0xC0, 0), (0xC2, 0)];
const NETBURST: [(u16, u8); 2] = [(0x02, 0x01), (0x06, 0x0F)];

const CASES: [(&str, [(u16, u8); 2]); 6] = [
    ("haswell-4710mq", INTEL),
    ("zen4-7700x", AMD),
    ("k8-clawhammer", AMD),
    ("intel-v1", INTEL),
    ("sapphire-rapids-2475x", INTEL),
    ("netburst-cedarmill", NETBURST),
];

/// Returns the events of so many iterations, of which the counters see `accuracy` thousandths.
fn events([instructions, branches]: [(u16, u8); 2], iterations: u64, accuracy: u64) -> Vec<EventCount> {
    let seen =
        |(event, umask): (u16, u8), of_each: u64| (event, umask, AROUND + iterations * of_each * accuracy / 1_000);
    vec![seen(instructions, 8), seen(branches, 1)]
}

/// Returns what happens when the requests of a selftest complete.
fn script(selects: [(u16, u8); 2], accuracy: u64) -> Vec<ScriptedRequest> {
    let nothing = || ScriptedRequest { code: Code::Read as u32, events: Vec::new() };
    let work = |iterations| ScriptedRequest { events: vec![events(selects, iterations, accuracy)], ..nothing() };
    let mut script = Vec::new();
    for _ in ["instructions", "branches", "instructions in kernel mode"] {
        for iterations in ITERATIONS.repeat(ROUNDS) {
            script.extend([work(iterations), nothing()]);
        }
        script.push(nothing()); // the stop asks for the number of counts
    }
    let steps = (0..SAMPLED / STEP).map(|_| events(selects, STEP, accuracy)).collect();
    script.push(ScriptedRequest { code: Code::Start as u32, events: steps });
    script
}

/// Returns the addresses of the two functions in client.exe.
fn functions() -> [u64; 2] {
    let bytes = std::fs::read(package().unwrap().join("client.debug")).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    ["5first", "6second"].map(|name| {
        let is_wanted = |symbol: &str| symbol.starts_with("_ZN") && symbol.contains(&format!("known_work{name}"));
        let found: Vec<u64> =
            file.symbols().filter(|symbol| symbol.name().is_ok_and(is_wanted)).map(|symbol| symbol.address()).collect();
        let [address] = found[..] else { panic!("{name}: {found:x?}") };
        address
    })
}

#[test]
fn a_selftest_passes_and_fails_with_counters_that_are_wrong_by_one_percent() {
    let [first, second] = functions();
    let site = |ip, weight| InterruptSite { ip: ip + 4, user: true, process: 1, thread: 1, weight };
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    for (identity, selects) in first_or_all(&CASES, 2) {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        // Otherwise the handler's time on a busy machine pauses the sampling.
        lab.wire.hold_counter(true).unwrap();
        lab.wire.set_interrupt_sites(0, &[site(first, 3), site(second, 1)]).unwrap();
        for (accuracy, code) in [(1_000, 0), (990, 28)] {
            lab.wire.script_requests(0, script(*selects, accuracy)).unwrap();
            let ran = lab.client(&["selftest", "--json"]).unwrap();
            assert_eq!(ran.code, code, "{identity}, {accuracy}: {}{}", ran.out, ran.err);
            assert_eq!(lab.wire.scripted_requests().unwrap(), 0, "{identity}, {accuracy}");
            let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
            json_schemas::check(&json, Writer::Present).unwrap();
            let verdicts: Vec<_> =
                json["checks"].as_array().unwrap().iter().map(|check| check["verdict"].clone()).collect();
            let counted = if code == 0 { "passed" } else { "failed" };
            assert_eq!(verdicts, [counted, counted, "passed", "passed", "passed"], "{identity}, {accuracy}: {json}");
        }
        lab.wire.hold_counter(false).unwrap();
        lab.uninstall().unwrap();
    }
    lab.finish().unwrap();
}
