//! `diagnose`: what the driver would do on a processor, according to its CPUID; or the registers of this machine.

mod live;

use std::fmt::Write as _;

use halprof::core_types::numbers;
use halprof::text::processors::ranges;
use halprof::text::support;
use halprof::text::unavailable::Unavailable;
use pmu::core_type::is_hybrid;
use pmu::hal::SourceInformation;
use pmu::interface::emon::Emon;
use pmu::{CoreType, Cpuid, Hal, Hypervisor, ProfileInterface, Support};
use serde::Serialize;
use x86_defs::cpuid::leaf;

use crate::cli::DiagnoseArgs;
use crate::machine::dump;
use crate::machine::workarounds::{self, AppliedWorkaround};
use crate::verb::info::{counters, windows10};
use crate::verb::list;
use counts::cpuid::{self, Leaf23, LeafA};
use counts::encoding::unknown_model;
use counts::movement::scope_under;
use counts::processor_identity::ProcessorIdentity;
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::{self, hexadecimal, properties, table};
use user_error::{Error, OutOfMemory};

/// A source, as `--json` shows it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SourceDiagnosis {
    id: Option<u32>,
    name: &'static str,
    select: String,
    supported: bool,
    reason: Option<String>,
    /// The counters that can count it; empty if a timer counts.
    counters: Vec<u32>,
    /// The counters that record it precisely, if the processor has PEBS.
    precise_counters: Vec<u32>,
    #[serde(skip)]
    support: u32,
    #[serde(skip)]
    raw_select: u64,
}

impl From<SourceInformation> for SourceDiagnosis {
    fn from(SourceInformation { source, support, counters, precise, .. }: SourceInformation) -> Self {
        let number = support as u32;
        let supported = support::is_supported(number);
        Self {
            id: source.source.number(),
            name: source.name,
            select: format::select(source.select),
            supported,
            reason: (!supported).then(|| support::sentence(number)),
            counters: numbers(counters.bits()),
            precise_counters: numbers(precise.bits()),
            support: number,
            raw_select: source.select,
        }
    }
}

/// Reasons for which a source is not shown.
const HIDDEN: [Support; 2] = [Support::NotOnThisFamily, Support::ModelNotKnown];

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Diagnosis {
    windows10: &'static str,
    interface: &'static str,
    reason: String,
    reason_number: u32,
    /// Name of the dump file, or "this processor".
    cpuid: String,
    #[serde(flatten)]
    identity: ProcessorIdentity,
    hypervisor: Option<String>,
    hypervisor_number: u32,
    /// Why there are no counters, and what makes them available.
    #[serde(rename = "blocker")]
    unavailable: Option<Unavailable>,
    leaf_a: Option<LeafA>,
    leaf_23: Option<Leaf23>,
    /// Core type by leaf 0x1A.
    core_type: Option<&'static str>,
    /// Whether leaf 7 says that the machine has processors of two core types.
    hybrid: bool,
    counters: u8,
    fixed_counters: u8,
    width: u8,
    /// Errata and traits of the processor that the driver works around.
    workarounds: Vec<AppliedWorkaround>,
    sources: Vec<SourceDiagnosis>,
    /// Number of the counters that CPUID hides.
    #[serde(skip)]
    hidden: u32,
    /// What is said of a model that this version does not know.
    #[serde(skip)]
    unknown_model: Option<&'static str>,
}

impl Document for Diagnosis {
    const SCHEMA: &'static str = "halprof.diagnose/1";
}

impl Diagnosis {
    fn new(cpuid: String, cpu: &impl Cpuid) -> Result<Self, Error> {
        let hal = Hal::new(cpu, 1).map_err(|_| OutOfMemory)?;
        let (selection, interface) = (hal.boot.selection, hal.interface());
        let (reason_number, hypervisor_number) = (selection.reason as u32, Hypervisor::of(cpu) as u32);
        let identity = cpuid::identity(cpu);
        let hypervisor = cpuid::hypervisor(cpu);
        let unavailable = hypervisor.and_then(|vendor| Unavailable::of_emulator(&vendor)).or_else(|| {
            Unavailable::of(selection.interface as u32, reason_number, hypervisor_number, &identity.vendor)
        });
        Ok(Self {
            windows10: selection.windows10.name(),
            interface: selection.interface.name(),
            reason: selection.reason.to_string(),
            reason_number,
            cpuid,
            identity,
            hypervisor: hypervisor.map(|vendor| format::text(&vendor)),
            hypervisor_number,
            unavailable,
            leaf_a: cpuid::leaf_a(cpu),
            leaf_23: cpuid::leaf_23(cpu),
            core_type: CoreType::of(cpu).map(CoreType::name),
            hybrid: is_hybrid(cpu),
            counters: interface.countable(),
            fixed_counters: interface.fixed_counters(),
            width: interface.width(),
            workarounds: workarounds::all(hal.boot.workarounds),
            sources: hal.source_list().map(SourceDiagnosis::from).collect(),
            hidden: Emon::new(cpu).hidden(cpu).len(),
            unknown_model: unknown_model(selection.interface as u32, cpu.cpuid(leaf::FEATURES, 0).eax),
        })
    }
}

#[cfg(test)]
pub use live::Live;

