//! Starts a program with libraries.

#![expect(unsafe_code, reason = "foreign functions")]

use bench_protocol::{PROCESSOR_IDENTITY, THREAD_SCRIPT, TRACE_SCRIPT};
use std::{env, ffi::c_void, io, mem, os::windows::ffi::OsStrExt, ptr};
use windows_sys::Win32::{
    Foundation::{CloseHandle, HANDLE, TRUE},
    System::{
        Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler},
        Diagnostics::Debug::WriteProcessMemory,
        Environment::GetCommandLineW,
        JobObjects::{
            AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
            JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation, SetInformationJobObject,
        },
        LibraryLoader::{GetModuleHandleW, GetProcAddress},
        Memory::{MEM_COMMIT, MEM_RESERVE, PAGE_READWRITE, VirtualAllocEx},
        Threading::{
            CREATE_SUSPENDED, CreateProcessW, CreateRemoteThread, GetExitCodeProcess, GetExitCodeThread, INFINITE,
            PROCESS_INFORMATION, ResumeThread, STARTUPINFOW, TerminateProcess, WaitForSingleObject,
        },
    },
};
use windows_sys::core::BOOL;

/// Exit code if the program cannot be started.
pub const FAILED: i32 = 125;

/// The libraries, and the environment variables that want them.
const LIBRARIES: [(&str, &str); 3] = [
    ("etw.dll", TRACE_SCRIPT),
    ("thread-profiling.dll", THREAD_SCRIPT),
    ("processor-identity.dll", PROCESSOR_IDENTITY),
];

/// A handle that is closed on drop.
struct Handle(HANDLE);

impl Handle {
    fn new(handle: HANDLE, what: &str) -> Result<Self, String> {
        if handle.is_null() { Err(failed(what)) } else { Ok(Self(handle)) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is open and is closed once.
        unsafe { CloseHandle(self.0) };
    }
}

/// A program that does not run yet. It is terminated on drop.
struct Program {
    process: Handle,
    thread: Handle,
    /// Terminates the program when the launcher is terminated, which closes the handle.
    job: Handle,
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the handle is open. If the program has ended, this fails.
        unsafe { TerminateProcess(self.process.0, FAILED.cast_unsigned()) };
    }
}

fn failed(what: &str) -> String {
    format!("{what}: {}", io::Error::last_os_error())
}

fn done(result: BOOL, what: &str) -> Result<(), String> {
    if result == 0 { Err(failed(what)) } else { Ok(()) }
}

/// Runs the program of the command line and returns its exit code.
pub fn run() -> Result<i32, String> {
    // SAFETY: the function is valid as long as this process. Programs do not inherit it.
    done(unsafe { SetConsoleCtrlHandler(Some(leave_to_program), TRUE) }, "SetConsoleCtrlHandler")?;
    let program = Program::start()?;
    let wanted = LIBRARIES.iter().filter(|(_, script)| env::var_os(script).is_some());
    let wanted: Vec<&str> = wanted.map(|(library, _)| *library).collect();
    if wanted.is_empty() {
        return Err("the environment wants no library".to_owned());
    }
    wanted.into_iter().try_for_each(|library| program.load_library(library))?;
    // SAFETY: the handle is open.
    if unsafe { ResumeThread(program.thread.0) } == u32::MAX {
        return Err(failed("ResumeThread"));
    }
    // SAFETY: the handle is open.
    unsafe { WaitForSingleObject(program.process.0, INFINITE) };
    let mut code = 0;
    // SAFETY: the handle is open, and the variable is writable.
    done(unsafe { GetExitCodeProcess(program.process.0, &raw mut code) }, "GetExitCodeProcess")?;
    Ok(code.cast_signed())
}

/// Ignores Ctrl-C and Ctrl-Break, which the program receives too.
unsafe extern "system" fn leave_to_program(event: u32) -> BOOL {
    BOOL::from([CTRL_C_EVENT, CTRL_BREAK_EVENT].contains(&event))
}

/// Returns the command line without the launcher, as it was written, with a zero.
fn command_line() -> Result<Vec<u16>, String> {
    let mut units = Vec::new();
    // SAFETY: the function has no preconditions.
    let line = unsafe { GetCommandLineW() };
    // SAFETY: the line ends with a zero, which stops the iteration.
    units.extend((0..).map(|at| unsafe { *line.wrapping_add(at) }).take_while(|unit| *unit != 0));
    let rest = after_first(&units).ok_or("which program?")?;
    Ok(rest.iter().copied().chain([0]).collect())
}

/// Returns what follows the first argument: the name of the launcher, which can be in quotes and contains none.
fn after_first(line: &[u16]) -> Option<&[u16]> {
    let (quote, space) = (u16::from(b'"'), u16::from(b' '));
    let end = match line.split_first() {
        Some((first, rest)) if *first == quote => rest.iter().position(|unit| *unit == quote)? + 2,
        _ => line.iter().position(|unit| *unit == space)?,
    };
    let rest = line.get(end..)?;
    rest.get(rest.iter().position(|unit| *unit != space)?..)
}

