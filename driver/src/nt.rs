//! Facilities of the Windows kernel, one file each; the only places that call into ntoskrnl.exe and hal.dll.

#![expect(unsafe_code, reason = "kernel functions are foreign functions")]

pub mod clock;
pub mod device_object;
pub mod fast_mutex;
pub mod follower;
pub mod irp;
pub mod privilege;
pub mod processors;
pub mod security;
pub mod text;
pub mod timers;