pub fn run(args: &DiagnoseArgs, context: &mut Context) -> Result<(), Error> {
    if args.cpuid.is_none() {
        context.check_processor()?;
    }
    if args.live {
        return live::run(&args.format, context);
    }
    let diagnosis = match &args.cpuid {
        Some(path) => {
            let dump = dump::read(path, context.input)?;
            Diagnosis::new(dump::name(path), &cpuid::of_dump(&dump))?
        }
        None => Diagnosis::new("this processor".to_owned(), &cpuid::this_processor())?,
    };
    if args.format.json {
        return context.json(&diagnosis);
    }
    context.say(&rows(&diagnosis))?;
    context.say(&format!("\n{}\n", sources(&diagnosis)))?;
    context.say(&summary(&diagnosis))?;
    list::footnotes(shown(&diagnosis).map(|source| source.support), context)
}

fn rows(diagnosis: &Diagnosis) -> String {
    let [vendor, processor, signature] = diagnosis.identity.rows();
    let mut hypervisor = match diagnosis.hypervisor.as_deref() {
        None => "none",
        Some("") => "one without a name",
        Some(vendor) => vendor,
    }
    .to_owned();
    match Hypervisor::from_number(diagnosis.hypervisor_number) {
        Some(Hypervisor::Root) => hypervisor.push_str("; this Windows is its root partition"),
        Some(Hypervisor::Kvm) => hypervisor.push_str("; in fact KVM with Hyper-V enlightenments"),
        _ => {}
    }
    let number = diagnosis.counters.into();
    let mut rows = vec![
        ("CPUID of", diagnosis.cpuid.clone()),
        ("Interface", diagnosis.interface.to_owned()),
        ("Reason", diagnosis.reason.clone()),
        ("Windows 10 HAL", windows10(diagnosis.windows10, diagnosis.interface)),
        ("Counters", counters(number, number, diagnosis.fixed_counters.into(), diagnosis.width.into())),
        vendor,
        processor,
        signature,
        ("Hypervisor", hypervisor),
        ("CPUID leaf 0xA", diagnosis.leaf_a.as_ref().map_or_else(|| "absent or zero".to_owned(), leaf_a)),
    ];
    if let Some(leaf) = &diagnosis.leaf_23 {
        rows.push(("CPUID leaf 0x23", leaf_23(leaf)));
    }
    if diagnosis.hidden > 0 {
        let hidden = diagnosis.hidden;
        rows.push(("Not in CPUID", format!("{hidden} of them, and slots; the driver tries these before it uses them")));
    }
    if let Some(core_type) = diagnosis.core_type.filter(|_| diagnosis.hybrid) {
        rows.push(("Core type", format!("{core_type}; the machine also has processors of the other type")));
    }
    if let Some(text) = diagnosis.unknown_model {
        rows.push(("Model", text.to_owned()));
    }
    rows.extend(workarounds::rows(&diagnosis.workarounds));
    let scope = diagnosis.hypervisor.as_deref().and_then(|vendor| scope_under(vendor.as_bytes()));
    rows.extend(scope.map(|note| ("VMware", note.to_owned())));
    properties(&rows)
}

fn leaf_23(leaf: &Leaf23) -> String {
    let mut parts = Vec::new();
    if !leaf.counters.is_empty() {
        let fixed = ranges(leaf.fixed_counters.iter().copied());
        parts.push(format!("counters {}, fixed {fixed}", ranges(leaf.counters.iter().copied())));
    }
    parts.extend(leaf.umask2.then(|| "16-bit unit masks".to_owned()));
    parts.extend(leaf.eq.then(|| "eq".to_owned()));
    if parts.is_empty() { "no counters".to_owned() } else { parts.join(", ") }
}

fn leaf_a(leaf: &LeafA) -> String {
    let LeafA { version, counters, width, events, ebx } = leaf;
    let ebx = hexadecimal((*ebx).into());
    format!("version {version}, {counters} counters, {width} bits, {events} events, EBX {ebx}")
}

/// Returns the sources to show. The sources of other families, or of other models, are many, and only `--json` has
/// them.
fn shown(diagnosis: &Diagnosis) -> impl Iterator<Item = &SourceDiagnosis> {
    let hidden = HIDDEN.map(|support| support as u32);
    diagnosis.sources.iter().filter(move |source| !hidden.contains(&source.support))
}

/// Formats the table. The longest names leave no space for a longer last heading.
fn sources(diagnosis: &Diagnosis) -> String {
    let rows: Vec<Vec<String>> = shown(diagnosis)
        .map(|source| {
            let select = hexadecimal(source.raw_select);
            vec![
                source.id.map(|id| id.to_string()).unwrap_or_default(),
                source.name.to_owned(),
                select,
                support::word(source.support).to_owned(),
            ]
        })
        .collect();
    table(&["Id", "Name", "Select", "Usable"], &["Id"], &rows)
}

fn summary(diagnosis: &Diagnosis) -> String {
    if let Some(unavailable) = &diagnosis.unavailable {
        let counted = match diagnosis.counters {
            0 => "no event can be counted".to_owned(),
            number => format!("CPUID promises {number} counters, and none of them counts"),
        };
        return format!("Time is served by a timer; {counted}.\n\n{}", unavailable.paragraph());
    }
    let usable = diagnosis.sources.iter().filter(|source| source.supported).count();
    let mut all = format!("{usable} of {} sources can be used; Time is served by a timer.", diagnosis.sources.len());
    let hidden = diagnosis.sources.len().saturating_sub(shown(diagnosis).count());
    if hidden > 0 {
        let is_known = diagnosis.sources.iter().all(|source| source.support != Support::ModelNotKnown as u32);
        let why = if is_known { "not of this processor's family" } else { "not known for this processor's model" };
        let _ = write!(all, "\n{hidden} are {why}: .\\client diagnose --json");
    }
    if diagnosis.hypervisor.is_none() {
        return all;
    }
    format!("{all}\nCPUID does not show whether the hypervisor really has these counters.")
}
