//! The claims about Windows: the rows of the table in docs/claims.md, each with an identifier that stays when its
//! wording changes.

/// A claim of the table.
#[derive(Debug)]
pub struct Claim {
    /// Its identifier, to which steps refer.
    pub id: &'static str,
    /// The first cell of its row.
    pub text: &'static str,
    /// What the steps that decide it leave open.
    pub scope: Scope,
}

/// How much of a claim a run in one guest can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of it: it is proved if every step that decides it passes.
    Complete,
    /// A part: the steps can refute it, and this remains if they pass.
    InPart(&'static str),
    /// Nothing, for this reason.
    NoStep(&'static str),
}

use Scope::{Complete, InPart, NoStep};

/// The claims, in the order of the table.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "service-lifecycle",
        text: "the service is created, started, stopped, deleted; the file is copied and removed; again and again",
        scope: Complete,
    },
    Claim {
        id: "safe-install",
        text: "`.\\client install` with a file that is not the driver, that Windows would refuse, or whose driver does \
            not start or answer changes nothing, or returns to the old one",
        scope: InPart("that every step can be the last before a crash"),
    },
    Claim {
        id: "refused-without-test-signing",
        text: "test signing is off, so a driver that is signed for tests is refused in advance",
        scope: Complete,
    },
    Claim {
        id: "package-counts-and-leaves-nothing",
        text: "the package's signed driver is installed, counts, and leaves nothing",
        scope: Complete,
    },
    Claim {
        id: "valid-signature",
        text: "the signature is valid, and signing changed only the checksum and the certificate table",
        scope: InPart("that signing changed nothing else, which packaging compares"),
    },
    Claim {
        id: "loads-under-test-signing",
        text: "Windows loads a driver with that signature under test signing",
        scope: Complete,
    },
    Claim {
        id: "refusal-messages",
        text: "each refusal of Windows has the message above",
        scope: InPart("the other codes of Windows, which need a machine that refuses for each reason"),
    },
    Claim {
        id: "inf-rules",
        text: "`halprof.inf` follows the rules for primitive drivers",
        scope: NoStep("InfVerif is a part of the WDK, which the guest does not have"),
    },
    Claim {
        id: "inf-lifecycle",
        text: "`halprof.inf` installs the driver, and `.\\client install` starts it",
        scope: Complete,
    },
    Claim { id: "catalog-from-linux", text: "a catalog that was created on Linux", scope: Complete },
    Claim { id: "signing-tools-of-windows", text: "signtool, inf2cat, New-SelfSignedCertificate", scope: Complete },
    Claim {
        id: "administrators-only",
        text: "only administrators can open the device",
        scope: NoStep("it needs a second account in the guest"),
    },
    Claim {
        id: "privilege-checked",
        text: "the privilege is checked",
        scope: NoStep("it needs an account without the right \"Profile system performance\""),
    },
    Claim {
        id: "hygon-option",
        text: "the option HygonAsAmd is read from the registry",
        scope: NoStep("it needs a Hygon processor"),
    },
    Claim {
        id: "reason-of-no-counters",
        text: "the client detects why there are no counters, and names the command for Hyper-V",
        scope: Complete,
    },
    Claim { id: "set-vmprocessor-perfmon", text: "`Set-VMProcessor -Perfmon`", scope: Complete },
    Claim {
        id: "kvm-enlightenments",
        text: "KVM with Hyper-V enlightenments is detected; counting works there, and sampling where the interrupt \
            is set up",
        scope: Complete,
    },
    Claim {
        id: "exact-counts",
        text: "counts are exact",
        scope: InPart("that each event is exact, which needs the model's ledger"),
    },
    Claim {
        id: "counters-tried",
        text: "counters that a hypervisor does not let count are avoided, or their counts are marked",
        scope: InPart("a hypervisor that takes counters away"),
    },
    Claim {
        id: "every-generation",
        text: "the same on every generation: Intel from NetBurst with two threads to hybrids, AMD from the K8 to \
            Zen 5; events by their numbers",
        scope: NoStep("a guest has one processor"),
    },
    Claim {
        id: "core-types",
        text: "events of one core type run on processors of that type only; counts of two types are never added",
        scope: NoStep("it needs a hybrid that shows its core types to a guest"),
    },
    Claim {
        id: "protected-process",
        text: "a protected process has its name, and the modules that all processes share",
        scope: NoStep("it needs a scan of Microsoft Defender in the guest"),
    },
    Claim {
        id: "interrupt-through-handler-slot",
        text: "the interrupt arrives through the HAL's handler slot",
        scope: Complete,
    },
    Claim {
        id: "slot-of-system-process",
        text: "the slot belongs to the process that fills it, so the System process fills it",
        scope: InPart("which process Windows charges the slot to"),
    },
    Claim {
        id: "hal-tells-its-sources",
        text: "the HAL says by HalProfileSourceInformation which sources it supports",
        scope: Complete,
    },
    Claim {
        id: "thread-profiling",
        text: "Windows accepts the configuration for thread profiling, and drops it when the session ends",
        scope: InPart("that it is dropped while another program profiles a thread"),
    },
    Claim {
        id: "counts-of-threads",
        text: "a thread has its own counts through context switches and migrations",
        scope: InPart("machines and builds of Windows other than this guest's"),
    },
    Claim {
        id: "threads-without-rdpmc",
        text: "no call of the library ends a program where programs cannot execute RDPMC (CR4.PCE is clear); counts of \
            threads are then read from the memory that Windows updates, if a self-test has verified that, and are \
            undisturbed otherwise",
        scope: InPart("machines and builds of Windows other than this guest's"),
    },
    Claim {
        id: "bits-of-threads",
        text: "what Windows keeps of a long region is known, or the result says that it is not",
        scope: InPart("machines and builds of Windows other than this guest's"),
    },
    Claim {
        id: "undisturbed-regions",
        text: "a region without a context switch of its pinned thread has the exact count of the CPU in user mode",
        scope: InPart("that no switch is ever missed"),
    },
    Claim {
        id: "counters-reserved",
        text: "counters are reserved, and a refusal is reported",
        scope: InPart("the refusal, which needs a second owner of the counters"),
    },
    Claim {
        id: "busy-hal",
        text: "while the HAL is busy, because it asks another owner to release the counters, the reservation is \
            repeated for 250 ms",
        scope: NoStep("it needs another owner that releases its counters slowly"),
    },
    Claim {
        id: "freed-on-processor-0",
        text: "counters are freed on processor 0, and reserved anew when a processor is added; a refused free is \
            reported by `.\\client info` and repeated",
        scope: NoStep("it needs a processor that is added while Windows runs"),
    },
    Claim {
        id: "counters-of-others",
        text: "counters of other programs are detected and left alone; `--force` uses them",
        scope: NoStep("it needs another program that enables counters"),
    },
    Claim {
        id: "lvt-entry",
        text: "the LVT entry of the local APIC is checked, and unmasked in an interrupt, in xAPIC and in x2APIC mode",
        scope: InPart("the state of the entry, and the other mode of the local APIC"),
    },
    Claim {
        id: "handler-budget",
        text: "the budget of the handler is kept at a clock of 15.6 ms, and with timers that are late or merged",
        scope: NoStep("it needs interrupts that are slower than the budget"),
    },
    Claim {
        id: "time-sampling",
        text: "sampling by time: the address is found by unwinding from the DPC of a timer",
        scope: InPart("that each address is the interrupted one, which needs a program with known functions"),
    },
    Claim {
        id: "trace-provider",
        text: "the driver registers a provider of events, and a trace session gets the events that it asks for",
        scope: InPart("that other programs decode the events"),
    },
    Claim { id: "events-from-dpc", text: "a DPC writes events at DISPATCH_LEVEL", scope: Complete },
    Claim {
        id: "stack-from-dpc",
        text: "the stack of an event that a DPC writes contains the interrupted code",
        scope: Complete,
    },
    Claim {
        id: "no-stack-at-raised-irql",
        text: "code at DISPATCH_LEVEL or above has no stack, and no wrong one",
        scope: NoStep("it needs code in the kernel with known callers"),
    },
    Claim {
        id: "frames-in-user-mode",
        text: "frames in user mode arrive in another event, with the same MatchId",
        scope: InPart("which event brings them"),
    },
    Claim {
        id: "most-frames",
        text: "a stack has at most 192 frames, and the outermost are cut",
        scope: NoStep("it needs a program with more callers"),
    },
    Claim {
        id: "system-provider",
        text: "a trace session of any name has processes and images of the system provider",
        scope: NoStep("the client also queries processes and modules itself"),
    },
    Claim {
        id: "leftover-trace-session",
        text: "a trace session that a killed client left is stopped by the next one with its name",
        scope: NoStep("it needs a client with the process ID of one that was killed"),
    },
    Claim {
        id: "who-can-trace",
        text: "administrators can start the trace session of `record -g`; a refusal has a message",
        scope: InPart("the refusal, which needs a second account in the guest"),
    },
    Claim {
        id: "events-restricted",
        text: "after `.\\client install`, only SYSTEM and Administrators can enable the driver's events",
        scope: InPart("accounts other than LOCAL SERVICE"),
    },
    Claim {
        id: "inf-restricts-events",
        text: "`halprof.inf` restricts the driver's events in the same way",
        scope: Complete,
    },
    Claim {
        id: "trace-losses",
        text: "what a trace session loses is reported, and each sample without a stack has its reason",
        scope: NoStep("it needs a trace session that loses events"),
    },
    Claim {
        id: "functions-of-dotnet",
        text: "functions of .NET have names, also in processes that ran before",
        scope: NoStep("it needs a program of .NET with known functions"),
    },
    Claim { id: "shares-of-callers", text: "shares of callers are those of the executed calls", scope: Complete },
    Claim {
        id: "trace-file",
        text: "`record --etl` writes a file for Windows Performance Analyzer",
        scope: InPart("that Windows Performance Analyzer shows the stacks"),
    },
    Claim { id: "recording-profile", text: "WPR accepts `halprof.wprp`", scope: Complete },
    Claim {
        id: "budget-of-stacks",
        text: "the budget of the handler includes the walks of stacks",
        scope: NoStep("no step measures the cost of a walk"),
    },
    Claim {
        id: "frozen-counters",
        text: "counters that another program freezes on each interrupt, freezes or stops run again within two \
            ticks; a left-over freeze in IA32_DEBUGCTL is cleared for the session and put back",
        scope: NoStep("it needs another program that freezes the counters"),
    },
    Claim {
        id: "values-of-registers",
        text: "under a hypervisor that faults for the bits of any register, drops them or ignores the register, no \
            unguarded access faults, and each count is right, marked or refused",
        scope: NoStep("a guest has one hypervisor, which cannot be told to fault"),
    },
    Claim {
        id: "branch-records-of-others",
        text: "the branch records of another program stay as it set them, frozen or not",
        scope: NoStep("it needs another program that records branches"),
    },
    Claim {
        id: "system-management-mode",
        text: "nothing is counted in System Management Mode where IA32_PERF_CAPABILITIES[12] allows it",
        scope: NoStep("a guest cannot enter System Management Mode"),
    },
    Claim {
        id: "lost-interrupts",
        text: "an interrupt that is lost behind a masked entry, or raised again by unmasking, neither stalls \
            sampling nor causes a storm",
        scope: NoStep("it needs an interrupt at the moment in which the entry is masked"),
    },
    Claim {
        id: "events-take-turns",
        text: "events that take turns: each has its share of the time, and scaled counts are those that happened",
        scope: InPart("that scaled counts are those that happened"),
    },
    Claim {
        id: "top-down-metrics",
        text: "slots and top-down metrics are divided as the counter and MSR_PERF_METRICS say",
        scope: InPart("that the parts are those of the counter, which needs the model"),
    },
    Claim {
        id: "per-core-and-tsc",
        text: "cores and packages of `stat --per-core`, and the frequency of the time-stamp counter",
        scope: InPart("that the cores are those of the machine"),
    },
    Claim {
        id: "sleep",
        text: "sleep: counters are released before and acquired again afterwards, and results report its duration; \
            no register is accessed in between",
        scope: NoStep("guests of most hypervisors cannot sleep"),
    },
    Claim {
        id: "entry-dead-after-sleep",
        text: "an entry of the local vector table that is not set up after a sleep is reported and left alone, and \
               sampling goes on once it is set up",
        scope: NoStep("Windows sets the entry up in every known guest"),
    },
    Claim {
        id: "added-processors",
        text: "processors that are added count with the others",
        scope: NoStep("it needs a hypervisor that adds processors to a running guest"),
    },
    Claim {
        id: "control-areas",
        text: "control areas are allocated and freed on all processors or on none, reported, and freed at unload",
        scope: InPart("that they are freed at unload"),
    },
    Claim {
        id: "size-of-area",
        text: "an area has 0x60 bytes before 1903 and 0xA0 since",
        scope: InPart("the size before 1903, on which the driver does not load"),
    },
    Claim {
        id: "va-shadowing",
        text: "precise events and branches are refused if kernel VA shadowing is on or its state is unknown",
        scope: NoStep("it needs a processor with Meltdown and a Debug Store in the guest"),
    },
    Claim {
        id: "writes-to-non-paged-pool",
        text: "a processor may write to the non-paged pool at any time if shadowing is off",
        scope: NoStep("it needs a real machine"),
    },
    Claim {
        id: "debug-store-of-others",
        text: "a Debug Store in use by another program causes a refusal; an address in IA32_DS_AREA alone does not, \
            and is restored by a stop",
        scope: NoStep("it needs another program with the Debug Store"),
    },
    Claim {
        id: "area-kept-while-in-register",
        text: "an area is not freed while IA32_DS_AREA holds its address",
        scope: NoStep("it needs another program that restores the register"),
    },
    Claim {
        id: "every-record-delivered",
        text: "every branch and record that the processor wrote is delivered or reported lost; precise records name \
            the instruction of the event",
        scope: NoStep("it needs the model's ledger"),
    },
    Claim {
        id: "hardware-recording",
        text: "BTS, PEBS and their interrupt on a real processor: errata, skid, cost",
        scope: InPart("a real machine: a guest has what its hypervisor emulates"),
    },
    Claim {
        id: "debug-store-restored",
        text: "after a stop, a kill, sleep, or an unload while recording, IA32_DS_AREA, IA32_DEBUGCTL and \
            IA32_PEBS_ENABLE are restored",
        scope: NoStep("the registers are not readable in the guest without a debugger"),
    },
    Claim {
        id: "area-freed-by-others",
        text: "another caller frees the area while a session records",
        scope: NoStep("it is not prevented"),
    },
    Claim {
        id: "irql-and-memory",
        text: "no function is called above its IRQL, no memory leaks, no faulting register is accessed",
        scope: InPart("paths that the rounds do not reach"),
    },
    Claim {
        id: "structures-of-the-wdk",
        text: "structures, constants and functions of the kernel are those of the WDK",
        scope: NoStep("the WDK's compiler checks it, on a Windows machine with the WDK"),
    },
    Claim {
        id: "imports-of-2004",
        text: "Windows 10 2004 has every imported function",
        scope: InPart("versions of Windows other than that of this guest"),
    },
    Claim {
        id: "no-panic",
        text: "the driver cannot panic",
        scope: NoStep("it is a property of the file, which `cargo xtask test` audits"),
    },
    Claim {
        id: "undone-after-failures",
        text: "if any kernel call fails, everything is undone, and the next load works",
        scope: InPart("that each call fails once: Driver Verifier chooses at random, and only allocations"),
    },
    Claim {
        id: "pending-stop",
        text: "a stop that arrives while a program has a handle is pending, and unloads the driver at the last close",
        scope: Complete,
    },
    Claim {
        id: "image-stays",
        text: "the image stays in memory while the HAL or thread profiling refuses what the driver gives back, also \
               after a stop that was pending",
        scope: NoStep("neither can be made to refuse from outside"),
    },
    Claim {
        id: "processor-groups",
        text: "more than 64 processors, groups",
        scope: NoStep("it needs a guest with more than 64 processors"),
    },
    Claim { id: "driver-verifier", text: "Driver Verifier finds nothing", scope: Complete },
    Claim { id: "memory-integrity", text: "memory integrity (HVCI) allows the driver", scope: Complete },
    Claim { id: "dlls-of-system32", text: "DLLs beside client.exe are not loaded", scope: Complete },
    Claim {
        id: "prepared-folders",
        text: "a folder that an ordinary user made in %ProgramData%, a junction too, is neither read nor written through",
        scope: InPart("a folder of another account, which needs one in the guest"),
    },
    Claim {
        id: "agent-in-protected-folder",
        text: "the service of the agent runs a copy in %ProgramFiles%\\halprof, refuses what others can change, and leaves nothing",
        scope: Complete,
    },
    Claim {
        id: "agent-names-kernel",
        text: "profiles of the service have the names of the kernel's modules on Windows 11 24H2, because its token keeps SeDebugPrivilege",
        scope: NoStep("it needs a profile of the service, and a token without the privilege to compare with"),
    },
    Claim {
        id: "events-of-machine",
        text: "events that an elevated account imports are found by the service",
        scope: NoStep("it needs a processor with an event that is not built in"),
    },
    Claim { id: "tests-on-windows", text: "`cargo make test` on Windows", scope: InPart("building them on Windows") },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the first cell of each row of the table of claims.
    fn documented() -> Vec<&'static str> {
        let document = include_str!("../../../docs/claims.md");
        let rows = document.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
        rows.filter(|cell| *cell != "claim").collect()
    }

    #[test]
    fn every_claim_of_the_document_is_here_and_no_other() {
        let documented = documented();
        assert!(documented.len() > 50, "the table is not found any more: {}", documented.len());
        assert_eq!(CLAIMS.iter().map(|claim| claim.text).collect::<Vec<_>>(), documented);
    }

    #[test]
    fn identifiers_are_unique_and_fit_an_address() {
        let ids: BTreeSet<&str> = CLAIMS.iter().map(|claim| claim.id).collect();
        assert_eq!(ids.len(), CLAIMS.len());
        let plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
        assert!(ids.iter().all(|id| id.chars().all(plain)), "{ids:?}");
    }
}
