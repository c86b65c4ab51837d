//! The manual page, with a section for each verb.

use clap::Command;
use clap_mangen::Man;

/// The options of every verb.
const EVERYWHERE: [&str; 2] = ["color", "help"];

/// Returns the page in the language of man(7).
pub fn page(command: &Command) -> String {
    let man = Man::new(command.clone()).manual("halprof").source("halprof").date("");
    let mut page = rendered(|out| {
        man.render_title(out)?;
        man.render_name_section(out)?;
        man.render_synopsis_section(out)?;
        man.render_description_section(out)?;
        man.render_options_section(out)
    });
    let sections = command.get_subcommands().filter(|verb| verb.get_name() != "help").map(section);
    page.extend(sections);
    page.push_str(&help_text(command, ".SH NOTES"));
    page
}

/// Returns the section of a verb.
fn section(verb: &Command) -> String {
    let name = verb.get_bin_name().unwrap_or_default().to_uppercase();
    let mut shown = verb.clone();
    // The options of every verb are in the first section.
    for argument in EVERYWHERE {
        shown = shown.mut_arg(argument, |it| it.hide(true));
    }
    let man = Man::new(shown);
    let text = rendered(|out| {
        man.render_synopsis_section(out)?;
        man.render_description_section(out)?;
        man.render_options_section(out)
    });
    let lower = text.replace(".SH ", ".SS ").replace(".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n", "");
    let verbs: String = verb.get_subcommands().filter(|verb| verb.get_name() != "help").map(section).collect();
    format!(".SH \"{name}\"\n{lower}{}{verbs}", help_text(verb, ".SS NOTES"))
}

/// Returns the text after the options of a command, in lines as they are.
fn help_text(command: &Command, heading: &str) -> String {
    let Some(help) = command.get_after_help() else { return String::new() };
    let escaped = help.to_string().replace('\\', "\\e").replace('-', "\\-");
    let lines: Vec<String> = escaped
        .lines()
        .map(|line| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() })
        .collect();
    format!("{heading}\n.nf\n{}\n.fi\n", lines.join("\n"))
}

fn rendered(render: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let mut bytes = Vec::new();
    render(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}
