//! Tests of `diagnose`.

use std::fmt::Write;

use cpuid_dumps::CpuIdentity;
use protocol::{HalSourceRecord, ReadBy, RegisterRecord};

use super::*;
use fake_system::ModelMachine;
use system::WindowsVersion;

fn diagnose(dump: &[u8]) -> Run {
    run_anywhere("diagnose --cpuid - --json", dump)
}

fn text(name: &str) -> String {
    run_anywhere("diagnose --cpuid -", cpuid_dumps::find(name).unwrap().dump().as_bytes()).out
}

/// Dump of an Intel processor with four general counters and the seven architectural events.
const EXAMPLE: &str = "\
CPUID 00000000: 0000000B-756E6547-6C65746E-49656E69
CPUID 0000000A: 07300403-00000000-00000000-00000603
";

#[test]
fn diagnose_matches_the_expectation_of_every_dump() {
    for identity in cpuid_dumps::all() {
        let CpuIdentity { name, expected, .. } = identity;
        let json = diagnose(identity.dump().as_bytes()).json();
        assert_eq!((&json["windows10"], &json["interface"]), (&json!(expected.windows10), &json!(expected.interface)));
        assert_eq!((&json["counters"], &json["width"]), (&json!(expected.counters), &json!(expected.width)), "{name}");
        let sources = json["sources"].as_array().unwrap();
        assert_eq!((&sources[0]["id"], &sources[0]["name"]), (&json!(0), &json!("Time")), "{name}");
        assert_eq!(sources[0]["supported"], true, "{name}");
        for source in sources {
            assert_eq!(source["supported"] == true, source["reason"].is_null(), "{name}");
        }
        let supported = sources.iter().filter(|source| source["supported"] == true && source["id"] != 0);
        let supported: Vec<u64> = supported.map(|source| source["id"].as_u64().unwrap()).collect();
        match expected.interface {
            "Default" => assert_eq!(sources.len(), 1, "{name}"),
            _ => assert_eq!(json!(supported), json!(expected.supported), "{name}"),
        }
    }
}

#[test]
fn json_has_the_keys_and_spellings_that_programs_rely_on() {
    let run = diagnose(EXAMPLE.as_bytes());
    let json = run.json();
    for (key, value) in [
        ("windows10", json!("Emon")),
        ("interface", json!("Emon")),
        ("reason", json!("GenuineIntel with architectural performance monitoring")),
        ("vendor", json!("GenuineIntel")),
        ("counters", json!(7)),
        ("width", json!(48)),
    ] {
        assert_eq!(json[key], value, "{key}");
    }
    let mut source = json["sources"][1].clone();
    assert_eq!(source.as_object_mut().unwrap().remove("reason"), Some(Value::Null));
    assert_eq!(
        source,
        json!({
            "id": 2, "name": "TotalIssues", "select": "0x000300c0", "supported": true, "counters": [0, 1, 2, 3, 4],
            "precise_counters": [1, 2, 3]
        })
    );
    let mut keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(
        keys.iter().map(|key| key.as_str()).collect::<Vec<_>>(),
        [
            "blocker",
            "brand",
            "core_type",
            "counters",
            "cpuid",
            "family",
            "fixed_counters",
            "hybrid",
            "hypervisor",
            "hypervisor_number",
            "interface",
            "leaf_23",
            "leaf_a",
            "model",
            "reason",
            "reason_number",
            "signature",
            "sources",
            "stepping",
            "vendor",
            "width",
            "windows10",
            "workarounds"
        ]
    );
    assert!(run.out.starts_with("{\n  \"schema\": \"halprof.diagnose/1\",\n  \"windows10\": \"Emon\",\n  \"interface\": \"Emon\",\n  \"reason\": "));
}

