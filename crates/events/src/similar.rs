//! Names that are similar to an unknown one, by spelling and by words.

/// The least similarity of a suggestion.
const LEAST: f64 = 0.8;

/// The least similarity of a name that was meant and misspelled.
const MISSPELLED: f64 = 0.96;

/// The least similarity of two spellings of a word.
const ALIKE: f64 = 0.9;

/// Share of a name's words that are wanted, in the similarity by words.
const WEIGHT_OF_REST: f64 = 0.25;

/// What users call an event whose names have other words: the words, and the names in the order of preference.
const CONCEPTS: [(&[&str], &[&str]); 13] = [
    (&["instruction"], &["instructions", "TotalIssues", "INST_RETIRED.ANY", "RETIRED_INSTRUCTIONS"]),
    (&["cycle"], &["cycles", "TotalCycles", "CPU_CLK_UNHALTED.THREAD", "CYCLES_NOT_IN_HALT"]),
    (&["clock"], &["cycles", "TotalCycles", "CPU_CLK_UNHALTED.THREAD", "CYCLES_NOT_IN_HALT"]),
    (
        &["branch", "misprediction"],
        &[
            "branch-misses",
            "BranchMispredictions",
            "BR_MISP_RETIRED.ALL_BRANCHES",
            "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED",
        ],
    ),
    (&["llc", "miss"], &["cache-misses", "LLCMisses", "CacheMisses", "LONGEST_LAT_CACHE.MISS"]),
    (&["time"], &["cpu-clock", "Time"]),
    // Names of one maker, for the processors of the other.
    (&["mem", "load", "l3", "miss"], &LOADS_FROM_MEMORY),
    (&["mem", "load", "uop", "l3", "miss"], &LOADS_FROM_MEMORY),
    (&["clk", "unhalted", "thread"], &["cycles", "CYCLES_NOT_IN_HALT"]),
    (&["cycle", "not", "in", "halt"], &["cycles", "CPU_CLK_UNHALTED.THREAD"]),
    (&["inst", "branch"], &["branches", "RETIRED_BRANCH_INSTRUCTIONS", "BR_INST_RETIRED.ALL_BRANCHES"]),
    (&["misp", "branch"], &["branch-misses", "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED"]),
    (&["longest", "lat", "cache", "miss"], &["cache-misses"]),
];

/// Loads that no cache served: by Intel's names, and the fills of AMD's L1 data cache from memory.
const LOADS_FROM_MEMORY: [&str; 5] = [
    "MEM_LOAD_RETIRED.L3_MISS",
    "MEM_LOAD_UOPS_RETIRED.L3_MISS",
    "DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.DRAM_IO_NEAR",
    "LS_DMND_FILLS_FROM_SYS.DRAM_IO_NEAR",
    "cache-misses",
];

/// Words that do not narrow what a user looks for.
const NEUTRAL: [&str; 8] = ["total", "retired", "all", "any", "count", "event", "number", "cpu"];

/// Returns the names that are most similar to an unknown one, best first, at most `most`.
#[must_use]
pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str> + Clone, most: usize) -> Vec<String> {
    let wanted_words = words(wanted);
    let (mut found, mut has_concept): (Vec<String>, bool) = (Vec::new(), false);
    let plain = joined(&wanted_words);
    // A misspelled name comes before what its words mean.
    let mut misspelled: Vec<(f64, &str)> = names
        .clone()
        .map(|name| (strsim::jaro_winkler(&plain, &joined(&words(name))), name))
        .filter(|(score, _)| *score >= MISSPELLED)
        .collect();
    misspelled.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    found.extend(misspelled.first().map(|(_, name)| (*name).to_owned()));
    let narrow: Vec<&String> = wanted_words.iter().filter(|word| !NEUTRAL.contains(&word.as_str())).collect();
    for (concept, preferred) in CONCEPTS {
        // The words of one event are alike only if they are the same.
        let least = if concept.len() > 2 { 1.0 } else { ALIKE };
        let is_it = !narrow.is_empty()
            && narrow.len() == concept.len()
            && concept.iter().all(|word| narrow.iter().any(|narrow| similar_words(narrow, word) >= least));
        if is_it {
            for name in preferred.iter().filter(|name| names.clone().any(|known| known == **name)) {
                if !found.iter().any(|known| known == name) {
                    found.push((*name).to_owned());
                }
            }
            has_concept = true;
        }
    }
    let mut scored: Vec<(f64, &str)> = names
        .filter(|name| !found.iter().any(|known| known == name))
        .map(|name| (similarity(&plain, &wanted_words, name), name))
        .filter(|(score, _)| *score >= LEAST)
        .collect();
    scored.sort_by(|(one, name), (other, other_name)| {
        other.total_cmp(one).then(name.len().cmp(&other_name.len())).then(name.cmp(other_name))
    });
    // Names that share a word with a known concept are other events.
    let others = if has_concept { 0 } else { usize::MAX };
    found.extend(scored.into_iter().take(others).map(|(_, name)| name.to_owned()));
    found.truncate(most);
    found
}

