//! The report as one page of HTML. A policy in its head forbids requests and scripts.

use std::fmt::{self, Write};

use quick_xml::escape::escape;

use super::{ClaimReport, Report, StepReport, Verdict};
use crate::proof::Outcome;

const STYLE: &str = include_str!("page.css");

impl Verdict {
    /// Returns the verdict in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::Refuted => "refuted",
            Self::NotTried => "not tried",
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::Proved => "good",
            Self::Refuted => "bad",
            Self::NotTried => "open",
        }
    }
}

/// Returns the page.
pub fn render(report: &Report) -> String {
    let mut page = String::new();
    // Writing to a `String` cannot fail.
    let _ = write(&mut page, report);
    page
}

fn write(page: &mut String, report: &Report) -> fmt::Result {
    let name = escape(report.name.as_str());
    write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>halprof on {name}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>halprof on {name}</h1>\n"
    )?;
    summary(page, report)?;
    page.push_str("<h2>Claims</h2>\n<table>\n<tr><th>Verdict</th><th>Claim</th><th>Because</th><th>Steps</th></tr>\n");
    for claim in &report.claims {
        row(page, claim)?;
    }
    page.push_str("</table>\n<h2>Steps</h2>\n");
    for step in &report.steps {
        details(page, step)?;
    }
    page.push_str("</body>\n</html>\n");
    Ok(())
}

fn summary(page: &mut String, report: &Report) -> fmt::Result {
    let summary = report.summary;
    writeln!(
        page,
        "<p><b class=\"good\">{} proved</b>, <b class=\"bad\">{} refuted</b>, {} not tried ({} of them shown in part); {} failed steps, {} crashes\
         </p>",
        summary.proved, summary.refuted, summary.not_tried, summary.in_part, summary.failed_steps, summary.crashes
    )?;
    if let Some(reason) = &report.interrupted {
        writeln!(page, "<p class=\"bad\">The run is not complete:</p>\n<pre>{}</pre>", escape(reason.as_str()))?;
    }
    let guest = &report.guest;
    let unknown = "not known";
    let rows = [
        ("Reached by", report.transport.as_str()),
        ("Windows", guest.windows.as_deref().unwrap_or(unknown)),
        ("Processor", guest.processor.as_deref().unwrap_or(unknown)),
        ("Hypervisor", guest.hypervisor.as_deref().unwrap_or(unknown)),
        ("Interface", guest.interface.as_deref().unwrap_or(unknown)),
        ("halprof.sys", report.package.as_str()),
        ("Begun", report.started.as_str()),
        ("Report", report.written.as_str()),
    ];
    page.push_str("<table>\n");
    for (title, text) in rows {
        writeln!(page, "<tr><th>{title}</th><td>{}</td></tr>", escape(text))?;
    }
    page.push_str("</table>\n");
    Ok(())
}

fn row(page: &mut String, claim: &ClaimReport) -> fmt::Result {
    let links: Vec<String> = claim.steps.iter().map(|step| format!("<a href=\"#step-{step}\">{step}</a>")).collect();
    writeln!(
        page,
        "<tr id=\"claim-{}\"><td class=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
        claim.id,
        claim.verdict.class(),
        claim.verdict.name(),
        escape(claim.claim),
        escape(claim.because.as_str()),
        links.join(", ")
    )
}

fn details(page: &mut String, step: &StepReport) -> fmt::Result {
    let (class, word, because) = match step.result.as_ref().map(|result| &result.outcome) {
        Some(Outcome::Passed) => ("good", "passed", ""),
        Some(Outcome::Failed(reason)) => ("bad", "failed", reason.as_str()),
        Some(Outcome::NotTried(reason)) => ("open", "not tried", reason.as_str()),
        None => ("open", "not run", ""),
    };
    writeln!(
        page,
        "<details id=\"step-{name}\"><summary><span class=\"{class}\">{word}</span> {name}: <code>{}</code></summary>",
        escape(step.command.as_str()),
        name = step.name,
    )?;
    writeln!(page, "<p>It passes if: {}.</p>", escape(step.shows))?;
    if !because.is_empty() {
        writeln!(page, "<p class=\"{class}\">{}</p>", escape(because))?;
    }
    if let Some(result) = &step.result {
        let code = result.code.map(|code| format!("exit code {code}, ")).unwrap_or_default();
        writeln!(page, "<p>{code}{:.1} s</p>", result.seconds)?;
        for line in result.crash.iter().flat_map(|crash| crash.dumps.iter().chain(&crash.missing)) {
            writeln!(page, "<p class=\"bad\">dump: {}</p>", escape(line.as_str()))?;
        }
    }
    for (title, text) in [("Output", &step.out), ("Errors", &step.err)] {
        if !text.is_empty() {
            writeln!(page, "<p>{title}:</p>\n<pre>{}</pre>", escape(text.as_str()))?;
        }
    }
    page.push_str("</details>\n");
    Ok(())
}
