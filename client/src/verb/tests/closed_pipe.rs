//! Tests of every verb with a closed output, and of how it writes.

use std::io::Write;

use super::transcript::Files;
use super::*;

/// An output whose reader has closed it after this number of bytes: then every write fails with this kind of error.
struct Closed {
    left: usize,
    reason: io::ErrorKind,
}

impl Write for Closed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(self.reason.into());
        }
        let length = bytes.len().min(self.left);
        self.left -= length;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a command line with both outputs closed.
fn run_closed(line: &str, reason: io::ErrorKind) -> Result<i32, Error> {
    let words: Vec<_> = line.split_whitespace().chain(line.contains(" -- ").then_some("exit 3")).collect();
    run_closed_after(0, &words, reason)
}

/// Runs a command line whose standard output is closed after a number of bytes, and whose standard error is closed.
fn run_closed_after(left: usize, words: &[&str], reason: io::ErrorKind) -> Result<i32, Error> {
    let system = two_processors();
    let cli = Cli::try_parse_from(["client"].iter().chain(words)).unwrap();
    let (mut input, mut out, mut err) = (io::empty(), Closed { left, reason }, Closed { left: 0, reason });
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
        (format!("record -a --duration 0.001s -e 2 -o {null}"), 0),
    ] {
        assert_eq!(run_closed(&line, io::ErrorKind::BrokenPipe).unwrap(), code, "{line}");
        let failure = run_closed(&line, io::ErrorKind::StorageFull).unwrap_err();
        assert_eq!(failure.exit(), Exit::Failure, "{line}");
    }
}

#[test]
fn a_reader_that_leaves_in_the_middle_ends_every_view_and_export_quietly() {
    let files = Files::new();
    for line in [
        "report FILE",
        "report FILE --json",
        "report FILE --csv",
        "report FILE --merge",
        "report OLD",
        "script FILE",
        "export FILE --format csv",
        "export FILE --format json",
        "export FILE --format folded",
        "export FILE --format firefox",
        "export FILE --format pprof",
        "export FILE --format speedscope",
        "flamegraph FILE -o -",
        "diagnose --cpuid DUMP",
        "list l3_miss --cpuid DUMP",
        "encode cycles --cpuid DUMP",
        "list --interface pentium",
    ] {
        let words = files.words(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        for left in [0, 1, 70] {
            let code = run_closed_after(left, &words, io::ErrorKind::BrokenPipe);
            assert_eq!(code.unwrap(), 0, "{line} after {left} bytes");
            let failure = run_closed_after(left, &words, io::ErrorKind::StorageFull).unwrap_err();
            assert_eq!(failure.exit(), Exit::Failure, "{line} after {left} bytes");
        }
    }
}

/// An output that counts its bytes and writes.
#[derive(Default)]
struct Counted {
    bytes: usize,
    writes: usize,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        self.writes += 1;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Each write is a system call. A report of a day has 25 million lines.
#[test]
fn long_outputs_are_not_written_line_by_line() {
    /// Length of the buffer.
    const BUFFER: usize = 8 * 1024;
    let files = Files::new();
    for line in [
        "report FILE",
        "report FILE --json",
        "report FILE --csv",
        "script FILE",
        "export FILE --format csv",
        "export FILE --format json",
        "export FILE --format folded",
        "export FILE --format speedscope",
        "diff OLD FILE --json",
        "list * --cpuid DUMP --json",
    ] {
        let words = files.words(line);
        let cli = Cli::try_parse_from(["client"].into_iter().chain(words.iter().map(String::as_str))).unwrap();
        let (system, mut input) = (two_processors(), io::empty());
        let (mut out, mut err) = (Counted::default(), io::sink());
        crate::verb::run(&cli.verb, &mut Context::new(Some(&system), &mut input, &mut out, &mut err)).unwrap();
        let Counted { bytes, writes } = out;
        // Text for people comes in a few pieces.
        assert!(bytes > 0 && writes <= bytes / BUFFER * 2 + 10, "{line}: {bytes} bytes in {writes} writes");
    }
}
