//! What `top` shows, and how keys and samples change it. Nothing here draws or reads a terminal.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use report::NamePattern;

use terminal::format::real;

/// Part of the events that stays at each update, as in perf top.
const DECAY: f64 = 7.0 / 8.0;

/// Events below which a function is forgotten.
const FORGOTTEN: f64 = 0.5;

/// A function, as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Function {
    /// Name and number of the process.
    pub process: String,
    /// Name of the module.
    pub module: String,
    /// Name of the function.
    pub symbol: String,
}

/// Samples of one event between two updates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventUpdate {
    /// Name of the event.
    pub name: String,
    /// Number of samples.
    pub samples: u64,
    /// Events by function.
    pub functions: Vec<(Function, u64)>,
    /// Events by processor.
    pub processors: BTreeMap<u32, u64>,
}

/// All samples between two updates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Update {
    /// Time since the last update.
    pub elapsed: Duration,
    /// The events, always in the same order.
    pub events: Vec<EventUpdate>,
    /// Samples that the driver lost.
    pub lost: u64,
    /// Share of the time of all processors for which sampling paused, from 0 to 1.
    pub paused: f64,
    /// Processor time of the client, as a share of one processor's; unknown on some systems.
    pub own_time: Option<f64>,
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Return.
    Enter,
    /// Escape.
    Escape,
    /// Deletes the last character.
    Backspace,
    /// Up by this number of rows; negative is down.
    Scroll(i32),
    /// To the first row.
    Home,
    /// Ctrl-C.
    Interrupt,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A key was pressed.
    Key(Key),
    /// Samples arrived, with their names.
    Update(Update),
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Events as a share of all events, from 0 to 1.
    pub share: f64,
    /// The function.
    pub function: Function,
}

/// The state of `top`.
#[derive(Debug, Default)]
pub struct TopState {
    /// Decayed events of each event's functions.
    totals: Vec<HashMap<Function, f64>>,
    /// Index of the event that is shown.
    selected: usize,
    /// The last update that is shown; `None` before the first.
    shown: Option<Update>,
    /// All rows of the event that is shown, in descending order.
    rows: Vec<Row>,
    filter: String,
    /// The filter while it is typed.
    typed: Option<String>,
    is_paused: bool,
    has_help: bool,
    /// Number of rows that are scrolled out at the top.
    scrolled: usize,
    /// Lost samples since the start.
    lost: u64,
    has_ended: bool,
}

impl TopState {
    /// Changes the state.
    pub fn update(&mut self, event: Event) {
        match event {
            Event::Key(key) => self.press(key),
            Event::Update(update) => self.add(update),
        }
    }

    fn add(&mut self, update: Update) {
        self.lost = self.lost.saturating_add(update.lost);
        self.totals.resize_with(update.events.len().max(self.totals.len()), HashMap::new);
        for (totals, event) in self.totals.iter_mut().zip(&update.events) {
            for events in totals.values_mut() {
                *events *= DECAY;
            }
            for (function, events) in &event.functions {
                *totals.entry(function.clone()).or_default() += real(*events);
            }
            totals.retain(|_, events| *events >= FORGOTTEN);
        }
        if !self.is_paused {
            self.shown = Some(update);
            self.sort();
        }
    }

    /// Computes the rows of the event that is shown.
    fn sort(&mut self) {
        let empty = HashMap::new();
        let totals = self.totals.get(self.selected).unwrap_or(&empty);
        let all: f64 = totals.values().sum();
        let rows = totals.iter().map(|(function, events)| Row { share: events / all, function: function.clone() });
        self.rows = rows.collect();
        self.rows
            .sort_by(|one, other| other.share.total_cmp(&one.share).then_with(|| one.function.cmp(&other.function)));
    }

    fn press(&mut self, key: Key) {
        if key == Key::Interrupt {
            self.has_ended = true;
        } else if let Some(typed) = &mut self.typed {
            match key {
                Key::Char(c) => typed.push(c),
                Key::Backspace => drop(typed.pop()),
                Key::Enter => self.filter = self.typed.take().unwrap_or_default(),
                Key::Escape => self.typed = None,
                Key::Scroll(_) | Key::Home | Key::Interrupt => {}
            }
            self.scrolled = 0;
        } else if self.has_help {
            // Any key closes the help.
            self.has_help = false;
        } else {
            self.command(key);
        }
    }

