//! Loads behind the samples of load latency, from the records that the processor writes to the export.

use std::collections::BTreeSet;
use std::fs;

use tests::Lab;

/// A processor of each record format with loads, and its event.
const PROCESSORS: [(&str, &str); 3] = [
    ("nehalem-920", "cpu/event=0x0B,umask=0x10,ldlat=30/p@400k"),
    ("haswell-4710mq", "cpu/event=0xCD,umask=0x01,ldlat=30/p@400k"),
    ("skylake-6600k", "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_16:ldlat=30:p@400k"),
];

/// Address, source and latency: of user mode, of the kernel, of zero, not canonical; the last is below the threshold.
const LOADS: [[u64; 3]; 5] = [
    [0x7FF6_1234_5678, 0x5, 31],
    [0xFFFF_F800_0000_1008, 0x3C, 0x1_0000],
    [0, 0x1, 30],
    [0x8000_0000_0000_0000, 0xF, 400],
    [0x1111_1111, 0x1, 29],
];

fn fields([address, source, latency]: &[u64; 3]) -> [String; 3] {
    [format!("{address:#018x}"), latency.to_string(), format!("{source:#x}")]
}

fn last_fields(line: &str) -> [&str; 3] {
    let mut fields = line.rsplit(',');
    let [source, latency, address] = [(); 3].map(|()| fields.next().unwrap());
    [address, latency, source]
}

#[test]
fn the_export_has_the_load_of_each_sample_of_load_latency() {
    let mut lab = Lab::boot("nehalem-920").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    for (identity, event) in PROCESSORS {
        probe.service("unload", "halprof").unwrap().unwrap();
        lab.check_clean().unwrap();
        lab.become_processor(identity).unwrap();
        probe.service("load", "halprof").unwrap().unwrap();
        lab.wire.set_loads(0, &LOADS).unwrap();
        lab.run_in_real_time().unwrap();
        let arguments = ["record", "-a", "-C", "0", "-e", event, "-o", "C:\\loads.rec", "--duration", "0.3s"];
        lab.client(&arguments).unwrap().success().unwrap();
        lab.run_by_script().unwrap();
        let export = ["export", "--format", "csv", "-o", "C:\\loads.csv", "C:\\loads.rec"];
        lab.client(&export).unwrap().success().unwrap();
        let lines = fs::read_to_string(lab.wine().drive_c("loads.csv")).unwrap();
        let of = |kind: &str| lines.lines().filter(|line| line.split(',').nth(1) == Some(kind)).collect::<Vec<&str>>();
        let (loads, precise) = (of("access"), of("precise").len() + of("precise_next").len());
        assert!(
            precise > LOADS.len() && loads.len() == precise,
            "{identity}: {precise} samples, {} loads",
            loads.len()
        );
        let found: BTreeSet<[&str; 3]> = loads.iter().map(|line| last_fields(line)).collect();
        let wanted: Vec<[String; 3]> = LOADS[..4].iter().map(fields).collect();
        let wanted = wanted.iter().map(|fields| fields.each_ref().map(String::as_str)).collect();
        assert_eq!(found, wanted, "{identity}");
    }
    drop(probe);
    lab.finish().unwrap();
}