#[test]
fn the_leaves_of_counters_and_of_the_core_type_are_shown() {
    let core = text("lunar-lake-288v");
    assert!(core.contains("CPUID leaf 0x23  counters 0-9, fixed 0-3"), "{core}");
    assert!(core.contains("Counters         13 on each processor (3 of them fixed)"), "{core}");
    assert!(core.contains("Core type        cpu_core; the machine also has processors of the other type\n"), "{core}");
    assert!(!core.contains("Not in CPUID"), "{core}");
    let hiding = text("alder-lake-p-12900h");
    assert!(hiding.contains("Counters        11 on each processor (3 of them fixed), 48 bits wide\n"), "{hiding}");
    let trials = "Not in CPUID    2 of them, and slots; the driver tries these before it uses them\n";
    assert!(hiding.contains(trials), "{hiding}");
    assert!(!text("alder-lake-p-12900h-efficient").contains("Not in CPUID"));
    let atom = text("lunar-lake-288v-efficient");
    assert!(atom.contains("Core type        cpu_atom;"), "{atom}");
    let plain = text("sapphire-rapids-2475x");
    assert!(!plain.contains("Core type") && !plain.contains("leaf 0x23"), "{plain}");
    for text in [core, atom, plain] {
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }
    let json = diagnose(cpuid_dumps::find("lunar-lake-288v").unwrap().dump().as_bytes()).json();
    assert_eq!((&json["core_type"], &json["hybrid"]), (&json!("cpu_core"), &json!(true)));
    assert_eq!(json["leaf_23"]["counters"], json!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
}

#[test]
fn the_workarounds_of_a_dump_are_named() {
    let text = text("skylake-sp-tsx-derived");
    assert!(text.contains("\nWorkaround      counter 3 is left to the microcode of TSX\n"), "{text}");
    let errata = |name: &str| -> Vec<Value> {
        let json = diagnose(cpuid_dumps::find(name).unwrap().dump().as_bytes()).json();
        json["workarounds"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|row| row["errata"].as_array().unwrap().clone())
            .collect()
    };
    assert_eq!(errata("westmere-980x"), [json!("AAK100"), json!("AAP53"), json!("BD53")]);
    assert_eq!(errata("core2-6420"), ["AJ67", "AJ68", "AJ69", "AJ106"].map(|number| json!(number)));
    assert!(errata("zen4-7700x").is_empty() && errata("intel-hyperv-masked").is_empty());
}

/// Returns the dump in the format of `cpuid -1 -r`.
fn raw(dump: &str) -> String {
    let leaves = cpuid_dump::Dump::parse(dump).unwrap();
    leaves.leaves().fold("CPU:\n".to_owned(), |mut text, (leaf, subleaf, [a, b, c, d])| {
        writeln!(text, "   0x{leaf:08x} 0x{subleaf:02x}: eax=0x{a:08x} ebx=0x{b:08x} ecx=0x{c:08x} edx=0x{d:08x}")
            .unwrap();
        text
    })
}

#[test]
fn every_form_and_encoding_of_a_dump_gives_the_same_diagnosis() {
    for name in ["arrow-lake-245k", "zen4-7700x", "hyperv-root-6300u"] {
        let dump = cpuid_dumps::find(name).unwrap().dump();
        let wanted = diagnose(dump.as_bytes()).out;
        let subleaf_first = dump.lines().fold(String::new(), |mut text, line| {
            match line.split_once(" [SL ").and_then(|(head, tail)| Some((head.split_once(':')?, tail))) {
                Some(((leaf, registers), tail)) => writeln!(text, "{leaf} [SL {tail}:{registers}").unwrap(),
                None => writeln!(text, "{line}").unwrap(),
            }
            text
        });
        let aida = format!(
            "------[ Versions ]------\r\n\r\nProgram Version : 1.0\r\n\r\n\
             ------[ CPUID Registers / Logical CPU #0 ]------\r\n\r\n{}\r\n\
             ------[ CPUID Registers / Logical CPU #1 ]------\r\n\r\n{EXAMPLE}",
            dump.replace('\n', "\r\n")
        );
        let cpuid_r_of_all =
            format!("{}{}", raw(dump).replace("CPU:", "CPU 0:"), raw(EXAMPLE).replace("CPU:", "CPU 1:"));
        for text in [&subleaf_first, &aida, &raw(dump), &cpuid_r_of_all] {
            assert_eq!(diagnose(text.as_bytes()).out, wanted, "{name}: {text}");
            let utf16: Vec<u8> =
                "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
            assert_eq!(diagnose(&utf16).out, wanted, "{name}: {text}");
        }
    }
}

#[test]
fn the_first_of_two_processors_is_used() {
    let [intel, amd] = ["core2-e5200", "zen-1800x"].map(|name| cpuid_dumps::find(name).unwrap().dump());
    assert_eq!(diagnose([intel, amd].concat().as_bytes()).json()["vendor"], "GenuineIntel");
    assert_eq!(diagnose([amd, intel].concat().as_bytes()).json()["vendor"], "AuthenticAMD");
}

#[test]
fn an_invalid_dump_is_reported_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump.txt");
    let line = format!("diagnose --cpuid {}", path.display());
    let report = || {
        let run = run_anywhere(&line, b"");
        assert!(run.out.is_empty());
        let (exit, report) = run.failure();
        assert_eq!(exit, Exit::Dump);
        report.replace(&*path.display().to_string(), "FILE")
    };

    assert!(report().starts_with("error: cannot read FILE\n  because: "));
    fs::write(&path, "no dump at all\n").unwrap();
    assert!(report().starts_with("error: FILE is not a CPUID dump\n  because: no CPUID line found\n  try: "));
    fs::write(&path, format!("\n{EXAMPLE}CPUID 80000000: 8000000-00000000-00000000-00000000\n")).unwrap();
    assert_eq!(
        report(),
        "error: FILE is not a CPUID dump\n  \
         because: line 4: the registers are not four groups of eight hexadecimal digits"
    );
    fs::write(&path, vec![0; crate::machine::dump::MAX_BYTES + 1]).unwrap();
    assert_eq!(report(), "error: FILE is not a CPUID dump: it is longer than 16 MiB");
    let folder = run_anywhere(&format!("diagnose --cpuid {}", folder.path().display()), b"");
    assert_eq!(folder.failure().0, Exit::Dump);
}

