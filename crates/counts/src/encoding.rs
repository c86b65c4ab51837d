//! How an event is encoded on each kind of cores of a processor, and which counters count it.

use std::collections::BTreeSet;

use events::import::Imported;
use events::{CoreTable, Counters, Event, Generic, Target};
use halprof::event::raw_event::{self, Notation, term_of};
use halprof::event::vendor_event::{self, CannotCount};
use halprof::event::{EventName, SourceName, event_cache};
use halprof::source::is_named;
use halprof::text::support;
use pmu::errata::named_sources::{self, Cores, Erratum};
use pmu::extra::Extra;
use pmu::hal::SourceInformation;
use pmu::interface::emon::{Microarchitecture, PmuCapabilities};
use pmu::{CoreType, Cpuid, Hal, Kind, ProcessorIndex, Source};
use protocol::modes;
use raw_cpuid::CpuIdResult;
use serde::{Serialize, Serializer};
use x86_defs::cpuid::{AmdProcessor, CORE_TYPE_ATOM, Signature, leaf};

use crate::{cpuid, descriptions};
use terminal::format;
use user_error::{Error, OutOfMemory};

/// Both mode bits of an event select register, and the lower one.
const BOTH_MODES: u64 = 3 << USER_BIT;
const USER_BIT: u32 = 16;

/// What is said of an Intel processor that no table is for.
pub const UNKNOWN_MODEL: &str = "this version does not know the model; CPUID alone tells its counters";

/// What `info` and `diagnose` say of a model that no table is for, by its interface and signature.
#[must_use]
pub fn unknown_model(interface: u32, signature: u32) -> Option<&'static str> {
    let signature = Signature::from_bits(signature);
    if interface == Kind::Emon as u32 && Microarchitecture::is_unknown_model(signature) {
        Some("unknown to this version: its counters are those of CPUID")
    } else if interface == Kind::Amd64 as u32 && AmdProcessor::of(signature).is_none() {
        Some("unknown to this version: cycles, instructions and branches only")
    } else {
        None
    }
}

/// A counter of a processor: a number, or `F` and the number of a fixed counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CounterName {
    /// A general counter.
    General(u8),
    /// A fixed counter.
    Fixed(u8),
}

impl Serialize for CounterName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::General(number) => serializer.serialize_u8(*number),
            Self::Fixed(number) => serializer.collect_str(&format_args!("F{number}")),
        }
    }
}

#[cfg(feature = "schemars")]
impl schemars::JsonSchema for CounterName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CounterName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A counter: a number, or F and the number of a fixed counter.",
            "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": "^F[0-9]+$" }],
        })
    }
}

/// A second register that an event needs, as `--json` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct ExtraRegister {
    /// Its address.
    pub msr: String,
    /// Its value.
    pub value: String,
}

/// An event on a kind of cores, as `--json` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct CoreEncoding {
    /// The kind of cores: the name of their PMU in perf.
    pub core_type: String,
    /// The event.
    pub event: String,
    /// The event select register without interrupt and enable bits; `None` if the cores have no such event.
    pub select: Option<String>,
    /// The second register.
    pub extra: Option<ExtraRegister>,
    /// The counters that count it.
    pub counters: Vec<CounterName>,
    /// The counters that record it precisely, if the processor has PEBS.
    pub pebs_counters: Vec<CounterName>,
    /// Why it cannot be counted.
    pub error: Option<String>,
    /// Numbers of the errata that make its counts wrong.
    pub errata: Vec<&'static str>,
    /// Why the driver cannot record it, although the processor can.
    #[serde(skip)]
    pub not_recorded: Option<String>,
    /// Advice about the event.
    #[serde(skip)]
    pub note: Option<String>,
    /// The maker's description, if it is built in or was imported.
    #[serde(skip)]
    pub description: Option<String>,
}

impl CoreEncoding {
    fn without_event(core_type: &str, name: &str, error: String) -> Self {
        Self {
            core_type: core_type.to_owned(),
            event: name.to_owned(),
            select: None,
            extra: None,
            counters: Vec::new(),
            pebs_counters: Vec::new(),
            error: Some(error),
            errata: Vec::new(),
            not_recorded: None,
            note: None,
            description: None,
        }
    }
}

