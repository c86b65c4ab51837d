//! A stop of the driver while a program has a handle: a script that tries it in a guest, and what its output means.

use super::{
    guest::Ran,
    proof::Outcome::{self, Failed, NotTried, Passed},
};

/// Prints the state of the driver after a stop while the client records, after the client has ended, and after a start.
pub const SCRIPT: &str = "\
    function state{(Get-CimInstance Win32_SystemDriver -Filter \"Name='halprof'\").State}; \
    $a='record','-a','--duration','20s','-e','Time','-o','C:\\halprof-vm\\output\\pending-stop.rec'; \
    $p=Start-Process C:\\halprof-vm\\package\\client.exe -ArgumentList $a -PassThru -WindowStyle Hidden; \
    Start-Sleep 5; [void](sc.exe stop halprof); 'ended '+$p.HasExited; 'open '+(state); \
    [void]$p.WaitForExit(60000); \
    $i=0; do{Start-Sleep 1; $i++}while($i -lt 30 -and (state) -ne 'Stopped'); 'closed '+(state); \
    [void](sc.exe start halprof); 'started '+(state)";

/// Passes if the stop was pending while the client had a handle, unloaded the driver after that, and left a driver that
/// starts again.
pub fn unloaded_at_last_close(ran: &Ran) -> Outcome {
    let has = |line: &str| ran.out.lines().any(|found| found.trim() == line);
    let found = || format!("exit code {}: {}{}", ran.code, ran.out.trim(), ran.err.trim());
    if !has("ended False") {
        NotTried(format!("the client did not record when the stop arrived: {}", found()))
    } else if ["open Stop Pending", "closed Stopped", "started Running"].into_iter().all(has) {
        Passed
    } else {
        Failed(found())
    }
}

#[cfg(test)]
mod tests {
    use super::super::guest::{OUTPUT, ROOT};
    use super::*;

    #[test]
    fn only_a_stop_that_waits_for_the_last_close_passes() {
        let of = |out: &str| unloaded_at_last_close(&Ran { out: out.to_owned(), ..Ran::default() });
        assert_eq!(of("ended False\nopen Stop Pending\nclosed Stopped\nstarted Running\n"), Passed);
        for bad in [
            "ended False\nopen Running\nclosed Stopped\nstarted Running\n",
            "ended False\nopen Stopped\nclosed Stopped\nstarted Running\n",
            "ended False\nopen Stop Pending\nclosed Stop Pending\nstarted Stop Pending\n",
            "ended False\nopen Stop Pending\nclosed Stopped\nstarted Stopped\n",
        ] {
            assert!(matches!(of(bad), Failed(_)), "{bad}");
        }
        for nothing in ["", "ended True\nopen Stopped\nclosed Stopped\nstarted Running\n"] {
            assert!(matches!(of(nothing), NotTried(_)), "{nothing}");
        }
    }

    #[test]
    fn the_script_uses_the_folders_of_the_run() {
        assert!(SCRIPT.contains(&format!("{ROOT}\\package\\client.exe")) && SCRIPT.contains(&format!("{OUTPUT}\\")));
    }
}
