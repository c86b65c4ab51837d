//! Tests of the import of facts, with a small folder of tables.

use super::*;
use crate::workspace::Workspace;

/// Tables and facts, by their names in the two folders.
struct Folders {
    tables: tempfile::TempDir,
    facts: tempfile::TempDir,
}

const ONE: &str = "\
A.X,0x3c,0x1,0,0,0,0,0xf,0,,0x00,0x00,0,0,100003
B.ANY,0x00,0x1,0,0,0,0,F1,1,0x100000000,0,0,0,0,100003
C.Y,0xc0,0x1,16,1,1,1,0x2,1,0x10000000e,0,0,0,0,100003
D.P,0xD1,0x4,0,0,0,0,0xf,1,,0x00,0x00,0,0,100003
D.W,0xd1,0x8,0,0,0,0,0xf,0,,0x00,0x00,0,0,100003
OCR.M.HIT,0xb7|0XBB,0x1,0,0,0,0,0xf,1,0xf,0x1a6|0x1a7,0x10,0,0,100003
OCR.M.MISS,0xb7,0x1,0,0,0,0,0xf,1,0xf,0x1a6,0x20,0,0,100003
G.P,0xd8,0x1,0,0,0,0,0xff,1,,0x00,0x00,0,0,100003
";
const TWO: &str = "\
A.X,0x3c,0x1,0,0,0,0,0xf,0,,0x00,0x00,0,0,100003
A.OLD,0x3c,0x1,0,0,0,0,0xf,0,,0x00,0x00,0,1,100003
D.P,0xD1,0x4,0,0,0,0,0xf,0,,0x00,0x00,0,0,100003
E.ANY_P,0xc0,0x0,0,0,0,0,0x3,0,,0x00,0x00,0,0,100003
E.ANY_PS,0xc0,0x0,0,0,0,0,0x1,2,,0x00,0x00,0,0,100003
";

/// What the import writes: sorted, each row once; the alternatives of an event; the first four counters where no table
/// says which record; one row for the events that differ by a second register; counters by the replacements.
const LAKE: &str = "\
name,event,umask,cmask,inv,edge,any,counters,precise,second
B.ANY,00,01,0,0,0,0,fixed1,0,0
A.OLD,3C,01,0,0,0,0,FF,0,0
A.X,3C,01,0,0,0,0,FF,0,0
OCR,B7,01,0,0,0,0,FF,0,1
OCR,BB,01,0,0,0,0,FF,0,1
E.ANY_P,C0,00,0,0,0,0,3,1,0
C.Y,C0,01,16,1,1,1,2,E,0
D.P,D1,04,0,0,0,0,F,F,0
D.P,D1,04,0,0,0,0,F,0,0
D.W,D1,08,0,0,0,0,7,0,0
G.P,D8,01,0,0,0,0,FF,F,0
,D8,*,0,0,0,0,F,0,0
,D9,*,0,0,0,0,F,0,0
";

impl Folders {
    fn new() -> Self {
        let folders = Self { tables: tempfile::tempdir().unwrap(), facts: tempfile::tempdir().unwrap() };
        folders.write_table("intel/one_core.csv", &format!("{INTEL}\n{ONE}"));
        folders.write_table("intel/two_core.csv", &format!("{INTEL}\n{TWO}"));
        folders.write_table("intel/map.csv", "not read\n");
        folders.write_table("amd/fam15h.csv", &format!("{AMD}\nFPU,ALL,0x0,0xf\nCYCLES,,0x76,0x0\n"));
        folders.write_fact("import/files.csv", "generation,file\nlake,one_core.csv\nlake,two_core.csv\n");
        let counters = "lake,*,*,F,FF\nlake,D1,*,F,F\nlake,D1,08,F,7\npond,3C,*,F,1\n";
        folders.write_fact("import/counters.csv", &format!("{}\n{counters}", COUNTERS.1));
        let bulldozer = "FPU.ALL,00,0F,0,0,0,0,38,0,0\n,00,00,0,0,0,0,38,0,0\nFPU,00,*,0,0,0,0,38,0,0\n";
        folders.write_fact("import/unlisted.csv", &format!("{}\nlake,D8,D9,*,F\npond,10,1F,*,1\n", UNLISTED.1));
        folders.write_fact("bulldozer.csv", &format!("{HEADER}\n{bulldozer}CYCLES,76,00,0,0,0,0,3F,0,0\n"));
        folders
    }

    fn write_table(&self, name: &str, text: &str) {
        write(self.tables.path(), name, text);
    }

    fn write_fact(&self, name: &str, text: &str) {
        write(self.facts.path(), name, text);
    }

