//! Call stacks in reports and listings.

use recording::{CallStack, Method, Methods, MissingStack, SampleStack, StackEnd};

use super::*;

/// An address in a function of a just-in-time compiler.
const JIT: u64 = 0x20_0000;

/// Writes a recording of 1,000 samples: 600 in a recursive function, 250 in the kernel, called from user mode, and
/// others whose stacks are not complete.
fn stacked() -> File {
    let complete = |callers: &[u64]| stack(StackEnd::Complete, callers);
    let (main, recursive) = (JIT + 0x10, APP + 0x1000);
    let samples = [
        (400, recursive, complete(&[recursive, recursive, main, APP + 0x50])),
        (200, recursive, complete(&[main, APP + 0x50])),
        (250, NT + 0x50, complete(&[NT + 0x900, NTDLL + 0x30, main, APP + 0x50])),
        (100, NT + 0x60, stack(StackEnd::UserLost, &[NT + 0x900])),
        (3, APP + 0x2000, stack(StackEnd::Truncated, &[recursive])),
        (40, APP + 0x2000, SampleStack::Missing(MissingStack::TakenElsewhere)),
        (7, APP + 0x3000, SampleStack::Missing(MissingStack::EventLost)),
    ];
    let of = |(number, ip, stack): (usize, u64, SampleStack)| {
        let sample = CounterSample { processor: 0, ..record(0, 1000, 8, ip) };
        vec![(SampleRecord::from(sample), stack); number]
    };
    let mut writer = Writer::new(Vec::new(), &session()).unwrap();
    let [kernel, mut app, other] = processes();
    app.modules.extend(other.modules);
    writer.process(&kernel).unwrap();
    writer.process(&app).unwrap();
    let method = Method { address: JIT, size: 0x20, name: "App.Main(string[])".to_owned(), loaded: 1 };
    writer.methods(&Methods { id: 8, created: None, methods: vec![method] }).unwrap();
    writer.stacked_samples(&samples.into_iter().flat_map(of).collect::<Vec<_>>()).unwrap();
    File::holding(&writer.finish(&summary()).unwrap())
}

fn stack(end: StackEnd, callers: &[u64]) -> SampleStack {
    SampleStack::Stack(CallStack { callers: callers.to_vec(), end })
}

fn text(line: &str) -> String {
    let run = stacked().run_on(Some(80), line);
    assert_eq!(run.outcome.unwrap(), Exit::Done.code(), "{line}");
    if !line.contains("json") && !line.contains("csv") && !line.contains("--wide") && !line.starts_with("script") {
        assert!(run.out.lines().all(|line| line.chars().count() <= 80), "{}", run.out);
    }
    run.out
}

#[test]
fn a_report_says_how_many_samples_have_stacks_and_why_others_have_none() {
    let told = text("report FILE -e TotalCycles --sort module");
    let wanted = "\
Stacks     85.0 % of samples; 10.3 % truncated; 4.7 % missing
           kernel mode only 10.0 %; event lost 0.7 %; taken elsewhere 4.0 %
";
    assert!(told.contains(wanted), "{told}");
    let told = text("report FILE --json");
    let told: Value = serde_json::from_str(&told).unwrap();
    let wanted = json!({
        "complete": 850, "truncated": 3, "kernel_only": 100, "missing": { "event lost": 7, "taken elsewhere": 40 },
    });
    assert_eq!(told["sources"][0]["stacks"], wanted);
    assert_eq!(told["sources"][1].get("stacks"), None);
    assert!(!recording().run("report FILE").out.contains("Stacks"));
}

#[test]
fn children_have_the_samples_of_the_functions_that_they_call() {
    insta::assert_snapshot!(text("report FILE -e TotalCycles --children"));
}

#[test]
fn a_page_has_the_callers_of_the_report() {
    let rows = |told: &Value| told["sources"][0]["rows"].as_array().unwrap().clone();
    let page = html::data(&stacked().run("export FILE --format html").out);
    let told: Value = serde_json::from_str(&text("report FILE -e TotalCycles --children --json")).unwrap();
    let totals = |row: &Value, total: &Value| (row["symbol"].clone(), row["samples"].clone(), total.clone());
    let of_page: Vec<_> = rows(&page).iter().map(|row| totals(row, &row["total"])).collect();
    let wanted: Vec<_> = rows(&told).iter().map(|row| totals(row, &row["total"]["share"])).collect();
    assert_eq!(of_page, wanted);
    let sampled = rows(&page).iter().filter(|row| row["samples"] != 0).count();
    assert!(sampled < wanted.len() && page["sources"][0]["omitted"] == json!([]), "{page}");
}

