//! Functions that work in Wine, with two additions: a check of the documented IRQL, and injected failures. The
//! expression after `or` is the result of a failed call.

#![expect(unsafe_code, reason = "hands calls on to Wine")]

use crate::{
    kernel::{call_stack, irql},
    nt::{self, APC_LEVEL, DISPATCH_LEVEL, NtStatus, PASSIVE_LEVEL, Pointer},
    violation::catch_panic,
};
use std::arch::naked_asm;

/// The highest level of a device interrupt, below CLOCK_LEVEL.
const HIGHEST_OF_A_DEVICE: u8 = 12;

/// Functions of Wine that may be called at any IRQL.
pub const AT_ANY_IRQL: [&str; 8] = [
    "KeInitializeEvent",
    "KeInitializeSpinLock",
    "RtlCaptureContext",
    "__C_specific_handler",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
];

macro_rules! irql_checked {
    ($($level:ident $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $(, or $failure:expr)?;)*) => {
        mod wine {
            use super::{NtStatus, Pointer};

            #[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
            unsafe extern "system" {
                $(pub fn $name($($argument: $type),*) $(-> $result)?;)*
            }
        }

        /// Returns the address of the checked function.
        pub fn find(name: &str) -> Option<usize> {
            $(
                #[expect(non_snake_case, reason = "the names of the WDK")]
                unsafe extern "system" fn $name($($argument: $type),*) $(-> $result)? {
                    catch_panic(stringify!($name), (), || irql::check(stringify!($name), $level));
                    $(if call_stack::fails(stringify!($name)) {
                        return $failure;
                    })?
                    // SAFETY: the arguments are the driver's own.
                    unsafe { wine::$name($($argument),*) }
                }
            )*
            match name {
                $(stringify!($name) => Some($name as *const () as usize),)*
                "DbgPrint" => Some(debug_print as *const () as usize),
                _ => None,
            }
        }
    };
}

/// Implements DbgPrint, which takes any number of arguments: checks the level, and leaves the arguments unchanged.
#[unsafe(naked)]
unsafe extern "system" fn debug_print() {
    extern "system" fn check() {
        catch_panic("DbgPrint", (), || irql::check("DbgPrint", HIGHEST_OF_A_DEVICE));
    }
    naked_asm!(
        "push rcx", "push rdx", "push r8", "push r9",
        "sub rsp, 40",
        "call {check}",
        "add rsp, 40",
        "pop r9", "pop r8", "pop rdx", "pop rcx",
        "jmp {print}",
        check = sym check,
        print = sym nt::DbgPrint,
    )
}

irql_checked! {
    PASSIVE_LEVEL IoCreateSymbolicLink(link: Pointer, name: Pointer) -> NtStatus, or nt::INSUFFICIENT_RESOURCES;
    PASSIVE_LEVEL IoDeleteSymbolicLink(link: Pointer) -> NtStatus;
    PASSIVE_LEVEL ObOpenObjectByPointer(
        object: Pointer, attributes: u32, state: Pointer, access: u32, kind: Pointer, mode: i8, handle: Pointer
    ) -> NtStatus, or nt::INSUFFICIENT_RESOURCES;
    DISPATCH_LEVEL KeSetEvent(event: Pointer, increment: i32, wait: u8) -> i32;
    DISPATCH_LEVEL KeResetEvent(event: Pointer) -> i32;
    DISPATCH_LEVEL KeClearEvent(event: Pointer);
    DISPATCH_LEVEL KeReadStateEvent(event: Pointer) -> i32;
    APC_LEVEL KeDelayExecutionThread(mode: i8, alertable: u8, interval: Pointer) -> NtStatus;
    DISPATCH_LEVEL RtlLookupFunctionEntry(pc: u64, base: Pointer, history: Pointer) -> Pointer;
    DISPATCH_LEVEL RtlVirtualUnwind(
        kind: u32, base: u64, pc: u64, function: Pointer, context: Pointer, data: Pointer, frame: Pointer, pointers: Pointer
    ) -> Pointer;
    PASSIVE_LEVEL ZwOpenKey(key: Pointer, access: u32, attributes: Pointer) -> NtStatus;
    PASSIVE_LEVEL ZwQueryValueKey(
        key: Pointer, name: Pointer, class: i32, buffer: Pointer, length: u32, used: Pointer
    ) -> NtStatus;
}