/// A processor with the core type of another processor of the same machine. Its leaf 0xA is that of the first.
struct OtherCore<'a, C> {
    cpu: &'a C,
    leaf_1a: u32,
}

impl<C: Cpuid> Cpuid for OtherCore<'_, C> {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let found = self.cpu.cpuid(leaf, subleaf);
        match leaf {
            leaf::NATIVE_MODEL => CpuIdResult { eax: self.leaf_1a, ..found },
            leaf::VENDOR => CpuIdResult { eax: found.eax.max(leaf::NATIVE_MODEL), ..found },
            _ => found,
        }
    }
}

/// Encodes an event for each kind of cores of a processor. Empty if it has no cores of the type that the event names.
///
/// # Errors
/// If the processor does not have the event.
pub fn encode<C: Cpuid>(
    event: &EventName,
    cpu: &C,
    tables: &[CoreTable],
    imported: Option<&Imported>,
) -> Result<Vec<CoreEncoding>, Error> {
    let wanted = CoreType::from_number(event.source.core_type());
    if !pmu::core_type::is_hybrid(cpu) {
        let only = Core { name: "cpu", type_number: 0, table: tables.first(), imported, cpu };
        return if wanted.is_none() { Ok(vec![only.encode(event)?]) } else { Ok(Vec::new()) };
    }
    let number = |table: &CoreTable| table.core_type.map_or(0, |core_type| core_type as u32);
    let known = tables.iter().map(|table| (number(table), vendor_event::cores(*table), Some(table)));
    // Those of an unknown model have the events of the profile interface.
    let unknown = CoreType::ALL.into_iter().filter(|_| tables.is_empty()).map(|one| (one.number(), one.name(), None));
    let is_wanted = |number: u32| wanted.is_none_or(|wanted| wanted.number() == number);
    let mut encodings = Vec::new();
    for (type_number, name, table) in known.chain(unknown).filter(|(number, ..)| is_wanted(*number)) {
        let native_model = native_model(cpu, type_number, table.map_or(0, |table| table.native_model));
        let cpu = &OtherCore { cpu, leaf_1a: type_number << 24 | native_model };
        encodings.push(Core { name, type_number, table, imported, cpu }.encode(event)?);
    }
    Ok(encodings)
}

/// Returns the native model of cores: that of the processor if it is one of them.
fn native_model(cpu: &impl Cpuid, core_type: u32, rarer: u8) -> u32 {
    /// A native model that stands for the usual kind of a core type.
    const USUAL: u32 = 3;
    let found = cpu.cpuid(leaf::NATIVE_MODEL, 0).eax;
    match rarer {
        0 if found >> 24 == core_type && found & 0xFF_FFFF != 2 => found & 0xFF_FFFF,
        0 => USUAL,
        rarer => rarer.into(),
    }
}

/// A kind of cores.
struct Core<'a, C> {
    name: &'static str,
    /// Number of the core type, or 0.
    type_number: u32,
    table: Option<&'a CoreTable>,
    imported: Option<&'a Imported>,
    cpu: &'a C,
}

