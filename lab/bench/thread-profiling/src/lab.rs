//! The script and the connection to the lab.

#![expect(unsafe_code, reason = "foreign functions")]

use bench_protocol::{Client, Refusal, THREAD_SCRIPT, ThreadAnswer, ThreadCall, ThreadScript};
use std::{
    cell::Cell,
    collections::BTreeMap,
    env,
    path::Path,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};
use windows_sys::Win32::{
    Foundation::{ERROR_BUSY, ERROR_GEN_FAILURE},
    System::Threading::{GetCurrentProcessId, GetCurrentThreadId},
};

/// The file with the lab's port, and the time limit for the lab to answer.
const PORT_FILE: &str = "C:\\lab\\port";
const LAB_LIMIT: Duration = Duration::from_mins(1);

static SCRIPT: OnceLock<ThreadScript> = OnceLock::new();
static LAB: Mutex<Option<Client>> = Mutex::new(None);
/// Number of refused calls of each function.
static REFUSED: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// Whether the lab knows this thread.
    static IS_KNOWN: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread asks the lab. A function that is redirected can be called meanwhile.
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the script from the environment.
pub fn read_script() -> Result<(), String> {
    let text = env::var(THREAD_SCRIPT).map_err(|error| format!("{THREAD_SCRIPT}: {error}"))?;
    let script = serde_json::from_str(&text).map_err(|error| format!("{THREAD_SCRIPT}: {error}"))?;
    SCRIPT.get_or_init(|| script);
    Ok(())
}

/// Returns the script.
pub fn script() -> &'static ThreadScript {
    SCRIPT.get_or_init(ThreadScript::default)
}

/// Returns the error with which the script makes this call of a function fail.
pub fn refusal(function: &str) -> Option<u32> {
    let Refusal { error, times, .. } = script().refusals.iter().find(|refusal| refusal.function == function)?;
    let mut refused = lock(&REFUSED);
    let refused = refused.entry(function.to_owned()).or_default();
    *refused += 1;
    (*refused <= *times).then_some(*error)
}

/// Sends a call of the current thread to the lab. The first one connects and registers the program.
///
/// # Errors
/// A Win32 error: of the call, or because the lab cannot be reached.
pub fn call(call: ThreadCall) -> Result<ThreadAnswer, u32> {
    if IS_ASKING.replace(true) {
        return Err(ERROR_BUSY);
    }
    let answer = ask(call);
    IS_ASKING.set(false);
    match answer {
        Ok(ThreadAnswer::Failed(error)) => Err(error),
        Ok(answer) => Ok(answer),
        Err(error) => {
            eprintln!("thread-profiling.dll: {error}");
            Err(ERROR_GEN_FAILURE)
        }
    }
}

fn ask(call: ThreadCall) -> Result<ThreadAnswer, bench_protocol::Error> {
    // SAFETY: the function has no preconditions.
    let process = unsafe { GetCurrentProcessId() };
    // SAFETY: the function has no preconditions.
    let thread = unsafe { GetCurrentThreadId() };
    let mut lab = lock(&LAB);
    if lab.is_none() {
        let mut client = Client::find(Path::new(PORT_FILE), LAB_LIMIT)?;
        client.start_program(process, &script().scheduling)?;
        *lab = Some(client);
    }
    let Some(client) = &mut *lab else { return Ok(ThreadAnswer::Failed(ERROR_GEN_FAILURE)) };
    IS_KNOWN.set(true);
    client.thread_call(process, thread, call)
}

/// Reports that this thread ends, if the lab knows it. The connection stands then, so nothing waits for the loader
/// lock.
pub fn end_thread() {
    if IS_KNOWN.replace(false) {
        // An error has been printed; the thread ends with its program.
        let _ = call(ThreadCall::End);
    }
}

/// Returns whether the answer to another call of this thread is awaited.
pub fn is_asking() -> bool {
    IS_ASKING.get()
}
