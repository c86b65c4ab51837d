//! Exit code, text and remedy of every cause.

use halprof::Refusal;
use halprof::core_types::CoreTypeInfo;
use halprof::sessions;
use halprof::source::Sources;
use halprof::text::{missing_feature, support};
use pmu::Support;
use pmu::debug_store::MissingFeature;
use protocol::{ErrorCode, Event, ReplyHeader, SessionEvent, modes, status};
use zerocopy::FromZeros;

use fake_system::{core_type_record, sources};
use user_error::Error;
use user_error::exit::Exit;

fn refused(cause: u32, detail: [u64; 2], session_events: &[SessionEvent]) -> Refusal {
    let sources = Sources::new(&sources());
    Refusal {
        part: ["TotalIssues", "TotalCycles"].map(str::to_owned).to_vec(),
        request: "Start",
        header: ReplyHeader {
            status: status::STATUS_NOT_FOUND.number(),
            cause,
            // Only an event needs a value that is written; the other accesses concern every event.
            source: if cause == ErrorCode::RegisterFault as u32 && detail[1] == 0 { 0 } else { 6 },
            processor: 1,
            detail,
            ..ReplyHeader::new_zeroed()
        },
        source: sources.name_of(&Event::of(6)),
        sessions: sessions::by_session(session_events, &sources),
        core_types: Vec::new(),
        is_root: false,
    }
}

fn refusal(cause: u32, detail: [u64; 2], session_events: &[SessionEvent]) -> Error {
    Error::from(refused(cause, detail, session_events))
}

fn holder(session: u64, source: u64, flags: u32) -> SessionEvent {
    SessionEvent {
        event: Event::of(source),
        session,
        modes: modes::BOTH,
        process: 1234,
        flags,
        processors: 2,
        first_processor: 0,
        ..SessionEvent::new_zeroed()
    }
}

