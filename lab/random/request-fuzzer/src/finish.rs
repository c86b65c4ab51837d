//! The end of an episode: everything that was taken is returned.

use protocol::{ALL_SOURCES, Code, InfoReply, SamplesRequest, StopRequest};
use zerocopy::{FromBytes, IntoBytes};

use crate::episode::{Episode, HANDLES, LONGEST};

impl Episode<'_> {
    /// Ends the episode, and checks that nothing is left.
    ///
    /// # Panics
    /// Panics if something is.
    pub(crate) fn finish(&mut self) {
        self.allow_everything();
        self.wake();
        self.accumulate();
        self.has_orphans = false;
        self.settle();
        if self.traits.stops_at_end {
            self.stop_all();
        }
        self.note(|| "everything ends".to_owned());
        if self.traits.closes_at_end {
            (0..HANDLES).for_each(|slot| self.close(slot));
        }
        self.engine.shut_down();
        self.engine.accumulate_counts();
        self.sessions.clear();
        self.undo_foreign();
        assert!(!self.machine.is_in_use(), "a resource of the machine is still held");
        for (processor, found) in (0..self.machine.active()).zip(&self.found) {
            found.check(self.machine, processor);
        }
        self.open(0);
        self.input.clear();
        let reply = self.serve(0, Code::Info as u32, size_of::<InfoReply>());
        let info = InfoReply::read_from_prefix(&self.output).map(|(info, _)| (info.sessions, info.counters_in_use));
        assert!(reply.header.is_none() || info == Ok((0, 0)), "sessions and counters in use: {info:?}");
        self.stats.time = self.machine.now_ticks().0;
    }

    /// Lets ticks resume what was throttled or stopped, and serves every late interrupt.
    fn settle(&mut self) {
        for _ in 0..3 {
            self.tick();
            (0..self.machine.active()).for_each(|processor| self.deliver(processor));
        }
    }

    /// Stops every session of a handle that is greeted, and fetches its last records.
    pub(crate) fn stop_all(&mut self) {
        let all: Vec<(u64, usize)> =
            self.sessions.iter().map(|session| (session.number, session.owner.unwrap_or_default())).collect();
        for (number, slot) in all {
            if !self.handle(slot).is_greeted {
                continue;
            }
            self.input.clear();
            let request = StopRequest { session: number, source: ALL_SOURCES, core_type: 0, reserved: 0 };
            self.input.extend_from_slice(request.as_bytes());
            let reply = self.serve(slot, Code::Stop as u32, LONGEST);
            self.follow(slot, Code::Stop as u32, &reply);
            while self.sessions.iter().any(|session| session.number == number) {
                self.input.clear();
                let request = SamplesRequest { session: number, wait: 0, reserved: 0 };
                self.input.extend_from_slice(request.as_bytes());
                let reply = self.serve(slot, Code::Samples as u32, LONGEST);
                assert!(reply.accepted().is_some(), "the last records of session {number}: {reply:?}");
                self.follow(slot, Code::Samples as u32, &reply);
            }
        }
    }
}
