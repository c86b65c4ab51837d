//! Ops and fetches that AMD's Instruction-Based Sampling samples, from the registers to the export.

use std::collections::BTreeMap;
use std::fs;

use tests::Lab;

use crate::accesses::check_sharing;

/// Processors, and the numbers of a source for the L3 cache and for memory of another node in an access.
const PROCESSORS: [(&str, [u32; 2]); 3] = [("zen4-7700x", [1, 3]), ("zen5-9800x3d", [1, 3]), ("milan-7713", [2, 3])];

/// Address, index of `model::DataSource::ALL` and latency: of the L1 cache, which has none, of the L3 cache, and of
/// memory of another node, at an address of the kernel.
const LOADS: [[u64; 3]; 3] = [[0x1111_0000, 0, 300], [0x2222_0000, 3, 40], [0xFFFF_F800_0000_1008, 7, 900]];

#[test]
fn the_export_has_the_op_of_each_overflow_with_its_load_and_the_fetches() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    for (identity, [l3, far]) in PROCESSORS {
        probe.service("unload", "halprof").unwrap().unwrap();
        lab.check_clean().unwrap();
        lab.become_processor(identity).unwrap();
        probe.service("load", "halprof").unwrap().unwrap();
        lab.wire.set_accesses(0, &LOADS.map(|[address, source, latency]| [address, source, latency, 0]), &[]).unwrap();
        lab.run_in_real_time().unwrap();
        let arguments = ["mem", "record", "-t", "load", "-a", "-C", "0", "-o", "C:\\ops.rec", "--duration", "0.5s"];
        lab.client(&arguments).unwrap().success().unwrap();
        lab.run_by_script().unwrap();
        let export = ["export", "--format", "csv", "-o", "C:\\ops.csv", "C:\\ops.rec"];
        lab.client(&export).unwrap().success().unwrap();
        let lines = fs::read_to_string(lab.wine().drive_c("ops.csv")).unwrap();
        let of = |kind: &str| lines.lines().filter(|line| line.split(',').nth(1) == Some(kind)).collect::<Vec<&str>>();
        let (loads, precise) = (of("access"), of("precise"));
        assert!(
            precise.len() > 20 && loads.len() == precise.len(),
            "{identity}: {} samples, {} loads",
            precise.len(),
            loads.len()
        );
        let mut found: BTreeMap<[String; 2], Vec<u32>> = BTreeMap::new();
        for line in loads {
            let mut fields = line.rsplit(',');
            let [source, latency, address] = [(); 3].map(|()| fields.next().unwrap());
            let source = u32::from_str_radix(source.trim_start_matches("0x"), 16).unwrap();
            found.entry([address.to_owned(), latency.to_owned()]).or_default().push(source >> 22 & 0x1F);
        }
        let text = |address: u64, latency: u64| [format!("{address:#018x}"), latency.to_string()];
        let wanted = [text(LOADS[0][0], 0), text(LOADS[1][0], 40), text(LOADS[2][0], 900)];
        assert_eq!(found.keys().cloned().collect::<Vec<_>>(), wanted, "{identity}");
        assert!(found[&wanted[1]].iter().all(|source| *source == l3), "{identity}: {found:?}");
        assert!(found[&wanted[2]].iter().all(|source| *source == far), "{identity}: {found:?}");
        let report = lab.client(&["mem", "report", "--csv", "C:\\ops.rec"]).unwrap().success().unwrap().out;
        for source in ["L1", "L3", "remote DRAM"] {
            assert!(report.lines().any(|line| line.contains(source)), "{identity}: {report}");
        }
        lab.run_in_real_time().unwrap();
        let arguments = ["record", "-e", "ibs_fetch//", "-a", "-C", "0", "-o", "C:\\fetches.rec", "--duration", "0.3s"];
        lab.client(&arguments).unwrap().success().unwrap();
        lab.run_by_script().unwrap();
        let report = lab.client(&["mem", "report", "--csv", "C:\\fetches.rec"]).unwrap().success().unwrap().out;
        // Erratum 1238: Milan does not know whether the instruction cache missed.
        let source = if identity == "milan-7713" { "not reported" } else { "L1" };
        assert!(report.contains("ibs_fetch") && report.contains(source), "{identity}: {report}");
        if identity == "zen4-7700x" {
            check_sharing(&mut lab, [4, 1], [0, 0]);
        }
    }
    drop(probe);
    lab.finish().unwrap();
}
