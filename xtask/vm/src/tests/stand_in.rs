//! A stand-in for a guest: a small machine that answers as Windows and the client do, and that crashes where a test
//! wants.

use std::{fs, path::Path, time::Duration};

use anyhow::anyhow;
use serde_json::{Value, json};

use crate::guest::{Call, Clock, Failure, Guest, HostAction, HostResult, Ran};

/// A clock that waits at once.
#[derive(Default)]
pub struct FakeClock(pub Duration);

impl Clock for FakeClock {
    fn now(&self) -> Duration {
        self.0
    }

    fn sleep(&mut self, time: Duration) {
        self.0 += time;
    }
}

/// What goes wrong at a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The guest crashes, with dumps.
    Crash,
    /// The guest crashes after the program has ended.
    CrashAfterwards,
    /// The guest stops to answer.
    Hang,
    /// The program runs for ever.
    Endless,
    /// The connection is lost, and the guest runs on.
    Disconnect,
    /// The host's command ends here, as if the user had ended it.
    HostEnds,
    /// The host's command ends, and the guest crashes meanwhile.
    HostEndsAndCrash,
}

/// The machine.
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
pub struct StandIn {
    /// Whether it has counters.
    pub pmu: bool,
    /// Whether Secure Boot refuses test signing.
    pub secure_boot: bool,
    /// Whether the transport controls the hypervisor.
    pub hypervisor: bool,
    /// Whether it can be reached at all.
    pub reachable: bool,
    /// What goes wrong, once, at the first command that contains the text.
    pub trouble: Option<(String, Trouble)>,
    /// The commands that were run, without those that look for the guest.
    pub calls: Vec<String>,
    boot: u32,
    down_for: u32,
    hangs: bool,
    crashes_next: bool,
    dumps: Vec<String>,
    /// How often the dump is listed until Windows has written it.
    unwritten: u32,
    wants_test_signing: bool,
    test_signing: bool,
    installed: bool,
    runs: bool,
    /// Whether a detached session runs.
    session: bool,
    /// Whether a program runs that the host's command does not wait for any more.
    leftover: bool,
    /// Names of the recordings.
    recordings: Vec<String>,
    wants_verifier: bool,
    verifier: bool,
    /// Whether the payload is there.
    copied: bool,
}

impl StandIn {
    /// Returns a machine with counters on which nothing goes wrong.
    pub fn new() -> Self {
        Self {
            pmu: true,
            secure_boot: false,
            hypervisor: true,
            reachable: true,
            trouble: None,
            calls: Vec::new(),
            boot: 133_000,
            down_for: 0,
            unwritten: 0,
            hangs: false,
            crashes_next: false,
            dumps: vec![r"C:\Windows\Minidump\old.dmp|1000|5".to_owned()],
            wants_test_signing: false,
            test_signing: false,
            installed: false,
            runs: false,
            session: false,
            leftover: false,
            recordings: Vec::new(),
            wants_verifier: false,
            verifier: false,
            copied: false,
        }
    }

    /// Returns a machine with one trouble.
    pub fn with(at: &str, trouble: Trouble) -> Self {
        Self { trouble: Some((at.to_owned(), trouble)), ..Self::new() }
    }

    /// Resets a machine that hangs, as its user does.
    pub fn host_resets(&mut self) {
        self.hangs = false;
        self.restart();
    }

    fn crash(&mut self) {
        self.restart();
        self.dumps.retain(|dump| !dump.starts_with(r"C:\Windows\MEMORY.DMP"));
        self.unwritten = 4;
        let boot = self.boot;
        self.dumps.push(format!(r"C:\Windows\MEMORY.DMP|900000000|{boot}"));
        self.dumps.push(format!(r"C:\Windows\Minidump\{boot}.dmp|300000|{boot}"));
    }

    fn restart(&mut self) {
        self.boot += 1;
        self.down_for = 3;
        self.test_signing = self.wants_test_signing;
        self.verifier = self.wants_verifier;
        (self.runs, self.session, self.leftover) = (false, false, false);
    }

