//! Facilities of the Windows kernel, one file each. No other module calls into ntoskrnl.exe and hal.dll.

#![expect(unsafe_code, reason = "kernel functions are foreign functions")]

pub mod aligned;
pub mod clock;
pub mod contiguous;
pub mod control_area;
pub mod device_object;
pub mod etw;
pub mod fast_mutex;
pub mod hal;
pub mod irp;
pub mod local_apic;
pub mod node_pool;
pub mod pending;
pub mod power;
pub mod privilege;
pub mod processor_change;
pub mod processors;
pub mod registry;
pub mod routine;
pub mod security;
pub mod system_process;
pub mod system_thread;
pub mod targeted_calls;
pub mod text;
pub mod thread_profiling;
pub mod timers;
pub mod unwind;
