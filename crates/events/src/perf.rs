//! Events of perf that no counter of a core counts.

/// Names, with `*` where others begin so; what they are; and who has their numbers.
const OTHERS: [(&str, &str, &str); 8] = [
    (
        "page-faults faults minor-faults major-faults context-switches cs cpu-migrations migrations alignment-faults \
         emulation-faults cgroup-switches bpf-output dummy",
        "a software event of perf",
        "Windows Performance Recorder, which traces what Windows does",
    ),
    (
        "task-clock duration_time user_time system_time",
        "a software event of perf",
        "cpu-clock, or the elapsed time of .\\client stat",
    ),
    (
        "sched:* syscalls:* raw_syscalls:* block:* irq:* kmem:* net:* probe:* mem:*",
        "a tracepoint of Linux",
        "Windows Performance Recorder, which traces what Windows does",
    ),
    ("power/* cstate_core/* cstate_pkg/* msr/*", "a power event", "a program of the processor's maker"),
    ("uncore_* imc/* amd_df/* amd_l3/* amd_umc*", "an uncore event", "VTune on Intel's processors, uProf on AMD's"),
    ("intel_pt/* intel_bts/*", "a trace", ".\\client branches, or an event with :p"),
    (
        "mem-loads mem-stores ldlat-loads ldlat-stores",
        "an event of perf mem",
        ".\\client mem record, which chooses the processor's",
    ),
    (
        "L1-dcache-* L1-icache-* LLC-* dTLB-* iTLB-* node-* branch-load* stalled-cycles-* bus-cycles slots \
         topdown-*",
        "a name of perf that stands for other events on each processor",
        "the maker's name: .\\client list PATTERN, with a pattern such as l1, llc, tlb, stall or slots",
    ),
];

/// Returns what a name of perf is that halprof has no event for, and who has its numbers; `None` for any other name.
#[must_use]
pub fn other_of_perf(name: &str) -> Option<(&'static str, &'static str)> {
    let begins = |known: &str| name.get(..known.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(known));
    let is_it = |known: &str| known.strip_suffix('*').map_or_else(|| known.eq_ignore_ascii_case(name), begins);
    let found = OTHERS.iter().find(|(names, ..)| names.split(' ').any(is_it));
    found.map(|(_, what, instead)| (*what, *instead))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Generic, tables};

    #[test]
    fn what_no_counter_counts_is_told_from_the_events_of_the_makers() {
        for (name, what) in [
            ("page-faults", "a software event of perf"),
            ("CS", "a software event of perf"),
            ("task-clock", "a software event of perf"),
            ("sched:sched_switch", "a tracepoint of Linux"),
            ("power/energy-pkg/", "a power event"),
            ("uncore_imc_0/cas_count_read/", "an uncore event"),
            ("intel_pt//", "a trace"),
            ("mem-loads", "an event of perf mem"),
            ("L1-dcache-load-misses", "a name of perf that stands for other events on each processor"),
        ] {
            assert_eq!(other_of_perf(name).map(|(found, _)| found), Some(what), "{name}");
        }
        let generic = Generic::ALL.iter().flat_map(|generic| generic.names()).map(|name| (*name).to_owned());
        let known = generic.chain(tables().flat_map(|table| table.events().map(|event| event.name)));
        let taken: Vec<String> = known.filter(|name| other_of_perf(name).is_some()).collect();
        assert_eq!(taken, [""; 0]);
    }
}
