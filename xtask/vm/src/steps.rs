//! The plan: the steps of docs/windows.md in their order, each with what its result proves.

use anyhow::{Context, Result, ensure};

use super::{
    event_access,
    facts::{self, Need},
    guest::HostAction,
    pending_stop,
    plan::{Action, Step},
    proof, protection,
};

/// Prints the options with which Windows was started.
const START_OPTIONS: &str = r"(Get-ItemProperty HKLM:\SYSTEM\CurrentControlSet\Control).SystemStartOptions";

/// Prints whether memory integrity runs.
const MEMORY_INTEGRITY: &str = r"(Get-CimInstance -Namespace root\Microsoft\Windows\DeviceGuard Win32_DeviceGuard).SecurityServicesRunning -contains 2";

/// The package's certificate and its INF in the guest.
const CERTIFICATE: &str = r"C:\halprof-vm\package\halprof.cer";
const INF: &str = r"C:\halprof-vm\package\halprof.inf";

/// The package's recording profile in the guest.
const RECORDING_PROFILE: &str = r"C:\halprof-vm\package\halprof.wprp";

/// A command that takes about a second in a guest.
const WORK: [&str; 3] = ["cmd", "/c", "for /L %i in (1,1,200000) do @rem"];

/// More events than any processor has counters, so that they take turns.
const MANY: &str = "cycles,instructions,branches,branch-misses,cache-references,cache-misses,cpu/event=0xC4/,\
                    cpu/event=0xC5/,cpu/event=0xC0/,cpu/event=0x3C/,cpu/event=0x2E,umask=0x41/";

/// Returns every step, in order.
pub fn plan() -> Vec<Step> {
    let parts = [
        machine(),
        setup(),
        installation(),
        counting(),
        sampling(),
        call_stacks(),
        hardware(),
        protected(),
        tests(),
        verifier(),
        end(),
    ];
    parts.into_iter().flatten().collect()
}

/// The virtual machine itself, and the copy.
fn machine() -> Vec<Step> {
    vec![
        Step::host("secure-boot-off", HostAction::SecureBootOff),
        Step::host("expose-counters", HostAction::ExposeCounters).decides(&["set-vmprocessor-perfmon"]),
        Step::host("checkpoint", HostAction::Checkpoint),
        Step::copy("copy").minutes(30),
    ]
}

/// The settings of Windows.
fn setup() -> Vec<Step> {
    let crash_control = |name, value, data| {
        let key = r"HKLM\SYSTEM\CurrentControlSet\Control\CrashControl";
        Step::program(name, "reg.exe", &["add", key, "/v", value, "/t", "REG_DWORD", "/d", data, "/f"])
    };
    let trust = |name, store| Step::program(name, "certutil.exe", &["-addstore", store, CERTIFICATE]);
    vec![
        Step::program("windows", "cmd.exe", &["/c", "ver"]).learn(facts::windows),
        crash_control("automatic-dumps", "CrashDumpEnabled", "7"),
        crash_control("keep-dumps", "AlwaysKeepMemoryDump", "1"),
        Step::powershell("memory-integrity", MEMORY_INTEGRITY)
            .proof(proof::true_or_false, "whether memory integrity runs")
            .learn(facts::memory_integrity),
        Step::bare_client("refused-install", &["install"])
            .proof(proof::refused_without_test_signing, "the driver is refused while test signing is off")
            .decides(&["refused-without-test-signing", "refusal-messages"]),
        Step::program("test-signing", "bcdedit.exe", &["/set", "testsigning", "on"])
            .proof(proof::test_signing_on, "bcdedit accepts the option"),
        Step::restart("restart-for-test-signing"),
        Step::powershell("test-signing-is-on", START_OPTIONS)
            .proof(proof::test_signing_is_on, "Windows was started with test signing")
            .learn(facts::test_signing),
        trust("trust-root", "Root"),
        trust("trust-publisher", "TrustedPublisher"),
    ]
}

