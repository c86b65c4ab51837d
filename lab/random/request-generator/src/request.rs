//! A request, before the numbers of sessions are known.

/// Which session a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionPick {
    /// A session of the same handle: 0 is the last one that it started.
    OfHandle(usize),
    /// The last session that any thread started.
    Latest,
}

/// The place of a session's number in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionAt {
    /// Its offset.
    pub offset: usize,
    /// Which session.
    pub pick: SessionPick,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Control code.
    pub code: u32,
    /// The input, without the number of the session.
    pub input: Vec<u8>,
    /// Where the number of a session belongs, if anywhere.
    pub session: Option<SessionAt>,
    /// Length of the output.
    pub output: usize,
}
