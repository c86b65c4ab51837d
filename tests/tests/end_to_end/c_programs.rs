//! A C program, linked with halprof.dll and with the static library, counts what the ledger says.

use bench_protocol::{Scheduling, ThreadScript, UserRdpmc};
use tests::{Lab, Linkage, c_program};

const SOURCE: &str = "crates/halprof-c/tests/c/abi.c";

/// Each way to link, and a standard of C.
const PROGRAMS: [(Linkage, &str); 2] = [(Linkage::Dll, "c99"), (Linkage::Static, "c11")];

#[test]
fn without_the_driver_every_misuse_has_its_status_and_opening_a_text() {
    let lab = Lab::boot("zen4-7700x").unwrap();
    for (linkage, standard) in PROGRAMS {
        let program = c_program(SOURCE, standard, linkage).unwrap();
        let ran = lab.wine().run(&program.to_string_lossy(), &[]).unwrap().success().unwrap();
        assert_eq!(ran.out, "without the driver: the driver is not installed\ntry: .\\client install\n0 failures\n");
    }
    lab.finish().unwrap();
}

/// A line of the program: `region 3: virtualized instructions=4000 branches=0 REASON`.
struct Region {
    quality: String,
    instructions: u64,
    reason: String,
}

fn region(line: &str) -> Option<Region> {
    let (_, rest) = line.strip_prefix("region ")?.split_once(": ")?;
    let (quality, rest) = rest.split_once(" instructions=")?;
    let (instructions, rest) = rest.split_once(" branches=")?;
    let (_, reason) = rest.split_once(' ')?;
    Some(Region { quality: quality.to_owned(), instructions: instructions.parse().ok()?, reason: reason.to_owned() })
}

/// Runs the program and checks that each region is exact or says why not. Returns the qualities.
fn regions(lab: &mut Lab, program: &str, script: &ThreadScript, number: u64) -> Vec<String> {
    let arguments = ["instructions,branches", &number.to_string()];
    let (ran, _) = lab.run_scheduled(program, script, &arguments).unwrap();
    let ran = ran.success().unwrap();
    let regions: Vec<Region> = ran.out.lines().filter_map(region).collect();
    assert_eq!(regions.len() as u64, number, "{}", ran.out);
    for (region, executed) in regions.iter().zip((1..).map(|index| 1000 * index)) {
        if region.quality == "disturbed" {
            assert!(!region.reason.is_empty(), "{}", ran.out);
        } else {
            assert_eq!(region.instructions, executed, "{}", ran.out);
        }
    }
    regions.into_iter().map(|region| region.quality).collect()
}

#[test]
fn counts_are_those_of_the_ledger_or_disturbed_with_a_reason() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    let unkind = Scheduling { seed: 5, preempt: 5, migrate: 50, interrupt: 20, delay: 10, ..Scheduling::default() };
    let missing = vec!["ReadThreadProfilingData".to_owned()];
    for (linkage, standard) in PROGRAMS {
        let program = c_program(SOURCE, standard, linkage).unwrap().to_string_lossy().into_owned();
        let script =
            |rdpmc| ThreadScript { scheduling: Scheduling { rdpmc, ..unkind.clone() }, ..ThreadScript::default() };
        let qualities = regions(&mut lab, &program, &script(UserRdpmc::Works), 20);
        assert!(qualities.iter().all(|quality| quality == "virtualized"), "{qualities:?}");
        // As Windows has it. The program would end with 0xC0000096 if it executed RDPMC.
        let qualities = regions(&mut lab, &program, &script(UserRdpmc::Faults), 20);
        assert!(qualities.iter().all(|quality| quality != "virtualized"), "it is not verified: {qualities:?}");
        assert!(qualities.iter().any(|quality| quality == "undisturbed"), "{qualities:?}");
        let script = ThreadScript { missing: missing.clone(), ..ThreadScript::default() };
        let qualities = regions(&mut lab, &program, &script, 5);
        assert!(qualities.iter().all(|quality| quality == "disturbed"), "nothing proves them: {qualities:?}");
    }
    lab.finish().unwrap();
}
