//! Events of the northbridge of AMD's processors up to family 14h: one core of each node counts them.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use engine::Engine;
use model::{Mode, Processor};
use pmu::Support;
use pmu::source::RawEvent;
use protocol::{ErrorCode, ProcessorSet, modes};
use simulation::{Client, SimMachine};

fn raw(event: u16, umask: u8) -> u64 {
    RawEvent::new().with_event(event).with_umask(umask.into()).source().0
}

/// DRAM accesses: an event of the northbridge.
fn dram() -> u64 {
    raw(0xE0, 0x07)
}

/// A kind of machine with several packages.
struct Layout {
    identity: &'static str,
    /// Bits of the initial APIC ID that number the core (CPUID Fn8000_0008, ECX\[15:12\]).
    core_bits: u32,
    /// For each package, the numbers of the cores of each node.
    packages: &'static [&'static [&'static [u32]]],
}

const LAYOUTS: [Layout; 5] = [
    Layout {
        identity: "magny-cours-es",
        core_bits: 4,
        packages: &[&[&[0, 1, 2, 3, 4, 5], &[6, 7, 8, 9, 10, 11]], &[&[0, 1, 2, 3, 4, 5], &[6, 7, 8, 9, 10, 11]]],
    },
    // Two nodes with two of their six cores each.
    Layout { identity: "magny-cours-es", core_bits: 4, packages: &[&[&[0, 1], &[2, 3]]] },
    Layout { identity: "istanbul-2431", core_bits: 3, packages: &[&[&[0, 1, 2, 3, 4, 5]], &[&[0, 1, 2, 3, 4, 5]]] },
    // A core was turned off, and the others keep their numbers.
    Layout { identity: "deneb-940", core_bits: 2, packages: &[&[&[0, 1, 3]]] },
    Layout { identity: "bobcat-c50", core_bits: 1, packages: &[&[&[0, 1]]] },
];

impl Layout {
    fn machine(&self) -> SimMachine {
        let mut processors: Vec<Processor> = Vec::new();
        for (package, nodes) in (0..).zip(self.packages) {
            let last = u32::try_from(nodes.iter().map(|cores| cores.len()).sum::<usize>()).unwrap() - 1;
            for cores in *nodes {
                let first = processors.len();
                for core in *cores {
                    let cpuid = self.cpuid(package << self.core_bits | core, last);
                    let core = match processors.get(first) {
                        Some(first) => first.other_core(Box::new(cpuid)).unwrap(),
                        None => Processor::new(Box::new(cpuid)),
                    };
                    processors.push(core);
                }
            }
        }
        SimMachine::of(processors)
    }

    fn cpuid(&self, apic_id: u32, last_core: u32) -> impl Fn(u32, u32) -> [u32; 4] + Send + Sync + use<> {
        let (dump, core_bits) = (cpuid_dumps::find(self.identity).unwrap().cpuid(), self.core_bits);
        move |leaf, subleaf| match (leaf, dump.cpuid(leaf, subleaf)) {
            (1, [eax, ebx, ecx, edx]) => [eax, ebx & 0x00FF_FFFF | apic_id << 24, ecx, edx],
            (0x8000_0008, [eax, ebx, _, edx]) => [eax, ebx, core_bits << 12 | last_core, edx],
            (_, registers) => registers,
        }
    }

    /// Returns the first processor of each node.
    fn first_of_nodes(&self) -> Vec<u32> {
        let sizes = self.packages.iter().flat_map(|nodes| *nodes).map(|cores| u32::try_from(cores.len()).unwrap());
        sizes.scan(0, |next, size| Some(std::mem::replace(next, *next + size))).collect()
    }
}

/// Starts an event; returns the session, or the cause, the processor and the first detail.
fn start(
    client: Client,
    engine: &mut Engine<&SimMachine>,
    processors: &[u32],
    source: u64,
) -> Result<u64, (u32, u32, u64)> {
    let mut set = ProcessorSet::EMPTY;
    assert!(processors.iter().all(|processor| set.insert(*processor)));
    let header = client.start(engine, 0, set, &[(source, modes::USER)]).header();
    if header.cause == 0 { Ok(header.detail[0]) } else { Err((header.cause, header.processor, header.detail[0])) }
}

#[test]
fn one_core_of_each_node_counts_events_of_the_northbridge() {
    for layout in LAYOUTS {
        let machine = layout.machine();
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        let (all, firsts) = (u32::try_from(machine.all().count()).unwrap(), layout.first_of_nodes());
        let what = format!("{}, first cores {firsts:?}", layout.identity);
        for processor in 0..all {
            let wanted = if firsts.contains(&processor) {
                Ok(())
            } else {
                Err((ErrorCode::UnsupportedSource as u32, processor, Support::OtherCore as u64))
            };
            let started = start(client, &mut engine, &[processor], dram());
            assert_eq!(started.map(|_| ()), wanted, "{what}: processor {processor}");
            if let Ok(session) = started {
                client.stop(&mut engine, session, None);
            }
        }
        let everywhere: Vec<u32> = (0..all).collect();
        let others = everywhere.iter().find(|processor| !firsts.contains(processor)).copied();
        let refused = start(client, &mut engine, &everywhere, dram()).err();
        assert_eq!(refused.map(|(_, processor, _)| processor), others, "{what}");
        let (instructions, northbridge) = (
            start(client, &mut engine, &everywhere, raw(0xC0, 0)).unwrap(),
            start(client, &mut engine, &firsts, dram()),
        );
        let northbridge = northbridge.unwrap_or_else(|refused| panic!("{what}: {refused:?}"));
        for processor in 0..all {
            machine.run(processor, Mode::User, &|selected| if selected.event == 0xE0 { 300 } else { 1_000 });
        }
        let counts = |session, engine: &mut Engine<&SimMachine>| -> Vec<(u32, u64)> {
            client.read(engine, session).iter().map(|record| (record.processor, record.count)).collect()
        };
        let wanted: Vec<_> = firsts.iter().map(|processor| (*processor, 300)).collect();
        assert_eq!(counts(northbridge, &mut engine), wanted, "{what}");
        let wanted: Vec<_> = everywhere.iter().map(|processor| (*processor, 1_000)).collect();
        assert_eq!(counts(instructions, &mut engine), wanted, "{what}");
    }
}
