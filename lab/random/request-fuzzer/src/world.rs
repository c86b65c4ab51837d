//! What happens on the machine between requests.

use engine::{ClientId, Interrupted};
use model::{Branch, Mode, Selected, TakenBranch};
use simulation::Call;

use crate::book::Session;
use crate::episode::{Episode, HANDLES, Sleep};
use crate::follow::factor;
use crate::scarcity::Scarcity;
use crate::traits::Areas;

/// LVT entry of the Windows HAL, masked and as it is set up.
const MASKED: u32 = 0x1_00FE;
const UNMASKED: u32 = 0xFE;

/// Statuses with which calls of the platform are refused: STATUS_INSUFFICIENT_RESOURCES, STATUS_DEVICE_BUSY,
/// STATUS_NOT_SUPPORTED.
const REFUSALS: [u32; 3] = [0xC000_009A, 0x8000_0011, 0xC000_00BB];

/// Events that no counter of an identity may count between two updates without wrapping twice.
const MOST_EVENTS: u64 = 1 << 28;

/// Returns the code that an interrupt on a processor interrupts.
pub(crate) const fn interrupted(processor: u32) -> Interrupted {
    Interrupted { ip: 0x1000 + processor as u64, process: 100 + processor, thread: 200, mode: protocol::Mode::User }
}