fn installation() -> Vec<Step> {
    vec![
        Step::bare_client("install", &["install"])
            .needs(&[Need::TestSigning])
            .proof(proof::installed, "Windows loads the driver")
            .decides(&["loads-under-test-signing"]),
        Step::client("status", &["status"])
            .after("install")
            .proof(proof::done, "the driver answers, so that Windows has its imports")
            .decides(&["imports-of-2004"]),
        Step::client("info", &["info", "--json"])
            .proof(proof::info, "the driver answers, and names its interface")
            .learn(facts::info),
        Step::client("why-no-counters", &["info", "--json"])
            .needs(&[Need::NoCounters])
            .proof(proof::reason_of_no_counters, "reason and remedy are named")
            .decides(&["reason-of-no-counters"]),
        Step::client("guest-has-counters", &["info", "--json"])
            .needs(&[Need::Counters])
            .proof(proof::info, "the guest has counters")
            .decides(&["set-vmprocessor-perfmon"]),
        Step::client("diagnose", &["diagnose", "--live", "--json"])
            .proof(proof::diagnosed, "the registers of every processor can be read, and the HAL tells its sources")
            .decides(&["hal-tells-its-sources"]),
        Step::powershell("event-descriptor", event_access::DESCRIPTOR)
            .running()
            .needs(&[Need::TestSigning])
            .after("install")
            .proof(event_access::restricted, "Windows has the descriptor for SYSTEM and Administrators")
            .decides(&["events-restricted"]),
        Step::powershell("events-for-other-account", event_access::OTHER_ACCOUNT)
            .running()
            .needs(&[Need::TestSigning])
            .after("install")
            .minutes(5)
            .proof(event_access::other_account_refused, "LOCAL SERVICE cannot enable the driver's events")
            .decides(&["events-restricted"]),
        Step::client("loads-with-memory-integrity", &["install"])
            .needs(&[Need::MemoryIntegrity])
            .proof(proof::installed, "the driver runs under memory integrity")
            .decides(&["memory-integrity"]),
    ]
}

fn counting() -> Vec<Step> {
    let stat = |name: &str, options: &[&str], command: &[&str]| {
        let ends: &[&str] = if command.is_empty() { &[] } else { &["--"] };
        let arguments = [&["stat", "--json", "-o", "-"], options, ends, command].concat();
        Step::client(name, &arguments).needs(&[Need::Counters])
    };
    vec![
        Step::client("selftest", &["selftest", "--json"])
            .needs(&[Need::Counters])
            .minutes(10)
            .proof(proof::selftest, "counts and samples of known work are as expected")
            .decides(&["exact-counts"]),
        Step::client("selftest-threads", &["selftest", "--threads", "--json"])
            .needs(&[Need::Counters])
            .minutes(10)
            .proof(proof::selftest, "a self-test of threads ends with an answer, whether or not they can be counted")
            .decides(&["thread-profiling", "threads-without-rdpmc", "undisturbed-regions"]),
        Step::client("counts-of-threads", &["selftest", "--threads", "--json"])
            .needs(&[Need::Counters])
            .minutes(10)
            .proof(proof::counts_of_threads, "Windows counts known work of a thread, also beside another thread")
            .decides(&["counts-of-threads", "bits-of-threads"]),
        Step::client("selftest-compare", &["selftest", "--compare", "--json"])
            .needs(&[Need::Counters])
            .minutes(5)
            .proof(proof::selftest, "the HAL counts known work as the driver does")
            .decides(&["counters-on-switches", "hal-counts-as-driver"]),
        Step::client("list", &["list", "--json"]),
        stat("stat", &["-a"], &WORK)
            .proof(proof::plausible, "each event counts, without a mark and with 0.2 to 5 instructions per cycle")
            .decides(&["package-counts-and-leaves-nothing", "counters-tried"]),
        stat("stat-on-enlightened-kvm", &["-a"], &WORK)
            .needs(&[Need::EnlightenedKvm])
            .proof(proof::plausible, "KVM with enlightenments counts")
            .decides(&["kvm-enlightenments"]),
        stat("stat-raw", &["-a", "-e", "cpu/event=0xC4,umask=0x00/"], &WORK)
            .proof(proof::counted, "an event by its number counts"),
        stat("stat-of-command", &["-e", "TotalCycles,TotalIssues"], &WORK)
            .proof(proof::plausible, "the command's share of the samples is 0.2 to 5 instructions per cycle")
            .decides(&["counts-by-samples"]),
        stat("stat-in-turns", &["-e", MANY, "--duration", "3s"], &[])
            .proof(proof::took_turns, "events without a counter of their own have shares of the time")
            .decides(&["events-take-turns"]),
        stat("stat-top-down", &["-M", "TopdownL1", "--duration", "3s"], &[])
            .proof(proof::top_down, "the metrics of level 1 sum to 100 %")
            .decides(&["top-down-metrics"]),
        stat("stat-per-core", &["--per-core", "-a", "--duration", "1s"], &[])
            .proof(proof::counted, "cores are counted")
            .decides(&["per-core-and-tsc"]),
        Step::client("start-detached", &["start", "TotalCycles"]).needs(&[Need::Counters]),
        Step::client("reserved-counters", &["info", "--json"])
            .needs(&[Need::Counters])
            .after("start-detached")
            .proof(proof::reserved, "the counters are reserved with the HAL while a session counts")
            .decides(&["counters-reserved"]),
        Step::client("stop-detached", &["stop", "TotalCycles"]).needs(&[Need::Counters]).after("reserved-counters"),
    ]
}

