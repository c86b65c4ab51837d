//! The stacks of an event.

use stacks::StackItem;

use super::payload::Payload;
use super::raw::{Extension, STACK_TRACE32, STACK_TRACE64};

/// Parses an EVENT_EXTENDED_ITEM_STACK_TRACE32 or EVENT_EXTENDED_ITEM_STACK_TRACE64: the MatchId and the addresses.
/// Returns `None` for other items.
pub fn parse(extension: &Extension) -> Option<StackItem> {
    let mut rest = Payload(extension.bytes);
    let pointer = match extension.kind {
        STACK_TRACE32 => 4,
        STACK_TRACE64 => 8,
        _ => return None,
    };
    let match_id = rest.u64()?;
    let frames = std::iter::from_fn(|| rest.pointer(pointer)).collect();
    Some(StackItem { match_id, frames })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_has_a_match_id_and_addresses_of_its_width() {
        let bytes = [7_u64, 0xFFFF_F800_0000_1000, 0x40_1000].map(u64::to_le_bytes).concat();
        let wide = parse(&Extension { kind: STACK_TRACE64, bytes: &bytes }).unwrap();
        assert_eq!((wide.match_id, &*wide.frames), (7, &[0xFFFF_F800_0000_1000, 0x40_1000][..]));
        let narrow = parse(&Extension { kind: STACK_TRACE32, bytes: &bytes }).unwrap();
        assert_eq!((narrow.match_id, &*narrow.frames), (7, &[0x1000, 0xFFFF_F800, 0x40_1000, 0][..]));
        assert_eq!(parse(&Extension { kind: 18, bytes: &bytes }), None);
        assert_eq!(parse(&Extension { kind: STACK_TRACE64, bytes: &bytes[..7] }), None);
        // A partial address is left out.
        let cut = parse(&Extension { kind: STACK_TRACE64, bytes: &bytes[..20] }).unwrap();
        assert_eq!(cut.frames.len(), 1);
    }
}
