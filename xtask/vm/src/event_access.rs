//! The access to the driver's events in a guest: scripts that test it, and what their output means.

use super::{
    guest::Ran,
    proof::Outcome::{self, Failed, NotTried, Passed},
};

/// Prints the security descriptor of the provider as Event Tracing for Windows reports it, in SDDL.
pub const DESCRIPTOR: &str = "\
    $t=Add-Type -PassThru -Name Etw -Namespace Halprof -MemberDefinition \
    '[DllImport(\"advapi32.dll\")]public static extern uint EventAccessQuery(ref Guid g,byte[] b,ref uint n);'; \
    $g=[Guid]'1e73bb95-d033-5693-4748-a63e860b83c2'; $b=New-Object byte[] 4096; [uint32]$n=4096; \
    $e=$t::EventAccessQuery([ref]$g,$b,[ref]$n); \
    if($e){'error '+$e} \
    else{(New-Object Security.AccessControl.RawSecurityDescriptor($b,0)).GetSddlForm('All')}";

/// Prints whether LOCAL SERVICE can enable a provider without a descriptor, and whether it can enable the driver's. By
/// default it can enable both, as Performance Log Users can.
pub const OTHER_ACCOUNT: &str = "\
    function enables($n,$g){ \
    $a=New-ScheduledTaskAction -Execute logman.exe -Argument ('start '+$n+' -p {'+$g+'} 0x7 4 -rt -ets'); \
    $p=New-ScheduledTaskPrincipal -UserId LOCALSERVICE -LogonType ServiceAccount; \
    [void](Register-ScheduledTask $n -Action $a -Principal $p -Force); Start-ScheduledTask $n; \
    $i=0; do{Start-Sleep 1; $i++}while($i -lt 60 -and (Get-ScheduledTask $n).State -ne 'Ready'); \
    (logman.exe query $n -ets|Out-String).ToLower().Contains($g); \
    [void](logman.exe stop $n -ets); Unregister-ScheduledTask $n -Confirm:$false}; \
    'control '+(enables halprof-control '0fb8f3a1-6d2c-4c0e-9a57-2f1d8e5b7c43'); \
    'halprof '+(enables halprof-check '1e73bb95-d033-5693-4748-a63e860b83c2')";

fn text(ran: &Ran) -> String {
    format!("exit code {}: {}{}", ran.code, ran.out.trim(), ran.err.trim())
}

/// Passes if the descriptor has an entry for SYSTEM, one for Administrators, and no other.
pub fn restricted(ran: &Ran) -> Outcome {
    let Some((_, entries)) = ran.out.trim().split_once("D:") else { return Failed(text(ran)) };
    let trustees: Vec<&str> =
        entries.split(')').filter_map(|entry| entry.rsplit_once(";;;")).map(|(_, to)| to).collect();
    let allows = entries.matches("(A;").count();
    if ran.code == 0 && trustees == ["SY", "BA"] && allows == 2 { Passed } else { Failed(text(ran)) }
}

/// Passes if LOCAL SERVICE can enable a provider without a descriptor, and not the driver's.
pub fn other_account_refused(ran: &Ran) -> Outcome {
    let has = |line: &str| ran.out.lines().any(|found| found.trim() == line);
    if has("halprof True") {
        Failed("LOCAL SERVICE enables the driver's events".to_owned())
    } else if has("control True") && has("halprof False") {
        Passed
    } else {
        NotTried(format!("LOCAL SERVICE enables no provider at all: {}", text(ran)))
    }
}

#[cfg(test)]
mod tests {
    use protocol::trace::security::VALUE_NAME;

    use super::*;

    fn printed(out: &str) -> Ran {
        Ran { out: out.to_owned(), ..Ran::default() }
    }

    #[test]
    fn only_a_descriptor_for_system_and_administrators_passes() {
        let good = "O:BAG:BAD:(A;;0x120fff;;;SY)(A;;0x120fff;;;BA)\n";
        assert_eq!(restricted(&printed(good)), Passed);
        for bad in [
            "",
            "error 5",
            "O:BAG:BAD:(A;;0x120fff;;;SY)",
            "O:BAG:BAD:(A;;0x120fff;;;SY)(A;;0x120fff;;;BA)(A;;0x80;;;LU)",
            "O:BAG:BAD:(A;;0x120fff;;;SY)(D;;0x120fff;;;BA)",
        ] {
            assert!(matches!(restricted(&printed(bad)), Failed(_)), "{bad}");
        }
        assert!(matches!(restricted(&Ran { code: 1, ..printed(good) }), Failed(_)));
    }

    #[test]
    fn a_refusal_shows_something_only_if_another_provider_can_be_enabled() {
        let of = |out: &str| other_account_refused(&printed(out));
        assert_eq!(of("control True\nhalprof False\n"), Passed);
        assert!(matches!(of("control True\nhalprof True\n"), Failed(_)));
        assert!(matches!(of("control False\nhalprof True\n"), Failed(_)));
        for nothing in ["control False\nhalprof False\n", "control True\n", ""] {
            assert!(matches!(of(nothing), NotTried(_)), "{nothing}");
        }
    }

    #[test]
    fn the_scripts_are_about_the_provider_of_the_driver() {
        assert_eq!((DESCRIPTOR.matches(VALUE_NAME).count(), OTHER_ACCOUNT.matches(VALUE_NAME).count()), (1, 1));
    }
}
