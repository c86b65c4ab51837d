//! Tests of the program on a system without the driver.

#![expect(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn client(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_client"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A client that does not read all of its input closes it, which is not a failure here.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn last_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().last().unwrap_or_default().trim().to_owned()
}

#[test]
fn a_dump_comes_from_a_file_or_from_standard_input() {
    let dump = cpuid_dumps::find("nehalem-920").unwrap().dump();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(dump.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap();
    for (path, input) in [(path, ""), ("-", dump)] {
        let ran = client(&["diagnose", "--cpuid", path, "--json"], input.as_bytes());
        assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
        let json: Value = serde_json::from_slice(&ran.stdout).unwrap();
        assert_eq!((&json["interface"], &json["counters"]), (&"Emon".into(), &7.into()));
        let unsupported = json["sources"].as_array().unwrap().iter().filter(|source| source["supported"] == false);
        assert_eq!(unsupported.map(|source| &source["id"]).collect::<Vec<_>>(), [11, 31]);
    }
}

#[test]
fn exit_code_and_last_line_describe_the_error() {
    let endless = vec![b'\n'; 17 << 20];
    let cases: [(&[&str], &[u8], i32, &str); 4] = [
        (
            &["diagnose", "--cpuid", "-"],
            b"CPUID 00000000: 1\nCPUID 0000000Z: 00000000-00000000-00000000-00000000\n",
            18,
            "because: line 1: the registers are not four groups of eight hexadecimal digits",
        ),
        (
            &["diagnose", "--cpuid", "-"],
            &endless,
            18,
            "error: standard input is not a CPUID dump: it is longer than 16 MiB",
        ),
        (&["diagnose", "--cpuid", "-"], b"\x7FELF", 18, "the output of cpuid -1 -r   (Linux)"),
        (&["list", "--interface", "emon", "--all"], b"", 2, "try: one of them   (.\\client list --help)"),
    ];
    for (arguments, input, code, last) in cases {
        let ran = client(arguments, input);
        assert_eq!((ran.status.code(), last_line(&ran.stderr).as_str()), (Some(code), last), "{ran:?}");
        assert!(ran.stdout.is_empty());
    }
    let missing = client(&["diagnose", "--cpuid", "no/such/file"], b"");
    assert_eq!(missing.status.code(), Some(18));
    assert!(last_line(&missing.stderr).starts_with("because: "), "{missing:?}");
}

#[test]
fn tables_and_this_processor_need_no_driver() {
    for arguments in [&["list", "--interface", "amd64"][..], &["diagnose"], &["diagnose", "--json"]] {
        let ran = client(arguments, b"");
        assert!(ran.status.success() && !ran.stdout.is_empty(), "{ran:?}");
    }
}
