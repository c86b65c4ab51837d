//! probe.exe: opens the device and sends arbitrary requests. It reads one command per line and answers each with a
//! line:
//!
//! | in | out |
//! |---|---|
//! | `open [ro] [overlapped] [NAME]` | `handle N` |
//! | `ioctl N CODE INPUT OUTPUT` | `ok BYTES HEX` |
//! | `spawn N CODE INPUT OUTPUT` | `spawned K`: the same, on a thread of its own |
//! | `join K` | the answer that `ioctl` would have given; waits for it |
//! | `cancel N` | `ok`: cancellation of the handle's pending requests is requested |
//! | `close N` | `ok` |
//! | `storm PLAN` | `ok`: threads begin to send the requests of a `StormPlan`, which is JSON without spaces |
//! | `storming` | the `StormReport` of the storm, as JSON |
//! | `create NAME FILE GROUP` | `ok`: the service of this driver has been created in this load-order group |
//! | `delete NAME` | `ok`: the service of this name has been deleted |
//! | `load NAME` | `ok`: the service of this name has been started |
//! | `unload NAME` | `ok`: the service of this name has been stopped |
//! | `pid` | `pid N` |
//!
//! If Windows rejects a call, the answer is `error N` with its error code. If a command is invalid, the answer is `bad`
//! with the invalid part. `CODE` is a number, decimal or with `0x`. `INPUT` is hexadecimal digits, `-` for an empty
//! buffer, `null` for a null pointer, or `null:LENGTH` for a null pointer with a length, which a driver does not see.
//! `OUTPUT` is a length, `null` or `null:LENGTH`. In `HEX`, `-` means no bytes.

#[cfg(windows)]
mod device;
#[cfg(windows)]
mod service;
#[cfg(windows)]
mod session;
#[cfg(windows)]
mod storm;

#[cfg(windows)]
fn main() -> std::io::Result<()> {
    session::run()
}

#[cfg(not(windows))]
fn main() {
    eprintln!("probe needs Windows' DeviceIoControl");
    std::process::exit(2);
}
