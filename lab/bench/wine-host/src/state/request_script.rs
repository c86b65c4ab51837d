//! What happens when drivers complete requests.

use crate::lock::lock;
use bench_protocol::{EventCount, ScriptedRequest};
use std::{collections::VecDeque, sync::Mutex};

/// The requests that are left, and the processor on which their events occur.
#[derive(Default)]
pub struct RequestScript(Mutex<(u32, VecDeque<ScriptedRequest>)>);

impl RequestScript {
    /// Replaces the script.
    pub fn set(&self, processor: u32, script: Vec<ScriptedRequest>) {
        *lock(&self.0) = (processor, script.into());
    }

    /// Returns the number of requests that are left.
    pub fn left(&self) -> u64 {
        lock(&self.0).1.len() as u64
    }

    /// Removes the next request if it has this control code. Returns the processor and the sets of events.
    pub fn take(&self, code: u32) -> Option<(u32, Vec<Vec<EventCount>>)> {
        let (processor, script) = &mut *lock(&self.0);
        let next = script.pop_front_if(|next| next.code == code)?;
        Some((*processor, next.events))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_consumed_in_their_order() {
        let script = RequestScript::default();
        assert_eq!(script.take(7), None);
        let request = |code, count| ScriptedRequest { code, events: vec![vec![(0xC0, 0, count)]] };
        script.set(1, vec![request(7, 10), request(9, 20), request(7, 30)]);
        assert_eq!(script.take(9), None, "another one is next");
        assert_eq!(script.take(7), Some((1, vec![vec![(0xC0, 0, 10)]])));
        assert_eq!((script.take(7), script.left()), (None, 2));
        assert_eq!(script.take(9), Some((1, vec![vec![(0xC0, 0, 20)]])));
        script.set(0, Vec::new());
        assert_eq!((script.take(7), script.left()), (None, 0));
    }
}