impl Program {
    /// Creates the program, suspended.
    fn start() -> Result<Self, String> {
        let mut line = command_line()?;
        let job = kill_with_launcher()?;
        let startup =
            STARTUPINFOW { cb: u32::try_from(size_of::<STARTUPINFOW>()).unwrap_or_default(), ..Default::default() };
        let mut created = PROCESS_INFORMATION::default();
        // SAFETY: the line is writable and ends with a zero, the structures are valid, and the rest may be null.
        let result = unsafe {
            CreateProcessW(
                ptr::null(),
                line.as_mut_ptr(),
                ptr::null(),
                ptr::null(),
                TRUE,
                CREATE_SUSPENDED,
                ptr::null(),
                ptr::null(),
                &raw const startup,
                &raw mut created,
            )
        };
        done(result, "CreateProcess")?;
        let program = Self { process: Handle(created.hProcess), thread: Handle(created.hThread), job };
        // SAFETY: both handles are open.
        done(unsafe { AssignProcessToJobObject(program.job.0, program.process.0) }, "AssignProcessToJobObject")?;
        Ok(program)
    }

    /// Loads a library, on a thread of the program that runs before its first.
    fn load_library(&self, library: &str) -> Result<(), String> {
        let path = env::current_exe().map_err(|error| error.to_string())?.with_file_name(library);
        let path: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
        let size = size_of_val(&*path);
        let process = self.process.0;
        // SAFETY: the handle is open, and the address may be null.
        let memory = unsafe { VirtualAllocEx(process, ptr::null(), size, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE) };
        if memory.is_null() {
            return Err(failed("VirtualAllocEx"));
        }
        // SAFETY: both ranges have this size; the count may be null.
        let written = unsafe { WriteProcessMemory(process, memory, path.as_ptr().cast(), size, ptr::null_mut()) };
        done(written, "WriteProcessMemory")?;
        let load = load_library_w()?;
        // SAFETY: kernel32.dll is at the same address in every program, and the path is in the program's memory.
        let thread = unsafe { CreateRemoteThread(process, ptr::null(), 0, Some(load), memory, 0, ptr::null_mut()) };
        let thread = Handle::new(thread, "CreateRemoteThread")?;
        // SAFETY: the handle is open.
        unsafe { WaitForSingleObject(thread.0, INFINITE) };
        let mut module = 0;
        // SAFETY: the handle is open, and the variable is writable.
        done(unsafe { GetExitCodeThread(thread.0, &raw mut module) }, "GetExitCodeThread")?;
        // The lower half of the module's address.
        if module == 0 { Err(format!("{library} cannot be loaded into the program")) } else { Ok(()) }
    }
}

/// Creates a job whose programs are terminated when its last handle is closed.
fn kill_with_launcher() -> Result<Handle, String> {
    // SAFETY: both pointers may be null.
    let job = Handle::new(unsafe { CreateJobObjectW(ptr::null(), ptr::null()) }, "CreateJobObject")?;
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    let size = u32::try_from(size_of_val(&limits)).unwrap_or_default();
    let information: *const c_void = (&raw const limits).cast();
    // SAFETY: the structure is that of the class, with its size.
    let set = unsafe { SetInformationJobObject(job.0, JobObjectExtendedLimitInformation, information, size) };
    done(set, "SetInformationJobObject")?;
    Ok(job)
}

/// Returns LoadLibraryW as the routine of a thread.
fn load_library_w() -> Result<unsafe extern "system" fn(*mut c_void) -> u32, String> {
    let name: Vec<u16> = "kernel32.dll".encode_utf16().chain([0]).collect();
    // SAFETY: the name ends with a zero.
    let kernel = unsafe { GetModuleHandleW(name.as_ptr()) };
    // SAFETY: the module stays loaded, and the name ends with a zero.
    let load = unsafe { GetProcAddress(kernel, c"LoadLibraryW".as_ptr().cast()) };
    let load = load.ok_or_else(|| failed("GetProcAddress"))?;
    // SAFETY: both take one pointer. The thread's exit code is the lower half of the result.
    Ok(unsafe {
        mem::transmute::<unsafe extern "system" fn() -> isize, unsafe extern "system" fn(*mut c_void) -> u32>(load)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_the_line_stays_as_it_was_written() {
        let rest = |line: &str| {
            let units: Vec<u16> = line.encode_utf16().collect();
            after_first(&units).map(String::from_utf16_lossy)
        };
        assert_eq!(rest(r#""C:\a b\l.exe"  "C:\p q.exe" -x "a ""b"#).as_deref(), Some(r#""C:\p q.exe" -x "a ""b"#));
        assert_eq!(rest("l.exe p.exe a").as_deref(), Some("p.exe a"));
        assert_eq!(rest("l.exe"), None);
        assert_eq!(rest("l.exe  "), None);
    }
}
