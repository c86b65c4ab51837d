//! The options of `record` for last branches (LBR).

use clap::Args;
use protocol::last_branches::{
    ANY, CONDITIONAL, DIRECT_CALL, DIRECT_JUMP, FAR, INDIRECT_CALL, INDIRECT_JUMP, KERNEL, MODES, RETURN, USER,
};

/// The words of `-j`: those of perf, and two for the kinds that it has no word for.
const WORDS: [(&str, u32); 11] = [
    ("any", ANY),
    ("any_call", DIRECT_CALL | INDIRECT_CALL),
    ("any_ret", RETURN),
    ("ind_call", INDIRECT_CALL),
    ("ind_jmp", INDIRECT_JUMP),
    ("call", DIRECT_CALL),
    ("cond", CONDITIONAL),
    ("jmp", DIRECT_JUMP),
    ("far", FAR),
    ("u", USER),
    ("k", KERNEL),
];

/// Last branches.
#[derive(Debug, Clone, Default, Args)]
pub struct LastBranchArgs {
    /// Record the last branches before each sample: -j any
    #[arg(short = 'b', long)]
    pub branch_any: bool,
    /// Record only some of them, such as any,u or any_call,any_ret
    #[arg(short = 'j', long, value_name = "A,B,...", value_parser = filter, conflicts_with = "branch_any")]
    pub branch_filter: Option<u32>,
}

impl LastBranchArgs {
    /// Returns the choice of all branches in user mode.
    pub const fn of_user_mode() -> Self {
        Self { branch_any: false, branch_filter: Some(USER | ANY) }
    }

    /// Returns the bits of [`protocol::last_branches`]; 0 for none.
    pub fn bits(&self) -> u32 {
        self.branch_filter.unwrap_or(if self.branch_any { MODES | ANY } else { 0 })
    }
}

/// Parses words with commas. As with perf, modes alone mean branches of any kind, and kinds alone mean both modes.
fn filter(text: &str) -> Result<u32, String> {
    let bits = text.split(',').try_fold(0, |bits, word| {
        let known = WORDS.iter().find(|(name, _)| *name == word);
        known.map(|(_, more)| bits | more).ok_or_else(|| {
            let names: Vec<&str> = WORDS.iter().map(|(name, _)| *name).collect();
            format!("no branches have the name \"{word}\": {}", names.join(", "))
        })
    })?;
    let or_all = |bits: u32, all: u32| if bits & all == 0 { all } else { bits & all };
    Ok(or_all(bits, MODES) | or_all(bits, ANY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_added_and_what_is_not_named_is_not_restricted() {
        for (text, bits) in [
            ("any", MODES | ANY),
            ("any,u", USER | ANY),
            ("u", USER | ANY),
            ("k,u", MODES | ANY),
            ("any_call,any_ret,k", KERNEL | DIRECT_CALL | INDIRECT_CALL | RETURN),
            ("ind_call,ind_jmp", MODES | INDIRECT_CALL | INDIRECT_JUMP),
            ("call,cond", MODES | DIRECT_CALL | CONDITIONAL),
            ("jmp,far,u", USER | DIRECT_JUMP | FAR),
        ] {
            assert_eq!(filter(text), Ok(bits), "{text}");
        }
    }

    #[test]
    fn an_unknown_word_is_refused_with_the_known_ones() {
        for (text, word) in [("any,hv", "hv"), ("", ""), ("any,", ""), ("ANY", "ANY")] {
            let names = "any, any_call, any_ret, ind_call, ind_jmp, call, cond, jmp, far, u, k";
            assert_eq!(filter(text), Err(format!("no branches have the name \"{word}\": {names}")));
        }
    }

    #[test]
    fn each_kind_has_a_word() {
        let kinds = |word: &str| filter(word).unwrap() & ANY;
        let names = ["any_call", "any_ret", "ind_jmp", "cond", "jmp", "far"];
        assert_eq!(names.into_iter().map(kinds).fold(0, |all, one| all | one), ANY);
    }
}