    fn command(&mut self, key: Key) {
        match key {
            Key::Char('q') => self.has_ended = true,
            Key::Char('p' | ' ') => self.is_paused = !self.is_paused,
            Key::Char('/') => self.typed = Some(self.filter.clone()),
            Key::Char('h' | '?') => self.has_help = true,
            Key::Char('s') => {
                self.selected = (self.selected + 1) % self.totals.len().max(1);
                self.scrolled = 0;
                self.sort();
            }
            Key::Escape => {
                self.filter.clear();
                self.scrolled = 0;
            }
            Key::Scroll(rows) => {
                let last = self.rows().count().saturating_sub(1);
                let by = usize::try_from(rows.unsigned_abs()).unwrap_or(usize::MAX);
                self.scrolled = if rows > 0 {
                    self.scrolled.saturating_sub(by)
                } else {
                    self.scrolled.saturating_add(by).min(last)
                };
            }
            Key::Home => self.scrolled = 0,
            Key::Char(_) | Key::Enter | Key::Backspace | Key::Interrupt => {}
        }
    }

    /// Returns the rows that pass the filter.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        let Self { rows, .. } = self;
        let filter = NamePattern::part(self.typed.as_ref().unwrap_or(&self.filter));
        rows.iter().filter(move |Row { function: Function { process, module, symbol }, .. }| {
            [process, module, symbol].iter().any(|name| filter.matches(name))
        })
    }

    /// Returns the rows that begin at the scrolled position.
    pub fn visible_rows(&self) -> impl Iterator<Item = &Row> {
        self.rows().skip(self.scrolled)
    }

    /// Returns the update that is shown.
    pub fn shown(&self) -> Option<&Update> {
        self.shown.as_ref()
    }

    /// Returns the samples of the event that is shown.
    pub fn event(&self) -> Option<&EventUpdate> {
        self.shown()?.events.get(self.selected)
    }

    /// Returns the number of the event that is shown, from 1 on, and that of all events.
    pub fn position(&self) -> (usize, usize) {
        (self.selected + 1, self.totals.len())
    }

    /// Returns the samples lost since the start.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the filter, and whether it is being typed.
    pub fn filter(&self) -> (&str, bool) {
        (self.typed.as_ref().unwrap_or(&self.filter), self.typed.is_some())
    }

    /// Returns whether the display is paused.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Returns whether the help is shown.
    pub fn has_help(&self) -> bool {
        self.has_help
    }

    /// Returns whether the user has ended it.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn function(name: &str) -> Function {
        Function { process: "app.exe (8)".to_owned(), module: "app.exe".to_owned(), symbol: name.to_owned() }
    }

    /// Creates an update of two events; the second has one function.
    pub fn update(functions: &[(&str, u64)]) -> Update {
        let event = |name: &str, functions: &[(&str, u64)]| EventUpdate {
            name: name.to_owned(),
            samples: functions.len() as u64,
            functions: functions.iter().map(|(name, events)| (function(name), *events)).collect(),
            processors: [(0, 3_000_000), (1, 1_000)].into(),
        };
        Update {
            elapsed: Duration::from_secs(2),
            events: vec![event("TotalCycles", functions), event("BranchMispredictions", &[("other", 5)])],
            lost: 3,
            paused: 0.125,
            own_time: Some(0.02),
        }
    }

    pub fn state(functions: &[(&str, u64)]) -> TopState {
        let mut state = TopState::default();
        state.update(Event::Update(update(functions)));
        state
    }

    pub fn press(state: &mut TopState, keys: &str) {
        keys.chars().for_each(|c| state.update(Event::Key(Key::Char(c))));
    }

    fn names(state: &TopState) -> Vec<&str> {
        state.visible_rows().map(|row| row.function.symbol.as_str()).collect()
    }

    fn share(state: &TopState, name: &str) -> f64 {
        state.rows().find(|row| row.function.symbol == name).map_or(0.0, |row| row.share)
    }

    #[test]
    fn functions_are_sorted_by_share_and_old_events_count_less() {
        let mut state = state(&[("a", 60), ("b", 40)]);
        assert_eq!((names(&state), share(&state, "a")), (vec!["a", "b"], 0.6));
        state.update(Event::Update(update(&[("b", 40), ("c", 10)])));
        // Of a, 60 * 7/8 events are left; of b, 40 * 7/8 and 40 new ones.
        let wanted = 52.5 / (52.5 + 75.0 + 10.0);
        assert!((share(&state, "a") - wanted).abs() < 1e-9, "{}", share(&state, "a"));
        assert_eq!(names(&state), ["b", "a", "c"]);
        assert_eq!(state.lost(), 6);
        for _ in 0..60 {
            state.update(Event::Update(update(&[("b", 1)])));
        }
        assert_eq!(names(&state), ["b"], "what is gone is forgotten");
    }

    #[test]
    fn a_pause_freezes_what_is_shown_and_loses_nothing() {
        let mut state = state(&[("a", 60)]);
        press(&mut state, "p");
        state.update(Event::Update(update(&[("b", 100)])));
        assert_eq!((names(&state), state.is_paused()), (vec!["a"], true));
        press(&mut state, " ");
        state.update(Event::Update(update(&[("c", 1)])));
        assert_eq!((names(&state), state.is_paused()), (vec!["b", "a", "c"], false));
    }

    #[test]
    fn a_filter_applies_while_it_is_typed_and_escape_removes_it() {
        let mut state = state(&[("alpha", 60), ("beta", 30), ("gamma", 10)]);
        press(&mut state, "/TA");
        assert_eq!((names(&state), state.filter()), (vec!["beta"], ("TA", true)));
        state.update(Event::Key(Key::Backspace));
        press(&mut state, "q");
        assert!(!state.has_ended() && names(&state).is_empty(), "letters are part of the filter");
        state.update(Event::Key(Key::Escape));
        assert_eq!(names(&state).len(), 3);
        press(&mut state, "/*mm*");
        state.update(Event::Key(Key::Enter));
        assert_eq!((names(&state), state.filter()), (vec!["gamma"], ("*mm*", false)));
        state.update(Event::Key(Key::Escape));
        assert_eq!((names(&state).len(), state.filter()), (3, ("", false)));
        press(&mut state, "/app.exe");
        assert_eq!(names(&state).len(), 3, "modules and processes match, too");
    }

    #[test]
    fn s_shows_the_next_event() {
        let mut state = state(&[("a", 60)]);
        assert_eq!((state.position(), state.event().unwrap().name.as_str()), ((1, 2), "TotalCycles"));
        press(&mut state, "s");
        assert_eq!((state.position(), state.event().unwrap().name.as_str()), ((2, 2), "BranchMispredictions"));
        assert_eq!(names(&state), ["other"]);
        press(&mut state, "s");
        assert_eq!((state.position().0, names(&state)), (1, vec!["a"]));
    }

    #[test]
    fn scrolling_stops_at_both_ends() {
        let mut state = state(&[("a", 60), ("b", 30), ("c", 10)]);
        for (rows, wanted) in [(-1, 2), (-1, 1), (-10, 1), (1, 2), (i32::MAX, 3), (i32::MIN, 1)] {
            state.update(Event::Key(Key::Scroll(rows)));
            assert_eq!(names(&state).len(), wanted, "{rows}");
        }
        state.update(Event::Key(Key::Home));
        assert_eq!(names(&state).len(), 3);
    }

    #[test]
    fn q_and_ctrl_c_end_it_and_any_key_closes_the_help() {
        let mut state = state(&[("a", 60)]);
        press(&mut state, "h");
        assert!(state.has_help());
        press(&mut state, "q");
        assert!(!state.has_help() && !state.has_ended());
        press(&mut state, "q");
        assert!(state.has_ended());
        let mut state = TopState::default();
        press(&mut state, "s/");
        state.update(Event::Key(Key::Interrupt));
        assert!(state.has_ended(), "also while a filter is typed");
    }
}
