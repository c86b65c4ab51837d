//! The transports with stand-ins for ssh, scp and PowerShell on a PATH of their own: shell scripts that decode what
//! they receive and answer what the test wrote down.

use std::{ffi::OsString, fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use base64ct::{Base64, Encoding};
use tempfile::TempDir;

use crate::{
    check_answer,
    guest::{Call, Failure, Guest, HostAction, HostResult},
    host,
    hyperv::HyperVGuest,
    powershell,
    ssh::{self, SshGuest},
};

/// Writes its words to `words`, one a line, and the script behind -EncodedCommand to `script`. Then it prints `out` and
/// `err` and exits with `code`. As the real program, ssh joins the words of the command for a shell of the guest.
const PROGRAM: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 99
printf '%s\n' "$@" > words
line="$*"
case "$line" in
*-EncodedCommand*)
    encoded=$(sh -c "printf %s ${line##*-EncodedCommand }")
    printf %s "$encoded" | base64 -d | iconv -f UTF-16LE -t UTF-8 > script ;;
esac
cat out 2>/dev/null
cat err >&2 2>/dev/null
exit "$(cat code)"
"#;

/// A folder with the programs, which is the PATH of a transport.
struct Programs(TempDir);

impl Programs {
    fn new() -> Self {
        let programs = Self(tempfile::tempdir().unwrap());
        for name in ["ssh", "scp", "powershell"] {
            let path = programs.0.path().join(name);
            fs::write(&path, PROGRAM).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(programs.0.path().join("guest.xml"), "").unwrap();
        programs.answer(0, "", "");
        programs
    }

    fn path(&self) -> OsString {
        self.0.path().into()
    }

    fn answer(&self, code: i32, out: &str, err: &str) {
        for (name, text) in [("code", code.to_string().as_str()), ("out", out), ("err", err)] {
            fs::write(self.0.path().join(name), text).unwrap();
        }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    fn words(&self) -> Vec<String> {
        self.read("words").lines().map(str::to_owned).collect()
    }

    fn ssh(&self) -> SshGuest {
        SshGuest::new("tester@guest", &self.path()).unwrap()
    }

    fn hyper_v(&self) -> HyperVGuest {
        HyperVGuest::new("it's a guest", Some(&self.0.path().join("guest.xml")), &self.path()).unwrap()
    }
}

const LIMIT: Duration = Duration::from_secs(5);

/// A call with everything that a shell on the way could change.
fn hard() -> Call {
    let mut call = Call::new(r"C:\halprof-vm\it's.exe", &["a b", "\"c\" 'd'", r"e\", "$HOME `f` %PATH% ü", ""]);
    call.environment = vec![("HALPROF_X".to_owned(), "g 'h'".to_owned())];
    call
}

fn result_line(code: i32, out: &str, err: &str) -> String {
    let encode = |text: &str| Base64::encode_string(text.as_bytes());
    format!(
        "a banner of the guest\r\nhalprof-vm {{\"code\":{code},\"late\":false,\"out\":\"{}\",\"err\":\"{}\"}}\r\n",
        encode(out),
        encode(err)
    )
}

#[test]
fn a_call_arrives_unchanged_through_ssh_and_so_do_its_outputs_and_exit_code() {
    let programs = Programs::new();
    for code in [0, 28, -1_073_741_819] {
        programs.answer(0, &result_line(code, "line 1\r\nüber\r\n", "error: \"x\"\n"), "Warning: added a key\n");
        let ran = programs.ssh().run(&hard(), LIMIT).unwrap();
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (code, "line 1\nüber\n", "error: \"x\"\n"));
        assert_eq!(programs.read("script"), ssh::script(&hard(), LIMIT));
    }
    let words = programs.words();
    assert!(words.contains(&"tester@guest".to_owned()) && words.contains(&"BatchMode=yes".to_owned()), "{words:?}");
    assert!(!words.iter().any(|word| word.contains("StrictHostKeyChecking") || word.contains("UserKnownHosts")));
}

#[test]
fn errors_of_ssh_are_told_from_a_guest_that_is_down() {
    let programs = Programs::new();
    for (code, err, wanted) in [
        (255, "tester@guest: Permission denied (publickey).", Some("try: add your public key to C:\\ProgramData\\ssh")),
        (255, "Host key verification failed.", Some("try: connect once by hand, compare the key")),
        (255, "ssh: Could not resolve hostname guest: Name or service not known", Some("correct the name")),
        (127, "sh: powershell.exe: not found", Some("try: ssh tester@guest powershell.exe -Command Get-Date")),
        (255, "ssh: connect to host guest port 22: Connection refused", None),
        (255, "client_loop: send disconnect: Broken pipe", None),
        (255, "", None),
    ] {
        programs.answer(code, "", err);
        match (programs.ssh().run(&hard(), LIMIT).unwrap_err(), wanted) {
            (Failure::Host(error), Some(wanted)) => {
                let error = error.to_string();
                assert!(error.contains(err) && error.contains(wanted), "{error}");
            }
            (Failure::Lost(text), None) => assert!(!text.is_empty() && text.contains(err), "{text}"),
            (failure, _) => panic!("{err}: {failure:?}"),
        }
    }
    // A guest that crashes while it answers leaves a part of the line.
    programs.answer(255, "halprof-v", "Connection reset");
    assert!(matches!(programs.ssh().run(&hard(), LIMIT), Err(Failure::Lost(_))));
}

#[test]
fn files_are_copied_by_scp_with_paths_that_it_understands() {
    let programs = Programs::new();
    let payload = tempfile::tempdir().unwrap();
    fs::create_dir(payload.path().join("package")).unwrap();
    programs.ssh().copy_in(payload.path(), r"C:\halprof-vm").unwrap();
    let words = programs.words();
    let [.., from, to] = words.as_slice() else { panic!("{words:?}") };
    assert_eq!(
        (Path::new(from), to.as_str()),
        (payload.path().join("package").as_path(), "tester@guest:C:/halprof-vm")
    );
    assert!(words.contains(&"-r".to_owned()), "{words:?}");

    programs.ssh().copy_out(r"C:\Windows\MEMORY.DMP", Path::new("/run/MEMORY.DMP")).unwrap();
    let words = programs.words();
    assert_eq!(words[words.len() - 2..], ["tester@guest:C:/Windows/MEMORY.DMP", "/run/MEMORY.DMP"]);

    programs.answer(1, "", "scp: C:/Windows/MEMORY.DMP: No such file or directory");
    let failure = programs.ssh().copy_out(r"C:\Windows\MEMORY.DMP", Path::new("/run/x")).unwrap_err();
    assert!(matches!(failure, Failure::Lost(text) if text.contains("No such file")));
}

#[test]
fn wrong_inputs_have_a_clear_error() {
    let programs = Programs::new();
    let empty = tempfile::tempdir().unwrap();
    let nowhere = OsString::from(empty.path());
    let error = |result: anyhow::Result<String>| format!("{:#}", result.unwrap_err());
    let ssh = |address: &str, path: &OsString| error(SshGuest::new(address, path).map(|_| String::new()));
    assert_eq!(ssh("a@b", &nowhere), "ssh is not on the PATH: install the OpenSSH client, which has it");
    for address in ["", "-oProxyCommand=x", "a b", "a@b:22", "ssh://a"] {
        assert!(ssh(address, &programs.path()).contains("is no address of SSH: use USER@HOST"), "{address}");
    }
    let file = programs.0.path().join("guest.xml");
    let hyper_v =
        |file: Option<&Path>, path: &OsString| error(HyperVGuest::new("vm", file, path).map(|_| String::new()));
    assert!(hyper_v(Some(&file), &nowhere).contains("needs a Windows host\n  try: --address USER@HOST"));
    assert!(hyper_v(None, &programs.path()).contains("try: Get-Credential | Export-Clixml guest.xml"));
    assert!(hyper_v(Some(&empty.path().join("x")), &programs.path()).contains("is not a file"));

    programs.answer(1, "", "Hyper-V was unable to find a virtual machine with name \"it's a guest\".");
    let error = programs.hyper_v().check().unwrap_err().to_string();
    assert!(error.starts_with("Hyper-V does not show a machine it's a guest: Hyper-V was unable to find"), "{error}");
    assert!(error.contains("try: Get-VM in an elevated prompt"), "{error}");
}

#[test]
fn a_call_arrives_unchanged_through_powershell_direct() {
    let programs = Programs::new();
    programs.answer(0, &result_line(3, "a\n", "b\n"), "");
    let ran = programs.hyper_v().run(&hard(), LIMIT).unwrap();
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (3, "a\n", "b\n"));
    let script = programs.read("script");
    assert!(script.contains("New-PSSession -VMName 'it''s a guest' -Credential $c"), "{script}");
    // The script of the guest is a literal in that of the host.
    let (_, rest) = script.split_once("[ScriptBlock]::Create('").unwrap();
    let (inner, _) = rest.rsplit_once("'))").unwrap();
    assert_eq!(inner.replace("''", "'"), powershell::script(&hard(), LIMIT));

    programs.answer(1, "", "The credential is invalid.");
    let failure = programs.hyper_v().run(&hard(), LIMIT).unwrap_err();
    assert!(matches!(failure, Failure::Host(error) if error.to_string().contains("refuses the account")));
    programs.answer(1, "", "The virtual machine it's a guest is not in running state.");
    assert!(matches!(programs.hyper_v().run(&hard(), LIMIT), Err(Failure::Lost(_))));
}

#[test]
fn actions_of_hyper_v_report_what_it_said() {
    let programs = Programs::new();
    let act = |action, out: &str, err: &str| {
        programs.answer(i32::from(!err.is_empty()), out, err);
        (programs.hyper_v().host(action).unwrap(), programs.read("script"))
    };
    let (result, script) = act(HostAction::ExposeCounters, "halprof-done Perfmon: pmu\r\n", "");
    assert_eq!(result, HostResult::Done("Perfmon: pmu".to_owned()));
    assert!(script.contains("Set-VMProcessor -VMName 'it''s a guest' -Perfmon @('pmu')"), "{script}");
    let refusal = "halprof-refused cannot start\r\n";
    assert_eq!(act(HostAction::ExposeCounters, refusal, "").0, HostResult::Refused("cannot start".to_owned()));
    assert_eq!(act(HostAction::Checkpoint, "", "no space").0, HostResult::Refused("no space".to_owned()));
    assert!(act(HostAction::Interrupt, "", "").1.contains("-InjectNonMaskableInterrupt -Force"));
}

#[test]
fn a_program_of_the_host_that_hangs_is_ended() {
    let begun = std::time::Instant::now();
    let mut command = std::process::Command::new("sh");
    let output = host::run(command.args(["-c", "echo begun; sleep 60"]), Duration::from_millis(300)).unwrap();
    assert_eq!((output.code, output.out.as_str()), (None, "begun\n"));
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn a_guest_that_does_not_answer_is_reported_before_anything_is_built() {
    let programs = Programs::new();
    programs.answer(255, "", "ssh: connect to host guest port 22: Connection refused");
    let error = check_answer(&mut programs.ssh()).unwrap_err();
    let expected = "the guest does not answer: ssh: connect to host guest port 22: Connection refused\n  try: ";
    assert!(error.to_string().starts_with(expected), "{error}");
    programs.answer(255, "", "tester@guest: Permission denied (publickey).");
    let error = check_answer(&mut programs.ssh()).unwrap_err();
    assert!(error.to_string().contains("administrators_authorized_keys"), "{error}");
}
