//! The terminal of `top`.

use std::io::{self, Write};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};

use super::draw::draw;
use super::state::{Key, TopState};

/// Rows of a page key.
const PAGE: i32 = 10;

/// A terminal that shows the state, and is as before when dropped.
pub struct Screen<W: Write> {
    terminal: Terminal<CrosstermBackend<W>>,
    /// Whether the terminal has another mode than before.
    is_raw: bool,
}

impl<W: Write> Screen<W> {
    /// Takes over the terminal of this process, to which `out` writes.
    pub fn open(out: W) -> io::Result<Self> {
        enable_raw_mode()?;
        let terminal = Terminal::new(CrosstermBackend::new(out)).inspect_err(|_| {
            // The first error is reported.
            let _ = disable_raw_mode();
        })?;
        let mut screen = Self { terminal, is_raw: true };
        execute!(screen.terminal.backend_mut(), EnterAlternateScreen)?;
        screen.terminal.clear()?;
        Ok(screen)
    }

    /// Draws the state.
    pub fn draw(&mut self, state: &TopState) -> io::Result<()> {
        self.terminal.draw(|frame| draw(state, frame)).map(drop)
    }

    /// Returns the keys that were pressed since the last call. Does not wait.
    pub fn keys() -> io::Result<Vec<Key>> {
        let mut keys = Vec::new();
        while event::poll(Duration::ZERO)? {
            if let Event::Key(pressed) = event::read()? {
                keys.extend(key(&pressed));
            }
        }
        Ok(keys)
    }

    /// Draws into `out` as into a terminal of this size.
    #[cfg(test)]
    fn fixed(out: W, width: u16, height: u16) -> Self {
        let viewport = ratatui::Viewport::Fixed(ratatui::layout::Rect::new(0, 0, width, height));
        let terminal =
            Terminal::with_options(CrosstermBackend::new(out), ratatui::TerminalOptions { viewport }).unwrap();
        Self { terminal, is_raw: false }
    }
}

impl<W: Write> Drop for Screen<W> {
    fn drop(&mut self) {
        // A failure cannot be reported here, and must not prevent the next step.
        let _ = self.terminal.show_cursor();
        let _ = execute!(self.terminal.backend_mut(), LeaveAlternateScreen);
        if self.is_raw {
            let _ = disable_raw_mode();
        }
    }
}

/// Translates a key. Windows also reports that a key is released.
fn key(pressed: &KeyEvent) -> Option<Key> {
    if pressed.kind == KeyEventKind::Release {
        return None;
    }
    Some(match pressed.code {
        KeyCode::Char('c') if pressed.modifiers.contains(KeyModifiers::CONTROL) => Key::Interrupt,
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Scroll(1),
        KeyCode::Down => Key::Scroll(-1),
        KeyCode::PageUp => Key::Scroll(PAGE),
        KeyCode::PageDown => Key::Scroll(-PAGE),
        KeyCode::Home => Key::Home,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use vt100::Parser;

    use super::super::state::Event;
    use super::super::state::tests::{press, state, update};
    use super::*;

    const LONG: &str = "std::collections::hash_map::HashMap<std::string::String, alloc::vec::Vec<u8>>::insert_unique";

    /// Returns what a terminal of this size shows, and its parser.
    fn shown(states: &[&TopState], width: u16, height: u16) -> String {
        let mut bytes = Vec::new();
        let mut screen = Screen::fixed(&mut bytes, width, height);
        for state in states {
            screen.draw(state).unwrap();
        }
        screen.terminal.backend_mut().flush().unwrap();
        // The end of the screen is not part of what it showed.
        std::mem::forget(screen);
        let mut parser = Parser::new(height, width, 0);
        parser.process(&bytes);
        let lines: Vec<String> = parser.screen().rows(0, width).map(|line| line.trim_end().to_owned()).collect();
        assert!(lines.iter().all(|line| line.is_ascii()), "{lines:#?}");
        lines.join("\n")
    }

    fn sample() -> TopState {
        state(&[("compress_block", 600_000), (LONG, 250_000), ("memcpy", 146_000), ("rare", 4_000)])
    }

    #[test]
    fn a_console_of_80_columns_shows_functions_rates_and_losses() {
        insta::assert_snapshot!(shown(&[&sample()], 80, 24));
    }

    #[test]
    fn a_small_terminal_shows_the_functions_alone() {
        insta::assert_snapshot!(shown(&[&sample()], 40, 10));
    }

    #[test]
    fn the_next_drawing_replaces_the_last_one() {
        let (first, mut second) = (sample(), sample());
        press(&mut second, "p/memc");
        second.update(Event::Update(update(&[("new", 1)])));
        assert_eq!(shown(&[&first, &second], 80, 24), shown(&[&second], 80, 24));
        assert!(shown(&[&second], 80, 24).contains("\nfilter: memc_"));
        let mut help = sample();
        press(&mut help, "h");
        insta::assert_snapshot!(shown(&[&first, &help], 40, 14));
    }

    #[test]
    fn before_the_first_update_there_is_nothing_to_show() {
        assert!(shown(&[&TopState::default()], 80, 24).starts_with("halprof top: waiting for the first samples\n"));
        for (width, height) in [(1, 1), (5, 2), (40, 3), (300, 100)] {
            shown(&[&TopState::default(), &sample()], width, height);
        }
    }

    #[test]
    fn the_terminal_is_as_before_when_the_screen_is_dropped() {
        let mut bytes = Vec::new();
        let mut screen = Screen::fixed(&mut bytes, 80, 24);
        execute!(screen.terminal.backend_mut(), EnterAlternateScreen).unwrap();
        screen.draw(&sample()).unwrap();
        drop(screen);
        let mut parser = Parser::new(24, 80, 0);
        parser.process(b"$ client top");
        let before = parser.screen().contents();
        parser.process(&bytes);
        assert_eq!(parser.screen().contents(), before);
        assert!(!parser.screen().alternate_screen() && !parser.screen().hide_cursor());
    }

    #[test]
    fn keys_are_translated_once() {
        let of = |code, modifiers, kind| key(&KeyEvent { kind, ..KeyEvent::new(code, modifiers) });
        let press = KeyEventKind::Press;
        assert_eq!(of(KeyCode::Char('c'), KeyModifiers::CONTROL, press), Some(Key::Interrupt));
        assert_eq!(of(KeyCode::Char('c'), KeyModifiers::NONE, press), Some(Key::Char('c')));
        assert_eq!(of(KeyCode::Char('q'), KeyModifiers::NONE, KeyEventKind::Release), None);
        assert_eq!(of(KeyCode::PageDown, KeyModifiers::NONE, press), Some(Key::Scroll(-10)));
        assert_eq!(of(KeyCode::F(1), KeyModifiers::NONE, press), None);
    }
}
