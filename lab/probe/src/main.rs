//! Opens the device and sends any request, as a test tells it, a line for each:
//!
//! | in | out |
//! |---|---|
//! | `open [ro] [overlapped] [NAME]` | `handle N` |
//! | `ioctl N CODE INPUT OUTPUT` | `ok BYTES HEX` |
//! | `aside N CODE INPUT OUTPUT` | `aside K`: the same, on a thread of its own |
//! | `join K` | what `ioctl` would have answered, when it is there |
//! | `cancel N` | `ok`: what waits on the handle is to be cancelled |
//! | `close N` | `ok` |
//! | `create NAME FILE GROUP` | `ok`: there is a service of this name, for this driver, in this load-order group |
//! | `delete NAME` | `ok`: there is none |
//! | `load NAME` | `ok`: the service of this name is started |
//! | `unload NAME` | `ok`: and stopped |
//! | `pid` | `pid N` |
//! | `exit CODE` | |
//! | `hang` | `hanging`, and nothing any more: the process is to be killed |
//!
//! What Windows refuses is `error N` with its error code; a line that makes no sense is `bad` with the reason. `CODE`
//! is a number, with `0x` or without. `INPUT` is hexadecimal digits, `-` for a buffer of no bytes, `null` for none, or
//! `null:LENGTH` for none with a length all the same, which a driver does not see. `OUTPUT` is a length, `null` or
//! `null:LENGTH`. In `HEX`, `-` is no bytes.

#[cfg(windows)]
mod device;
#[cfg(windows)]
mod service;
#[cfg(windows)]
mod session;

#[cfg(windows)]
fn main() -> std::io::Result<std::process::ExitCode> {
    session::run()
}

#[cfg(not(windows))]
fn main() {
    eprintln!("probe needs Windows' DeviceIoControl");
    std::process::exit(2);
}