    fn lost<T>(text: &str) -> Result<T, Failure> {
        Err(Failure::Lost(text.to_owned()))
    }

    fn answer(&mut self, call: &Call) -> Ran {
        if ["client.exe", "halprof-agent.exe", "end_to_end.exe"].iter().any(|image| *call == Call::end(image)) {
            self.leftover = false;
            return Ran { code: 128, err: "ERROR: The process is not found.".to_owned(), ..Ran::default() };
        }
        assert!(!self.leftover, "{} runs beside the program of the step that was ended", call.line());
        let words: Vec<&str> = call.arguments.iter().map(String::as_str).collect();
        let program = call.program.rsplit('\\').next().unwrap();
        match (program, words.as_slice()) {
            ("client.exe", words) => {
                assert!(self.copied, "the client is not there yet");
                self.client(words)
            }
            ("cmd.exe", ["/c", "ver"]) => out("\nMicrosoft Windows [Version 10.0.26100.1]\n"),
            ("bcdedit.exe", _) if self.secure_boot => {
                Ran { code: 1, err: "The value is protected by Secure Boot policy".to_owned(), ..Ran::default() }
            }
            ("bcdedit.exe", _) => {
                self.wants_test_signing = true;
                out("The operation completed successfully.\n")
            }
            ("powershell.exe", [.., line]) if line.contains("SystemStartOptions") => {
                out(if self.test_signing { " TESTSIGNING  NOEXECUTE=OPTIN\n" } else { " NOEXECUTE=OPTIN\n" })
            }
            ("powershell.exe", [.., line]) if line.contains("DeviceGuard") => out("False\n"),
            ("powershell.exe", [.., line]) if line.contains("EventAccessQuery") => {
                assert!(self.runs, "the driver is not installed");
                out("O:BAG:BAD:(A;;0x120fff;;;SY)(A;;0x120fff;;;BA)\n")
            }
            ("powershell.exe", [.., line]) if line.contains("LOCALSERVICE") => out("control True\nhalprof False\n"),
            ("powershell.exe", [.., line]) if line.contains("pending-stop.rec") => {
                out("ended False\nopen Stop Pending\nclosed Stopped\nstarted Running\n")
            }
            ("powershell.exe", [.., line]) if line.contains("cabinet.dll") => out("client 0.1.0\nexit 0\n"),
            ("powershell.exe", [.., line]) if line.contains("Junction") => out("x leads to another place\nwritten 0\n"),
            ("powershell.exe", [.., line]) if line.contains("agent.toml") => {
                out("exposed 2\ninstall 0\nstate Running\n\
                 path \"C:\\Program Files\\halprof\\halprof-agent.exe\" agent run\nleft False\n")
            }
            ("verifier.exe", ["/reset"]) => {
                self.wants_verifier = false;
                Ran { code: 2, ..Ran::default() }
            }
            ("verifier.exe", ["/querysettings"]) if self.verifier => out("Verified drivers:\n\nhalprof.sys\n"),
            ("verifier.exe", ["/querysettings"]) => out("Verified drivers:\n\nNone\n"),
            ("verifier.exe", _) => {
                self.wants_verifier = true;
                Ran { code: 2, ..Ran::default() }
            }
            ("end_to_end.exe", _) if self.installed => {
                Ran { code: 101, out: "halprof is installed on this machine\n".to_owned(), ..Ran::default() }
            }
            ("end_to_end.exe", [filter, ..]) => {
                out(&format!("test {filter}first ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n"))
            }
            ("sc.exe", ["stop", "halprof"]) if self.runs => {
                self.runs = false;
                Ran::default()
            }
            ("sc.exe", ["start", "halprof"]) if self.installed => {
                self.runs = true;
                Ran::default()
            }
            ("sc.exe", _) => refused(1060, "FAILED"),
            ("powershell.exe" | "reg.exe" | "certutil.exe" | "pnputil.exe" | "wpr.exe", _) => Ran::default(),
            other => panic!("an unexpected program: {other:?}"),
        }
    }