fn sampling() -> Vec<Step> {
    let record = |name: &str, options: &[&str]| {
        Step::client(name, &[&["record", "-a"], options, &["--"], &WORK[..]].concat())
            .proof(proof::recorded, "the recording has samples")
    };
    let report = |name: &str, recorded: &str| {
        Step::client(name, &["report", &format!("{recorded}.rec"), "--json"])
            .after(recorded)
            .proof(proof::reported, "each source has samples in the report")
    };
    let after_ten = |step: Step| step.needs(&[Need::Counters]).after("record-ten-seconds");
    let interrupts = ["interrupt-through-handler-slot"];
    vec![
        record("record", &["-o", "record.rec"])
            .needs(&[Need::Counters])
            .decides(&interrupts)
            .decides(&["slot-of-system-process", "lvt-entry"]),
        report("report", "record").needs(&[Need::Counters]).decides(&interrupts),
        record("record-on-enlightened-kvm", &["-o", "kvm.rec"])
            .needs(&[Need::Counters, Need::EnlightenedKvm])
            .decides(&["kvm-enlightenments"]),
        Step::client(
            "record-ten-seconds",
            &["record", "-a", "--duration", "10s", "-e", "TotalIssues@4M", "-o", "ten.rec"],
        )
        .needs(&[Need::Counters])
        .proof(proof::recorded, "the recording has samples")
        .decides(&interrupts),
        after_ten(Step::client("report-error", &["report", "ten.rec", "--error"])),
        after_ten(Step::client("flamegraph", &["flamegraph", "ten.rec", "-o", "ten.svg"])),
        record("record-time", &["-e", "Time", "-o", "record-time.rec"]).decides(&["time-sampling"]),
        report("report-time", "record-time").decides(&["time-sampling"]),
        Step::powershell("pending-stop", pending_stop::SCRIPT)
            .running()
            .needs(&[Need::TestSigning])
            .after("record-time")
            .minutes(5)
            .proof(pending_stop::unloaded_at_last_close, "a stop waits for the last close, and the driver starts again")
            .decides(&["pending-stop"]),
    ]
}

