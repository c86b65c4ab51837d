//! What perf's users type, and what is said.

use std::ffi::OsString;
use std::fmt::Write as _;

use super::*;
use crate::cli::usage;

/// Returns the words of a line.
fn words(line: &str) -> Vec<OsString> {
    ["client"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect()
}

/// Returns what a line is parsed to, or the report of what is wrong with it.
fn parsed(line: &str) -> Result<String, String> {
    let words = words(line);
    let cli = usage::parse_words(&words).map_err(|error| usage::report(&error, &words).unwrap_or_default())?;
    Ok(format!("{cli:?}"))
}

/// Returns a line of a verb with an option, and with what else the verb needs.
fn line(verb: &str, option: &str) -> String {
    let others = match verb {
        "stat" => "-- app",
        "annotate" => "main",
        "diff" => "old.rec new.rec",
        _ => "",
    };
    format!("{verb} {option} {others}")
}

/// Returns a value of an option; none if it takes none.
fn value(long: &str) -> &'static str {
    match long {
        "interval" => "100",
        "limit" => "5",
        "sort" | "fields" => "dso,sym",
        "ldlat" => "50",
        "process" => "app,12",
        "thread" => "7,8",
        "module" => "ntdll.dll,app",
        "symbol" => "main",
        "symbols" => "C:\\pdb",
        _ => "",
    }
}

/// Returns each row for each of its verbs and spellings.
fn each() -> impl Iterator<Item = (String, &'static str, Here)> {
    let spelled = |(verbs, spellings, here): &'static Row| {
        let verbs = verbs.split(' ').map(|verb| verb.replace('-', " "));
        verbs.flat_map(move |verb| spellings.split(' ').map(move |spelling| (verb.clone(), spelling, *here)))
    };
    ROWS.iter().flat_map(spelled)
}

#[test]
fn an_option_that_is_the_same_is_parsed_as_that_of_halprof() {
    for (verb, spelling, here) in each() {
        let wanted = match here {
            Is(long) => parsed(&line(&verb, &format!("--{long} {}", value(long)))),
            Always => parsed(&line(&verb, "")),
            Other(..) => continue,
        };
        let value = if let Is(long) = here { value(long) } else { "" };
        let typed = line(&verb, &format!("{spelling} {value}"));
        assert!(wanted.is_ok(), "{typed}: {wanted:?}");
        assert_eq!(parsed(&typed), wanted, "{typed}");
    }
}

/// Returns the command lines that a remedy names.
fn lines(verb: &str, remedy: &str) -> Vec<String> {
    let parts = remedy.split(", and ").flat_map(|part| part.split(", which ")).flat_map(|part| part.split(", then "));
    let parts = parts.flat_map(|part| part.split(", or ")).flat_map(|part| part.split(" or "));
    let command =
        |part: &str| part.strip_prefix(".\\client ").map(|rest| rest.split(" and ").next().unwrap().to_owned());
    let own = |part: &str| part.starts_with('-').then(|| line(verb, part));
    parts.filter_map(|part| command(part).or_else(|| own(part))).map(|line| line.replace('"', "")).collect()
}