/// The shares are those of the samples that the recording was made of.
#[test]
fn a_function_counts_once_for_a_stack_even_if_it_is_recursive() {
    let told: Value =
        serde_json::from_str(&text("report FILE -e TotalCycles --children --sort symbol --json")).unwrap();
    let rows = told["sources"][0]["rows"].as_array().unwrap();
    let of = |symbol: &str| {
        let row = rows.iter().find(|row| row["symbol"] == symbol).unwrap();
        (row["samples"].as_u64().unwrap(), row["total"]["samples"].as_u64().unwrap())
    };
    assert_eq!(of("app.exe+0x1000"), (600, 603));
    assert_eq!(of("App.Main(string[])"), (0, 850));
    assert_eq!(of("ntoskrnl.exe+0x900"), (0, 350));
    assert_eq!(rows.iter().map(|row| row["samples"].as_u64().unwrap()).sum::<u64>(), 1000);
    let csv = text("report FILE -e TotalCycles --children --sort symbol --csv");
    assert!(csv.starts_with("source,share,low,"), "{csv}");
    assert!(csv.lines().next().unwrap().ends_with(",address,total_share,total_samples,total_events"), "{csv}");
    assert!(csv.contains(",app.exe+0x1000,,0.603000,603,603000\n"), "{csv}");
}

#[test]
fn filters_apply_to_the_sampled_address() {
    let told: Value =
        serde_json::from_str(&text("report FILE -e TotalCycles --module ntoskrnl --children --json")).unwrap();
    let source = &told["sources"][0];
    assert_eq!(source["selected_samples"], 350);
    let main = source["rows"].as_array().unwrap().iter().find(|row| row["symbol"] == "App.Main(string[])").unwrap();
    assert_eq!((&main["samples"], &main["total"]["samples"]), (&json!(0), &json!(250)));
}

#[test]
fn calls_are_drawn_below_the_rows() {
    insta::assert_snapshot!("calls_caller", text("report FILE -e TotalCycles -g caller --sort symbol"));
    insta::assert_snapshot!("calls_callee", text("report FILE -e TotalCycles -g callee --sort symbol"));
}

#[test]
fn the_listing_of_single_samples_shows_their_stacks() {
    insta::assert_snapshot!(text("report FILE -e TotalCycles --merge --stack --cpu 0 --module ntoskrnl --limit 2"));
    let csv = text("report FILE -e TotalCycles --merge --stack --csv --limit 1");
    let stack = ",app.exe+0x1000,app.exe+0x1000;app.exe+0x1000;App.Main(string[]);app.exe+0x50\n";
    assert!(csv.lines().next().unwrap().ends_with(",symbol,stack") && csv.ends_with(stack), "{csv}");
    let told: Value = serde_json::from_str(&text("report FILE -e TotalCycles --merge --stack --json")).unwrap();
    let samples = told["samples"].as_array().unwrap();
    assert_eq!(samples[999]["stack"][0]["symbol"], "[no stack: event lost]");
    assert_eq!(samples[700]["stack"].as_array().unwrap().len(), 4);
    let plain: Value = serde_json::from_str(&text("report FILE -e TotalCycles --merge --json")).unwrap();
    assert_eq!(plain["samples"][0].get("stack"), None);
}

#[test]
fn a_script_has_the_callers_of_each_sample() {
    let script = text("script FILE");
    let wanted = "
\tfffff80000000050 [unknown] ([ntoskrnl.exe])
\tfffff80000000900 [unknown] ([ntoskrnl.exe])
\t    7ff800000030 [unknown] (a_library_with_a_name_that_is_far_too_long_for_a_console_of_eighty_columns.dll)
\t          200010 App.Main(string[]) ([JIT])
\t       140000050 [unknown] (app.exe)

";
    assert_eq!(script.matches(wanted).count(), 250);
}
