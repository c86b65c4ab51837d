//! A real Prometheus and a real collector of OpenTelemetry get the numbers of the agent.

mod profiles;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use serde_json::Value;
use tests::{Agent, Lab, get, is_soak, line_with, lines_of, wait_until};

const COUNTING: &str = "[counting]\nevents = [\"TotalIssues\"]\ninterval = \"1s\"\n";

/// Events on each of two CPUs in a second.
const RATE: u64 = 1_000_000;

/// A program that is killed when this is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program(variable: &str) -> Command {
    Command::new(env::var_os(variable).expect("run `cargo xtask test --consumers`"))
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns a number of events, which is below 2^53.
#[expect(clippy::cast_precision_loss, reason = "the tests count fewer events")]
const fn real(events: u64) -> f64 {
    events as f64
}

/// Returns the value of an expression in Prometheus; `None` if it has none.
fn query(address: &str, expression: &str) -> Option<f64> {
    let encoded = expression.bytes().fold(String::new(), |text, byte| format!("{text}%{byte:02X}"));
    let response = get(address, &format!("/api/v1/query?query={encoded}")).ok()?;
    let (_, body) = response.split_once("\r\n\r\n")?;
    let json: Value = serde_json::from_str(body).ok()?; // while the server starts, it says so
    json["data"]["result"][0]["value"][1].as_str()?.parse().ok()
}

/// Waits until an expression has this value.
fn reaches(address: &str, expression: &str, expected: f64) {
    waits_for(address, expression, expected..=expected);
}

/// Waits until so many events are counted, besides those between the driver's accesses, which are fewer than a
/// hundredth.
fn counts(address: &str, expression: &str, events: u64) {
    waits_for(address, expression, real(events)..=real(events) * 1.01);
}

fn waits_for(address: &str, expression: &str, expected: RangeInclusive<f64>) {
    wait_until(&format!("{expression} is not in {expected:?}"), || {
        query(address, expression).is_some_and(|value| expected.contains(&value))
    });
}

/// Executes events for some seconds. Returns their number on both CPUs.
fn execute(lab: &mut Lab, seconds: u64) -> u64 {
    let begin = Instant::now();
    for second in 1..=seconds {
        for processor in 0..2 {
            lab.wire.run(processor, &[(0xC0, 0, RATE)], &[]).unwrap();
        }
        thread::sleep((begin + Duration::from_secs(second)).saturating_duration_since(Instant::now()));
    }
    2 * RATE * seconds
}

/// Returns the number of these events that occurred on both CPUs, by the ledger.
fn occurred(lab: &mut Lab) -> u64 {
    [0, 1].map(|processor| *lab.ledger(processor, 0xC0, 0).unwrap().start()).iter().sum()
}

#[test]
fn prometheus_has_the_ledger_and_sees_restarts_as_resets() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
    let agent = Agent::start(&lab, COUNTING, port).unwrap();
    agent.says("counting 1 events on 2 CPUs").unwrap();
    let configuration = folder.path().join("prometheus.yml");
    let text = format!(
        "global: {{ scrape_interval: 1s }}\nscrape_configs:\n  - job_name: halprof\n    static_configs: \
         [{{ targets: ['{}'] }}]\n",
        agent.address()
    );
    fs::write(&configuration, text).unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let mut prometheus = program("HALPROF_PROMETHEUS");
    prometheus.arg(format!("--config.file={}", configuration.display()));
    prometheus.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
    prometheus.arg(format!("--web.listen-address={address}"));
    let prometheus = Server(prometheus.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    reaches(&address, "halprof_counting", 1.0);

    let events = "halprof_events_total{event=\"TotalIssues\"}";
    let seconds = if is_soak() { 600 } else { 40 };
    let executed = execute(&mut lab, seconds - 2);
    let rate = query(&address, &format!("rate({events}[20s])")).unwrap();
    assert!((rate / real(2 * RATE) - 1.0).abs() < 0.15, "{rate} events a second");
    let total = executed + execute(&mut lab, 2);
    assert_eq!(occurred(&mut lab), total);
    counts(&address, events, total);
    assert_eq!(query(&address, &format!("resets({events}[{seconds}s])")), Some(0.0));
    assert_eq!(query(&address, "halprof_event_running_seconds_total / halprof_event_enabled_seconds_total"), Some(1.0));

    // The driver restarts, and then the agent.
    lab.uninstall().unwrap();
    reaches(&address, "halprof_counting", 0.0);
    lab.install().unwrap();
    agent.says("counting 1 events on 2 CPUs").unwrap();
    let after = execute(&mut lab, 3);
    counts(&address, events, after);
    assert_eq!(query(&address, &format!("resets({events}[1m])")), Some(1.0));
    drop(agent);
    let agent = Agent::start(&lab, COUNTING, port).unwrap();
    agent.says("counting 1 events on 2 CPUs").unwrap();
    let after = execute(&mut lab, 2);
    counts(&address, events, after);
    assert_eq!(query(&address, &format!("resets({events}[1m])")), Some(2.0));
    drop((agent, prometheus));
    lab.finish().unwrap();
}

