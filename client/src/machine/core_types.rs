//! Tables and lists of the core types of a hybrid.

use halprof::core_types::CoreTypeInfo;
use halprof::text::processors::{named, ranges};

use terminal::format::table;

/// Formats the counters of each core type. The texts are the columns of `info`.
pub fn core_types_table(core_types: &[CoreTypeInfo]) -> String {
    let row = |one: &CoreTypeInfo| {
        let general = one.counters.saturating_sub(one.fixed_counters);
        vec![
            one.name.clone(),
            ranges(one.processors.iter().copied()),
            general.to_string(),
            one.counter_width.to_string(),
            one.fixed_counters.to_string(),
            one.fixed_counter_width.to_string(),
            one.pmu_version.to_string(),
        ]
    };
    let headings = ["Core type", "CPU", "General", "Bits", "Fixed", "Bits", "PMU version"];
    table(&headings, &headings[2..], &core_types.iter().map(row).collect::<Vec<_>>())
}

/// Formats the core types with their processors: `cpu_core is CPUs 0-3, cpu_atom CPUs 4-7`.
pub fn with_processors<'a>(core_types: impl IntoIterator<Item = (&'a str, Vec<u32>)>) -> String {
    let mut text = String::new();
    for (name, processors) in core_types {
        let lead = if text.is_empty() { format!("{name} is ") } else { format!(", {name} ") };
        text.push_str(&lead);
        text.push_str(&named(processors));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processors_of_each_core_type_are_named() {
        assert_eq!(
            with_processors([("cpu_core", vec![0, 2]), ("cpu_atom", vec![1])]),
            "cpu_core is CPUs 0,2, cpu_atom CPU 1"
        );
    }
}