/// Call stacks, by the client's trace session and by that of Windows Performance Recorder.
fn call_stacks() -> Vec<Step> {
    let record = |name: &str, options: &[&str]| {
        Step::client(name, &[&["record", "-a"], options, &["--"], &WORK[..]].concat()).needs(&[Need::Counters])
    };
    let after_stacks =
        |name: &str, arguments: &[&str]| Step::client(name, arguments).needs(&[Need::Counters]).after("record-stacks");
    let wpr = |name: &str, arguments: &[&str]| {
        Step::program(name, "wpr.exe", arguments)
            .needs(&[Need::TestSigning, Need::Counters])
            .running()
            .minutes(10)
            .decides(&["recording-profile"])
    };
    vec![
        record("record-stacks", &["-g", "-o", "stacks.rec"])
            .proof(proof::traced, "Windows starts the trace session")
            .decides(&["who-can-trace"]),
        record("record-more-stacks", &["-g", "-F", "4k", "-o", "more.rec"])
            .after("record-stacks")
            .proof(proof::recorded_with_stacks, "half of the samples or more have a whole stack")
            .decides(&["trace-provider", "events-from-dpc", "stack-from-dpc"]),
        Step::client("selftest-stacks", &["selftest", "--stacks", "--json"])
            .needs(&[Need::Counters])
            .after("record-stacks")
            .minutes(10)
            .proof(proof::selftest, "the stacks of known functions have the executed calls")
            .decides(&["stack-from-dpc", "frames-in-user-mode", "shares-of-callers"]),
        after_stacks("report-children", &["report", "stacks.rec", "--children", "--sort", "symbol"]),
        after_stacks("flamegraph-stacks", &["flamegraph", "stacks.rec", "-o", "stacks.svg"]),
        record("record-etl", &["--etl", "trace.etl", "-o", "etl.rec"])
            .after("record-stacks")
            .proof(proof::recorded, "the recording has samples, and Windows writes the file")
            .decides(&["trace-file"]),
        wpr("wpr-start", &["-start", RECORDING_PROFILE, "-filemode"])
            .proof(proof::done, "WPR starts the profile of the package"),
        record("record-for-wpr", &["-o", "wpr.rec"])
            .after("wpr-start")
            .proof(proof::recorded, "the driver samples while WPR records its events"),
        // After a crash, WPR does not record any more.
        wpr("wpr-stop", &["-stop", "wpr.etl"])
            .after("record-for-wpr")
            .proof(proof::done, "WPR writes and merges the file"),
    ]
}

/// Precise events and branches. A hypervisor that emulates the Debug Store can be wrong, so this comes late.
fn hardware() -> Vec<Step> {
    let debug_store = [Need::Counters, Need::DebugStore];
    vec![
        Step::client("control-areas", &["control-area", "--json"])
            .proof(proof::areas, "the state of each processor is reported")
            .learn(facts::control_areas),
        Step::client("allocate-areas", &["control-area", "allocate", "--json"])
            .needs(&debug_store)
            .proof(proof::areas, "each processor has an area of 0xA0 bytes")
            .decides(&["control-areas", "size-of-area"]),
        Step::client("free-areas", &["control-area", "free", "--json"])
            .needs(&debug_store)
            .proof(proof::areas, "the areas are freed")
            .decides(&["control-areas"]),
        Step::client(
            "record-precise",
            &["record", "-a", "--duration", "1s", "-e", "TotalIssues:p@4M", "-o", "precise.rec"],
        )
        .needs(&debug_store)
        .proof(proof::recorded, "the processor records precise events")
        .decides(&["hardware-recording"]),
        Step::client("branches", &["branches", "-C", "0", "--duration", "0.1s"])
            .needs(&debug_store)
            .decides(&["hardware-recording"]),
    ]
}

/// What an ordinary user can prepare for an elevated client.
fn protected() -> Vec<Step> {
    vec![
        Step::powershell("planted-dlls", protection::PLANTED_DLLS)
            .proof(protection::planted_dlls_ignored, "the client starts beside DLLs of the wrong content")
            .decides(&["dlls-of-system32"]),
        Step::powershell("junction", protection::JUNCTION)
            .proof(protection::junction_refused, "a junction in %ProgramData% is refused")
            .decides(&["prepared-folders"]),
        Step::powershell("agent-service", protection::AGENT)
            .minutes(5)
            .proof(protection::agent_installed, "the service runs a copy of the agent, and leaves nothing")
            .decides(&["agent-in-protected-folder"]),
    ]
}