    fn client(&mut self, words: &[&str]) -> Ran {
        match words {
            ["install"] if !self.test_signing => refused(
                15,
                "error: Windows would not load halprof.sys\n  because: it is signed for tests, by \"halprof test \
                 signing\", and test signing is off\n",
            ),
            ["install"] => {
                (self.installed, self.runs) = (true, true);
                out("service halprof started\n")
            }
            ["uninstall"] => {
                (self.installed, self.runs, self.session) = (false, false, false);
                out("service halprof deleted\n")
            }
            ["status"] if !self.installed => refused(3, "error: halprof is not installed\n"),
            ["report" | "flamegraph", file, ..] if !self.recordings.iter().any(|name| name == file) => {
                refused(21, &format!("error: {file} is not found\n"))
            }
            _ if !self.runs => refused(4, "error: halprof does not run\n  try: .\\client install\n"),
            ["info", ..] => self.info(),
            ["diagnose", "--live", "--json"] => {
                let (processors, sources) = (json!([{ "registers": [] }]), json!([{ "name": "Time" }]));
                json_output(&json!({ "schema": "halprof.live/1", "processors": processors, "hal_sources": sources }))
            }
            _ if !self.pmu && needs_counters(words) => refused(7, "error: no counters\n"),
            ["selftest", .., "--json"] => {
                let verified = words.contains(&"--threads").then(|| json!({ "reading": "memory" }));
                let verdict = json!({
                    "schema": "halprof.selftest/1", "verdict": "passed", "checks": [], "verified_threads": verified,
                });
                json_output(&verdict)
            }
            ["stat", ..] => stat(words),
            ["record", ..] => {
                let file = words.iter().position(|word| *word == "-o").map(|at| words[at + 1]).unwrap();
                self.recordings.push(file.to_owned());
                let summary = "[ recorded 1,820 samples (0 lost, paused 0.0 % of the time) in 1.0 s to x ]\n";
                let stacks = "[ stacks: 96.4 % of samples; 0.8 % truncated; 2.8 % missing ]\n";
                let stacks = if words.contains(&"-g") { stacks } else { "" };
                Ran { err: format!("{summary}{stacks}"), ..Ran::default() }
            }
            ["report", _, "--json"] => json_output(
                &json!({ "schema": "halprof.report/1", "sources": [{ "name": "TotalCycles", "samples": 1820 }] }),
            ),
            ["control-area", ..] => {
                let area = json!({ "processor": 0, "size": null, "branches": false, "precise_format": null });
                json_output(&json!({ "schema": "halprof.control-area/1", "areas": [area] }))
            }
            ["start", ..] => {
                self.session = true;
                Ran::default()
            }
            ["stop", ..] if !self.session => refused(10, "error: no session counts TotalCycles\n"),
            ["status" | "list" | "stop" | "report" | "flamegraph", ..] => Ran::default(),
            other => panic!("an unexpected command line: {other:?}"),
        }
    }

    /// Returns the output of the client of the first version, with the state of this machine.
    fn info(&self) -> Ran {
        let outputs: Vec<Value> =
            serde_json::from_str(include_str!("../../../../docs/schemas/examples/outputs.json")).unwrap();
        let mut info = outputs.into_iter().find(|output| output["schema"] == "halprof.info/1").unwrap();
        info["counters_reserved"] = self.session.into();
        info["hypervisor"] = "Hyper-V or one that is compatible; this is a virtual machine".into();
        if !self.pmu {
            info["interface"] = "Default".into();
            info["blocker"] = json!({
                "what": "Hyper-V masks the counters of this virtual machine",
                "remedy": "on the host, with the machine off:\n  Set-VMProcessor NAME -Perfmon @(\"pmu\")",
            });
        }
        json_output(&info)
    }
}

fn needs_counters(words: &[&str]) -> bool {
    let without = matches!(
        words,
        ["record", "-a", "-e", "Time", ..]
            | ["report", "record-time.rec", ..]
            | ["control-area" | "list" | "status", ..]
    );
    !without
}

