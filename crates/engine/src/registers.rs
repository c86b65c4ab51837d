//! The registers of a processor as they are, for a diagnosis.

use alloc::vec::Vec;
use core::cell::RefCell;

use pmu::ProcessorIndex;
use pmu::first_access::{Access, Reading};
use pmu::lvt_pmi::{self, EntryLocation};
use protocol::{ReadBy, RegisterRecord, RegistersRequest};
use x86_defs::local_apic::XAPIC_LVT_PERFORMANCE;

use crate::platform::{EngineContext, Platform};
use crate::reply::{Refusal, Reply};
use crate::resources::Resources;
use crate::try_vec::{NO_MEMORY, TryPush};

/// Replies with every register of a processor that a session can touch, each once. Writes none.
///
/// # Errors
/// [`NoSuchProcessor`](protocol::ErrorCode::NoSuchProcessor); that the machine sleeps; or that memory is short.
pub fn read_registers<M: Platform>(
    resources: &Resources,
    request: RegistersRequest,
    context: EngineContext<'_, M>,
    reply: &mut Reply<'_>,
) -> Result<(), Refusal> {
    let processor = ProcessorIndex::new(request.processor);
    let records = RefCell::new(Ok(Vec::new()));
    let note = |reading| {
        if let Ok(mut records) = records.try_borrow_mut() {
            add(&mut records, record_of(reading));
        }
    };
    let place = context.pinned_to(processor, |cpu| {
        context.hal.read_registers(processor, cpu, &note);
        lvt_pmi::place(cpu)
    })?;
    let mut records = records.into_inner();
    if let Some(EntryLocation::Page(_)) = place {
        let entry = resources.lvt_entry(processor, context);
        let (failed, value) = match entry {
            Ok(entry) => (0, entry.into()),
            Err(refusal) => (1, refusal.status.number().into()),
        };
        let number = XAPIC_LVT_PERFORMANCE.into();
        add(&mut records, RegisterRecord { number, read_by: ReadBy::LocalApic as u16, failed, value });
    }
    records?.iter().for_each(|record| reply.push(record));
    Ok(())
}

fn record_of(Reading { access, number, value }: Reading) -> RegisterRecord {
    let read_by = match access {
        Access::Read | Access::Write | Access::ReadBack => ReadBy::Rdmsr,
        Access::Counter => ReadBy::Rdpmc,
    };
    RegisterRecord { number, read_by: read_by as u16, failed: value.is_err().into(), value: value.unwrap_or(0) }
}

/// Adds a record, unless there is one of the same register.
fn add(records: &mut Result<Vec<RegisterRecord>, Refusal>, record: RegisterRecord) {
    let Ok(known) = records else { return };
    let is_same = |one: &RegisterRecord| (one.number, one.read_by) == (record.number, record.read_by);
    if !known.iter().any(is_same) && known.try_push(record).is_err() {
        *records = Err(NO_MEMORY);
    }
}
