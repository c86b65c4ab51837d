//! `client selftest` as it ships. The model stands in for the processor that executes its loops: it has their events
//! between the same two requests.

use bench_protocol::{
    Disorder, EventCount, HalScript, InterruptSite, Refusal, ScriptedRequest, SiteStack, TraceScript, UserParts,
};
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use object::{Object, ObjectSection, ObjectSymbol};
use protocol::Code;
use serde_json::Value;
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
const INTEL: [(u16, u16); 2] = [(0xC0, 0), (0xC4, 0)];
const AMD: [(u16, u16); 2] = [(0xC0, 0), (0xC2, 0)];
const NETBURST: [(u16, u16); 2] = [(0x02, 0x01), (0x06, 0x0F)];

/// The two functions with loops, and those around them with `--stacks`, from the innermost.
const LOOPS: [&str; 2] = ["5first", "6second"];
const CALLERS: [&str; 3] = ["9innermost", "6middle", "9outermost"];

const CASES: [(&str, [(u16, u16); 2]); 6] = [
    ("haswell-4710mq", INTEL),
    ("zen4-7700x", AMD),
    ("k8-clawhammer", AMD),
    ("intel-v1", INTEL),
    ("sapphire-rapids-2475x", INTEL),
    ("netburst-cedarmill", NETBURST),
];

/// Returns the events of so many iterations, of which the counters see `accuracy` thousandths.
fn events([instructions, branches]: [(u16, u16); 2], iterations: u64, accuracy: u64) -> Vec<EventCount> {
    let seen =
        |(event, umask): (u16, u16), of_each: u64| (event, umask, AROUND + iterations * of_each * accuracy / 1_000);
    vec![seen(instructions, 8), seen(branches, 1)]
}