/// The end-to-end tests that do not need the model.
fn tests() -> Vec<Step> {
    let catalog = |name, need| {
        Step::program(name, "pnputil.exe", &["/add-driver", INF])
            .absent()
            .needs(&[Need::TestSigning, need])
            .proof(proof::done, "pnputil accepts the catalog of the package")
    };
    // Without a driver that starts, these show the same as `install`.
    let with_driver =
        |name, filter, shows| Step::tests(name, filter, shows).after("install").decides(&["tests-on-windows"]);
    vec![
        Step::tests("tests-signature", "package::the_signed_driver", "the test of the signature passes")
            .decides(&["valid-signature", "tests-on-windows"]),
        with_driver("tests-package", "package::", "every test of the package passes")
            .decides(&["service-lifecycle", "package-counts-and-leaves-nothing"]),
        with_driver("tests-installing", "installing::", "every test of .\\client install passes")
            .decides(&["safe-install"]),
        catalog("catalog-from-linux", Need::LinuxPackage).decides(&["catalog-from-linux"]),
        catalog("catalog-from-windows", Need::WindowsPackage).decides(&["signing-tools-of-windows"]),
        with_driver("tests-inf", "inf::the_inf_installs", "the test of halprof.inf passes").decides(&["inf-lifecycle"]),
        with_driver("tests-inf-events", "inf::the_inf_restricts", "pnputil restricts the driver's events")
            .decides(&["inf-restricts-events"]),
        Step::tests("tests-skipped", "skipped::", "the other tests are listed with the reason")
            .decides(&["tests-on-windows"]),
    ]
}

/// Driver Verifier: a round with its standard checks, and one in which allocations fail at random.
fn verifier() -> Vec<Step> {
    let mut steps = round("standard", &["/standard"], proof::done, &["driver-verifier", "irql-and-memory"]);
    let tests =
        Step::tests("verifier-standard-tests", "package::", "every test of the package passes under Driver Verifier")
            .after("verifier-standard-install");
    steps.push(tests.decides(&["driver-verifier"]));
    steps.extend(round("low-resources", &["/flags", "0x4"], proof::any_exit, &["undone-after-failures"]));
    steps.push(Step::program("verifier-reset", "verifier.exe", &["/reset"]).proof(proof::any_exit, "it is turned off"));
    steps.push(Step::restart("restart-without-verifier"));
    steps
}