/// The page of the guide about perf has each row. `HALPROF_UPDATE_GENERATED=1` writes it again.
#[test]
fn the_guide_has_the_table() {
    const HEADING: &str = "| verb | perf | here |\n|---|---|---|\n";
    let code = |text: &str| text.split(' ').map(|part| format!("`{part}`")).collect::<Vec<_>>().join(" ");
    let mut rows = String::new();
    for (verbs, spellings, here) in ROWS {
        let here = match here {
            Is(long) => format!("`--{long}`"),
            Always => "done in any case".to_owned(),
            Other(why, remedy) => format!("{why}: {remedy}"),
        };
        let verbs = verbs.replace(' ', ", ").replace('-', " ");
        let _ = writeln!(rows, "| {verbs} | {} | {here} |", code(spellings));
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guide/perf.md");
    let page = std::fs::read_to_string(path).unwrap().replace('\r', "");
    let (before, _) = page.split_once(HEADING).unwrap();
    let wanted = format!("{before}{HEADING}{rows}");
    if std::env::var_os("HALPROF_UPDATE_GENERATED").is_some() {
        std::fs::write(path, &wanted).unwrap();
    } else {
        assert_eq!(page, wanted, "HALPROF_UPDATE_GENERATED=1 cargo test -p client the_guide_has");
    }
}

/// Every row that is refused, and the line that it names works.
#[test]
fn an_option_that_is_none_here_is_refused_with_the_way_to_it() {
    let (mut text, mut named) = (String::new(), 0);
    for (verb, spelling, here) in each() {
        let Other(why, remedy) = here else { continue };
        let typed = line(&verb, spelling);
        let report = parsed(&typed).unwrap_err();
        assert!(report.ends_with(&format!("\n  because: {why}\n  try: {remedy}")), "{typed}: {report}");
        assert!(report.lines().all(|line| line.len() <= 100), "{report}");
        let lines = lines(&verb, remedy);
        for line in lines.iter().filter(|line| *line != "--version") {
            assert!(parsed(line).is_ok(), "{typed}: {line}: {:?}", parsed(line));
        }
        named += usize::from(!lines.is_empty());
        let _ = writeln!(text, "> client {}\n{report}\n", typed.trim());
    }
    assert!(named > 60, "{named}");
    insta::assert_snapshot!(text);
}

/// Examples of the manual pages of perf, and what its users type most often: each works, or the report says the way.
#[test]
fn the_lines_that_users_of_perf_type_most_often_work_or_say_the_way() {
    for (line, wanted) in [
        ("stat -- make", Ok(())),
        ("stat -a sleep 5", Ok(())),
        ("stat -e cycles,instructions,branches,branch-misses -- app", Ok(())),
        ("stat -r 5 -e cycles:u -- app", Ok(())),
        ("stat -I 1000 -a", Ok(())),
        ("stat -a -A -e cycles,instructions sleep 1", Ok(())),
        ("stat -x, -o stat.csv -e r1c2,cpu/event=0xc2,umask=1/,cpu/config=0x1c2/ -- app", Ok(())),
        ("stat --timeout 2000 -a", Ok(())),
        ("stat -d -- app", Err("-e \"cycles,cache-references,cache-misses\"")),
        ("stat -p 1234", Ok(())),
        ("stat --topdown -a -- sleep 1", Err("-M TopdownL1, or -M TopdownL2")),
        ("record -- app", Ok(())),
        ("record -g -- app", Ok(())),
        ("record -F 99 -a -g -- sleep 10", Ok(())),
        ("record -e cycles:u -c 100000 -- app", Ok(())),
        ("record -a -e cycles -o perf.data sleep 5", Ok(())),
        ("record --call-graph dwarf -- app", Err("-g")),
        ("record -p 1234,5678 -g", Ok(())),
        ("record -t 1234 -- sleep 10", Ok(())),
        ("top -p 1234", Ok(())),
        ("record -b -- app", Ok(())),
        ("record -j any,u -- app", Ok(())),
        ("report", Ok(())),
        ("report --branch-history", Ok(())),
        ("report --total-cycles", Ok(())),
        ("report --stdio --sort comm,dso,sym", Ok(())),
        ("report -i perf.data --no-children -g caller", Ok(())),
        ("report -n --stdio -s dso --comms app", Ok(())),
        ("annotate --stdio -i perf.data main", Ok(())),
        ("annotate -s main", Err(".\\client annotate SYMBOL")),
        ("top", Ok(())),
        ("top -e cycles -a --stdio", Ok(())),
        ("top -d 2", Err("write 2s or 2ms")),
        ("script -i perf.data", Ok(())),
        ("script -F +brstack", Ok(())),
        ("script -F ip,brstack", Err("-F +brstack")),
        ("diff old.data new.data", Ok(())),
        ("list", Ok(())),
        ("mem record -- app", Ok(())),
        ("mem record -t load --ldlat 50 -a -- app", Ok(())),
        ("mem report --sort mem,sym,dso,dcacheline,symbol_daddr,local_weight", Ok(())),
        ("mem record -K -- app", Ok(())),
        ("mem record --all-user -p 1234", Ok(())),
        ("mem record -d -W -c 1000 -- app", Ok(())),
        ("mem record --phys-data -- app", Err("the same without it")),
        ("mem report --stdio -i perf.data -T", Ok(())),
        ("mem report -s phys_daddr", Err("--sort data, or --sort page")),
        ("mem report -t load", Err("--sort operation,source")),
        ("mem report --comms app --dsos ntdll.dll -n", Ok(())),
        ("mem report -D", Err(".\\client export --format csv")),
        ("c2c record -F 60000 -a --all-user --ldlat 50 sleep 5", Ok(())),
        ("c2c record -u -l 50 -- app", Ok(())),
        ("c2c record -- app", Ok(())),
        ("c2c report -NN --stdio", Err("mem report --sort source")),
        ("c2c report -c pid,iaddr --stdio", Err("--csv")),
        ("c2c report --full-symbols --no-source --stdio -f", Ok(())),
        ("c2c report --stats", Err("--limit 1")),
        ("c2c report -d rmt", Err("--csv, which has each kind")),
        ("c2c report -i perf.data --double-cl", Ok(())),
        ("c2c", Ok(())),
        ("sched", Ok(())),
        ("sched record -- app", Err(".\\client sched --help")),
        ("lock record -- app", Err("Windows Performance Recorder")),
    ] {
        match (parsed(line), wanted) {
            (Ok(_), Ok(())) => {}
            (Err(report), Err(part)) if report.contains(part) => {}
            (found, wanted) => panic!("{line}: {found:?}, not {wanted:?}"),
        }
    }
}
