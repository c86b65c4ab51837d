//! Opens the call stacks of a recording with `go tool pprof`, which must find the callers that the folded stacks and
//! the profile for Firefox have.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::client::Client;
use xtask::{run, workspace::Workspace};

/// Number of samples, of their addresses, and of the frames of each.
const RECORDING: [&str; 3] = ["20000", "200", "12"];

/// Calls by caller and called function, with the events of the samples that have them.
type Calls = BTreeMap<(String, String), u64>;

/// Records, exports and compares.
pub fn run(workspace: &Workspace, client: &Client) -> Result<()> {
    let [samples, addresses, frames] = RECORDING;
    let mut synthetic = workspace.cargo("run");
    synthetic.args(["--quiet", "--locked", "-p", "report", "--example", "synthetic", "--", samples]);
    run::verbose(synthetic.arg(client.folder.join("calls.rec")).args([addresses, frames]))?;
    for (format, output) in [("pprof", "calls.pb.gz"), ("folded", "calls.folded"), ("firefox", "calls.json")] {
        client.run(&["export", "--format", format, "calls.rec", "-o", output])?;
    }
    client.run(&["export", "--format", "html", "calls.rec", "-o", "calls.html"])?;
    client.run(&["flamegraph", "calls.rec", "-o", "calls.svg"])?;
    let folded = of_folded(&fs::read_to_string(client.folder.join("calls.folded"))?)?;
    ensure!(folded.len() > 1_000, "the recording has only {} calls", folded.len());
    let firefox = of_firefox(&serde_json::from_slice(&fs::read(client.folder.join("calls.json"))?)?)?;
    compare("the profile for Firefox", &firefox, &folded)?;
    let mut pprof = Command::new("go");
    pprof.args(["tool", "pprof", "-peek", ".", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0"]);
    let text = run::output(pprof.arg("calls.pb.gz").current_dir(&client.folder))?;
    let [callers, called] = of_peek(&text)?;
    compare("pprof, above its functions,", &callers, &folded)?;
    compare("pprof, below its functions,", &called, &folded)?;
    println!("pprof found {} calls, as the profile for Firefox and the folded stacks have them", folded.len());
    Ok(())
}

fn compare(what: &str, found: &Calls, wanted: &Calls) -> Result<()> {
    let calls: BTreeSet<_> = found.keys().chain(wanted.keys()).collect();
    let different = calls.into_iter().find(|call| found.get(*call) != wanted.get(*call));
    if let Some(call) = different {
        bail!("{what} has {:?} events of {call:?}, not {:?}", found.get(call), wanted.get(call));
    }
    Ok(())
}

/// Returns the calls of folded stacks, which begin with the process.
fn of_folded(text: &str) -> Result<Calls> {
    let mut calls = Calls::new();
    for line in text.lines() {
        let (stack, events) = line.rsplit_once(' ').with_context(|| line.to_owned())?;
        let functions: Vec<&str> = stack.split(';').skip(1).collect();
        for pair in functions.windows(2) {
            let [outer, inner] = pair else { continue };
            *calls.entry(((*outer).to_owned(), (*inner).to_owned())).or_default() += events.parse::<u64>()?;
        }
    }
    Ok(calls)
}

/// Returns the calls above and below the functions that `go tool pprof -peek` prints: the callers, the function with
/// five numbers, and what it calls.
fn of_peek(text: &str) -> Result<[Calls; 2]> {
    let (mut above, mut below) = (Calls::new(), Calls::new());
    for block in text.split("+-------------\n").skip(2) {
        let (mut callers, mut function) = (Vec::new(), None);
        for line in block.lines().filter(|line| line.contains('|')) {
            let (numbers, name) = line.split_once('|').with_context(|| line.to_owned())?;
            let (numbers, name): (Vec<&str>, _) = (numbers.split_whitespace().collect(), name.trim().to_owned());
            let events = || numbers.first().and_then(|number| number.parse::<u64>().ok());
            match (&function, numbers.len()) {
                (None, 5) => function = Some(name),
                (None, _) => callers.push((name, events().with_context(|| line.to_owned())?)),
                (Some(function), _) => {
                    below.insert((function.clone(), name), events().with_context(|| line.to_owned())?);
                }
            }
        }
        let Some(function) = function else { continue };
        above.extend(callers.into_iter().map(|(caller, events)| ((caller, function.clone()), events)));
    }
    Ok([above, below])
}

/// Returns the calls of a profile for Firefox.
fn of_firefox(profile: &Value) -> Result<Calls> {
    let mut calls = Calls::new();
    for thread in list(profile, "/threads")? {
        let stacks = list(thread, "/samples/stack")?.iter().zip(list(thread, "/samples/weight")?);
        for (stack, weight) in stacks {
            let (mut next, mut called) = (stack.as_u64(), None);
            while let Some(stack) = next {
                let function = function(profile, thread, stack, called.is_some())?;
                if let Some(called) = called {
                    let events = weight.as_u64().context("a sample without a weight")?;
                    *calls.entry((function.clone(), called)).or_default() += events;
                }
                called = Some(function);
                next = cell(thread, "stackTable/prefix", stack);
            }
        }
    }
    Ok(calls)
}

/// Returns the innermost function of a stack. Without a symbol it is named after its address, which is before the
/// return address if it is a caller.
fn function(profile: &Value, thread: &Value, stack: u64, is_caller: bool) -> Result<String> {
    let of = |column: &str, row| cell(thread, column, row).with_context(|| format!("no {column} of {row}"));
    let function = of("frameTable/func", of("stackTable/frame", stack)?)?;
    let name = thread.pointer(&format!("/stringArray/{}", of("funcTable/name", function)?)).and_then(Value::as_str);
    let library = of("resourceTable/lib", of("funcTable/resource", function)?)?;
    let library = profile.pointer(&format!("/libs/{library}/name")).and_then(Value::as_str).context("a library")?;
    let address = name.and_then(|name| u64::from_str_radix(name.strip_prefix("0x")?, 16).ok());
    let address = address.with_context(|| format!("the function {name:?}"))?;
    Ok(format!("{library}+{:#x}", address + u64::from(is_caller)))
}

fn list<'a>(value: &'a Value, pointer: &str) -> Result<&'a Vec<Value>> {
    value.pointer(pointer).and_then(Value::as_array).with_context(|| format!("no list {pointer}"))
}

/// Returns a number in a column of a table.
fn cell(thread: &Value, column: &str, row: u64) -> Option<u64> {
    thread.pointer(&format!("/{column}/{row}")).and_then(Value::as_u64)
}
