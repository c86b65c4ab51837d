//! An open handle to the fake driver.

use std::io;
use std::sync::Arc;

use halprof::Device;
use protocol::Code;

use super::FakeDriver;

/// An open handle to the fake driver.
pub struct FakeDevice(pub Arc<FakeDriver>);

impl Device for FakeDevice {
    fn request(&self, code: Code, input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        self.0.reply(code, input, output)
    }

    fn share(&self) -> Box<dyn Device + Send> {
        Box::new(Self(Arc::clone(&self.0)))
    }
}
