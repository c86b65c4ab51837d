//! What an event means for a recording.

use protocol::trace::{EventId, Sample};
use protocol::{UNKNOWN, is_kernel_address};
use stacks::{SampleEvent, StackItem, UserPart};
use zerocopy::FromBytes;

use super::images::{self, StartedProcess, TracedImage};
use super::methods::{self, TracedMethod};
use super::raw::{DOTNET, DOTNET_RUNDOWN, HALPROF, IMAGE, PROCESS, RawTraceEvent};
use super::stack;

/// A part of what an event means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// The driver wrote it for a sample.
    Sample(SampleEvent),
    /// It has the frames in user mode of an earlier event.
    UserPart(UserPart),
    /// It says which code is where.
    Code(CodeEvent),
}

/// Which code is where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeEvent {
    /// A process started.
    Process(StartedProcess),
    /// An image was loaded.
    Image(TracedImage),
    /// .NET compiled a function.
    Method(TracedMethod),
}

/// Passes everything that an event means to `report`.
pub fn interpret(event: &RawTraceEvent, mut report: impl FnMut(Meaning)) {
    let [process, thread] = [event.process, event.thread].map(|id| (id != UNKNOWN).then_some(id));
    if let Some(payload) = sample(event) {
        let stack = own_stack(event);
        report(Meaning::Sample(SampleEvent { payload, process, thread, stack }));
    }
    // Any event can bring the frames in user mode of an earlier one.
    let stacks = event.extensions.iter().filter_map(stack::parse);
    for stack in stacks.filter(|stack| stack.match_id != 0 && !stack.frames.is_empty() && !begins_in_kernel(stack)) {
        report(Meaning::UserPart(UserPart { process, thread, time: event.time, stack }));
    }
    let code = match event.provider {
        PROCESS => images::started(event).map(CodeEvent::Process),
        IMAGE => images::loaded(event).map(CodeEvent::Image),
        DOTNET | DOTNET_RUNDOWN => methods::parse(event).map(CodeEvent::Method),
        _ => None,
    };
    if let Some(code) = code {
        report(Meaning::Code(code));
    }
}

/// Returns the payload of the driver's event for a sample.
fn sample(event: &RawTraceEvent) -> Option<Sample> {
    let is_sample = event.provider == HALPROF && event.id == EventId::Sample as u16;
    let (payload, _) = Sample::read_from_prefix(event.payload).ok().filter(|_| is_sample)?;
    Some(payload)
}

/// Returns the stack of an event itself. An item with frames in user mode alone is that of an earlier event, or the
/// event has no frames in kernel mode: its MatchId then leads to that item.
fn own_stack(event: &RawTraceEvent) -> Option<StackItem> {
    let mut first = None;
    for item in event.extensions.iter().filter_map(stack::parse) {
        if item.match_id == 0 || begins_in_kernel(&item) {
            return Some(item);
        }
        first.get_or_insert(StackItem { frames: Box::default(), ..item });
    }
    first
}

