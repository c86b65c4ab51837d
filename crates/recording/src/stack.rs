//! The call stack of a sample, or the reason why it has none.

/// What is known about the call stack of a sample.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SampleStack {
    /// Call stacks were not recorded.
    NotRecorded,
    /// The sample has no call stack.
    Missing(MissingStack),
    /// The callers of the sampled function.
    Stack(CallStack),
}

/// The callers of a sampled function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallStack {
    /// Return addresses, from the innermost caller to the outermost. The sampled address itself is in the sample.
    pub callers: Vec<u64>,
    /// What is beyond the outermost caller.
    pub end: StackEnd,
}

/// What is beyond the outermost caller of a call stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum StackEnd {
    /// Nothing: the stack is complete.
    Complete = 1,
    /// More callers: Windows cuts a stack at 192 frames.
    Truncated = 2,
    /// The callers in user mode of a sample in kernel mode, which did not arrive.
    UserLost = 3,
}

impl StackEnd {
    /// Every end, in the order of the numbers.
    pub const ALL: [Self; 3] = [Self::Complete, Self::Truncated, Self::UserLost];
}

/// Why a sample has no call stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum MissingStack {
    /// Windows walked a stack without the sampled address: the interrupted code ran at DISPATCH_LEVEL or above, so that
    /// the walk came later, or the walk ended before it.
    TakenElsewhere = 4,
    /// Another interrupt of the same counter came before Windows walked the stack.
    Merged = 5,
    /// The event with the stack did not arrive, for example because Windows lost a buffer.
    EventLost = 6,
    /// The stack in user mode of a sample in user mode did not arrive.
    UserLost = 7,
    /// The processor recorded the sample itself, without an interrupt at the instruction.
    Precise = 8,
    /// No event was written for the sample: call stacks were not yet, or no longer, recorded on its CPU.
    Untraced = 9,
    /// Too many samples waited for their stacks.
    Overflow = 10,
}

impl MissingStack {
    /// Every reason, in the order of the numbers.
    pub const ALL: [Self; 7] = [
        Self::TakenElsewhere,
        Self::Merged,
        Self::EventLost,
        Self::UserLost,
        Self::Precise,
        Self::Untraced,
        Self::Overflow,
    ];

    /// Returns the name of the reason, as users see it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TakenElsewhere => "taken elsewhere",
            Self::Merged => "merged",
            Self::EventLost => "event lost",
            Self::UserLost => "user stack lost",
            Self::Precise => "precise",
            Self::Untraced => "untraced",
            Self::Overflow => "too many waiting",
        }
    }
}

/// The call stack of a sample by its number in a recording: one of the few that every recording has, or a node of its
/// [`StackTree`](crate::StackTree), which is the innermost caller.
///
/// A recording can have equal stacks with different numbers, because its writer forgets them when they are too many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(u32);

/// Number of the first node.
pub(crate) const FIRST_NODE: u32 = 16;

impl StackId {
    /// [`SampleStack::NotRecorded`].
    pub const NOT_RECORDED: Self = Self(0);

    pub(crate) const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the stack with this number; `None` if the number is reserved.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        if Self::is_common(number) || number >= FIRST_NODE { Some(Self(number)) } else { None }
    }

    /// Returns the number, which is 0 for [`NOT_RECORDED`](Self::NOT_RECORDED).
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the stack whose innermost caller is the node with this index in the tree; `None` if the tree cannot have
    /// so many.
    #[must_use]
    pub fn of_node(index: usize) -> Option<Self> {
        u32::try_from(index).ok()?.checked_add(FIRST_NODE).map(Self)
    }

    /// Returns the index of the node in the tree; `None` if the stack has no callers.
    #[must_use]
    pub fn node(self) -> Option<usize> {
        Some(self.0.checked_sub(FIRST_NODE)? as usize)
    }

    /// Returns what is beyond the outermost caller if the stack has no callers; `None` otherwise.
    #[must_use]
    pub fn end(self) -> Option<StackEnd> {
        StackEnd::ALL.into_iter().find(|end| *end as u32 == self.0)
    }

    /// Returns why the sample has no stack, if that is known.
    #[must_use]
    pub fn missing(self) -> Option<MissingStack> {
        MissingStack::ALL.into_iter().find(|reason| *reason as u32 == self.0)
    }

    /// Returns whether every recording has the number.
    pub(crate) const fn is_common(number: u32) -> bool {
        number <= MissingStack::Overflow as u32
    }
}

impl From<StackEnd> for StackId {
    fn from(end: StackEnd) -> Self {
        Self(end as u32)
    }
}

impl From<MissingStack> for StackId {
    fn from(reason: MissingStack) -> Self {
        Self(reason as u32)
    }
}