#[test]
fn diagnose_without_a_dump_uses_this_processor() {
    let json = run_anywhere("diagnose --json", b"").json();
    assert_eq!(json["cpuid"], "this processor");
    assert_eq!(json["vendor"].as_str().unwrap().len(), 12);
    assert!(run_anywhere("diagnose", b"").out.starts_with("CPUID of        this processor\n"));
}

#[test]
fn every_diagnosis_fits_a_console() {
    for CpuIdentity { name, .. } in cpuid_dumps::all() {
        let text = text(name);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

#[test]
fn sources_of_other_families_are_counted_and_not_listed() {
    for (name, usable, hidden) in [("zen5-9800x3d", 76, 142), ("zen-1800x", 54, 164), ("bulldozer-fx8150", 87, 89)] {
        let text = text(name);
        let all = usable + hidden;
        assert!(text.contains(&format!("{usable} of {all} sources can be used")), "{text}");
        assert!(text.contains(&format!("\n{hidden} are not of this processor's family")), "{text}");
        assert!(!text.contains("NBProbeResult"), "{text}");
    }
    assert!(!text("k8-clawhammer").contains("family:"));
}

#[test]
fn sources_of_an_unknown_model_are_counted_and_not_listed() {
    // Model 30h of family 1Ah.
    let dump = cpuid_dumps::find("zen5-9800x3d").unwrap().dump().replace("00B40F40", "00B30F00");
    let text = run_anywhere("diagnose --cpuid -", dump.as_bytes()).out;
    assert!(text.contains("8 of 218 sources can be used"), "{text}");
    assert!(text.contains("\n210 are not known for this processor's model"), "{text}");
    assert!(!text.contains("RetiredMicrocodeOps"), "{text}");
}

/// An ordinary PC with virtualization-based security is a root partition of Hyper-V, not a virtual machine.
#[test]
fn a_diagnosis_without_counters_has_the_reason_and_a_remedy() {
    const ROOT: &str = "Hyper-V runs underneath this Windows and hides the counters";
    const GUEST: &str = "Hyper-V masks the counters of this virtual machine";
    /// Behind Microsoft's interface.
    const KVMS: &str = "CPUID 40000100: 40000101-4B4D564B-564B4D56-0000004D";
    const KVM: &str = "KVM gives this virtual machine no counters";
    /// EBX of leaf 0x40000003, with and without CpuManagement.
    const AS_GUEST: (&str, &str) = ("-002BB9FF-", "-002BA9FF-");
    let dump = |name: &str| cpuid_dumps::find(name).unwrap().dump().to_owned();
    for (dump, blocker) in [
        (dump("hyperv-root-6300u"), Some((ROOT, "msinfo32"))),
        (dump("intel-hyperv-masked"), Some((ROOT, "msinfo32"))),
        (dump("intel-hyperv-masked").replace(AS_GUEST.0, AS_GUEST.1), Some((GUEST, "Set-VMProcessor"))),
        (dump("intel-kvm-hyperv-off"), Some((KVM, "pmu state='on'"))),
        (dump("amd-kvm-hyperv-off"), Some((KVM, "-cpu host,pmu=on"))),
        (dump("intel-kvm-hyperv"), None),
        (dump("amd-kvm-hyperv"), None),
        (dump("vmware-6700k"), Some(("the hypervisor gives this virtual machine no counters", "virtual PMU"))),
        (dump("via-nano-cna"), Some(("the processor has no counters that this driver knows", "another machine"))),
        (dump("amd-hyperv-open"), None),
    ] {
        let text = run_anywhere("diagnose --cpuid -", dump.as_bytes()).out;
        let json = diagnose(dump.as_bytes()).json();
        assert_eq!(
            text.contains("Microsoft Hv; in fact KVM with Hyper-V enlightenments\n"),
            dump.contains(KVMS),
            "{text}"
        );
        let Some((what, remedy)) = blocker else {
            assert!(!text.contains("No counters") && json["blocker"].is_null(), "{text}");
            continue;
        };
        let (_, told) = text.split_once("\n\nNo counters: ").unwrap();
        let (found, advice) = told.split_once("\n  try: ").unwrap();
        assert!(found == what && advice.contains(remedy), "{text}");
        assert_eq!(json["blocker"]["what"], what, "{text}");
        assert_eq!(
            text.contains("\nHypervisor      Microsoft Hv; this Windows is its root partition\n"),
            what == ROOT,
            "{text}"
        );
    }
}

#[test]
fn verbs_that_need_a_driver_report_that_this_is_not_windows() {
    for line in ["info", "status", "list", "start 2", "install", "uninstall", "stat -e 2 -- app"] {
        assert_eq!(run_anywhere(line, b"").failure().0, Exit::NotWindows, "{line}");
    }
}

#[test]
fn on_arm64_nothing_is_installed_and_the_cpuid_of_the_emulator_is_not_shown() {
    let system = FakeSystem { is_emulated: true, ..FakeSystem::running(FakeDriver::default()) };
    for line in ["install", "diagnose", "diagnose --live", "diagnose --json"] {
        let (exit, text) = run(&system, line).failure();
        assert_eq!(exit, Exit::NotWindows, "{line}");
        assert!(text.starts_with("error: this computer has an ARM64 processor\n  because: "), "{text}");
        assert!(text.contains("\n  try: WindowsPerf"), "{text}");
        assert!(system.done.borrow().is_empty(), "{line}");
    }
}

/// Generates CPUID dumps of the leaves that select the interface. The vendor and the highest leaf are valid in some of
/// them; all other registers are arbitrary.
fn leaves() -> impl Strategy<Value = String> {
    let leaf =
        prop::sample::select(vec![1_u32, 7, 0xA, 0x4000_0000, 0x4000_0001, 0x4000_0003, 0x8000_0001, 0x8000_0002]);
    let vendor = prop_oneof![
        Just("756E6547-6C65746E-49656E69".to_owned()),
        Just("68747541-444D4163-69746E65".to_owned()),
        "[0-9A-F]{8}-[0-9A-F]{8}-[0-9A-F]{8}",
    ];
    let others = prop::collection::vec((leaf, any::<[u32; 4]>()), 0..12);
    (prop_oneof![Just(0x20_u32), any::<u32>()], vendor, others).prop_map(|(highest, vendor, others)| {
        let mut text = format!("CPUID 00000000: {highest:08X}-{vendor}\n");
        text.push_str("CPUID 80000000: 80000008-00000000-00000000-00000000\n");
        for (leaf, [a, b, c, d]) in others {
            writeln!(text, "CPUID {leaf:08X}: {a:08X}-{b:08X}-{c:08X}-{d:08X}").unwrap();
        }
        text
    })
}

proptest! {
    #[test]
    fn any_processor_has_a_diagnosis(dump in leaves()) {
        let json = diagnose(dump.as_bytes()).json();
        let sources = json["sources"].as_array().unwrap();
        let tables: &[usize] = match json["interface"].as_str().unwrap() {
            "Default" => &[1],
            "Emon" => &[13],
            "NetBurst" => &[7],
            "P6" => &[9],
            "Pentium" => &[8],
            _ => &[176, 218],
        };
        prop_assert!(tables.contains(&sources.len()));
        // Emon can have fixed counters although its general counters have no bits.
        let has_some = json["interface"] != "Emon" || json["leaf_a"]["width"] != 0 || json["fixed_counters"] != 0;
        prop_assert_eq!(json["counters"] != 0, sources.len() > 1 && has_some);
        // Sources of other families are only in the output for programs.
        let hidden = [pmu::Support::NotOnThisFamily, pmu::Support::ModelNotKnown];
        let hidden = hidden.map(|support| halprof::text::support::sentence(support as u32));
        let rows = sources.iter().filter(|source| !hidden.iter().any(|text| source["reason"] == *text)).count();
        let text = run_anywhere("diagnose --cpuid -", dump.as_bytes()).out;
        prop_assert!(text.is_ascii() && text.lines().all(|line| line.len() <= 80), "{}", text);
        prop_assert_eq!(text.split("\n\n").nth(1).map(|table| table.lines().count()), Some(2 + rows));
    }
}

/// Returns a machine whose driver is the engine on the model.
fn on_model(identity: &str) -> FakeSystem {
    let version = WindowsVersion {
        build: Some("26100.4061".to_owned()),
        release: Some("24H2".to_owned()),
        edition: Some("Professional".to_owned()),
    };
    let model = Some(ModelMachine::new(identity, 4, 1_000));
    FakeSystem { model, version, ..FakeSystem::running(FakeDriver::default()) }
}

#[test]
fn live_shows_the_registers_of_every_processor_of_every_generation() {
    for identity in cpuid_dumps::GENERATIONS {
        let system = on_model(identity);
        let json = run(&system, "diagnose --live --json").json();
        assert_eq!(json["windows"]["build"], "26100.4061", "{identity}");
        let processors = json["processors"].as_array().unwrap();
        assert_eq!(processors.len(), 4, "{identity}");
        for (number, processor) in processors.iter().enumerate() {
            assert_eq!(processor["processor"], number, "{identity}");
            for register in processor["registers"].as_array().unwrap() {
                let name = register["name"].as_str().unwrap();
                assert!(!name.starts_with("MSR ") && !name.starts_with("unknown"), "{identity}: {name}");
                assert!(register["value"].is_string(), "{identity}: {register}");
            }
        }
    }
}

#[test]
fn live_shows_equal_values_in_one_row() {
    let ran = run(&on_model("intel-v2"), "diagnose --live");
    assert_eq!(ran.outcome.unwrap(), 0);
    insta::assert_snapshot!(ran.out);
}

#[test]
fn live_shows_what_cannot_be_read_and_that_sessions_run() {
    let record =
        |number, read_by: ReadBy, failed, value| RegisterRecord { number, read_by: read_by as u16, failed, value };
    let driver = FakeDriver {
        registers: vec![
            record(0x186, ReadBy::Rdmsr, 1, 0),
            record(0x4000_0001, ReadBy::Rdpmc, 1, 0),
            record(0x340, ReadBy::LocalApic, 1, 0xC000_0001),
            RegisterRecord { number: 7, read_by: 99, failed: 0, value: 5 },
        ],
        hal_sources: vec![
            HalSourceRecord { source: 0, status: 0xC000_0148, supported: 0, interval: 0 },
            HalSourceRecord { source: 2, status: 0xC000_0148, supported: 0, interval: 0 },
        ],
        ..FakeDriver::default()
    };
    let system = FakeSystem { integrity: None, ..FakeSystem::running(driver) };
    let out = run(&system, "diagnose --live").out;
    for wanted in [
        "Windows         unknown\n",
        "Signatures      unknown\n",
        "Windows' HAL    refuses to tell its sources: 0xC0000148\n",
        "IA32_PERFEVTSEL0 (MSR 0x186)  0-1  #GP\n",
        "RDPMC 0x40000001              0-1  #GP\n",
        "LVT entry (local APIC 0x340)  0-1  NTSTATUS 0xC0000001\n",
        "unknown register 0x7          0-1  0x0000000000000005\n",
        "8 registers of 2 processors were read; none was written.\n#GP: ",
        "Sessions run: some of these values are theirs.\n",
    ] {
        assert!(out.contains(wanted), "{wanted}: {out}");
    }
}

#[test]
fn live_needs_the_driver_and_takes_no_dump() {
    let system = FakeSystem::running(FakeDriver::default());
    system.service.set(None);
    let (exit, _) = run(&system, "diagnose --live").failure();
    assert_eq!(exit, Exit::NotInstalled);
    assert!(Cli::try_parse_from(["client", "diagnose", "--live", "--cpuid", "x"]).is_err());
}

/// A model after all those of the tables is said to be unknown; known ones are not.
#[test]
fn an_unknown_model_is_named_by_diagnose_and_info() {
    let of = |identity: &str, from: &str, to: &str| {
        let found = cpuid_dumps::find(identity).unwrap();
        run_anywhere("diagnose --cpuid -", found.dump().replace(from, to).as_bytes()).out
    };
    let intels = "unknown to this version: its counters are those of CPUID\n";
    let amds = "unknown to this version: cycles, instructions and branches only\n";
    assert!(of("sapphire-rapids-2475x", "000806F8", "000F06F0").contains(intels));
    assert!(!of("bartlett-lake-273pqe", "", "").contains("unknown to this version"));
    assert!(of("turin-9655", "00B00F21", "00BB0F00").contains(amds));
    assert!(!of("zen6-venice-derived", "", "").contains("unknown to this version"));
    for (vendor, interface, signature, text) in [
        (*b"GenuineIntel\0\0\0\0", pmu::Kind::Emon, 0x000F_06F0, Some(intels)),
        (*b"GenuineIntel\0\0\0\0", pmu::Kind::Emon, 0x000D_0670, None),
        (*b"AuthenticAMD\0\0\0\0", pmu::Kind::Amd64, 0x00BB_0F00, Some(amds)),
        (*b"AuthenticAMD\0\0\0\0", pmu::Kind::Amd64, 0x00B5_0F00, None),
    ] {
        let info = InfoReply { vendor, interface: interface as u32, signature, ..info() };
        let driver = FakeDriver { info, ..FakeDriver::default() };
        let said = run(&FakeSystem::running(driver), "info").out;
        assert_eq!(said.contains("unknown to this version"), text.is_some(), "{signature:#x}: {said}");
        assert!(text.is_none_or(|text| said.contains(text)), "{signature:#x}: {said}");
    }
}

#[test]
fn vmware_counts_the_hypervisor_with_some_events_and_diagnose_says_so() {
    let text = |identity: &str| {
        let dump = cpuid_dumps::find(identity).unwrap().dump();
        run_anywhere("diagnose --cpuid -", dump.as_bytes()).out
    };
    assert!(text("vmware-6700k").contains("all else VMware too"));
    assert!(!text("kvm-8650u").contains("VMware too"));
}

/// QEMU's emulation looks like a processor with counters, whose registers it keeps at 0.
#[test]
fn diagnose_and_info_expect_no_counters_of_an_emulator() {
    let what = "No counters: QEMU emulates this processor (TCG), and its counters stay at 0\n  try: ";
    let emulated = text("qemu-tcg");
    assert!(emulated.contains("none of them counts.\n\n") && emulated.contains(what), "{emulated}");
    assert!(!emulated.contains("can be used") && !emulated.contains("CPUID does not show"), "{emulated}");
    assert!(emulated.lines().all(|line| line.len() <= 80), "{emulated}");
    let json = diagnose(cpuid_dumps::find("qemu-tcg").unwrap().dump().as_bytes()).json();
    assert!(json["blocker"]["what"].as_str().is_some_and(|what| what.starts_with("QEMU emulates")), "{json}");
    // An emulated processor of Intel has no leaf 0xA: no counters by CPUID either.
    let intels = EXAMPLE.replace("07300403", "00000000")
        + "\
        CPUID 00000001: 000506E3-00000800-F6D83203-078BFBFD\n\
        CPUID 40000000: 40000001-54474354-43544743-47435447\n";
    let out = run_anywhere("diagnose --cpuid -", intels.as_bytes()).out;
    assert!(out.contains("no event can be counted.\n\n") && out.contains(what), "{out}");
    // The same processor by name, which KVM runs.
    assert!(!text("kvm-qemu-amd").contains("No counters"));

    let of = |hypervisor_vendor: [u8; 12]| {
        let info = InfoReply { interface: pmu::Kind::Amd64 as u32, hypervisor: 1, hypervisor_vendor, ..info() };
        run(&FakeSystem::running(FakeDriver { info, ..FakeDriver::default() }), "info").out
    };
    assert!(of(*b"TCGTCGTCGTCG").contains(what) && !of(*b"KVMKVMKVM\0\0\0").contains("No counters"));
}