/// Number and detail of a cause, and the resulting exit code and report.
#[expect(clippy::too_many_lines, reason = "a table")]
fn table() -> [(u32, [u64; 2], Exit, &'static str); 106] {
    [
        (0, [0, 0], Exit::Failure, "error: the driver failed the request Start: NTSTATUS 0xC0000225"),
        (
            1,
            [1, 2],
            Exit::VersionMismatch,
            "error: this client has protocol version 1, and the driver has version 2\n  try: .\\client install, with the halprof.sys that came with this client.exe",
        ),
        (
            2,
            [0, 0],
            Exit::UnknownSource,
            "error: the driver knows no source BranchInstructions\n  try: .\\client list --all",
        ),
        (
            3,
            [3, 0],
            Exit::UnsupportedSource,
            "error: BranchInstructions is not supported on this machine\n  because: CPUID leaf 0xA says that the event is not available (EBX)\n  try: .\\client list   (lists what is supported)",
        ),
        (
            3,
            [3, 1],
            Exit::UnsupportedSource,
            "error: BranchInstructions is not supported on CPU 1, but is on others\n  because: CPUID leaf 0xA says that the event is not available (EBX)\n  try: -C with the processors that have it",
        ),
        (
            4,
            [4, 1],
            Exit::NoFreeCounter,
            "error: no free counter for BranchInstructions on CPU 1: all 4 are in use\n  try: end the other profilers on this machine (wpr -cancel, VTune, uProf)",
        ),
        (
            4,
            [1, 1],
            Exit::NoFreeCounter,
            "error: no free counter for BranchInstructions on CPU 1: the only one is in use\n  try: end the other profilers on this machine (wpr -cancel, VTune, uProf)",
        ),
        (
            4,
            [4, 6],
            Exit::NoFreeCounter,
            "error: no free counter for BranchInstructions on CPU 1: 6 events need the 4 that can count them\n  try: fewer such events at once   (.\\client query BranchInstructions shows on which counters)",
        ),
        (
            4,
            [1, 2],
            Exit::NoFreeCounter,
            "error: no free counter for BranchInstructions on CPU 1: 2 events need the one that can count them\n  try: fewer such events at once   (.\\client query BranchInstructions shows on which counters)",
        ),
        (
            4,
            [4, 2],
            Exit::NoFreeCounter,
            "error: no free counter for BranchInstructions on CPU 1: 2 of the 4 that can count it are needed, and fewer are free\n  try: end the other profilers on this machine (wpr -cancel, VTune, uProf)",
        ),
        (
            38,
            [0, 0],
            Exit::NoFreeCounter,
            "error: no free counter for BranchInstructions on CPU 1 beside those of CPU 0\n  because: the two are threads of a core, and events 0xd0 to 0xd3 of one\n  can count on the other (errata BJ122, BV98, HSD29)\n  try: -C with one CPU of each core, or fewer events at once, or hyper-threading off",
        ),
        (
            5,
            [4096, 0],
            Exit::NoResources,
            "error: the driver could not get 4,096 bytes of memory\n  try: fewer sources or fewer processors (-C) at once",
        ),
        (
            6,
            [3, 0],
            Exit::NotRunning,
            "error: session 3 does not exist, or is another client's\n  try: .\\client status   (lists what runs)",
        ),
        (6, [0, 0], Exit::NotRunning, "error: no detached session runs\n  try: .\\client status   (lists what runs)"),
        (
            7,
            [0, 0],
            Exit::NotRunning,
            "error: BranchInstructions does not run detached\n  try: .\\client status   (lists what runs)",
        ),
        (
            8,
            [2, 0],
            Exit::NoProcessor,
            "error: none of the requested CPUs is active (2 CPUs are active)\n  try: -C with CPUs that are active   (.\\client info shows how many there are)",
        ),
        (
            9,
            [1, 0],
            Exit::NoProcessor,
            "error: CPU 1 is not active (1 CPU is active)\n  try: -C with CPUs that are active   (.\\client info shows how many there are)",
        ),
        (
            10,
            [1, 0],
            Exit::Usage,
            "error: BranchInstructions cannot be counted in one mode alone: a timer counts it in both\n  try: BranchInstructions without :u or :k",
        ),
        (
            11,
            [5, 0],
            Exit::AlreadyRunning,
            "error: BranchInstructions already runs detached, in session 5\n  try: .\\client read BranchInstructions, or: .\\client stop BranchInstructions",
        ),
        (12, [6, 0], Exit::Failure, "error: the driver does not know the flags 0x6"),
        (
            13,
            [64, 0],
            Exit::NoResources,
            "error: there are 64 sessions, which is the maximum\n  try: .\\client status, then: .\\client stop SOURCE",
        ),
        (
            14,
            [0, 0],
            Exit::UnsupportedSource,
            "error: the counters of CPU 1 do not work: a hypervisor reports them in CPUID only\n  try: give this virtual machine performance counters, if its hypervisor has them",
        ),
        (
            15,
            [0, 0],
            Exit::UnsupportedSource,
            "error: a hypervisor is present, and CPUID does not enumerate its counters (PerfCtrExtCore);\n  if they do not exist, the first access would stop the machine\n  try: give this virtual machine performance counters, if its hypervisor has them",
        ),
        (
            16,
            [4_096, 0x7FFF_FFFF],
            Exit::Usage,
            "error: the interval of BranchInstructions must be from 4096 to 2147483647\n  try: .\\client query BranchInstructions   (shows its range)",
        ),
        (
            17,
            [64, 1_048_576],
            Exit::Usage,
            "error: a ring has room for a power of two from 64 to 1048576 records\n  try: --ring with a power of two in that range",
        ),
        (
            17,
            [0, 0],
            Exit::Usage,
            "error: a ring was requested, but nothing is sampled\n  try: --ring with a power of two in that range",
        ),
        (18, [900, 0], Exit::Usage, "error: the frequency or the budget is above 900\n  try: a lower -F or --budget"),
        (
            18,
            [0, 0],
            Exit::Usage,
            "error: a frequency or a budget was requested, but nothing is sampled\n  try: a lower -F or --budget",
        ),
        (
            19,
            [1, 0],
            Exit::UnsupportedSource,
            "error: BranchInstructions can be counted but not sampled\n  because: the counters of this processor do not interrupt\n  try: .\\client stat, which needs no interrupt, or by time: .\\client record -e Time",
        ),
        (
            20,
            [0xC000_0001, 0],
            Exit::InterruptTaken,
            "error: Windows did not accept a handler of the performance interrupt: NTSTATUS 0xC0000001\n  because: another driver has it, or this machine's HAL has none\n  try: end the other profilers on this machine (wpr -cancel, VTune, uProf)",
        ),
        (
            20,
            [0xC000_0001, 4],
            Exit::InterruptTaken,
            "error: Windows did not accept a handler of the performance interrupt: NTSTATUS 0xC0000001\n  because: KVM with Hyper-V enlightenments hides the counters from Windows\n  try: .\\client stat, which needs no interrupt; or start the virtual machine\n  without Hyper-V enlightenments (libvirt: <hyperv>; QEMU: hv-...) to sample",
        ),
        (
            21,
            [9, 0],
            Exit::NotRunning,
            "error: session 9 samples nothing\n  try: .\\client record   (starts a session that samples)",
        ),
        (
            22,
            [0xC000_009A, 0],
            Exit::CountersTaken,
            "error: another driver has the counters: HalAllocateHardwareCounters returned\n  NTSTATUS 0xC000009A\n  try: end the other profilers on this machine (wpr -cancel, VTune, uProf)",
        ),
        (
            23,
            [0x0102_0000_0188, 0x0053_003C],
            Exit::CountersTaken,
            "error: counter 2 on CPU 1 is in use by another program that did not reserve it\n  because: IA32_PERFEVTSEL2 (MSR 0x188) holds 0x53003c\n  try: end the program that does this; known are\n  Microsoft Defender, Intel PCM, VTune (sep), wpr;\n  or --force, which takes the counter from it",
        ),
        (
            24,
            [0x1_0000, 0],
            Exit::UnsupportedSource,
            "error: Windows has not enabled the performance interrupt of CPU 1\n  its entry in the local APIC is 0x10000; Windows uses vector 0xfe, delivered as fixed\n  try: .\\client stat, which needs no interrupt",
        ),
        (
            24,
            [0x1_0000, 4],
            Exit::UnsupportedSource,
            "error: Windows has not enabled the performance interrupt of CPU 1\n  because: KVM with Hyper-V enlightenments hides the counters from Windows\n  its entry in the local APIC is 0x10000; Windows uses vector 0xfe, delivered as fixed\n  try: .\\client stat, which needs no interrupt; or start the virtual machine\n  without Hyper-V enlightenments (libvirt: <hyperv>; QEMU: hv-...) to sample",
        ),
        (
            25,
            [0xC000_00BB, 0],
            Exit::UnsupportedSource,
            "error: the local APIC cannot be accessed: NTSTATUS 0xC00000BB\n  try: .\\client stat, which needs no interrupt",
        ),
        (
            26,
            [0, 0],
            Exit::Usage,
            "error: BranchInstructions is a raw event, and raw events have no stored interval\n  try: .\\client record -e BranchInstructions@INTERVAL",
        ),
        (
            27,
            [256, 0],
            Exit::NoResources,
            "error: 256 different raw events are in use, which is the maximum\n  try: .\\client status, then: .\\client stop SOURCE",
        ),
        (
            28,
            [5, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 cannot record this itself\n  because: the processor's PEBS is unavailable (IA32_MISC_ENABLE bit 12):\n  firmware or a hypervisor has disabled it\n  try: -C with processors that have it   (.\\client control-area shows which)",
        ),
        (
            28,
            [7, 6],
            Exit::UnsupportedSource,
            "error: CPU 1 cannot record this itself\n  because: its precise records have format 6, which this driver does not know\n  try: -C with processors that have it   (.\\client control-area shows which)",
        ),
        (
            28,
            [6, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 cannot record this itself\n  because: the processor cannot omit the branches of one mode\n  (CPUID.1:ECX[4], DS-CPL)\n  try: the same without --user and --kernel",
        ),
        (
            28,
            [9, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 cannot record this itself\n  because: the profile interface of this machine has no precise events\n  try: .\\client record with events that do not end in :p",
        ),
        (
            29,
            [0xC0, 1],
            Exit::DebugStoreTaken,
            "error: the Debug Store of CPU 1 is in use by another program\n  because: branches are traced or events recorded (IA32_DEBUGCTL is 0xc0,\n  IA32_PEBS_ENABLE 0x1)\n  try: end the other profilers on this machine (wpr -cancel, VTune, uProf)",
        ),
        (
            30,
            [3, 0],
            Exit::DebugStoreTaken,
            "error: session 3 has the Debug Store; only one session at a time can have it\n  try: .\\client status   (shows the sessions)",
        ),
        (
            31,
            [0, 0],
            Exit::UnsupportedSource,
            "error: Windows keeps two page tables per process (kernel VA shadowing, against\n  Meltdown); the processor would write its records where user code has nothing\n  mapped, and the machine would stop\n  try: .\\client record with events that do not end in :p; or a processor\n  that needs no shadowing   (PowerShell: Get-SpeculationControlSettings)",
        ),
        (
            31,
            [0xC000_0003, 0],
            Exit::UnsupportedSource,
            "error: Windows does not say whether it keeps two page tables per process (kernel\n  VA shadowing, against Meltdown): NTSTATUS 0xC0000003; with two, the\n  processor would write its records where user code has nothing mapped, and the\n  machine would stop\n  try: .\\client record with events that do not end in :p; or a processor\n  that needs no shadowing   (PowerShell: Get-SpeculationControlSettings)",
        ),
        (
            32,
            [8, 0],
            Exit::UnsupportedSource,
            "error: BranchInstructions cannot be sampled precisely\n  because: the processor makes no precise records of this event\n  try: BranchInstructions without :p",
        ),
        (
            33,
            [0xC000_0018, 0xFFFF_F800_1234_0000],
            Exit::DebugStoreTaken,
            "error: CPU 1 already has a control area, at 0xfffff80012340000\n  (STATUS_ADDRESS_ALREADY_EXISTS)\n  because: Windows keeps one of its own, or an earlier .\\client control-area\n  allocate or another program made it\n  try: .\\client control-area   (shows all areas)",
        ),
        (
            33,
            [0xC000_0018, 0],
            Exit::DebugStoreTaken,
            "error: CPU 1 already has a control area\n  (STATUS_ADDRESS_ALREADY_EXISTS)\n  because: Windows keeps one of its own, or an earlier .\\client control-area\n  allocate or another program made it\n  try: .\\client control-area   (shows all areas)",
        ),
        (
            33,
            [0xC000_022D, 0xFFFF_F800_1234_0000],
            Exit::DebugStoreTaken,
            "error: the control area of CPU 1 stays for now (STATUS_RETRY)\n  because: IA32_DS_AREA holds its address, 0xfffff80012340000; it is freed\n  when the register no longer does\n  try: .\\client control-area   (shows all areas)",
        ),
        (
            33,
            [0xC000_00A0, 0],
            Exit::DebugStoreTaken,
            "error: CPU 1 has no control area (STATUS_MEMORY_NOT_ALLOCATED)\n  try: .\\client control-area   (shows all areas)",
        ),
        (
            33,
            [0x8000_0011, 0xFFFF_F800_1234_0000],
            Exit::DebugStoreTaken,
            "error: a session uses the control area of CPU 1 (STATUS_DEVICE_BUSY)\n  try: .\\client status   (shows the sessions)",
        ),
        (
            33,
            [0xC000_00BB, 0],
            Exit::DebugStoreTaken,
            "error: the kernel refused the control area of CPU 1 with\n  STATUS_NOT_SUPPORTED\n  because: it supports them only on Intel processors with PEBS\n  try: .\\client control-area   (shows all areas)",
        ),
        (
            33,
            [0xC000_0003, 0],
            Exit::DebugStoreTaken,
            "error: the kernel refused the control area of CPU 1 with\n  STATUS_INVALID_INFO_CLASS\n  because: it has no SystemProcessorProfileControlArea\n  try: .\\client control-area   (shows all areas)",
        ),
        (
            33,
            [0xC000_009A, 0],
            Exit::DebugStoreTaken,
            "error: the kernel refused the control area of CPU 1 with\n  0xC000009A\n  try: .\\client control-area   (shows all areas)",
        ),
        (
            34,
            [1, 1_024],
            Exit::Usage,
            "error: the number of records per interrupt must be from 1 to 1024\n  try: --buffer or --batch in that range",
        ),
        (
            34,
            [0, 0],
            Exit::Usage,
            "error: records per interrupt were requested, but no event is precise\n  try: --batch with an event that ends in :p",
        ),
        (
            35,
            [0, 0],
            Exit::Failure,
            "error: the machine is going to sleep, or has not woken up yet\n  because: this has to read registers that lose their contents during sleep\n  try: the same command again when the machine is awake",
        ),
        (
            36,
            [0x01_0200_C000_0301, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 faulted (#GP) when it read PerfCntrGlobalCtl (MSR 0xc0000301)\n  because: CPUID enumerates the counters, but the hypervisor lacks some of them\n  try: give this virtual machine a whole virtual PMU, or hide the PMU from it\n  (KVM: -cpu host,pmu=on or pmu=off)",
        ),
        (
            36,
            [0x01_0100_0000_038F, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 faulted (#GP) when it read IA32_PERF_GLOBAL_CTRL (MSR 0x38f)\n  because: CPUID enumerates the counters, but the hypervisor lacks some of them\n  try: give this virtual machine a whole virtual PMU, or hide the PMU from it\n  (KVM: -cpu host,pmu=on or pmu=off)",
        ),
        (
            36,
            [0x02_0101_0000_0390, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 faulted (#GP) when it wrote IA32_PERF_GLOBAL_OVF_CTRL (MSR 0x390)\n  because: CPUID enumerates the counters, but the hypervisor lacks some of them\n  try: give this virtual machine counters that work, or hide them from it; on a\n  Hyper-V host, with the machine off:\n  Set-VMProcessor NAME -Perfmon @(\"pmu\",\"lbr\",\"pebs\"), or @()",
        ),
        (
            36,
            [0x03_0202_0000_0004, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 faulted (#GP) when it read counter 4 by RDPMC\n  because: CPUID enumerates the counters, but the hypervisor lacks some of them\n  try: turn off what uses Hyper-V: virtualization-based security (msinfo32\n  lists it), or the Hyper-V role (bcdedit /set hypervisorlaunchtype off)",
        ),
        (
            36,
            [0x0102_4000_0002, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 faulted (#GP) when it read fixed counter 2 by RDPMC\n  because: CPUID enumerates it, but the processor, or a hypervisor that hides\n  itself, does not have it\n  try: update the firmware, and turn off what virtualizes this machine",
        ),
        (
            36,
            [0x02_0102_2000_0000, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 faulted (#GP) when it read MSR_PERF_METRICS by RDPMC\n  because: CPUID enumerates the counters, but the hypervisor lacks some of them\n  try: give this virtual machine counters that work, or hide them from it; on a\n  Hyper-V host, with the machine off:\n  Set-VMProcessor NAME -Perfmon @(\"pmu\",\"lbr\",\"pebs\"), or @()",
        ),
        (
            36,
            [0x09_0109_0000_0777, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 faulted (#GP) when it accessed MSR 0x777\n  because: CPUID enumerates it, but the processor, or a hypervisor that hides\n  itself, does not have it\n  try: update the firmware, and turn off what virtualizes this machine",
        ),
        (
            36,
            [0x01_0101_0000_0186, 0x43_00C4],
            Exit::UnsupportedSource,
            "error: CPU 1 cannot count BranchInstructions\n  because: IA32_PERFEVTSEL0 (MSR 0x186) faulted (#GP) for the value 0x4300c4\n  try: the same without this event, or on the machine itself instead of a virtual one",
        ),
        (
            36,
            [0x01_0103_0000_0186, 0x43_00C4],
            Exit::UnsupportedSource,
            "error: CPU 1 cannot count BranchInstructions\n  because: IA32_PERFEVTSEL0 (MSR 0x186) does not keep the value 0x4300c4\n  try: the same without this event, or on the machine itself instead of a virtual one",
        ),
        (
            37,
            [0xC, 0x3],
            Exit::Usage,
            "error: BranchInstructions counts on none of the counters asked for\n  because: on CPU 1 it can use counters=0xc, and counters=0x3 was asked for\n  try: counters= with one of them   (.\\client query BranchInstructions shows all)",
        ),
        (
            37,
            [0, 0x3],
            Exit::Usage,
            "error: BranchInstructions takes no counter, but counters=0x3 was asked for\n  try: BranchInstructions without counters=",
        ),
        (
            39,
            [0x60, 0],
            Exit::Usage,
            "error: BranchInstructions is not the same event on all of these CPUs\n  because: the core types of this machine number their events differently\n  try: cpu_core/BranchInstructions/\n  or cpu_atom/BranchInstructions/;\n  or -C with CPUs of one core type",
        ),
        (
            40,
            [0x40, 0],
            Exit::UnsupportedSource,
            "error: cpu_core/BranchInstructions/ needs a hybrid\n  because: all CPUs of this machine are of one kind\n  try: BranchInstructions",
        ),
        (
            40,
            [0x40, 0x20],
            Exit::NoProcessor,
            "error: cpu_core/BranchInstructions/ has no CPU to run on\n  because: the requested CPUs are all of the type cpu_atom\n  try: -C with CPUs of the type cpu_core, or cpu_atom/BranchInstructions/",
        ),
        (
            41,
            [2 << 32 | 0x1A6, 0x1_0001],
            Exit::NoFreeCounter,
            "error: no register on CPU 1 can have the value that BranchInstructions needs\n  because: events of the other thread of its core need MSR_OFFCORE_RSP_0 (MSR 0x1a6) to be 0x10001\n  try: fewer values at once; .\\client status shows what runs",
        ),
        (
            41,
            [1 << 32 | 0x3F7, 0x15],
            Exit::NoFreeCounter,
            "error: no register on CPU 1 can have the value that BranchInstructions needs\n  because: events there need MSR_PEBS_FRONTEND (MSR 0x3f7) to be 0x15\n  try: fewer values at once; .\\client status shows what runs",
        ),
        (
            42,
            [0, 0],
            Exit::Usage,
            "error: BranchInstructions cannot be counted\n  because: load latency is measured by precise samples only\n  try: .\\client record -e with :p behind the event",
        ),
        (
            43,
            [0xABC, 0],
            Exit::Usage,
            "error: the driver does not accept the event BranchInstructions: its fields are 0xabc\n  try: .\\client install, with the halprof.sys that came with this client.exe",
        ),
        (
            44,
            [5, 0b1011],
            Exit::NoFreeCounter,
            "error: the 5 events of a group cannot be counted at the same time on CPU 1\n  because: there is no counter for BranchInstructions beside the others; 3 fit together\n  try: \"{TotalIssues,TotalCycles}\", or the events without braces",
        ),
        (
            45,
            [12_884_901_888, 1 << 30],
            Exit::NoResources,
            "error: the rings of all sessions would take 12,884 MB of memory that cannot be paged out,\n  and the driver allows 1,073 MB\n  try: a smaller --ring, or fewer CPUs with -C",
        ),
        (
            46,
            [0xC000_0302, 0],
            Exit::CountersTaken,
            "error: Windows does not change its thread profiling: KeSetHardwareCounterConfiguration returned\n  STATUS_WMI_ALREADY_ENABLED\n  because: another driver has configured it, or a thread still profiles\n  try: end the programs that profile their threads, and other profilers",
        ),
        (
            46,
            [0xC000_000D, 0],
            Exit::CountersTaken,
            "error: Windows does not change its thread profiling: KeSetHardwareCounterConfiguration returned\n  0xC000000D\n  try: end the programs that profile their threads, and other profilers",
        ),
        (
            47,
            [0, 0],
            Exit::CountersTaken,
            "error: a session for thread profiling needs the counters for itself: no other such session,\n  and none that samples by counters, can run beside it\n  try: .\\client status   (lists what runs); then stop one of the two",
        ),
        (
            48,
            [0, 0],
            Exit::UnsupportedSource,
            "error: no counter counts BranchInstructions on every CPU\n  because: thread profiling needs a general counter that has the same index everywhere\n  try: another event   (.\\client query BranchInstructions shows its counters)",
        ),
        (
            49,
            [7, 0],
            Exit::NotRunning,
            "error: the counters of session 7 on CPU 1 cannot be read as a group\n  try: .\\client read, which reads every session",
        ),
        (
            50,
            [0, 0],
            Exit::UnsupportedSource,
            "error: no counter of CPU 1 counts: a hypervisor keeps their values only\n  try: again later, because the host may use the counters now",
        ),
        (
            99,
            [0, 0],
            Exit::Failure,
            "error: the driver failed the request Start for the reason 99, which this client\n  (protocol version 21) does not know: NTSTATUS 0xC0000225",
        ),
        (
            51,
            [0, 0],
            Exit::Usage,
            "error: the condition of BranchInstructions cannot be decided\n  \
             because: only an interrupt of a counter that counts all the time decides on its sample\n  \
             try: a ratio of other events, and samples without :p",
        ),
        (
            51,
            [1, 0],
            Exit::Usage,
            "error: the condition of BranchInstructions cannot be decided\n  \
             because: the interrupt needs both counts of the ratio, and CPU 1 lacks one\n  \
             try: a ratio of other events, and samples without :p",
        ),
        (
            52,
            [0x0, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 does not record these last branches\n  because: it has no last branch records that halprof knows, or a hypervisor\n  hides them\n  try: the same without -b, or -g for call stacks",
        ),
        (
            52,
            [0x1, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 does not record these last branches\n  because: Branch Sampling of Zen 3 holds interrupts back while the processor\n  waits; Windows gives a driver no place to switch it off before\n  try: the same without -b, or -g for call stacks",
        ),
        (
            52,
            [0x2, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 does not record these last branches\n  because: they recorded nothing of the driver's own code: a hypervisor keeps their\n  values only\n  try: on the host: Set-VMProcessor NAME -Perfmon @(\"pmu\", \"lbr\")   (Hyper-V)",
        ),
        (
            52,
            [0x3, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 does not record these last branches\n  because: an interrupt does not stop the records, so that branches of kernel mode\n  would be those of the interrupt handler\n  try: -j any,u   (branches of user mode)",
        ),
        (
            52,
            [0x4, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 does not record these last branches\n  because: it cannot choose branches by their kind\n  try: -b   (branches of every kind)",
        ),
        (
            53,
            [0x1d9, 1],
            Exit::CountersTaken,
            "error: the last branch records of CPU 1 are in use by another program\n  because: register 0x1d9 is 0x1\n  try: end the other profilers on this machine (wpr -cancel, VTune, uProf);\n  or --force, if firmware left it on",
        ),
        (
            54,
            [0x3, 0],
            Exit::CountersTaken,
            "error: session 3 has the last branch records; only one session at a time can have them\n  try: .\\client status   (shows the sessions)",
        ),
        (
            55,
            [0x0, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 does not sample BranchInstructions precisely\n  because: it has no Instruction-Based Sampling (IBS), or the firmware hides it\n  try: the firmware's setting of IBS, or the event without :p",
        ),
        (
            55,
            [0x1, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 does not sample BranchInstructions precisely\n  because: a hypervisor runs the system, also where Windows has security based\n  on virtualization, and none is known to let a guest use IBS\n  try: the event without :p",
        ),
        (
            55,
            [0x2, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 does not sample BranchInstructions precisely\n  because: the firmware has chosen no entry of the local vector table for the\n  interrupt of IBS\n  try: the event without :p",
        ),
        (
            55,
            [0x3, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 does not sample BranchInstructions precisely\n  because: another program gets the interrupts of IBS: its entry of the local vector\n  table is not masked\n  try: end the other profilers on this machine (wpr -cancel, VTune, uProf)",
        ),
        (
            55,
            [0x4, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 does not sample BranchInstructions precisely\n  because: its IBS sampled nothing of the code that halprof executed\n  try: the event without :p",
        ),
        (
            55,
            [0x5, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 does not sample BranchInstructions precisely\n  because: its IBS counts cycles alone, and no ops\n  try: cycles:p, or the event without :p",
        ),
        (
            55,
            [0x6, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 does not sample BranchInstructions precisely\n  because: AMD's IBS samples at cycles and at ops, and the event is neither\n  try: cycles:p or instructions:p, or the event without :p",
        ),
        (
            55,
            [0x7, 0],
            Exit::UnsupportedSource,
            "error: CPU 1 does not sample BranchInstructions precisely\n  because: its IBS samples ops alone, and no fetches\n  try: ibs_op// instead of ibs_fetch//",
        ),
        (
            56,
            [0xc001_1033, 0x2_1234],
            Exit::CountersTaken,
            "error: the Instruction-Based Sampling of CPU 1 is in use by another program\n  because: register 0xc0011033 is 0x21234\n  try: end the other profilers on this machine (wpr -cancel, VTune, uProf);\n  or --force, if firmware left it on",
        ),
        (
            57,
            [0x0, 0],
            Exit::CountersTaken,
            "error: two events of the session are precise; AMD's processors sample one at a time\n  try: one of them with :p, or one after the other",
        ),
        (
            57,
            [0x7, 0],
            Exit::CountersTaken,
            "error: session 7 has a precise event; AMD's processors sample one at a time\n  try: .\\client status   (shows the sessions)",
        ),
    ]
}

/// Returns the report of every refusal.
pub fn reports() -> Vec<String> {
    table().iter().map(|(cause, detail, ..)| refusal(*cause, *detail, &[]).report()).collect()
}

#[test]
fn every_cause_has_its_code_text_and_remedy() {
    let table = table();
    for cause in ErrorCode::ALL {
        assert!(table.iter().any(|row| row.0 == cause as u32), "{cause:?} is missing from the table");
    }
    for (cause, detail, exit, report) in table {
        let error = refusal(cause, detail, &[]);
        assert_eq!((error.exit(), error.report().as_str()), (exit, report), "{cause}");
    }
}

/// Returns the report of a refusal on a hybrid with two processors of each type.
fn on_hybrid(cause: u32, detail: [u64; 2], source: &str) -> String {
    let core_types = [core_type_record(0x40, &[0, 2]), core_type_record(0x20, &[1, 3])];
    let core_types = core_types.iter().map(CoreTypeInfo::from).collect();
    let refusal = Refusal { source: source.to_owned(), core_types, ..refused(cause, detail, &[]) };
    Error::from(refusal).report()
}

#[test]
fn refusals_on_a_hybrid_name_the_core_types_with_their_processors() {
    let raw = "cpu/event=0xd1,umask=0x20/";
    assert_eq!(
        on_hybrid(39, [0x60, 0], raw),
        "error: cpu/event=0xd1,umask=0x20/ is not the same event on all of these CPUs\n  \
         because: the core types of this machine number their events differently:\n  \
         cpu_core is CPUs 0,2\n  \
         cpu_atom is CPUs 1,3\n  \
         try: cpu_core/event=0xd1,umask=0x20/\n  \
         or cpu_atom/event=0xd1,umask=0x20/;\n  \
         or -C with CPUs of one core type"
    );
    assert_eq!(
        on_hybrid(40, [0x40, 0x20], raw),
        "error: cpu_core/event=0xd1,umask=0x20/ has no CPU to run on\n  \
         because: the requested CPUs are all of the type cpu_atom\n  \
         try: -C with CPUs 0,2, or cpu_atom/event=0xd1,umask=0x20/"
    );
    assert_eq!(
        on_hybrid(40, [0x30, 0], "TotalCycles"),
        "error: this machine has no processors of the type cpu_0x30\n  try: .\\client info   (lists the core types)"
    );
    assert!(on_hybrid(3, [3, 1], "LLCMisses").ends_with("\n  try: cpu_core/LLCMisses/"), "CPU 1 lacks it");
}

#[test]
fn every_support_value_of_a_refused_source_is_explained() {
    for number in (0..=22).chain([u64::MAX]) {
        let report = refusal(3, [number, 0], &[]).report();
        let why = support::sentence(u32::try_from(number).unwrap_or(u32::MAX));
        assert!(report.contains(&why), "{report}");
    }
    assert_eq!(Support::ALL.len(), 22);
}

#[test]
fn every_missing_feature_of_a_refusal_is_explained() {
    for (cause, number) in [28, 32].into_iter().flat_map(|cause| (0..12).map(move |number| (cause, number))) {
        let report = refusal(cause, [number, 3], &[]).report();
        let why = missing_feature::sentence(u32::try_from(number).unwrap_or(u32::MAX), 3);
        assert!(report.contains(&why) && report.contains("\n  try: "), "{report}");
    }
    assert_eq!(MissingFeature::ALL.len(), 12);
}

#[test]
fn a_raw_event_that_is_not_precise_has_the_names_of_precise_sources_as_the_remedy() {
    let refusal = Refusal { source: "cpu/event=0xC0/".to_owned(), ..refused(32, [8, 0], &[]) };
    assert_eq!(
        Error::from(refusal).report(),
        "error: cpu/event=0xC0/ cannot be sampled precisely\n  \
         because: the processor makes no precise records of this event\n  \
         try: TotalIssues:p, BranchInstructions:p or BranchMispredictions:p;\n  \
         or cpu/event=0xC0/ without :p"
    );
}

#[test]
fn sessions_that_hold_counters_are_listed_with_the_command_that_frees_one() {
    let detached = [holder(3, 2, 1), holder(3, 11, 1), holder(4, 0x13, 0)];
    assert_eq!(
        refusal(4, [4, 1], &detached).report(),
        "error: no free counter for BranchInstructions on CPU 1: all 4 are in use\n  \
         held by: session 3 (process 1234, detached): TotalIssues, BranchMispredictions\n           \
         session 4 (process 1234): TotalCycles\n  \
         try: .\\client stop TotalIssues BranchMispredictions"
    );
    let report = refusal(4, [4, 1], &[holder(4, 0x13, 0)]).report();
    assert_eq!(report.lines().last(), Some("  try: wait for process 1234 to end, or end it"));
    let report = refusal(47, [0, 0], &detached).report();
    let of_holders: Vec<_> = report.lines().skip(2).take(2).collect();
    assert_eq!(
        of_holders,
        [
            "  held by: session 3 (process 1234, detached): TotalIssues, BranchMispredictions",
            "           session 4 (process 1234): TotalCycles"
        ]
    );
}