impl Episode<'_> {
    /// Does one step: mostly a request.
    pub(crate) fn step(&mut self) {
        self.step += 1;
        match self.choices.up_to(999) {
            0..=19 if self.traits.scarcity == Some(Scarcity::FreeCounters) => self.use_elsewhere(),
            0..=729 => self.request(),
            870..=889 => self.tick(),
            890..=904 => self.expire(),
            905..=924 => self.pass(),
            925..=934 => {
                self.note(|| "accumulate".to_owned());
                self.accumulate();
            }
            935..=941 => self.kill(),
            942..=965 if self.traits.sleeps => self.sleep(),
            966..=968 => self.add_processor(),
            969..=974 if self.traits.refusals => self.refuse(),
            975..=981 if self.traits.foreign => self.write_foreign(),
            982..=985 if self.traits.spurious => self.disturb_interrupts(),
            986..=988 if self.traits.slow => {
                let pace = if self.one_in(2) { 0 } else { self.choices.up_to(20_000) };
                self.set_pace(pace);
            }
            989..=990 if self.traits.profiling_threads => {
                let threads = self.number(1);
                self.note(|| format!("{threads} profiling threads"));
                self.machine.set_profiling_threads(threads);
            }
            991..=999 => {
                let processor = self.processor();
                self.note(|| format!("on processor {processor}"));
                self.machine.set_current(processor);
            }
            // 730 to 869, and disturbances that this machine does not have.
            _ => self.execute(),
        }
    }

    fn processor(&mut self) -> u32 {
        self.number(u64::from(self.machine.active()) - 1)
    }

    pub(crate) fn is_asleep(&self, processor: u32) -> bool {
        self.machine.processor(processor).is_asleep()
    }

    /// Executes events, and delivers the interrupt.
    fn execute(&mut self) {
        let processor = self.processor();
        let mode = if self.one_in(3) { Mode::Kernel } else { Mode::User };
        let events = match self.choices.up_to(9) {
            0 => self.choices.up_to(3),
            1 => self.choices.up_to(MOST_EVENTS / 64),
            _ => self.choices.up_to(20_000),
        };
        self.execute_on(processor, mode, events);
        if self.machine.processor(processor).model().stores_branches() && !self.is_asleep(processor) {
            for number in 0..self.choices.up_to(40) {
                let branch = Branch { from: number, to: number + 0x100, predicted: true };
                self.machine.processor(processor).model().branch(mode, branch);
            }
        }
        for number in 0..40 {
            let (from, cycles) = (0x1000 + 0x40 * number, 1);
            let branch = TakenBranch { from, to: from + 0x20, cycles, ..TakenBranch::default() };
            self.machine.processor(processor).model().take_branch(&branch);
        }
        let is_late = self.traits.late && self.one_in(4);
        if !self.is_asleep(processor) && !is_late {
            self.deliver(processor);
        }
    }

    /// Executes this many events on a processor that is awake.
    pub(crate) fn execute_on(&mut self, processor: u32, mode: Mode, events: u64) {
        let uniform = self.traits.uniform;
        self.note(|| format!("{events} events on {processor} in {mode:?}"));
        let rate = |selected: Selected| if uniform { events } else { events * factor(selected.event, selected.umask) };
        if self.is_asleep(processor) {
            return;
        }
        self.machine.run(processor, mode, &rate);
        if let Some(happened) = self.happened.get_mut(processor as usize) {
            match mode {
                Mode::User => happened.user += events,
                Mode::Kernel => happened.kernel += events,
            }
        }
    }

    pub(crate) fn deliver(&mut self, processor: u32) {
        let (interrupts, _) = self.machine.deliver(&self.engine, processor, &interrupted(processor));
        self.stats.interrupts += u64::from(interrupts);
    }

    pub(crate) fn tick(&mut self) {
        self.note(|| "tick".to_owned());
        for processor in self.machine.ticking() {
            self.machine.tick_sampling(&self.engine, processor);
        }
    }

    fn expire(&mut self) {
        let timed = self.machine.timed();
        if let Some(processor) = self.choices.pick(&timed).copied() {
            self.note(|| format!("timer of {processor}"));
            self.machine.expire(&self.engine, processor, &interrupted(processor));
        }
    }

    fn pass(&mut self) {
        let units = 1 << self.choices.up_to(22);
        self.note(|| format!("{units} pass"));
        self.machine.pass(units);
    }

    pub(crate) fn accumulate(&mut self) {
        self.engine.accumulate_counts();
        if self.sleep == Sleep::Awake {
            self.foreign.iter_mut().for_each(crate::registers::Foreign::compared);
        }
    }

    pub(crate) fn kill(&mut self) {
        let slot = usize::try_from(self.choices.up_to(HANDLES as u64 - 1)).unwrap_or_default();
        self.note(|| format!("close handle {slot}"));
        self.close(slot);
        self.open(slot);
    }

    /// Closes a handle, as the end of its process does.
    pub(crate) fn close(&mut self, slot: usize) {
        let mut owned = self.sessions.iter().filter(|session| session.owner == Some(slot)).peekable();
        self.stats.kills += u64::from(owned.peek().is_some());
        let for_threads = owned.any(|session| session.header.flags & protocol::flags::THREADS != 0);
        self.has_orphans |= for_threads && (self.traits.profiling_threads || self.traits.refusals);
        self.engine.close(ClientId(self.handle(slot).id));
        self.sessions.retain(|session| session.owner != Some(slot));
    }

    /// Goes on towards sleep or towards the wake, by one processor or by all.
    pub(crate) fn sleep(&mut self) {
        let all = self.one_in(2);
        self.note(|| format!("sleep, all at once: {all}"));
        match self.sleep {
            Sleep::Awake => {
                self.machine.announce_sleep(&self.engine);
                self.sleep = Sleep::FallingAsleep;
            }
            Sleep::FallingAsleep => {
                let mut awake = (0..self.machine.active()).filter(|number| !self.is_asleep(*number)).peekable();
                if awake.peek().is_none() {
                    self.stats.sleeps += 1;
                    let slept = self.machine.announce_wake(&self.engine);
                    self.sleep = Sleep::Waking(slept);
                    return;
                }
                let count = if all { usize::MAX } else { 1 };
                awake.take(count).for_each(|number| self.machine.fall_asleep_on(&self.engine, number));
            }
            Sleep::Waking(slept) => {
                let asleep = (0..self.machine.active()).filter(|number| self.is_asleep(*number));
                let count = if all { usize::MAX } else { 1 };
                asleep.take(count).for_each(|number| _ = self.machine.wake_on(&self.engine, number, slept));
                if !self.machine.is_asleep() {
                    self.sleep = Sleep::Awake;
                }
            }
        }
    }

    /// Wakes the machine completely.
    pub(crate) fn wake(&mut self) {
        while self.sleep != Sleep::Awake {
            self.sleep();
        }
    }

    pub(crate) fn add_processor(&mut self) {
        let can = matches!(self.sleep, Sleep::Awake | Sleep::FallingAsleep) && !self.machine.is_asleep();
        if !can || self.machine.active() == self.traits.processors.0 {
            return;
        }
        // The HAL, which frees on the active processors, would free what was not reserved on the new one.
        self.machine.refuse(Call::FreeCounters, 0);
        let fails = self.one_in(4);
        self.note(|| format!("add a processor, fails: {fails}"));
        if fails {
            self.machine.fail_to_add_processor(&mut self.engine);
            return;
        }
        self.machine.add_processor(&mut self.engine);
        let added = self.machine.active() - 1;
        let is_alone = self.sessions.iter().filter(|session| session.runs()).count() <= 1;
        self.added.push((added, self.machine.processor(added).model().ledger().clone(), is_alone));
        self.stats.added += 1;
        if self.sleep == Sleep::FallingAsleep {
            self.machine.fall_asleep_on(&self.engine, self.machine.active() - 1);
        }
        self.look_at_threads();
    }

    /// Finds out which sessions for threads have ended, because their counters are not free on the added processor.
    fn look_at_threads(&mut self) {
        let for_threads = |session: &&Session| session.header.flags & protocol::flags::THREADS != 0;
        let all = self.sessions.iter().filter(for_threads);
        let all: Vec<(u64, usize)> = all.map(|session| (session.number, session.owner.unwrap_or_default())).collect();
        for (number, slot) in all {
            if self.handle(slot).is_greeted {
                self.look_again(slot, number, false);
                // If Windows refused to end the thread profiling, it runs on, without its handle, until Windows does.
                let runs = self.sessions.iter().any(|session| session.number == number && session.runs());
                self.has_orphans |= runs && (self.traits.profiling_threads || self.traits.refusals);
            } else {
                self.has_orphans = true;
            }
        }
        self.sessions.retain(Session::is_kept);
    }

    fn refuse(&mut self) {
        let call = self.choices.pick(&Call::ALL).copied().unwrap_or(Call::StartTimers);
        let status = self.choices.pick(&REFUSALS).copied().unwrap_or_default();
        let status = if self.one_in(2) { 0 } else { status };
        self.note(|| format!("{call:?} answers {status:#x}"));
        self.machine.refuse(call, status);
        if self.one_in(10) {
            self.machine.be_busy_for(self.choices.up_to(3_000_000), 0);
        }
    }

    pub(crate) fn allow_everything(&mut self) {
        for call in Call::ALL {
            self.machine.refuse(call, 0);
        }
        self.machine.be_busy_for(0, 0);
        self.machine.set_profiling_threads(0);
        self.set_pace(0);
    }

    /// Sets the time by which each reading of the clock advances it.
    pub(crate) fn set_pace(&mut self, pace: u64) {
        self.note(|| format!("pace {pace}"));
        self.pace = pace;
        self.machine.set_pace(pace);
    }

    pub(crate) fn write_foreign(&mut self) {
        if self.sessions.is_empty() && !self.has_orphans {
            self.undo_foreign();
            return;
        }
        let processor = self.processor();
        let bit = if self.one_in(3) { None } else { Some(self.choices.up_to(35)) };
        let mut writable =
            self.found.get(processor as usize).map(crate::registers::Registers::writable).unwrap_or_default();
        // The driver does not repair IA32_DEBUGCTL. In a day, a session always runs, so that it would stay changed.
        writable.retain(|msr| *msr != crate::registers::DEBUGCTL || !self.handle(HANDLES).is_open);
        let Some(msr) = self.choices.pick(&writable).copied() else { return };
        if self.machine.is_asleep() {
            return;
        }
        let Some(foreign) = self.foreign.get_mut(processor as usize) else { return };
        if foreign.write(self.machine, processor, msr, bit, self.traits.leaks) {
            self.note(|| format!("another program writes {msr:#x} of {processor}, bit {bit:?}"));
            self.stats.foreign += 1;
            if let Some(happened) = self.happened.get_mut(processor as usize) {
                happened.disturbed += 1;
            }
        }
    }

    pub(crate) fn undo_foreign(&mut self) {
        self.note(|| "other programs write back what was there".to_owned());
        let all = (0..).zip(&mut self.foreign).zip(&self.found);
        for ((processor, foreign), found) in all {
            foreign.undo(self.machine, processor, found);
        }
        self.happened.iter_mut().for_each(|happened| happened.disturbed += 1);
    }

    /// Masks the LVT entry as other software, or delivers interrupts without a cause.
    pub(crate) fn disturb_interrupts(&mut self) {
        let processor = self.processor();
        if self.one_in(3) && !self.is_asleep(processor) {
            let entry = if self.one_in(2) { MASKED } else { UNMASKED };
            self.note(|| format!("LVT entry of {processor} is {entry:#x}"));
            self.machine.processor(processor).model().set_lvt(entry);
            return;
        }
        let count = if self.one_in(5) { self.choices.up_to(100) } else { 1 };
        self.note(|| format!("{count} spurious interrupts on {processor}"));
        for _ in 0..count {
            self.machine.interrupt(&self.engine, processor, &interrupted(processor));
        }
    }

    /// Prepares the kernel's answers about control areas.
    pub(crate) fn set_up(&mut self) {
        match self.traits.areas {
            Areas::Allocated => {}
            Areas::Refused => self.machine.refuse_areas(self.number(3), 0xC000_0018, 0x1000),
            Areas::Shadowed => self.machine.set_shadow(if self.one_in(2) { 1 } else { 0xC000_0002 }),
        }
    }
}