/// Returns what happens when the requests of a selftest complete.
fn script(selects: [(u16, u16); 2], accuracy: u64) -> Vec<ScriptedRequest> {
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

/// Returns the addresses of functions in client.exe by their names, each of which follows its length.
fn functions<const COUNT: usize>(names: [&str; COUNT]) -> [u64; COUNT] {
    let bytes = std::fs::read(package().unwrap().join("client.debug")).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    names.map(|name| {
        let is_wanted = |symbol: &str| symbol.starts_with("_ZN") && symbol.contains(&format!("known_work{name}"));
        let found: Vec<u64> =
            file.symbols().filter(|symbol| symbol.name().is_ok_and(is_wanted)).map(|symbol| symbol.address()).collect();
        let [address] = found[..] else { panic!("{name}: {found:x?}") };
        address
    })
}

#[test]
fn a_selftest_passes_and_fails_with_counters_that_are_wrong_by_one_percent() {
    let [first, second] = functions(LOOPS);
    let site = |ip, weight| InterruptSite { ip: ip + 4, user: true, process: 1, thread: 1, weight };
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    for (identity, selects) in first_or_all(&CASES, 2) {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        // Otherwise the handler's time on a busy machine pauses the sampling.
        lab.wire.hold_clocks(true).unwrap();
        lab.wire.set_interrupt_sites(0, &[site(first, 3), site(second, 1)]).unwrap();
        for (accuracy, code) in [(1_000, 0), (990, 28)] {
            lab.wire.script_requests(0, script(*selects, accuracy)).unwrap();
            let ran = lab.client(&["selftest", "--json"]).unwrap();
            assert_eq!(ran.code, code, "{identity}, {accuracy}: {}{}", ran.out, ran.err);
            assert_eq!(lab.wire.scripted_requests().unwrap(), 0, "{identity}, {accuracy}");
            let json: Value = serde_json::from_str(&ran.out).unwrap();
            json_schemas::check(&json).unwrap();
            let verdicts: Vec<_> =
                json["checks"].as_array().unwrap().iter().map(|check| check["verdict"].clone()).collect();
            let counted = if code == 0 { "passed" } else { "failed" };
            assert_eq!(verdicts, [counted, counted, "passed", "passed", "passed"], "{identity}, {accuracy}: {json}");
        }
        // The HAL counts what the driver has counted, or 3 % less.
        for (thousandths, verdict) in [(1_000, "passed"), (970, "failed")] {
            lab.wire.script_requests(0, script(*selects, 1_000)).unwrap();
            let of = |times: u64| [8, 1].map(|each| times * 20_000_000 * each * thousandths / 1_000).to_vec();
            let hal = HalScript { known_work: vec![of(1), of(2)], ..HalScript::default() };
            let trace = TraceScript { hal, ..TraceScript::default() };
            let ran = lab.traced_client(&trace, &["selftest", "--compare", "--json"]).unwrap();
            let json: Value = serde_json::from_str(&ran.out).unwrap();
            let of_hal = &json["checks"].as_array().unwrap()[5..];
            assert!(of_hal.len() == 2 && of_hal.iter().all(|check| check["verdict"] == verdict), "{json:#}");
        }
        lab.wire.hold_clocks(false).unwrap();
        lab.uninstall().unwrap();
    }
    lab.finish().unwrap();
}

/// Returns the return addresses of the nested calls in client.exe: each function has one call.
fn return_addresses() -> [u64; 3] {
    let bytes = std::fs::read(package().unwrap().join("client.exe")).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    functions(CALLERS).map(|function| {
        let section =
            file.sections().find(|section| (section.address()..section.address() + section.size()).contains(&function));
        let code = section.unwrap().data_range(function, 256).unwrap().unwrap();
        let instructions = Decoder::with_ip(64, code, function, DecoderOptions::NONE).into_iter();
        let mut calls = instructions
            .take_while(|one| one.flow_control() != FlowControl::Return)
            .filter(|one| matches!(one.flow_control(), FlowControl::Call | FlowControl::IndirectCall));
        let call = calls.next().unwrap();
        assert!(calls.next().is_none(), "{function:#x}");
        call.next_ip()
    })
}

/// Runs a selftest of call stacks. Returns the test of samples with a stack, and that of equal stacks.
fn stacks(lab: &mut Lab, script: &TraceScript) -> [Value; 2] {
    // In real time: the DPC of each interrupt has the time to run before the next one. The counts are then wrong.
    lab.run_in_real_time().unwrap();
    let ran = lab.traced_client(script, &["selftest", "--stacks", "--json"]).unwrap();
    lab.run_by_script().unwrap();
    assert!([0, 28].contains(&ran.code), "{}{}", ran.out, ran.err);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    json_schemas::check(&json).unwrap();
    let named = |name: &str| json["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).cloned();
    ["samples with a stack", "stacks equal to the calls"].map(|name| named(name).unwrap())
}

#[test]
fn call_stacks_are_compared_with_the_calls_that_the_client_executes() {
    let [first] = functions(["5first"]);
    let site = InterruptSite { ip: first + 4, user: true, process: 1, thread: 1, weight: 1 };
    let calls = return_addresses();
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    lab.wire.set_interrupt_sites(0, &[site]).unwrap();
    let disorder = Disorder { seed: 3, user_parts: UserParts::Mixed, delay: 50, shuffle: 10, ..Disorder::default() };
    let script = TraceScript { disorder, ..TraceScript::default() };
    let stack = |calls: &[u64]| SiteStack {
        ip: site.ip,
        process: site.process,
        kernel: Vec::new(),
        user: [&[site.ip], calls, &[0x1_4000_0000]].concat(),
        raised: false,
    };

    lab.wire.set_stacks(vec![stack(&calls)]).unwrap();
    let [with_stack, equal] = stacks(&mut lab, &script);
    assert!(with_stack["measured"].as_f64().unwrap() > 50.0, "{with_stack}");
    assert_eq!(equal["verdict"], "passed", "{equal}");

    let [innermost, middle, outermost] = calls;
    lab.wire.set_stacks(vec![stack(&[innermost, middle + 1, outermost])]).unwrap();
    let [_, equal] = stacks(&mut lab, &script);
    assert_eq!((&equal["verdict"], &equal["measured"]), (&"failed".into(), &0.0.into()), "{equal}");
    let reason = format!("caller 2 is {:#018x}, but the call returns to {middle:#018x}", middle + 1);
    assert!(equal["reason"].as_str().unwrap().ends_with(&reason), "{equal}");

    let refusal = Refusal { function: "StartTraceW".to_owned(), error: 1_450, times: 1 };
    for check in stacks(&mut lab, &TraceScript { refusals: vec![refusal], ..TraceScript::default() }) {
        assert_eq!(check["verdict"], "failed", "{check}");
        let reason = check["reason"].as_str().unwrap();
        assert!(reason.starts_with("Windows refuses the trace session: StartTrace failed: "), "{check}");
    }
    lab.finish().unwrap();
}
