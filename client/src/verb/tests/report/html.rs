//! The HTML report.

use serde_json::Value;

use super::*;

/// Returns the data in a page.
fn data(page: &str) -> Value {
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
            assert_eq!(row["frames"][0], wanted["symbol"]);
        }
        let rates = source["rates"].as_array().unwrap().iter().flat_map(|track| track["events"].as_array().unwrap());
        assert_eq!(rates.map(|events| events.as_u64().unwrap()).sum::<u64>(), source["events"].as_u64().unwrap());
    }
    let account = page["sources"][0]["account"].as_str().unwrap();
    assert!(account.contains("Lost") && account.contains("Paused"), "{account}");
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
    writer.samples(&[record(25, 1000, 8, APP).into()]).unwrap();
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
    let samples: Vec<SampleRecord> = (0..2_100).map(|place| record(25, 1000, 8, APP + place).into()).collect();
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
        (1..=4_100).map(|number| record(25, if number <= 2_000 { 2000 } else { 1000 }, 4 * number, APP).into());
    writer.samples(&samples.collect::<Vec<SampleRecord>>()).unwrap();
    let page = data(&File::holding(&writer.finish(&summary()).unwrap()).run("export FILE --format html").out);
    let source = &page["sources"][0];
    let omitted = source["omitted"].as_array().unwrap();
    assert_eq!((source["rows"].as_array().unwrap().len(), omitted.len()), (2_000, 2_001));
    assert!(omitted[..2_000].iter().all(|one| one["rows"] == 1 && one["events"] == 1_000), "{omitted:?}");
    assert_eq!(omitted[2_000], json!({ "process": "[other processes]", "module": "", "rows": 100, "events": 100_000 }));
}