/// Returns a round: the driver is loaded, counts, samples, is loaded again, and is removed.
fn round(
    name: &str,
    options: &[&str],
    proof: fn(&super::guest::Ran) -> proof::Outcome,
    claims: &[&'static str],
) -> Vec<Step> {
    const SHOWS: &str = "Driver Verifier does not stop the machine";
    let named = |step: &str| format!("verifier-{name}-{step}");
    let with = |step: Step| {
        step.needs(&[Need::TestSigning]).after("install").after(named("settings")).proof(proof, SHOWS).decides(claims)
    };
    let client = |step: &str, arguments: &[&str]| with(Step::client(named(step), arguments));
    let record = |step: &str, event: &str| {
        client(step, &[&["record", "-a", "-e", event, "-o", "verifier.rec", "--"], &WORK[..]].concat())
    };
    vec![
        // Exit code 2 of verifier says that a restart is needed.
        Step::program(named("on"), "verifier.exe", &[options, &["/driver", "halprof.sys"]].concat())
            .proof(proof::any_exit, "the options are set"),
        Step::restart(named("restart")),
        Step::program(named("settings"), "verifier.exe", &["/querysettings"])
            .after(named("on"))
            .proof(proof::verified, "Driver Verifier has halprof.sys among its drivers"),
        with(Step::bare_client(named("install"), &["install"])),
        client("info", &["info"]),
        client("stat", &[&["stat", "-a", "--"], &WORK[..]].concat()).needs(&[Need::Counters]),
        record("record", "TotalCycles").needs(&[Need::Counters]),
        record("record-time", "Time"),
        with(Step::program(named("stop"), "sc.exe", &["stop", "halprof"])).running(),
        with(Step::program(named("start"), "sc.exe", &["start", "halprof"])).after(named("stop")),
        client("uninstall", &["uninstall"]),
    ]
}

fn end() -> Vec<Step> {
    vec![
        Step::bare_client("uninstall", &["uninstall"]).decides(&["package-counts-and-leaves-nothing"]),
        Step::bare_client("not-installed", &["status"])
            .proof(proof::not_installed, "nothing is installed")
            .decides(&["package-counts-and-leaves-nothing"]),
    ]
}

/// Checks that the client has every verb and option of the plan, by its completion for bash.
pub fn check_client(completion: &str) -> Result<()> {
    check_steps(&plan(), completion).map(|_| ())
}

/// Checks the verbs and options of some steps, and returns the number of options.
fn check_steps(steps: &[Step], completion: &str) -> Result<usize> {
    let mut checked = 0;
    for step in steps {
        let Action::Client(arguments) = &step.action else { continue };
        let [verb, own @ ..] = arguments.as_slice() else { continue };
        let function = format!("\n        client__subcmd__{})\n", verb.replace('-', "__subcmd__"));
        let (_, of_verb) = completion
            .split_once(&function)
            .with_context(|| format!("{}: the client has no verb {verb}", step.name))?;
        let options = of_verb.split('"').nth(1).unwrap_or_default();
        let own = own.iter().take_while(|word| *word != "--").filter(|word| word.starts_with('-') && *word != "-");
        for option in own {
            let is_known = options.split(' ').any(|known| known == option);
            ensure!(is_known, "{}: client {verb} has no {option}, only {options}", step.name);
            checked += 1;
        }
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::claims::{CLAIMS, Scope};
    use super::super::{powershell, ssh};
    use super::*;

    #[test]
    fn every_step_has_its_own_name_comes_after_what_it_needs_and_fits_the_command_line_of_the_guest() {
        let steps = plan();
        let names: BTreeSet<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names.len(), steps.len());
        for step in &steps {
            let earlier = steps.iter().take_while(|other| other.name != step.name);
            let earlier: Vec<&str> = earlier.map(|step| step.name.as_str()).collect();
            assert!(step.after.iter().all(|name| earlier.contains(&name.as_str())), "{}: {:?}", step.name, step.after);
        }
        for call in steps.iter().filter_map(Step::call) {
            assert!(powershell::arguments(&ssh::script(&call, std::time::Duration::from_mins(30))).is_ok(), "{call:?}");
        }
    }

    #[test]
    fn a_claim_has_steps_if_and_only_if_a_guest_can_decide_it() {
        let decided: BTreeSet<&str> = plan().iter().flat_map(|step| step.decides.clone()).collect();
        let known: BTreeSet<&str> = CLAIMS.iter().map(|claim| claim.id).collect();
        assert!(decided.is_subset(&known), "no such claims: {:?}", decided.difference(&known));
        for claim in CLAIMS.iter() {
            let has_step = !matches!(claim.scope, Scope::NoStep(_));
            assert_eq!(decided.contains(claim.id), has_step, "{}", claim.id);
        }
    }

    /// A completion of bash, as clap_complete writes it.
    const COMPLETION: &str = "
        client__subcmd__stat)
            opts=\"-C -e --help\"
            return 0
        client__subcmd__control__subcmd__area)
            opts=\"--json --help\"
";

    fn client(words: &[&str]) -> Step {
        Step::client("step", words)
    }

    #[test]
    fn a_client_without_a_verb_or_an_option_of_the_plan_is_refused() {
        let check = |words: &[&str]| check_steps(&[client(words)], COMPLETION).map_err(|error| error.to_string());
        assert_eq!(check(&["stat", "-e", "A", "-C", "0", "-", "--", "app", "--unknown"]), Ok(2));
        assert_eq!(check(&["control-area", "--json"]), Ok(1));
        assert_eq!(check(&["read"]), Err("step: the client has no verb read".to_owned()));
        let error = "step: client stat has no --json, only -C -e --help";
        assert_eq!(check(&["stat", "--json"]), Err(error.to_owned()));
        assert!(check_client(COMPLETION).is_err());
    }

    #[test]
    fn the_plan_calls_the_client_with_many_options() {
        let of_client = |step: &Step| matches!(step.action, Action::Client(_));
        assert!(plan().iter().filter(|step| of_client(step)).count() > 30);
    }
}