/// Sends metrics to the Pushgateway, and returns the head of its response.
fn push(address: &str, text: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = "PUT /metrics/job/halprof/instance/bench HTTP/1.0\r\nContent-Length:";
    stream.write_all(format!("{head} {}\r\n\r\n{text}", text.len()).as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn promtool_and_the_pushgateway_know_the_types_of_the_text() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    let agent = Agent::start(&lab, COUNTING, 0).unwrap();
    agent.says("counting 1 events on 2 CPUs").unwrap();
    execute(&mut lab, 2);
    let response = get(agent.address(), "/metrics").unwrap();
    let (head, text) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");

    let mut promtool = program("HALPROF_PROMTOOL");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut promtool = promtool.spawn().unwrap();
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let checked = promtool.wait_with_output().unwrap();
    assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}\n{text}");

    let address = format!("127.0.0.1:{}", free_port());
    let mut gateway = program("HALPROF_PUSHGATEWAY");
    gateway.arg(format!("--web.listen-address={address}"));
    let gateway = Server(gateway.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_until("the Pushgateway does not start", || get(&address, "/-/ready").is_ok());
    let taken = push(&address, text);
    assert!(taken.starts_with("HTTP/1.0 200"), "{taken}");
    let shown = get(&address, "/metrics").unwrap();
    for line in text.lines().filter(|line| line.starts_with("# TYPE ")) {
        assert!(shown.contains(&format!("{line}\n")), "{line}\n{shown}");
    }
    drop((agent, gateway));
    lab.finish().unwrap();
}

#[test]
fn a_collector_of_opentelemetry_gets_the_ledger() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    let [http, grpc] = [free_port(), free_port()];
    let mut rotel = program("HALPROF_ROTEL");
    rotel.args(["start", "--exporter", "blackhole", "--debug-log", "metrics", "--debug-log-verbosity", "detailed"]);
    rotel.arg("--otlp-http-endpoint").arg(format!("127.0.0.1:{http}"));
    rotel.arg("--otlp-grpc-endpoint").arg(format!("127.0.0.1:{grpc}"));
    let mut rotel = Server(rotel.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let lines = lines_of(rotel.0.stdout.take().unwrap());

    let endpoint = format!("[otlp]\nendpoint = \"http://127.0.0.1:{http}/v1/metrics\"\ninterval = \"1s\"\n");
    let agent = Agent::start(&lab, &format!("{COUNTING}{endpoint}"), 0).unwrap();
    agent.says("counting 1 events on 2 CPUs").unwrap();
    let total = execute(&mut lab, 3);
    line_with(&lines, "halprof.events").unwrap();
    // Those between the driver's accesses are fewer than ten thousand.
    assert_eq!(total, 6_000_000);
    line_with(&lines, "Value: 600").unwrap();
    assert_eq!(total, occurred(&mut lab));
    drop((agent, rotel));
    lab.finish().unwrap();
}
