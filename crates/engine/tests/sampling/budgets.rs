//! The cost of an interrupt from the overflow to the record in the ring: only the accesses of `pmu`.

use model::{InterruptMode, Mode};
use simulation::{Client, SimMachine};

use super::scene::{IDENTITIES, SHORT, counted, engine, event, interrupted, machine, on, started};

/// Far longer than any run here.
const LONG: u32 = 0x7FFF_0000;

/// Returns RDMSR, WRMSR and RDPMC accesses of processor 0.
fn accesses(machine: &SimMachine) -> [u64; 3] {
    let accesses = machine.processor(0).model().accesses();
    [accesses.rdmsr, accesses.wrmsr, accesses.rdpmc]
}

/// Returns the accesses that an interrupt may cost with k of n counters overflowed, of counts that must miss nothing,
/// or of samples alone.
fn budget(name: &str, n: u64, k: u64, counted: bool) -> [u64; 3] {
    match (name, counted) {
        // Each counter is read, which returns its events since the overflow.
        ("amd-legacy" | "zen-1800x" | "intel-v1" | "p6-coppermine", false) => [0, k, n],
        // One that overflowed stands still while it is read again and loaded.
        ("amd-legacy" | "zen-1800x" | "intel-v1" | "p6-coppermine", true) => [k, 3 * k, n + k],
        // Each CCCR and each counter is read: a flag may be missing, and the counter holds the events since its
        // overflow. The flag is cleared, and the counter loaded twice (erratum N15).
        ("netburst-cedarmill", false) => [n, 3 * k, n],
        // It is stopped, and started again.
        ("netburst-cedarmill", true) => [n + k, 4 * k, n],
        // The global control register is read: the write that stops the counters would remove the traces of another
        // program that changed it. The status is read. Stopping, clearing and restarting take three writes. Each
        // counter that overflowed is read and loaded.
        _ => [2, 3 + k, k],
    }
}

#[test]
fn an_interrupt_with_k_of_n_counters_overflowed_costs_what_the_design_allows_and_one_that_drops_no_less() {
    let all = IDENTITIES.into_iter().flat_map(|name| InterruptMode::ALL.map(|mode| (name, mode)));
    for (name, mode, is_counted) in all.flat_map(|(name, mode)| [false, true].map(|counted| (name, mode, counted))) {
        let event = if is_counted { counted } else { event };
        let is_amd = name.starts_with("amd") || name.starts_with("zen");
        let most = if name == "p6-coppermine" { 2 } else { 4 };
        for n in 1..=most {
            for (k, full) in (0..=n).flat_map(|k| [(k, false), (k, true)]) {
                let machine = machine(name, 1, mode);
                let mut engine = engine(&machine);
                let client = Client::open(&mut engine, 1, 10);
                let sources = [2, 6, 11, if is_amd { 8 } else { 10 }];
                let interval = |number| if number < k { SHORT } else { LONG };
                let events: Vec<_> =
                    (0..n).zip(sources).map(|(number, source)| event(source, interval(number))).collect();
                started(client, &mut engine, 64, on(&[]), &events);
                let serve = || {
                    machine.tick_sampling(&engine, 0);
                    machine.run(0, Mode::User, &|_| SHORT.into());
                    let before = accesses(&machine);
                    if k > 0 {
                        assert_eq!(machine.deliver(&engine, 0, &interrupted(0)).0, 1);
                    } else {
                        machine.interrupt(&engine, 0, &interrupted(0)); // spurious
                    }
                    let after = accesses(&machine);
                    [after[0] - before[0], after[1] - before[1], after[2] - before[2]]
                };
                for _ in 0..if full { 70 } else { 0 } {
                    serve();
                }
                assert_eq!(
                    serve(),
                    budget(name, n, k, is_counted),
                    "{name}, {mode:?}: {k} of {n}, the ring full: {full}, {is_counted}"
                );
            }
        }
    }
}

#[test]
fn a_tick_reads_the_registers_of_active_counters_the_status_and_the_entry_and_writes_only_what_is_wrong() {
    for (name, mode) in IDENTITIES.into_iter().flat_map(|name| InterruptMode::ALL.map(|mode| (name, mode))) {
        for n in 0..=2 {
            let machine = machine(name, 1, mode);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            let events: Vec<_> = [2, 6].into_iter().take(n).map(|source| event(source, LONG)).collect();
            if n > 0 {
                started(client, &mut engine, 64, on(&[]), &events);
            }
            let n = n as u64;
            let budget = match name {
                _ if n == 0 => [0; 3],
                // The select register of each counter, because another program may have changed it, and each counter,
                // because its interrupt may have been lost.
                "amd-legacy" | "zen-1800x" | "intel-v1" | "p6-coppermine" => [n, 0, n],
                // CCCR and ESCR of each counter; and again the CCCR, with the counter, for its overflow.
                "netburst-cedarmill" => [2 * n + n, 0, n],
                // Zen 4: select registers, the global control register, and the status twice, for a freeze and for
                // overflows. Intel: one fixed and one general counter, so the control register of fixed counters and a
                // select register; the global control register; IA32_DEBUGCTL, which can stop counters; the status, for
                // overflows.
                "zen4-7700x" | "intel-v2" | "haswell-4710mq" => [n + 3, 0, 0],
                // The status, for a freeze.
                _ => [n + 4, 0, 0],
            };
            for (entry, writes) in [(0xFE, 0), (0x1_00FE, 1)] {
                let cpu = machine.processor(0);
                cpu.model().set_lvt(entry);
                let (before, local) = (accesses(&machine), cpu.local_accesses());
                machine.tick_sampling(&engine, 0);
                let (after, (reads, written)) = (accesses(&machine), cpu.local_accesses());
                let spent = [after[0] - before[0], after[1] - before[1], after[2] - before[2]];
                assert_eq!(spent, budget, "{name}, {mode:?}: {n}");
                // Without sampling, the driver does not own the entry.
                let wanted = if n == 0 { (0, 0, entry) } else { (1, writes, 0xFE) };
                assert_eq!((reads - local.0, written - local.1, cpu.model().lvt()), wanted, "{name}, {mode:?}: {n}");
            }
        }
    }
}