fn stat(words: &[&str]) -> Ran {
    let option = |name: &str| words.iter().position(|word| *word == name).map(|at| words[at + 1]);
    let names = option("-e").map_or_else(
        || vec!["TotalCycles", "TotalIssues"],
        |list| list.split(",cpu/").next().unwrap().split(',').collect(),
    );
    let event = |name: &str| json!({ "name": name, "count": 1000, "percent_running": 60.0 });
    let metric = |name: &str, value: f64| json!({ "name": name, "value": value, "unavailable": null });
    json_output(&json!({
        "schema": "halprof.stat/1",
        "events": names.into_iter().map(event).collect::<Vec<_>>(),
        "metrics": [metric("Frontend_Bound", 30.0), metric("Backend_Bound", 70.0)],
    }))
}

fn out(text: &str) -> Ran {
    Ran { out: text.to_owned(), ..Ran::default() }
}

fn refused(code: i32, err: &str) -> Ran {
    Ran { code, err: err.to_owned(), ..Ran::default() }
}

fn json_output(value: &Value) -> Ran {
    out(&serde_json::to_string_pretty(value).unwrap())
}

impl Guest for StandIn {
    fn check(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    fn run(&mut self, call: &Call, _limit: Duration) -> Result<Ran, Failure> {
        if !self.reachable || self.hangs {
            return Self::lost("ssh: connect to host guest port 22: Connection timed out");
        }
        if std::mem::take(&mut self.crashes_next) {
            self.crash();
        }
        if self.down_for > 0 {
            self.down_for -= 1;
            return Self::lost("ssh: connect to host guest port 22: Connection refused");
        }
        if *call == Call::boot_time() {
            return Ok(out(&format!("{}\n", self.boot)));
        }
        if *call == Call::dumps() {
            self.unwritten = self.unwritten.saturating_sub(1);
            let part = format!("|{}|", 900_000_000 - 100_000_000 * self.unwritten);
            return Ok(out(&format!("{}\n", self.dumps.join("\n").replace("|900000000|", &part))));
        }
        self.calls.push(call.line());
        let trouble = self.trouble.take_if(|(at, _)| call.line().contains(&*at));
        if trouble.is_none() && *call == Call::restart() {
            self.restart();
            return Self::lost("Connection to guest closed by remote host.");
        }
        let Some((_, trouble)) = trouble else { return Ok(self.answer(call)) };
        match trouble {
            Trouble::Crash => {
                self.crash();
                Self::lost("client_loop: send disconnect: Broken pipe")
            }
            Trouble::CrashAfterwards => {
                self.crashes_next = true;
                Ok(self.answer(call))
            }
            Trouble::Hang => {
                self.hangs = true;
                Self::lost("Timeout, server guest not responding.")
            }
            Trouble::Endless => Err(Failure::TimedOut),
            Trouble::Disconnect => Self::lost("Connection reset by peer"),
            Trouble::HostEnds => {
                self.leftover = true;
                Err(Failure::Host(anyhow!("the user ended the command")))
            }
            Trouble::HostEndsAndCrash => {
                self.crash();
                Err(Failure::Host(anyhow!("the user ended the command")))
            }
        }
    }

    fn copy_in(&mut self, from: &Path, to: &str) -> Result<(), Failure> {
        assert!(from.join("package").is_dir() && to == r"C:\halprof-vm", "{} {to}", from.display());
        self.copied = true;
        Ok(())
    }

    fn copy_out(&mut self, from: &str, to: &Path) -> Result<(), Failure> {
        assert!(self.dumps.iter().any(|dump| dump.starts_with(from)), "{from}");
        assert_eq!(self.unwritten, 0, "{from} is not written yet");
        fs::write(to, "PAGEDU64").map_err(|error| Failure::Host(error.into()))
    }

    fn host(&mut self, action: HostAction) -> Result<HostResult, Failure> {
        if !self.hypervisor {
            return Ok(HostResult::ByHand("SSH does not control the hypervisor".to_owned()));
        }
        if action == HostAction::Interrupt {
            self.hangs = false;
            self.crash();
        } else if action == HostAction::ExposeCounters {
            self.restart();
        }
        Ok(HostResult::Done(action.name().to_owned()))
    }
}