fn similarity(plain: &str, wanted: &[String], name: &str) -> f64 {
    let words = words(name);
    let spelling = strsim::jaro_winkler(plain, &joined(&words));
    let best = |word: &String| words.iter().map(|other| similar_words(word, other)).fold(0.0, f64::max);
    let covered: f64 = wanted.iter().map(best).sum();
    let (wanted, all) = (small(wanted.len()), small(words.len()));
    if wanted == 0.0 || all == 0.0 {
        return 0.0;
    }
    let by_words = (covered / wanted) * (1.0 - WEIGHT_OF_REST) + (covered / all).min(1.0) * WEIGHT_OF_REST;
    spelling.max(by_words)
}

fn small(number: usize) -> f64 {
    f64::from(u16::try_from(number).unwrap_or(u16::MAX))
}

/// Returns the similarity of two words; an abbreviation is almost the word.
fn similar_words(one: &str, other: &str) -> f64 {
    const SHORTEST: usize = 3;
    const ABBREVIATED: f64 = 0.95;
    if one == other {
        return 1.0;
    }
    if one.len().min(other.len()) >= SHORTEST && (one.starts_with(other) || other.starts_with(one)) {
        return ABBREVIATED;
    }
    let spelling = strsim::jaro_winkler(one, other);
    if spelling >= ALIKE && one.len().min(other.len()) > SHORTEST { spelling } else { 0.0 }
}

fn joined(words: &[String]) -> String {
    words.concat()
}

/// Splits a name into words in lower case, without the plural.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if !letter.is_ascii_alphanumeric() || was_lower && letter.is_ascii_uppercase() {
            words.push(String::new());
        }
        was_lower = letter.is_ascii_lowercase();
        if let Some(word) = words.last_mut().filter(|_| letter.is_ascii_alphanumeric()) {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words.into_iter().map(singular).filter(|word| !word.is_empty() && word != "profile").collect()
}

fn singular(word: String) -> String {
    const LONG: usize = 4;
    let plain = match word.strip_suffix("es") {
        Some(rest) if rest.ends_with("ch") || rest.ends_with("ss") => rest,
        _ => match word.strip_suffix('s') {
            Some(rest) if !rest.ends_with('s') && word.len() > LONG => rest,
            _ => return word,
        },
    };
    plain.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 10] = [
        "cycles",
        "TotalCycles",
        "FpInstructions",
        "TotalIssues",
        "INST_RETIRED.ANY",
        "BranchInstructions",
        "BranchMispredictions",
        "MEM_LOAD_RETIRED.L3_MISS",
        "MEM_LOAD_RETIRED.L2_MISS",
        "L1D.REPLACEMENT",
    ];

    fn near(wanted: &str) -> Vec<String> {
        nearest(wanted, NAMES.into_iter(), 3)
    }

    #[test]
    fn a_word_suggests_the_event_that_it_means() {
        for wanted in ["instruction", "Instructions", "instr", "instructions_retired", "instructons"] {
            assert_eq!(near(wanted), ["TotalIssues", "INST_RETIRED.ANY"], "{wanted}");
        }
    }

    #[test]
    fn a_misspelling_suggests_the_name() {
        for (wanted, name) in [
            ("MEM_LOAD_RETIRED.L3_MIS", "MEM_LOAD_RETIRED.L3_MISS"),
            ("mem_load_retired_l3_miss", "MEM_LOAD_RETIRED.L3_MISS"),
            ("l3_miss", "MEM_LOAD_RETIRED.L3_MISS"),
            ("L1D.REPLACEMNT", "L1D.REPLACEMENT"),
            ("ProfileTotalIsues", "TotalIssues"),
            ("TotalCycels", "TotalCycles"),
        ] {
            assert_eq!(near(wanted).first().map(String::as_str), Some(name), "{wanted}");
        }
        assert!(near("xyzzy").is_empty() && near("").is_empty());
    }
}
