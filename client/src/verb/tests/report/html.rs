//! The HTML report.

use serde_json::Value;

use super::*;

/// Returns the data in a page.
pub fn data(page: &str) -> Value {
    let (_, after) = page.split_once("<script id=\"data\" type=\"application/json\">").unwrap();
    // Where a browser ends the element.
    let (data, _) = after.split_once("</script").unwrap();
    serde_json::from_str(data).unwrap()
}

#[test]
fn a_page_has_the_shares_of_the_report() {
    let file = recording();
    let page = data(&file.run("export FILE --format html").out);
    let report = file.run("report FILE --json").json();
    assert_eq!(page["title"], "C:\\app\\app.exe --fast");
    assert!(page["heading"].as_str().unwrap().contains("Example Processor 3000"), "{page}");
    let [of_page, of_report] = [&page, &report].map(|one| one["sources"].as_array().unwrap());
    assert_eq!(of_page.len(), of_report.len());
    for (source, wanted) in of_page.iter().zip(of_report) {
        assert_eq!((&source["name"], &source["events"]), (&wanted["name"], &wanted["sampled_events"]));
        let [rows, wanted] = [source, wanted].map(|one| one["rows"].as_array().unwrap());
        assert_eq!(rows.len(), wanted.len());
        for (row, wanted) in rows.iter().zip(wanted) {
            for member in ["share", "low", "high", "samples", "events", "module"] {
                assert_eq!(row[member], wanted[member], "{member}");
            }
            assert_eq!(row["symbol"], wanted["symbol"]);
        }
        let rates = source["rates"].as_array().unwrap().iter().flat_map(|track| track["events"].as_array().unwrap());
        assert_eq!(rates.map(|events| events.as_u64().unwrap()).sum::<u64>(), source["events"].as_u64().unwrap());
    }
    let account = page["sources"][0]["account"].as_str().unwrap();
    assert!(account.contains("Lost") && account.contains("Paused"), "{account}");
}

/// `record -a` has no command.
#[test]
fn a_recording_of_all_processes_is_named_so_with_and_without_a_cut() {
    let mut writer = Writer::new(Vec::new(), &RecordedSession { command: Vec::new(), ..session() }).unwrap();
    for process in processes() {
        writer.process(&process).unwrap();
    }
    writer.samples(&[record(0, 100, 8, APP).into()]).unwrap();
    let file = File::holding(&writer.finish(&summary()).unwrap());
    for (cut, part, share) in [("", "", ""), (" --cpu 0", " (CPU 0)", " (CPU 0: 100.0 % of all events are selected)")] {
        let wanted = format!("all processes{part}");
        let page = data(&file.run(&format!("export FILE --format html -e 25{cut}")).out);
        assert_eq!(page["title"], wanted);
        let profile = file.run(&format!("export FILE --format speedscope{cut}")).out;
        assert!(profile.contains(&format!("\"name\":\"{wanted}\",\"activeProfileIndex\"")), "{profile}");
        let svg = file.run(&format!("flamegraph FILE -o - -e 25{cut}")).out;
        assert!(svg.contains(&format!(">all processes{share}</text>")), "{svg}");
    }
}

#[test]
fn a_page_loads_nothing_and_its_text_cannot_become_a_part_of_it() {
    let name = "</script><script>alert(1)</script><!-- {{script}} \u{2028}\"'&.exe";
    let mut writer = Writer::new(Vec::new(), &session()).unwrap();
    writer
        .process(&Process {
            id: 8,
            created: None,
            name: name.to_owned(),
            modules: vec![module(APP, &format!("C:\\{name}"))],
        })
        .unwrap();
    writer.samples(&[record(0, 1000, 8, APP).into()]).unwrap();
    let run = File::holding(&writer.finish(&summary()).unwrap()).run("export FILE --format html");
    assert_eq!(run.outcome.unwrap(), Exit::Done.code());
    let row = &data(&run.out)["sources"][0]["rows"][0];
    assert_eq!(row["process"], format!("{name} (8)"));
    assert_eq!(run.out.matches("</script").count(), 2, "the data, and the script of the page");
    assert!(!run.out.contains("{{style}}") && run.out.contains("function drawFlames"));
    for word in ["src=", "href=", "url(", "@import", "fetch(", "innerHTML"] {
        assert!(!run.out.contains(word), "{word}");
    }
}

#[test]
fn a_page_has_two_thousand_rows_and_the_sums_of_the_others() {
    let mut writer = Writer::new(Vec::new(), &session()).unwrap();
    writer.process(&processes()[1]).unwrap();
    let samples: Vec<SampleRecord> = (0..2_100).map(|place| record(0, 1000, 8, APP + place).into()).collect();
    writer.samples(&samples).unwrap();
    let page = data(&File::holding(&writer.finish(&summary()).unwrap()).run("export FILE --format html").out);
    let source = &page["sources"][0];
    assert_eq!(source["rows"].as_array().unwrap().len(), 2_000);
    assert_eq!(
        source["omitted"],
        json!([{ "process": "app.exe (8)", "module": "app.exe", "rows": 100, "events": 100_000 }])
    );
}

