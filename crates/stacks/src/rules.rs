//! Which event and which user part fit a sample, and the stack that results.

use protocol::{CounterSample, Mode, UNKNOWN, is_kernel_address, trace};
use recording::{CallStack, MissingStack, SampleStack, StackEnd};

use crate::input::{CallGraph, MAX_FRAMES, SampleEvent, StackItem, UserPart};

/// Processes without user mode: the idle process and System.
pub const KERNEL_ONLY: [u32; 2] = [0, 4];

/// How an event relates to a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// It is the event of the sample.
    Own,
    /// It is the event of a later sample of the counter, into which the sample was merged.
    Merged,
}

/// Returns the number of an interrupt in a cookie.
#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
pub const fn number(cookie: u64) -> u32 {
    cookie as u32
}

/// Returns the CPU in a cookie.
pub const fn cpu(cookie: u64) -> u32 {
    number(cookie >> u32::BITS)
}

/// Returns whether the cookies of an event can be those of the driver.
pub fn is_consistent(payload: &trace::Sample) -> bool {
    let trace::Sample { cookie, first, cpu: processor, .. } = *payload;
    [cookie, first].iter().all(|one| cpu(*one) == processor && number(*one) != 0)
}

/// Returns how an event relates to a sample of the same CPU and source; `None` if it does not. `window` is the maximum
/// time between two merged samples.
pub fn relation(sample: &CounterSample, event: &trace::Sample, window: u64) -> Option<Relation> {
    let (first, last) = (number(event.first), number(event.cookie));
    if sample.cookie == last {
        let is_same = (sample.time, sample.ip, mode(sample)) == (event.time, event.ip, event.mode);
        return is_same.then_some(Relation::Own);
    }
    let is_covered = sample.cookie.wrapping_sub(first) < last.wrapping_sub(first);
    let age = event.time.checked_sub(sample.time)?;
    (is_covered && age <= window).then_some(Relation::Merged)
}

/// Returns the mode by the numbers of [`trace::Sample::mode`].
fn mode(sample: &CounterSample) -> u32 {
    u32::from(sample.mode == Mode::Kernel)
}

/// Returns whether two IDs can be of the same process or thread: one is unknown, or they are equal.
fn can_be_same(sample: u32, event: Option<u32>) -> bool {
    sample == UNKNOWN || event.is_none_or(|event| event == sample)
}

/// What is known of a stack when its event has come.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// Everything.
    Done(SampleStack),
    /// The frames in user mode come with this MatchId.
    NeedsUser(u64),
}

/// The frames of an item, by mode.
struct Parts<'a> {
    kernel: &'a [u64],
    user: &'a [u64],
    /// Whether frames are missing from the end.
    is_cut: bool,
}

impl<'a> Parts<'a> {
    fn of(item: &'a StackItem) -> Self {
        let is_user = |frame: &u64| !is_kernel_address(*frame);
        let frames: &[u64] = &item.frames;
        let (kernel, user) = frames.split_at(frames.iter().position(is_user).unwrap_or(frames.len()));
        Self { kernel, user, is_cut: frames.len() >= MAX_FRAMES }
    }

    fn end(&self) -> StackEnd {
        if self.is_cut { StackEnd::Truncated } else { StackEnd::Complete }
    }
}

/// Returns the frames after that of an instruction pointer.
fn callers(frames: &[u64], ip: u64) -> Option<&[u64]> {
    let place = frames.iter().position(|frame| *frame == ip)?;
    frames.get(place + 1..)
}

const fn missing(reason: MissingStack) -> Progress {
    Progress::Done(SampleStack::Missing(reason))
}

fn done(callers: Vec<u64>, end: StackEnd) -> Progress {
    Progress::Done(SampleStack::Stack(CallStack { callers, end }))
}

/// Returns what is known before the event of a sample comes, if that is everything.
pub fn without_event(sample: &CounterSample, graph: CallGraph) -> Option<SampleStack> {
    if sample.cookie == 0 {
        return Some(SampleStack::Missing(MissingStack::Untraced));
    }
    let is_empty = graph == CallGraph::Kernel && sample.mode == Mode::User;
    is_empty.then(|| SampleStack::Stack(CallStack { callers: Vec::new(), end: StackEnd::Complete }))
}

