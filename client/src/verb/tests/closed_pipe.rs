//! Tests of every verb with a closed output.

use super::*;

/// An output that fails every write with this kind of error.
struct Closed(io::ErrorKind);

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a command line with both outputs closed.
fn run_closed(line: &str, reason: io::ErrorKind) -> Result<i32, Error> {
    let system = two_processors();
    let words = line.split_whitespace().chain(line.contains(" -- ").then_some("exit 3"));
    let cli = Cli::try_parse_from(["client"].into_iter().chain(words)).unwrap();
    let (mut input, mut out, mut err) = (io::empty(), Closed(reason), Closed(reason));
    crate::verb::run(&cli.verb, &mut Context::new(Some(&system), &mut input, &mut out, &mut err))
}

#[test]
fn a_closed_output_is_not_an_error_and_keeps_the_code_of_the_command() {
    let null = if cfg!(windows) { "NUL" } else { "/dev/null" };
    for (line, code) in [
        ("list".to_owned(), 0),
        ("status --json".to_owned(), 0),
        (format!("stat -e 2 -- {EXIT_3}"), 3),
        (format!("stat -e 2 -o - --json -- {EXIT_3}"), 3),
        (format!("record -e 2 -o {null} -- {EXIT_3}"), 3),
        (format!("branches -C 0 --csv -- {EXIT_3}"), 3),
        (format!("record -a --duration 0.001 -e 2 -o {null}"), 0),
    ] {
        assert_eq!(run_closed(&line, io::ErrorKind::BrokenPipe).unwrap(), code, "{line}");
        let failure = run_closed(&line, io::ErrorKind::StorageFull).unwrap_err();
        assert_eq!(failure.exit(), Exit::Failure, "{line}");
    }
}
