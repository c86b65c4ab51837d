//! Wine's server kills what it takes for stuck: a process that Linux has not ended some 0.4 seconds after its last
//! thread of Windows. On a busy machine that is any program, and its exit code is lost. A server that cannot kill lets
//! it end by itself.

use std::{collections::BTreeMap, io};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

/// Takes SIGKILL from this thread, and from the processes that it starts: kill() with it does nothing and succeeds.
///
/// # Errors
/// The kernel allows no filter of system calls.
pub fn never_kill() -> io::Result<()> {
    let is_sigkill = SeccompCondition::new(
        1, // the signal, after the process
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::Eq,
        u64::from(libc::SIGKILL.unsigned_abs()),
    );
    let rules = is_sigkill.and_then(|condition| SeccompRule::new(vec![condition]));
    let filter = rules.and_then(|rule| {
        let rules = BTreeMap::from([(libc::SYS_kill, vec![rule])]);
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(0), TargetArch::x86_64)
    });
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(io::Error::other)?;
    apply_filter(&program).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::{process::Command, thread};

    use super::*;

    /// Returns how a shell ended that sends this signal to its child: with the child's exit code, or 128 and the
    /// signal.
    fn ended(signal: &str) -> Option<i32> {
        let script = "sleep 0.2 & kill $0 $! && wait $!";
        Command::new("sh").args(["-c", script, signal]).status().unwrap().code()
    }

    #[test]
    fn a_process_that_is_killed_ends_by_itself_and_other_signals_arrive() {
        let _alone = crate::tests::ONE_AT_A_TIME.lock().unwrap();
        let patient = thread::spawn(|| never_kill().map(|()| (ended("-KILL"), ended("-TERM"))));
        assert_eq!(patient.join().unwrap().unwrap(), (Some(0), Some(128 + 15)));
        assert_eq!(ended("-KILL"), Some(128 + 9), "from another thread");
    }
}