/// Returns what is known when the own event of a sample has come.
pub fn with_event(sample: &CounterSample, event: &SampleEvent, graph: CallGraph) -> Progress {
    if !(can_be_same(sample.process, event.process) && can_be_same(sample.thread, event.thread)) {
        return missing(MissingStack::TakenElsewhere);
    }
    let Some(item) = &event.stack else { return missing(MissingStack::EventLost) };
    let parts = Parts::of(item);
    if sample.mode == Mode::User {
        return match callers(parts.user, sample.ip) {
            Some(callers) => done(callers.to_vec(), parts.end()),
            None if parts.user.is_empty() && item.match_id != 0 => Progress::NeedsUser(item.match_id),
            None => missing(MissingStack::TakenElsewhere),
        };
    }
    let Some(kernel) = callers(parts.kernel, sample.ip) else { return missing(MissingStack::TakenElsewhere) };
    let is_user_separate = parts.user.is_empty() && item.match_id != 0 && !KERNEL_ONLY.contains(&sample.process);
    match graph {
        CallGraph::Kernel if parts.user.is_empty() => done(kernel.to_vec(), parts.end()),
        CallGraph::Kernel => done(kernel.to_vec(), StackEnd::Complete),
        // Frames between the two parts are missing, so the user part would have a wrong callee.
        CallGraph::Both if is_user_separate && parts.is_cut => done(kernel.to_vec(), StackEnd::Truncated),
        CallGraph::Both | CallGraph::User if is_user_separate => Progress::NeedsUser(item.match_id),
        CallGraph::Both => done([kernel, parts.user].concat(), parts.end()),
        CallGraph::User => done(parts.user.to_vec(), parts.end()),
    }
}

/// Returns the stack of a sample with its user part; `None` if the part is that of another event.
pub fn with_user(
    sample: &CounterSample,
    event: &SampleEvent,
    part: &UserPart,
    graph: CallGraph,
    window: u64,
) -> Option<SampleStack> {
    let delay = part.time.checked_sub(event.payload.time)?;
    let fits = can_be_same(sample.process, part.process) && can_be_same(sample.thread, part.thread) && delay <= window;
    if !fits {
        return None;
    }
    let end = if part.stack.frames.len() >= MAX_FRAMES { StackEnd::Truncated } else { StackEnd::Complete };
    let frames: &[u64] = &part.stack.frames;
    let callers = match sample.mode {
        Mode::User => callers(frames, sample.ip)?.to_vec(),
        Mode::Kernel => [kernel_callers(sample, event, graph), frames].concat(),
    };
    Some(SampleStack::Stack(CallStack { callers, end }))
}

/// Returns the stack of a sample whose event came, but not its user part. `reason` applies if nothing is known.
pub fn without_user(
    sample: &CounterSample,
    event: &SampleEvent,
    graph: CallGraph,
    reason: MissingStack,
) -> SampleStack {
    match sample.mode {
        Mode::User => SampleStack::Missing(reason),
        Mode::Kernel => {
            let callers = kernel_callers(sample, event, graph).to_vec();
            SampleStack::Stack(CallStack { callers, end: StackEnd::UserLost })
        }
    }
}

fn kernel_callers<'a>(sample: &CounterSample, event: &'a SampleEvent, graph: CallGraph) -> &'a [u64] {
    let frames = event.stack.as_ref().filter(|_| graph != CallGraph::User).map(|item| Parts::of(item).kernel);
    frames.and_then(|frames| callers(frames, sample.ip)).unwrap_or_default()
}

/// Removes frames that are not in user mode. Returns whether the item is a user part.
pub fn is_user_part(part: &UserPart) -> bool {
    part.stack.match_id != 0
        && !part.stack.frames.is_empty()
        && !part.stack.frames.iter().any(|frame| is_kernel_address(*frame))
}
