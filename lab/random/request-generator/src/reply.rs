//! What every reply must look like.

use protocol::{
    AreaRecord, Code, CoreTypeRecord, CountRecord, ErrorCode, GroupReply, HalSourceRecord, HelloReply, InfoReply,
    RegisterRecord, ReplyHeader, SampleRecord, SessionEvent, SourceRecord, TIMER,
};
use zerocopy::FromBytes;

/// What a fuzzer needs to know about a correct reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyFacts {
    /// The header.
    pub header: ReplyHeader,
    /// Number of samples in the reply.
    pub samples: u64,
}

/// Checks a reply. `output` is the length of the output, `reply` what was returned.
///
/// # Errors
/// What is wrong with the reply.
pub fn check_reply(code: Code, output: usize, reply: &[u8]) -> Result<ReplyFacts, String> {
    if reply.len() > output {
        return Err(format!("{} bytes were returned in {output}", reply.len()));
    }
    let Ok((header, rest)) = ReplyHeader::read_from_prefix(reply) else {
        return Err(format!("{} bytes are no header", reply.len()));
    };
    let ReplyHeader { status, cause, count, total, reserved, .. } = header;
    let Some(cause) = ErrorCode::from_number(cause) else { return Err(format!("error code {cause} is unknown")) };
    if (status == 0) != (cause == ErrorCode::None) {
        return Err(format!("status {status:#x} with {cause:?}"));
    }
    if reserved != 0 || total < count {
        return Err(format!("reserved {reserved:#x}, {count} records of {total}"));
    }
    let records = match record_size(code, status != 0) {
        Shape::Fixed(length) if reply.len() == length => 0,
        Shape::Records(size) if rest.len() == count as usize * size => count,
        shape => return Err(format!("{} bytes with {count} records, not {shape:?}", reply.len())),
    };
    let records = rest.get(..).filter(|_| records > 0).unwrap_or_default();
    let mut samples = 0;
    match code {
        Code::Samples if status == 0 => {
            for bytes in records.chunks_exact(size_of::<SampleRecord>()) {
                samples += u64::from(check_sample(bytes)?);
            }
        }
        Code::Read | Code::Stop if status == 0 => {
            records.chunks_exact(size_of::<CountRecord>()).try_for_each(check_count)?;
        }
        _ => {}
    }
    Ok(ReplyFacts { header, samples })
}

/// The shape of a reply.
#[derive(Debug)]
enum Shape {
    /// Always this length.
    Fixed(usize),
    /// A header, then records of this size.
    Records(usize),
}

const fn record_size(code: Code, refused: bool) -> Shape {
    const HEADER: usize = size_of::<ReplyHeader>();
    match code {
        Code::Hello => Shape::Fixed(size_of::<HelloReply>()),
        Code::Info => Shape::Fixed(size_of::<InfoReply>()),
        Code::ReadGroup => Shape::Fixed(if refused { HEADER } else { size_of::<GroupReply>() }),
        Code::ListSources | Code::QuerySource | Code::SetInterval => Shape::Records(size_of::<SourceRecord>()),
        // A refusal lists the sessions that use the counters.
        Code::Start | Code::ListSessions => Shape::Records(size_of::<SessionEvent>()),
        Code::Stop | Code::Read => Shape::Records(size_of::<CountRecord>()),
        Code::Samples => Shape::Records(size_of::<SampleRecord>()),
        Code::ControlArea => Shape::Records(size_of::<AreaRecord>()),
        Code::ListCoreTypes => Shape::Records(size_of::<CoreTypeRecord>()),
        Code::ReadRegisters => Shape::Records(size_of::<RegisterRecord>()),
        Code::ListHalSources => Shape::Records(size_of::<HalSourceRecord>()),
    }
}

/// Returns whether a record is a sample.
fn check_sample(bytes: &[u8]) -> Result<bool, String> {
    let record = SampleRecord::read_from_bytes(bytes).map_err(|_| "a record is cut off".to_owned())?;
    let parsed = record.parse().map_err(|error| error.to_string())?;
    Ok(parsed.kind().is_sample())
}

fn check_count(bytes: &[u8]) -> Result<(), String> {
    let record = CountRecord::read_from_bytes(bytes).map_err(|_| "a record is cut off".to_owned())?;
    let CountRecord { enabled, asleep, running, lost, full, counter, count, .. } = record;
    if asleep > enabled || running > enabled - asleep {
        return Err(format!("enabled for {enabled}, of which {asleep} asleep and {running} running"));
    }
    if full > lost {
        return Err(format!("{full} of {lost} lost samples found the ring full"));
    }
    // A timer counts units of 100 ns while it is enabled.
    if counter == TIMER && count > enabled {
        return Err(format!("a time of {count} within {enabled}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::{FromZeros, IntoBytes};

    fn reply(header: ReplyHeader, records: &[u8]) -> Vec<u8> {
        [header.as_bytes(), records].concat()
    }

    #[test]
    fn only_replies_of_the_right_shape_are_correct() {
        let empty = ReplyHeader::new_zeroed();
        let one = ReplyHeader { count: 1, total: 2, ..empty };
        let busy = ReplyHeader { status: 0x8000_0011, cause: ErrorCode::NoFreeCounter as u32, ..empty };
        let count = [0; size_of::<CountRecord>()];
        let late = CountRecord { enabled: 5, asleep: 6, ..CountRecord::new_zeroed() };
        for (code, bytes, correct) in [
            (Code::Read, reply(one, &count), true),
            (Code::Read, reply(empty, &count), false),
            (Code::Read, reply(one, late.as_bytes()), false),
            (Code::Read, reply(ReplyHeader { total: 0, ..one }, &count), false),
            (Code::Start, reply(busy, &[]), true),
            (Code::Start, reply(ReplyHeader { cause: 0, ..busy }, &[]), false),
            (Code::Start, reply(ReplyHeader { cause: 1_000, ..busy }, &[]), false),
            (Code::ReadGroup, reply(empty, &[0; size_of::<GroupReply>() - size_of::<ReplyHeader>()]), true),
            (Code::ReadGroup, reply(empty, &[]), false),
            (Code::Samples, reply(one, &[0xFF; size_of::<SampleRecord>()]), false),
            (Code::Info, vec![0; 10], false),
        ] {
            assert_eq!(check_reply(code, 4_096, &bytes).is_ok(), correct, "{code:?} {bytes:?}");
            assert!(check_reply(code, 40, &bytes).is_err(), "longer than the output");
        }
    }
}
