//! `--color`, an option of both programs.

use anstream::ColorChoice as StreamColors;
use clap::{Args, ColorChoice, ValueEnum as _};

/// When output has colors.
#[derive(Debug, Clone, Copy, Args)]
pub struct ColorArgs {
    /// Controls when to use color
    #[arg(long, default_value_t = ColorChoice::Auto, value_name = "WHEN", value_enum, global = true)]
    color: ColorChoice,
}

impl ColorArgs {
    /// Lets the streams of this process follow the choice.
    pub fn write_global(self) {
        let choice = match self.color {
            ColorChoice::Auto => StreamColors::Auto,
            ColorChoice::Always => StreamColors::Always,
            ColorChoice::Never => StreamColors::Never,
        };
        choice.write_global();
    }

    /// Returns the words by which another program makes the choice of this process.
    #[must_use]
    pub fn global_words() -> [String; 2] {
        let color = match StreamColors::global() {
            StreamColors::Auto => ColorChoice::Auto,
            StreamColors::Always | StreamColors::AlwaysAnsi => ColorChoice::Always,
            StreamColors::Never => ColorChoice::Never,
        };
        let value = color.to_possible_value().map(|value| value.get_name().to_owned());
        ["--color".to_owned(), value.unwrap_or_default()]
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        color: ColorArgs,
    }

    #[test]
    fn a_choice_that_was_made_is_handed_on() {
        for (words, handed_on) in
            [(vec![], "auto"), (vec!["--color", "always"], "always"), (vec!["--color", "never"], "never")]
        {
            let cli = Cli::try_parse_from(["client"].into_iter().chain(words)).unwrap();
            cli.color.write_global();
            assert_eq!(ColorArgs::global_words(), ["--color", handed_on]);
        }
        StreamColors::Auto.write_global();
    }
}