impl<C: Cpuid> Core<'_, C> {
    fn encode(&self, event: &EventName) -> Result<CoreEncoding, Error> {
        let hal = Hal::new(self.cpu, 1).map_err(|_| OutOfMemory)?;
        let found = self.find(&event.source, &hal);
        let mut encoding =
            found.unwrap_or_else(|error| CoreEncoding::without_event(self.name, &shown(&event.source), error));
        if let (Some(select), false) = (&mut encoding.select, event.modes & modes::BOTH == modes::BOTH) {
            let bits = u64::from_str_radix(select.trim_start_matches("0x"), 16).unwrap_or_default();
            *select = format::select(bits & !BOTH_MODES | u64::from(event.modes & modes::BOTH) << USER_BIT);
        }
        let lost = self.lost_in(event.modes & modes::BOTH, hal.boot.selection.interface);
        let is_allowed = |counter: &CounterName| match counter {
            CounterName::General(number) if lost >> number & 1 == 1 => false,
            CounterName::General(number) | CounterName::Fixed(number) => {
                event.counters == 0 || event.counters >> (number & 31) & 1 == 1
            }
        };
        encoding.counters.retain(is_allowed);
        encoding.pebs_counters.retain(is_allowed);
        let is_precise = event.modes & modes::PRECISE != 0;
        if encoding.not_recorded.is_some() {
            encoding.pebs_counters.clear();
        }
        if let Some(select) = &encoding.select {
            let interface = hal.boot.selection.interface;
            if encoding.note.is_none()
                && interface == Kind::Emon
                && Microarchitecture::is_unknown_model(self.signature())
            {
                encoding.note = Some(UNKNOWN_MODEL.to_owned());
            }
            let is_of_hal = hal.source_list().any(|known| known.source.name == encoding.event);
            encoding.errata = self.errata(select, &encoding.event, is_of_hal, interface);
        }
        if encoding.error.is_none() && is_precise && encoding.pebs_counters.is_empty() {
            let none = || "no counter of this processor records it precisely".to_owned();
            encoding.error = Some(encoding.not_recorded.clone().unwrap_or_else(none));
        }
        // Without a select it is time, which needs no counter.
        if encoding.error.is_none() && encoding.select.is_some() && encoding.counters.is_empty() {
            encoding.error = Some("this processor has no counter that counts it".to_owned());
        }
        Ok(encoding)
    }

    /// Returns the general counters that count nothing in these modes. No modes are both.
    fn lost_in(&self, modes: u32, interface: Kind) -> u32 {
        if interface != Kind::Emon {
            return 0;
        }
        let capabilities = PmuCapabilities::of(self.cpu);
        let in_modes = capabilities.general_in(modes & modes::USER != 0, modes & modes::KERNEL != 0);
        u32::from(capabilities.general() & !in_modes)
    }

    fn signature(&self) -> Signature {
        Signature::from_bits(self.cpu.cpuid(leaf::FEATURES, 0).eax)
    }

    /// Returns the numbers of the errata that make these cores count an event wrongly. The makers' files do not know
    /// the events of the HAL, which a fixed counter may count.
    fn errata(&self, select: &str, event: &str, is_of_hal: bool, interface: Kind) -> Vec<&'static str> {
        let select = u64::from_str_radix(select.trim_start_matches("0x"), 16).unwrap_or_default();
        let is_of_these = |erratum: &&Erratum| {
            erratum.interface() == interface
                && (erratum.cores == Cores::All || self.type_number == u32::from(CORE_TYPE_ATOM))
                && erratum.concerns(select)
        };
        let of_select = named_sources::of_processor(self.signature()).filter(is_of_these).map(|erratum| erratum.number);
        let of_makers = (!is_of_hal).then_some(select);
        let of_event = self.table.into_iter().flat_map(|one| events::errata(one.table, event, of_makers));
        of_select.chain(of_event).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the encoding of an event, or why there is none.
    fn find<E>(&self, wanted: &SourceName, hal: &Hal<E>) -> Result<CoreEncoding, String> {
        let (name, value) = match wanted.source() {
            SourceName::Raw(event) => return Ok(self.of_encoded(*event, hal)),
            SourceName::Name(name) => (name.as_str(), None),
            SourceName::Valued(name, value) => (name.as_str(), Some(*value)),
            SourceName::Number(_) | SourceName::OnCoreType(..) => ("", None),
        };
        // Two sources can have one number: the supported one is preferred, as in the driver's list.
        let named = hal.source_list().filter(|known| is_named(wanted, known.source.source.0, known.source.name));
        if let Some(found) = named.max_by_key(|known| known.support == pmu::Support::Supported) {
            return Ok(self.of_information(&found, found.source.name));
        }
        if let Some(generic) = Generic::from_name(name) {
            return match value {
                None => self.of_generic(generic, hal),
                Some(value) => Err(CannotCount::OtherValue(term_of(value.selector)).to_string()),
            };
        }
        let imported = event_cache::find(self.imported, cpuid::vendor_identity(self.cpu), self.type_number, name);
        let event = self.table.and_then(|one| one.table.find(name)).or_else(|| imported?.event());
        let brief = imported.map(|event| event.brief.as_str()).or_else(|| descriptions::of(name)).map(str::to_owned);
        let described = |encoding| CoreEncoding { description: brief, ..encoding };
        event.map(|event| described(self.of_event(&event, value, hal))).ok_or_else(|| match self.table {
            Some(_) => "these cores have no event of this name".to_owned(),
            None => "no table has the events of this processor".to_owned(),
        })
    }

    fn of_encoded<E>(&self, event: protocol::Event, hal: &Hal<E>) -> CoreEncoding {
        let encoding = self.of_source(Source(event.source), &Notation(event).to_string(), hal);
        let (extra, error) = registered(event, hal);
        let error = encoding.error.or(error);
        let note = encoding.note.or_else(|| raw_event::note(event).filter(|_| error.is_none()));
        CoreEncoding { extra, error, note, ..encoding }
    }

    fn of_source<E>(&self, source: Source, name: &str, hal: &Hal<E>) -> CoreEncoding {
        match hal.source_information(source) {
            Ok(found) => self.of_information(&found, name),
            Err(_) => CoreEncoding::without_event(
                self.name,
                name,
                "the profile interface of this processor has no such source".to_owned(),
            ),
        }
    }

    fn of_information(&self, found: &SourceInformation, name: &str) -> CoreEncoding {
        let number = found.support as u32;
        let is_time = found.source.source == Source::TIME;
        CoreEncoding {
            core_type: self.name.to_owned(),
            event: name.to_owned(),
            select: (!is_time).then(|| format::select(found.source.select)),
            extra: None,
            counters: self.names(found.counters.bits()),
            pebs_counters: self.names(found.precise.bits()),
            error: (!support::is_supported(number) && !is_time).then(|| support::sentence(number)),
            errata: Vec::new(),
            not_recorded: None,
            note: is_time.then(|| "a timer measures it, and no counter".to_owned()),
            description: None,
        }
    }

    fn of_generic<E>(&self, generic: Generic, hal: &Hal<E>) -> Result<CoreEncoding, String> {
        let identity = cpuid::vendor_identity(self.cpu).ok_or_else(|| hal.boot.selection.reason.to_string())?;
        match generic.target(identity).map_err(|error| error.to_string())? {
            Target::Time => {
                Ok(CoreEncoding { event: generic.to_string(), ..self.of_source(Source::TIME, "Time", hal) })
            }
            Target::Source(number) => Ok(self.of_source(Source(number.into()), generic.name(), hal)),
            Target::Event { encoding, counters } => {
                let event = Event::new(generic.name().to_owned(), encoding, counters);
                let precise = hal
                    .source_list()
                    .filter(|known| known.support == pmu::Support::Supported)
                    .find(|known| known.source.select & !BOTH_MODES == encoding.select());
                let mut encoding = self.of_event(&event, None, hal);
                encoding.pebs_counters = precise.map(|known| self.names(known.precise.bits())).unwrap_or_default();
                Ok(encoding)
            }
        }
    }

    fn of_event<E>(&self, event: &Event, value: Option<Extra>, hal: &Hal<E>) -> CoreEncoding {
        let capabilities = PmuCapabilities::of(self.cpu);
        let is_emon = hal.boot.selection.interface == Kind::Emon;
        let request = vendor_event::request(event, value, modes::BOTH);
        let encoded = request.as_ref().ok().copied().filter(|encoded| Source(encoded.source).is_raw());
        let known = encoded.and_then(|encoded| hal.source_information(Source(encoded.source)).ok());
        let (extra, refusal) = encoded.map_or((None, None), |encoded| registered(encoded, hal));
        let general = if is_emon {
            capabilities.general()
        } else {
            let bits = known.as_ref().map_or(0, |known| known.counters.bits());
            u16::try_from(bits & u32::from(u16::MAX)).unwrap_or_default()
        };
        // The driver does not use fixed counters from 4 on, but they are shown although it refuses their events.
        let fixed = if is_emon { u16::from(capabilities.fixed()) | u16::MAX << 3 } else { 0 };
        let there = Counters { general_mask: general, fixed_mask: fixed };
        let why = match (&request, &known) {
            _ if hal.boot.selection.interface == Kind::Default => Some(hal.boot.selection.reason.to_string()),
            (Err(error), _) => Some(error.to_string()),
            (_, Some(known)) if known.support != pmu::Support::Supported => {
                Some(support::sentence(known.support as u32))
            }
            (_, Some(known))
                if !event.is_fixed() && known.counters.bits() & u32::from(event.counters.general_mask) == 0 =>
            {
                Some(CannotCount::OtherCounters.to_string())
            }
            _ => refusal,
        };
        // What the driver refuses is shown as the tables have it.
        let of_table = || {
            let extra = event.extra.as_ref()?;
            let value = value.map_or(extra.value, |value| value.value);
            Some(ExtraRegister { msr: format!("{:#x}", extra.registers.first()?.msr), value: format!("{value:#x}") })
        };
        CoreEncoding {
            core_type: self.name.to_owned(),
            event: event.name.clone(),
            select: Some(format::select(event.encoding.select() | BOTH_MODES)),
            extra: extra.or_else(of_table),
            counters: counter_names(event.counters.and(there)),
            pebs_counters: counter_names(event.precise_counters.and(there)),
            not_recorded: vendor_event::request(event, value, modes::BOTH | modes::PRECISE)
                .err()
                .filter(|_| !event.precise_counters.is_empty())
                .map(|cause| cause.to_string()),
            note: note(event, why.is_none()),
            error: why,
            errata: Vec::new(),
            description: None,
        }
    }

    /// Returns the names of counters by their indexes in the profile interface, in which fixed ones follow general
    /// ones.
    fn names(&self, bits: u32) -> Vec<CounterName> {
        let capabilities = PmuCapabilities::of(self.cpu);
        let general = if capabilities.count() == 0 { u8::MAX } else { capabilities.count() };
        let name = |index: u8| match index.checked_sub(general) {
            // The indexes of its metrics follow that of fixed counter 3, which they divide.
            Some(number) => CounterName::Fixed(number.min(3)),
            None => CounterName::General(index),
        };
        (0..32).filter(|index| bits >> index & 1 == 1).map(name).collect()
    }
}

