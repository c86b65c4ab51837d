//! Bits and operations in the fields of requests and replies.

/// Bits of [`StartHeader::flags`](crate::StartHeader::flags).
pub mod flags {
    /// The session outlives its handle: it runs until it is stopped or the driver unloads.
    pub const DETACHED: u32 = 1;
    /// Use counters even if another program has enabled them; only in a request.
    pub const FORCE: u32 = 2;
    /// Events that are only counted may take turns on the counters, if there are more events than counters; only in a
    /// request.
    pub const MULTIPLEX: u32 = 4;
    /// Configure Windows' thread profiling with the counters of the session. It runs on all processors and only counts,
    /// each event on the same general counter everywhere; it is not detached, and its events do not take turns.
    pub const THREADS: u32 = 8;
    /// The session yields: it stops by itself when another session without this flag needs what it uses, or would have
    /// to take turns beside it. A [`Code::Read`](crate::Code::Read) reports that. It is neither detached nor for
    /// threads.
    pub const YIELDS: u32 = 16;
    /// All defined bits.
    pub const ALL: u32 = DETACHED | FORCE | MULTIPLEX | THREADS | YIELDS;
}

/// Bits of [`GroupRequest::flags`](crate::GroupRequest::flags).
pub mod group_flags {
    /// Compare the registers of the processor with what the driver wrote, and mark the counts of those that another
    /// program changed, as [`Code::Read`](crate::Code::Read) does.
    pub const COMPARE: u32 = 1;
    /// All defined bits.
    pub const ALL: u32 = COMPARE;
}

/// Bits of [`GroupReply::state`](crate::GroupReply::state).
pub mod group_state {
    /// CR4.PCE was set: the thread may execute RDPMC in user mode on this processor, at this time.
    pub const USER_RDPMC: u32 = 1;
}

/// Bits of [`EventRequest::flags`](crate::EventRequest::flags).
pub mod event_flags {
    /// The event has a counter all the time, even if others take turns.
    pub const PINNED: u32 = 1;
    /// The count of a sampled event misses nothing. Where no register stops all counters at once (AMD before Zen 4,
    /// version 1 of Intel, P6, NetBurst), each overflow then stops its counter until it is loaded again, which costs
    /// three more accesses of a register and an RDPMC. Without this bit the events between its reading and its load are
    /// in no total there, so that the count is a lower bound. An event that is not sampled needs no bit.
    pub const COUNTED: u32 = 2;
    /// The sampled event has a condition: of an overflow there is a sample only if the
    /// [ratio](crate::EventRequest::ratio) of the counts of two events in its window was below the
    /// [limit](crate::EventRequest::limit). The window of an overflow is the time of its processor since the overflow
    /// before it was served, or since the counter was started.
    pub const BELOW: u32 = 4;
    /// As [`BELOW`], for a ratio above the limit. A ratio without an event to divide by is above every limit.
    pub const ABOVE: u32 = 8;
    /// The event is counted for the condition of another one alone, and its count is not needed. A processor whose
    /// counters can reload each other may decide on the condition with its counter; its count is then of the last
    /// window, and that of the sampled event of the windows that met the condition.
    pub const BESIDE: u32 = 16;
    /// Of the ops that a [precise](crate::modes::PRECISE) event of AMD samples, those that load. With neither this nor
    /// `STORES`, all ops.
    pub const LOADS: u32 = 32;
    /// Those that store.
    pub const STORES: u32 = 64;
    /// A [precise](crate::modes::PRECISE) event of AMD samples fetches instead of ops, one for each interval of
    /// instructions (PMCx0C0).
    pub const FETCHES: u32 = 128;
    /// All defined bits.
    pub const ALL: u32 = PINNED | COUNTED | BELOW | ABOVE | BESIDE | LOADS | STORES | FETCHES;
}

/// Bits of [`StartHeader::last_branches`](crate::StartHeader::last_branches): which branches the processor keeps.
pub mod last_branches {
    /// Those of user mode.
    pub const USER: u32 = 1;
    /// Those of kernel mode.
    pub const KERNEL: u32 = 2;
    /// Conditional branches.
    pub const CONDITIONAL: u32 = 4;
    /// Near relative jumps.
    pub const DIRECT_JUMP: u32 = 8;
    /// Near indirect jumps.
    pub const INDIRECT_JUMP: u32 = 0x10;
    /// Near relative calls.
    pub const DIRECT_CALL: u32 = 0x20;
    /// Near indirect calls.
    pub const INDIRECT_CALL: u32 = 0x40;
    /// Near returns.
    pub const RETURN: u32 = 0x80;
    /// Far branches: system calls, interrupts, exceptions and the returns from them.
    pub const FAR: u32 = 0x100;
    /// Both modes.
    pub const MODES: u32 = USER | KERNEL;
    /// Every kind.
    pub const ANY: u32 = CONDITIONAL | DIRECT_JUMP | INDIRECT_JUMP | DIRECT_CALL | INDIRECT_CALL | RETURN | FAR;
    /// All defined bits.
    pub const ALL: u32 = MODES | ANY;
}

/// Operations of an [`AreaRequest`](crate::AreaRequest), and bits of [`AreaRecord::flags`](crate::AreaRecord::flags).
pub mod area {
    /// Operation: query.
    pub const QUERY: u32 = 0;
    /// Operation: allocate.
    pub const ALLOCATE: u32 = 1;
    /// Operation: free.
    pub const FREE: u32 = 2;
    /// Flag: the kernel allocated the area.
    pub const OF_KERNEL: u32 = 1;
    /// Flag: a session uses the area.
    pub const USED: u32 = 2;
    /// Flag: the processor has the Branch Trace Store.
    pub const BRANCHES: u32 = 4;
    /// Flag: the processor has PEBS with a known record format.
    pub const PRECISE: u32 = 8;
    /// Flag: BTS can be restricted to one mode (DS-CPL).
    pub const MODES: u32 = 16;
}

/// Bits of [`EventRequest::modes`](crate::EventRequest::modes).
pub mod modes {
    /// Count in user mode.
    pub const USER: u32 = 1;
    /// Count in kernel mode.
    pub const KERNEL: u32 = 2;
    /// User and kernel mode.
    pub const BOTH: u32 = USER | KERNEL;
    /// For a sampled event: sample by PEBS records.
    pub const PRECISE: u32 = 4;

    const PRECISE_BOTH: u32 = PRECISE | BOTH;
    const PRECISE_USER: u32 = PRECISE | USER;
    const PRECISE_KERNEL: u32 = PRECISE | KERNEL;

    /// Returns the suffix of an event in these modes, as users type it.
    #[must_use]
    pub const fn suffix(bits: u32) -> &'static str {
        match bits {
            BOTH => "",
            USER => ":u",
            KERNEL => ":k",
            PRECISE_BOTH => ":p",
            PRECISE_USER => ":up",
            PRECISE_KERNEL => ":kp",
            _ => ":?",
        }
    }
}