    fn import(&self) -> Result<()> {
        run(self.tables.path(), self.facts.path())
    }

    fn fact(&self, name: &str) -> String {
        fs::read_to_string(self.facts.path().join(name)).unwrap()
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn a_generation_unites_its_tables_and_the_counters_that_they_lack() {
    let folders = Folders::new();
    let bulldozer = folders.fact("bulldozer.csv");
    folders.import().unwrap();
    assert_eq!(folders.fact("lake.csv"), LAKE);
    assert_eq!(folders.fact("bulldozer.csv"), bulldozer, "its counters are not imported");
    folders.import().unwrap();
    assert_eq!(folders.fact("lake.csv"), LAKE, "a second import changes nothing");
}

/// Imports with one change, and returns the error.
fn refused(change: impl Fn(&Folders)) -> String {
    let folders = Folders::new();
    folders.write_fact("lake.csv", "as before\n");
    change(&folders);
    let error = format!("{:#}", folders.import().unwrap_err());
    assert_eq!(folders.fact("lake.csv"), "as before\n", "{error}");
    error
}

#[test]
fn what_the_import_cannot_place_is_refused_and_changes_nothing() {
    let text = refused(|folders| folders.write_table("intel/new_core.csv", &format!("{INTEL}\n")));
    assert_eq!(text, "new_core.csv belongs to no generation: add it to import/files.csv");
    let text = refused(|folders| fs::remove_file(folders.tables.path().join("intel/two_core.csv")).unwrap());
    assert!(text.contains("two_core.csv"), "{text}");
    let text = refused(|folders| folders.write_table("amd/fam15h.csv", &format!("{AMD}\nFPU,ALL,0x0,0xf\n")));
    assert!(text.starts_with("CYCLES (76/00) is in one of amd/fam15h.csv and bulldozer.csv only"), "{text}");
    let damaged = |from: &str, to: &str| {
        refused(|folders| folders.write_table("intel/one_core.csv", &format!("{INTEL}\n{}", ONE.replacen(from, to, 1))))
    };
    for (from, to, line) in [
        ("0x3c", "0x3g", 2),
        ("0x3c", "0x1003c", 2),
        ("F1", "Fx", 3),
        ("16,1,1,1", "16,2,1,1", 4),
        ("D.P,", "D.P,,", 5),
        ("0x1a6|0x1a7", "0x1a6|x", 7),
    ] {
        let text = damaged(from, to);
        assert!(text.contains(&format!("one_core.csv: line {line}")), "{from} -> {to}: {text}");
    }
    let text = refused(|folders| folders.write_fact("import/counters.csv", "generation,event\n"));
    assert!(text.starts_with("import/counters.csv: line 1"), "{text}");
}

/// The files that the import writes have its format and order. Whether they are those of the vendors' tables, which are
/// not part of the repository, only an import shows.
#[test]
fn the_committed_facts_have_the_form_that_the_import_writes() {
    let facts = Workspace::find().unwrap().root().join(super::super::FACTS);
    let row = |[name, event, umask, cmask, inv, edge, any, counters, precise, second]: [&str; 10]| {
        let counters = match counters.strip_prefix("fixed") {
            Some(number) => Counters::Fixed(number.parse()?),
            None => Counters::General(u16::from_str_radix(counters, 16)?),
        };
        Ok(Row {
            event: u16::from_str_radix(event, 16)?,
            umask: u16::from_str_radix(umask, 16)?,
            cmask: cmask.parse()?,
            flags: [inv, edge, any].map(|flag| flag == "1"),
            name: name.to_owned(),
            counters,
            not_precise: !u16::from_str_radix(precise, 16)?,
            needs_second: second == "1",
        })
    };
    let generations = generations(&read(&facts.join(FILES.0)).unwrap()).unwrap();
    assert_eq!(generations.len(), 23);
    for generation in generations.keys() {
        let committed = read(&facts.join(generation).with_extension("csv")).unwrap();
        let (nameless, named): (Vec<&str>, Vec<&str>) = committed.lines().partition(|line| line.starts_with(','));
        let rows: BTreeSet<Row> = rows(&named.join("\n"), HEADER, row).unwrap().into_iter().collect();
        assert!(
            text(rows, nameless.into_iter().map(str::to_owned)) == committed,
            "{generation}: cargo xtask constraints --import FOLDER"
        );
    }
    let replacements = replacements(&read(&facts.join(COUNTERS.0)).unwrap()).unwrap();
    assert!(replacements.iter().all(|replacement| generations.contains_key(&replacement.generation)));
}
