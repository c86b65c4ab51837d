//! Replies of a driver that another program may have replaced.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use halprof::protocol::{
    AreaRequest, Code, EventRequest, HelloReply, PROTOCOL_VERSION, ProcessorSet, ReplyHeader, SampleRecord, StartHeader,
};
use halprof::{Device, Driver, Error};
use zerocopy::{FromZeros, IntoBytes};

/// A device that agrees on the version and answers other requests with the next bytes: two with the length that it
/// claims, two with the length of the reply, and the reply.
struct Replaced {
    rest: Arc<Mutex<Vec<u8>>>,
    /// Bytes that it has written.
    written: Arc<Mutex<usize>>,
}

impl Device for Replaced {
    fn request(&self, code: Code, _input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        if code == Code::Hello {
            let hello = HelloReply { protocol: PROTOCOL_VERSION, ..HelloReply::new_zeroed() };
            output[..size_of::<HelloReply>()].copy_from_slice(hello.as_bytes());
            return Ok(size_of::<HelloReply>());
        }
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((&[low, high, short, long], behind)) = rest.split_first_chunk() else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let length = usize::from(u16::from_le_bytes([short, long])).min(behind.len()).min(output.len());
        output[..length].copy_from_slice(&behind[..length]);
        *rest = behind[length..].to_vec();
        let claimed = u16::from_le_bytes([low, high]);
        let claimed = if claimed == 0 { length } else { claimed.into() };
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) += claimed.min(output.len());
        Ok(claimed)
    }

    fn share(&self) -> Box<dyn Device + Send> {
        Box::new(Self { rest: self.rest.clone(), written: self.written.clone() })
    }
}

/// What the library returns has no more records than the driver has written bytes for. An error has a text; if it has
/// a remedy, that has one too.
pub fn replies(bytes: &[u8]) {
    let Some((which, script)) = bytes.split_first() else { return };
    let rest = Arc::new(Mutex::new(script.to_vec()));
    let written = Arc::new(Mutex::new(0));
    let device = Replaced { rest, written: written.clone() };
    let driver = Driver::over(Box::new(device)).expect("it agrees on the version");
    let room = || *written.lock().unwrap_or_else(PoisonError::into_inner);
    let counted = |outcome: Result<usize, Error>, size: usize| match outcome {
        Ok(count) => assert!(count * size <= room(), "{count} records of {size} bytes in {} bytes", room()),
        Err(error) => check_error(&error),
    };
    let all = ProcessorSet::EMPTY;
    match which % 10 {
        0 => counted(driver.sources().map(|_| 0), 0),
        1 => counted(driver.info().map(|_| 1), size_of::<ReplyHeader>()),
        2 => counted(driver.core_types().map(<[_]>::len), size_of::<u64>()),
        3 => counted(driver.read(1).map(|records| records.len()), size_of::<u64>()),
        4 => counted(driver.stop_all(1).map(|records| records.len()), size_of::<u64>()),
        5 => counted(driver.sessions().map(|_| 0), 0),
        6 => counted(driver.registers(0).map(|records| records.len()), size_of::<u64>()),
        7 => counted(driver.control_areas(&AreaRequest::new_zeroed()).map(|records| records.len()), size_of::<u64>()),
        8 => {
            let header = StartHeader { processors: all, ..StartHeader::EMPTY };
            counted(driver.start(&header, &[EventRequest::new_zeroed()]).map(|_| 1), size_of::<ReplyHeader>());
            counted(driver.events("instructions", 3, &all).map(|events| events.len()), 1);
        }
        _ => {
            let mut buffer = vec![0; 4096];
            let fetched = driver.sample_stream(1).fetch(Duration::ZERO, &mut buffer);
            counted(fetched.map(|fetched| fetched.count), size_of::<SampleRecord>());
        }
    }
}

fn check_error(error: &Error) {
    assert!(!error.to_string().is_empty(), "{error:?}");
    assert!(error.remedy().is_none_or(|remedy| !remedy.is_empty()), "{error:?}");
}
