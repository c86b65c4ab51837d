//! Numbers in the output of the commands.

use std::collections::BTreeMap;

/// Numbers by their units.
pub type Figures = BTreeMap<String, u64>;

/// Adds numbers to others of the same units.
pub fn add(figures: &mut Figures, more: impl IntoIterator<Item = (&'static str, u64)>) {
    for (unit, number) in more {
        *figures.entry(unit.to_owned()).or_default() += number;
    }
}

fn number(text: &str) -> Option<u64> {
    text.replace(',', "").parse().ok()
}

/// Returns how many tests passed: the lines `test result: ok. 12 passed; 0 failed; ...` of Rust's harness.
pub fn tests(output: &str) -> Vec<(&'static str, u64)> {
    let results = output.lines().filter_map(|line| line.trim().strip_prefix("test result: ")?.split_once(". "));
    let passed = results.filter_map(|(_, counts)| number(counts.split_once(" passed")?.0));
    vec![("tests", passed.sum())]
}

/// Returns the rows of the fuzzer of requests.
pub fn requests(output: &str) -> Vec<(&'static str, u64)> {
    let rows = [
        ("steps", "steps"),
        ("requests", "requests"),
        ("machines", "machines"),
        ("lies of processors", "lies"),
        ("counts equal to what happened", "counts checked"),
        ("counts equal to the model's ledger", "counts checked"),
        ("interrupts", "interrupts"),
    ];
    let of = |line: &str| {
        let (title, value) = line.rsplit_once("  ")?;
        let (_, unit) = rows.iter().find(|(row, _)| title.trim() == *row)?;
        Some((*unit, number(value.trim())?))
    };
    output.lines().filter_map(of).collect()
}

/// Returns the sums of the fuzzer of the driver: `12 requests in 3 rounds and 4 s, ...; 5 counts are those of the
/// model`.
pub fn driver_requests(output: &str) -> Vec<(&'static str, u64)> {
    let sums = output.lines().rev().find_map(|line| number(line.split_once(" requests in ")?.0));
    sums.map(|sent| ("requests", sent)).into_iter().collect()
}

/// Returns what the targets of libFuzzer did: `12 inputs, 34 edges reached, corpus of ...`.
pub fn inputs(output: &str) -> Vec<(&'static str, u64)> {
    let of = |line: &str| number(line.trim().split_once(" inputs, ")?.0);
    let all: Vec<u64> = output.lines().filter_map(of).collect();
    vec![("targets", all.len() as u64), ("inputs", all.iter().sum())]
}

/// Returns the sums of the sweeps of interrupts: the rows `all` of the processors.
pub fn interrupts(output: &str) -> Vec<(&'static str, u64)> {
    const COLUMNS: [(usize, &str); 4] =
        [(2, "instructions interrupted"), (4, "interrupts delivered"), (7, "pairs of interrupts"), (9, "runs")];
    let rows = output.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows = rows.filter(|words| words.get(1) == Some(&"all"));
    rows.flat_map(|words| {
        let of = |(column, unit): (usize, &'static str)| Some((unit, number(words.get(column)?)?));
        COLUMNS.into_iter().filter_map(of).collect::<Vec<_>>()
    })
    .collect()
}

/// Returns how many files were identical in two builds.
pub fn identical(output: &str) -> Vec<(&'static str, u64)> {
    let files = output.lines().filter(|line| line.ends_with(" bytes, identical in two folders")).count();
    vec![("identical files", files as u64)]
}

/// Returns how many findings are as they were.
pub fn findings(output: &str) -> Vec<(&'static str, u64)> {
    let passed = output.lines().filter(|line| line.ends_with("  passed")).count();
    vec![("findings", passed as u64)]
}

#[cfg(test)]
mod tests_of_figures {
    use super::*;

    #[test]
    fn tests_are_those_of_all_programs() {
        let output = "running 2 tests\ntest result: ok. 2 passed; 0 failed; 1 ignored; finished in 1 s\n\
                      test result: FAILED. 30 passed; 1 failed; 0 ignored\n";
        assert_eq!(tests(output), [("tests", 32)]);
        assert_eq!(tests("nothing"), [("tests", 0)]);
    }

    #[test]
    fn numbers_of_each_tool_are_found() {
        let rows = "requests                                     30001\nmachines                                        12\n\
                    Read                      12             10              2\n\
                    counts equal to what happened                   7\ncounts equal to the model's ledger              8\n";
        let mut found = Figures::new();
        add(&mut found, requests(rows));
        let expected = [("counts checked", 15), ("machines", 12), ("requests", 30_001)];
        assert_eq!(found, expected.map(|(unit, count)| (unit.to_owned(), count)).into());
        let files = "  engine: 1 min 0 s\n    12 inputs, 34 edges reached, corpus of 5/6Kb\n    3 inputs, 1 edges reached, corpus of \n";
        assert_eq!(inputs(files), [("targets", 2), ("inputs", 15)]);
        let sweep =
            "skylake-6600k   start   1 2 3 4 5 6 7 8 0  1 s\nskylake-6600k   all   10 20 30 40 50 60 70 80 0  9 s\n";
        let expected =
            [("instructions interrupted", 10), ("interrupts delivered", 30), ("pairs of interrupts", 60), ("runs", 80)];
        assert_eq!(interrupts(sweep), expected);
        let storm = "zen4-7700x  1 request\n\n105000 requests in 21 rounds and 4 s, 9 per second; 5 handles opened\n";
        assert_eq!(driver_requests(storm), [("requests", 105_000)]);
        assert_eq!(identical("halprof.sys: 5 bytes, identical in two folders\n"), [("identical files", 1)]);
        assert_eq!(findings("one    passed\ntwo-x  changed\nthree  passed\n"), [("findings", 2)]);
    }
}