fn begins_in_kernel(item: &StackItem) -> bool {
    item.frames.first().is_some_and(|frame| is_kernel_address(*frame))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zerocopy::{FromZeros, IntoBytes};

    use super::super::raw::{Extension, Guid, STACK_TRACE64};
    use super::*;

    const KERNEL: u64 = 0xFFFF_F800_0000_1000;

    fn meanings(event: &RawTraceEvent) -> Vec<Meaning> {
        let mut meanings = Vec::new();
        interpret(event, |meaning| meanings.push(meaning));
        meanings
    }

    fn item(match_id: u64, frames: &[u64]) -> Vec<u8> {
        [&[match_id][..], frames].concat().as_bytes().to_vec()
    }

    /// Interprets an event with stacks: of the driver for a sample, or another one.
    fn with_stacks(provider: Guid, items: &[Vec<u8>]) -> Vec<Meaning> {
        let payload = Sample { ip: 9, ..Sample::new_zeroed() };
        let extensions: Vec<_> = items.iter().map(|bytes| Extension { kind: STACK_TRACE64, bytes }).collect();
        let payload = payload.as_bytes();
        meanings(&RawTraceEvent {
            provider,
            id: 1,
            process: 12,
            time: 5,
            payload,
            extensions: &extensions,
            ..RawTraceEvent::EMPTY
        })
    }

    fn stacks_of(meanings: Vec<Meaning>) -> (Option<StackItem>, Vec<StackItem>) {
        let (mut own, mut parts) = (None, Vec::new());
        for meaning in meanings {
            match meaning {
                Meaning::Sample(event) => {
                    assert_eq!((event.payload.ip, event.process, event.thread), (9, Some(12), None));
                    own = event.stack;
                }
                Meaning::UserPart(part) => {
                    assert_eq!((part.process, part.thread, part.time), (Some(12), None, 5));
                    parts.push(part.stack);
                }
                Meaning::Code(code) => panic!("{code:?}"),
            }
        }
        (own, parts)
    }

    #[test]
    fn an_event_of_the_driver_has_its_own_stack_and_perhaps_parts_of_others() {
        let stack = |match_id, frames: &[u64]| StackItem { match_id, frames: frames.into() };
        let (own, earlier) = (item(8, &[KERNEL, KERNEL + 1]), item(7, &[0x40_1000, 0x40_2000]));
        let wanted = (Some(stack(8, &[KERNEL, KERNEL + 1])), vec![stack(7, &[0x40_1000, 0x40_2000])]);
        assert_eq!(stacks_of(with_stacks(HALPROF, &[earlier.clone(), own.clone()])), wanted);
        assert_eq!(stacks_of(with_stacks(HALPROF, &[own, earlier.clone()])), wanted);
        // Both parts in one item, also with frames in user mode alone.
        for frames in [&[KERNEL, 0x40_1000][..], &[0x40_1000]] {
            assert_eq!(stacks_of(with_stacks(HALPROF, &[item(0, frames)])), (Some(stack(0, frames)), vec![]));
        }
        // No frames in kernel mode: the item is also the part.
        let parts = vec![stack(7, &[0x40_1000, 0x40_2000])];
        assert_eq!(stacks_of(with_stacks(HALPROF, &[earlier])), (Some(stack(7, &[])), parts));
        assert_eq!(stacks_of(with_stacks(HALPROF, &[])), (None, vec![]));
    }

    #[test]
    fn other_events_can_bring_user_parts() {
        let parts = [item(7, &[0x40_1000]), item(8, &[KERNEL, 0x40_1000]), item(0, &[0x40_1000]), item(9, &[])];
        let (own, parts) = stacks_of(with_stacks(9, &parts));
        assert_eq!((own, parts.len(), parts[0].match_id), (None, 1, 7));
    }

    #[test]
    fn processes_images_and_methods_are_recognized_by_their_provider() {
        let process = fake_system::payloads::process(4, 712, "app.exe");
        let image = fake_system::payloads::image(712, 0x40_0000, 0x1000, "x.dll");
        let method = fake_system::payloads::method(0x1000, 0x10, ["A", "B", "()"]);
        let event = |provider, payload| RawTraceEvent { provider, version: 4, payload, ..RawTraceEvent::EMPTY };
        let [started] = &meanings(&RawTraceEvent { opcode: 1, ..event(PROCESS, &process) })[..] else { panic!() };
        assert!(matches!(started, Meaning::Code(CodeEvent::Process(StartedProcess { id: 712, .. }))), "{started:?}");
        let [loaded] = &meanings(&RawTraceEvent { opcode: 10, ..event(IMAGE, &image) })[..] else { panic!() };
        assert!(matches!(loaded, Meaning::Code(CodeEvent::Image(TracedImage { process: 712, .. }))), "{loaded:?}");
        for provider in [DOTNET, DOTNET_RUNDOWN] {
            let [compiled] = &meanings(&RawTraceEvent { id: 143, ..event(provider, &method) })[..] else { panic!() };
            assert!(matches!(compiled, Meaning::Code(CodeEvent::Method(_))), "{compiled:?}");
        }
        assert_eq!(meanings(&RawTraceEvent { opcode: 1, ..event(7, &process) }), []);
    }

    proptest! {
        #[test]
        fn any_event_is_interpreted_without_a_panic(
            provider in prop::sample::select(vec![HALPROF, PROCESS, IMAGE, DOTNET]),
            payload in prop::collection::vec(any::<u8>(), 0..200),
            items in prop::collection::vec((0_u16..10, prop::collection::vec(any::<u8>(), 0..40)), 0..4),
            (id, version, opcode) in (prop_oneof![Just(1), Just(143)], 0_u8..6, prop_oneof![Just(1), Just(10)]),
        ) {
            let extensions: Vec<_> = items.iter().map(|(kind, bytes)| Extension { kind: *kind, bytes }).collect();
            let event = RawTraceEvent { provider, id, version, opcode, payload: &payload, extensions: &extensions,
                ..RawTraceEvent::EMPTY };
            let count = meanings(&event).len();
            prop_assert!(count <= items.len() + 1);
        }
    }
}
