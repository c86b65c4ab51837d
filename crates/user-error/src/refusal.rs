//! What to do about a refusal of the driver, in the terms of the command line.

use halprof::Refusal;
use halprof::text::argument::argument;
use pmu::debug_store::MissingFeature;
use pmu::last_branches::MissingFeature as MissingLastBranches;
use protocol::ErrorCode;

/// What needs no precise records.
const WITHOUT_P: &str = ".\\client record with events that do not end in :p";

/// Returns what to do. Where an option changes what was refused, it is named; the rest is what the library says.
#[must_use]
pub fn remedy(refusal: &Refusal) -> Option<String> {
    with_options(refusal).or_else(|| refusal.remedy())
}

/// Returns the remedies that name options and verbs.
fn with_options(refusal: &Refusal) -> Option<String> {
    let source = &refusal.source;
    let on_processors = || Some(format!("-C with {}", refusal.remedy()?));
    let text = match refusal.cause()? {
        ErrorCode::UnsupportedSource if refusal.header.detail[1] == 1 && refusal.on_other_core_type().is_none() => {
            return on_processors();
        }
        ErrorCode::OtherThread | ErrorCode::NoProcessor | ErrorCode::NoSuchProcessor => return on_processors(),
        ErrorCode::NoSuchCoreType if refusal.header.detail[1] != 0 => return on_processors(),
        ErrorCode::CoreTypeNeeded => {
            format!("{};\n  or -C with CPUs of one core type", refusal.on_each_core_type().join("\n  or "))
        }
        ErrorCode::NoMemory => "fewer sources or fewer processors (-C) at once".to_owned(),
        ErrorCode::NoInterval => format!(".\\client record -e {}", argument(&format!("{source}@INTERVAL"))),
        ErrorCode::RingsTooLarge => "a smaller --ring, or fewer CPUs with -C".to_owned(),
        ErrorCode::BadRing => "--ring with a power of two in that range".to_owned(),
        ErrorCode::BadFrequency => "a lower -F or --budget".to_owned(),
        ErrorCode::NotSampled => {
            ".\\client stat, which needs no interrupt, or by time: .\\client record -e Time".to_owned()
        }
        ErrorCode::ForeignUse => format!("{};\n  or --force, which takes the counter from it", refusal.remedy()?),
        ErrorCode::ApicNotReached => ".\\client stat, which needs no interrupt".to_owned(),
        ErrorCode::InterruptNotEnabled if !refusal.is_hidden_by_kvm() => {
            ".\\client stat, which needs no interrupt".to_owned()
        }
        ErrorCode::NothingSampled => ".\\client record   (starts a session that samples)".to_owned(),
        ErrorCode::PreciseOnly => ".\\client record -e with :p behind the event".to_owned(),
        ErrorCode::NotReadable => ".\\client read, which reads every session".to_owned(),
        ErrorCode::NoDebugStore => match refusal.missing_feature() {
            Some(MissingFeature::NoModes) => "the same without --user and --kernel".to_owned(),
            Some(MissingFeature::NotInInterface | MissingFeature::Errata) => WITHOUT_P.to_owned(),
            Some(MissingFeature::OldMicrocode) => return None,
            _ => return on_processors(),
        },
        ErrorCode::NoLastBranches => match MissingLastBranches::from_number(refusal.header.detail[0]) {
            Some(MissingLastBranches::NoFreeze) => "-j any,u   (branches of user mode)",
            Some(MissingLastBranches::NoKinds) => "-b   (branches of every kind)",
            Some(MissingLastBranches::NotDelivered) => return None,
            _ => "the same without -b, or -g for call stacks",
        }
        .to_owned(),
        ErrorCode::LastBranchesInUse | ErrorCode::IbsInUse => {
            format!("{};\n  or --force, if firmware left it on", refusal.remedy()?)
        }
        ErrorCode::Shadowed => format!(
            "{WITHOUT_P}; or a processor\n  \
             that needs no shadowing   (PowerShell: Get-SpeculationControlSettings)"
        ),
        ErrorCode::BadBuffer if refusal.header.detail == [0, 0] => "--batch with an event that ends in :p".to_owned(),
        ErrorCode::BadBuffer => "--buffer or --batch in that range".to_owned(),
        _ => return None,
    };
    Some(text)
}