/// Returns the extra register that an event gets, or why the processor does not count the event.
fn registered<E>(event: protocol::Event, hal: &Hal<E>) -> (Option<ExtraRegister>, Option<String>) {
    let Some(raw) = Source(event.source).raw() else { return (None, None) };
    match hal.register_for(ProcessorIndex::BOOT, raw, event.extra) {
        Ok(Some(register)) => {
            let [msr, value] = [u64::from(register.address()), event.extra].map(|number| format!("{number:#x}"));
            (Some(ExtraRegister { msr, value }), None)
        }
        Ok(None) => (None, None),
        Err(support) => (None, Some(support::sentence(support as u32))),
    }
}

fn counter_names(counters: Counters) -> Vec<CounterName> {
    counters.general().map(CounterName::General).chain(counters.fixed().map(CounterName::Fixed)).collect()
}

/// Returns advice about an event.
fn note(event: &Event, is_supported: bool) -> Option<String> {
    const LOAD_LATENCY: u16 = 0x3F6;
    let has_latency = event.extra.iter().flat_map(|extra| &extra.registers).any(|one| one.msr == LOAD_LATENCY);
    if has_latency && is_supported && !event.deprecated {
        return Some(format!("recorded, not counted: .\\client record -e {}:p", event.name));
    }
    match (&event.successor, event.deprecated, event.alone) {
        (Some(successor), true, _) => Some(format!("deprecated; use {successor}")),
        (None, true, _) => Some("deprecated".to_owned()),
        (_, _, true) => Some("no other event may have a general counter at the same time".to_owned()),
        _ => None,
    }
}

/// Returns a source as the user typed it, without the core type.
fn shown(source: &SourceName) -> String {
    source.source().to_string()
}