#[test]
fn a_page_has_two_thousand_sums_of_the_rows_that_it_does_not_have() {
    let mut writer = Writer::new(Vec::new(), &session()).unwrap();
    // The first 2,000 have more events, and their rows are in the page.
    let samples =
        (1..=4_100).map(|number| record(0, if number <= 2_000 { 2000 } else { 1000 }, 4 * number, APP).into());
    writer.samples(&samples.collect::<Vec<SampleRecord>>()).unwrap();
    let page = data(&File::holding(&writer.finish(&summary()).unwrap()).run("export FILE --format html").out);
    let source = &page["sources"][0];
    let omitted = source["omitted"].as_array().unwrap();
    assert_eq!((source["rows"].as_array().unwrap().len(), omitted.len()), (2_000, 2_001));
    assert!(omitted[..2_000].iter().all(|one| one["rows"] == 1 && one["events"] == 1_000), "{omitted:?}");
    assert_eq!(omitted[2_000], json!({ "process": "[other processes]", "module": "", "rows": 100, "events": 100_000 }));
}

/// Everything that a page or another export tells about a part is of the part.
#[test]
fn a_part_is_told_with_its_times_processors_and_losses() {
    const SECOND: u64 = 10_000_000;
    let at = |seconds, processor| CounterSample { time: seconds * SECOND, processor, ..record(0, 1, 8, APP) };
    let mut writer = Writer::new(Vec::new(), &session()).unwrap();
    for process in processes() {
        writer.process(&process).unwrap();
    }
    let lost = |seconds, processor, number| LostRecord::new(seconds * SECOND, processor, 0, number);
    let records: [SampleRecord; 5] = [
        at(0, 0).into(),
        lost(1, 0, 30).into(),
        PauseRecord::new(PauseKind::Resumed, 2 * SECOND, 0, SECOND).into(),
        lost(9, 1, 1).into(),
        at(9, 1).into(),
    ];
    writer.samples(&records).unwrap();
    let count = |processor, lost| Count { processor, lost, samples: 1, ..summary().counts[0].clone() };
    let counts = vec![count(0, 30), count(1, 1)];
    let file = File::holding(&writer.finish(&Summary { elapsed: 100_000_000, counts, ..summary() }).unwrap());

    let cut = "--time 8s- -e 25";
    let whole = data(&file.run("export FILE --format html -e 25").out);
    let page = data(&file.run(&format!("export FILE --format html {cut}")).out);
    assert_eq!(page["title"], "C:\\app\\app.exe --fast (8.000 s to 10.000 s)");
    assert!(page["heading"].as_str().unwrap().contains("\nPart      8.000 s to 10.000 s"), "{page}");
    let rates = page["sources"][0]["rates"][0]["events"].as_array().unwrap();
    assert_eq!((rates.len(), rates.last().unwrap()), (200, &json!(1)), "the last of the part");
    let seconds = |page: &Value| 200.0 * page["part_seconds"].as_f64().unwrap();
    assert!((seconds(&whole) - 9.0).abs() < 1e-3 && (seconds(&page) - 1.0).abs() < 1e-3, "{}", seconds(&page));
    let account = page["sources"][0]["account"].as_str().unwrap();
    assert!(account.ends_with("\n          1 sample lost in the selected part"), "{account}");

    let json = file.run(&format!("export FILE --format json {cut}")).json();
    assert_eq!(json["recording"]["selected"], json!({ "from_seconds": 8.0, "to_seconds": 10.0 }));
    assert_eq!((&json["sources"][0]["lost"], &json["sources"][0]["selected_lost"]), (&json!(31), &json!(1)));
    let json = file.run("export FILE --format json --cpu 0 --thread 9").json();
    let selected = json!({ "from_seconds": 0.0, "to_seconds": 10.0, "processors": [0], "threads": [9] });
    assert_eq!(json["recording"]["selected"], selected);
    assert_eq!(json["sources"][0]["selected_lost"], 30);

    let svg = file.run(&format!("flamegraph FILE -o - {cut}")).out;
    assert!(svg.contains("app.exe --fast (8.000 s to 10.000 s: 50.0 % of all events are selected)"), "{svg}");

    for (options, wanted) in [
        ("-e 25", "warning: TotalCycles: 31 samples lost, 93.9 %; paused 5.0 % of the time"),
        (cut, "warning: TotalCycles: 1 sample lost, 50.0 %"),
        ("--time 0s-4s -e 25", "warning: TotalCycles: 30 samples lost, 96.8 %; paused 12.5 % of the time"),
        ("--cpu 0 -e 25", "warning: TotalCycles: 30 samples lost, 96.8 %; paused 10.0 % of the time"),
        ("--cpu 1 -e 25", "warning: TotalCycles: 1 sample lost, 50.0 %"),
    ] {
        for verb in ["script FILE", "export FILE --format folded", "export FILE --format csv"] {
            let ran = file.run(&format!("{verb} {options}"));
            let told = ran.err.lines().filter(|line| line.starts_with("warning")).collect::<Vec<_>>();
            assert_eq!(told, [wanted], "{verb} {options}");
        }
    }
}
