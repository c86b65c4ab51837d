//! The calls to Windows: the only unsafe code of the client.

mod console;
mod device;
mod directory;
mod privilege;
mod service;

use std::io;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use crate::system::{Device, SERVICE, ServiceState, System};

/// This machine.
pub struct Windows;

impl System for Windows {
    fn open(&self) -> io::Result<Box<dyn Device>> {
        // An elevated token holds the privilege disabled. Where it is not held at all, the driver says so.
        let _ = privilege::enable_system_profile();
        Ok(Box::new(device::DeviceHandle::open()?))
    }

    fn service(&self) -> io::Result<Option<ServiceState>> {
        service::state()
    }

    fn register(&self) -> io::Result<bool> {
        service::register()
    }

    fn start(&self) -> io::Result<()> {
        service::start()
    }

    fn stop(&self) -> io::Result<()> {
        service::stop()
    }

    fn delete(&self) -> io::Result<()> {
        service::delete()
    }

    fn driver_path(&self) -> io::Result<PathBuf> {
        Ok(directory::windows()?.join("System32").join("drivers").join(format!("{SERVICE}.sys")))
    }

    fn pause(&self) {
        sleep(Duration::from_millis(50));
    }

    fn ignore_interrupts(&self) -> io::Result<()> {
        console::ignore_interrupts()
    }
}

/// As Windows takes it: UTF-16 with a zero at the end.
fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

/// What a BOOL says.
fn succeeded(answer: windows_sys::core::BOOL) -> io::Result<()> {
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
