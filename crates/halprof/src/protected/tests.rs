//! What an ordinary user can prepare, on a stand-in for the file system.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const SYSTEM: &[u32] = &[18];
const ADMINISTRATORS: &[u32] = &[32, 544];
const TRUSTED_INSTALLER: &[u32] = &[80, 956_008_885, 3_418_522_649, 1_831_038_044, 1_853_292_631, 2_271_478_464];
const USERS: &[u32] = &[32, 545];
const AUTHENTICATED: &[u32] = &[11];
const SOMEONE: &[u32] = &[21, 1, 2, 3, 1001];

const FULL: u32 = 0x1F_01FF;
const MODIFY: u32 = 0x13_01BF;
const READ: u32 = 0x12_00A9;
/// What users have in %ProgramData%: create files and folders, write attributes and extended ones.
const PREPARE: u32 = 0x116;

const ALLOW: u8 = 0;
const DENY: u8 = 1;
const TO_CHILDREN: u8 = 0x3;
const ONLY_TO_CHILDREN: u8 = 0xB;
const INHERITED: u8 = 0x10;

fn sid_bytes(authority: u8, numbers: &[u32]) -> Vec<u8> {
    let mut bytes = vec![1, u8::try_from(numbers.len()).unwrap(), 0, 0, 0, 0, 0, authority];
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

fn ace(kind: u8, flags: u8, mask: u32, numbers: &[u32]) -> Vec<u8> {
    ace_of(kind, flags, mask, &sid_bytes(5, numbers))
}

fn ace_of(kind: u8, flags: u8, mask: u32, sid: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + sid.len()).unwrap().to_le_bytes();
    [&[kind, flags], &size[..], &mask.to_le_bytes(), sid].concat()
}

/// Returns a self-relative descriptor: the header, the owner, then the access list.
fn descriptor(owner: &[u32], entries: &[Vec<u8>]) -> Vec<u8> {
    let owner = sid_bytes(5, owner);
    let body = entries.concat();
    let dacl = 20 + u32::try_from(owner.len()).unwrap();
    let size = u16::try_from(8 + body.len()).unwrap().to_le_bytes();
    let count = u16::try_from(entries.len()).unwrap().to_le_bytes();
    let words = [20, 0, 0, dacl].map(u32::to_le_bytes).concat();
    [&[1, 0, 0x04, 0x80], &words[..], &owner, &[2, 0], &size, &count, &[0, 0], &body].concat()
}

fn administrators_only() -> Vec<u8> {
    descriptor(
        ADMINISTRATORS,
        &[
            ace(ALLOW, TO_CHILDREN, FULL, SYSTEM),
            ace(ALLOW, TO_CHILDREN, FULL, ADMINISTRATORS),
            ace(ALLOW, TO_CHILDREN, READ, USERS),
        ],
    )
}

/// What a user creates belongs to it.
fn of_user() -> Vec<u8> {
    descriptor(SOMEONE, &[ace(ALLOW, 0, FULL, SYSTEM), ace(ALLOW, 0, FULL, SOMEONE)])
}

/// CREATOR OWNER, which the access list of `C:\ProgramData` and `C:\Program Files` has for children.
fn creator_owner() -> Vec<u8> {
    ace_of(ALLOW, ONLY_TO_CHILDREN, FULL, &sid_bytes(3, &[0]))
}

/// The access list of %ProgramData%, as `icacls` shows it on Windows 10 and 11.
fn program_data() -> Vec<u8> {
    descriptor(
        SYSTEM,
        &[
            ace(ALLOW, TO_CHILDREN, FULL, SYSTEM),
            ace(ALLOW, TO_CHILDREN, FULL, ADMINISTRATORS),
            creator_owner(),
            ace(ALLOW, TO_CHILDREN, READ, USERS),
            ace(ALLOW, 0x2, PREPARE, USERS),
        ],
    )
}

/// The access list of `C:\`.
fn root() -> Vec<u8> {
    descriptor(
        TRUSTED_INSTALLER,
        &[
            ace(ALLOW, 0, 0x4, AUTHENTICATED),
            ace(ALLOW, ONLY_TO_CHILDREN, MODIFY, AUTHENTICATED),
            ace(ALLOW, TO_CHILDREN, FULL, SYSTEM),
            ace(ALLOW, TO_CHILDREN, FULL, ADMINISTRATORS),
            ace(ALLOW, TO_CHILDREN, READ, USERS),
        ],
    )
}

#[derive(Clone)]
struct Node {
    /// Where a link leads.
    to: Option<PathBuf>,
    /// The content of a file.
    content: Option<Vec<u8>>,
    descriptor: Vec<u8>,
}

/// A file system in memory. Links on the way are followed, as Windows does.
struct StandIn {
    nodes: RefCell<BTreeMap<PathBuf, Node>>,
    is_elevated: bool,
    own: Option<Sid>,
    /// What an ordinary user creates at the moment at which a folder is about to be created.
    race: RefCell<Option<(PathBuf, Node)>>,
}

impl StandIn {
    fn new() -> Self {
        let nodes = [
            ("/", root()),
            ("/ProgramData", program_data()),
            ("/Temp", of_user()),
            ("/Windows", administrators_only()),
        ];
        let nodes = nodes.map(|(path, descriptor)| (path.into(), Node { to: None, content: None, descriptor }));
        Self { nodes: RefCell::new(nodes.into()), is_elevated: true, own: None, race: RefCell::default() }
    }

    fn put(&self, path: &str, node: Node) {
        self.nodes.borrow_mut().insert(path.into(), node);
    }

    fn folder(&self, path: &str, descriptor: Vec<u8>) {
        self.put(path, Node { to: None, content: None, descriptor });
    }

    fn file(&self, path: &str, content: &[u8], descriptor: Vec<u8>) {
        self.put(path, Node { to: None, content: Some(content.to_vec()), descriptor });
    }

    fn link(&self, path: &str, to: &str, descriptor: Vec<u8>) {
        self.put(path, Node { to: Some(to.into()), content: None, descriptor });
    }

    fn content(&self, path: &str) -> Option<Vec<u8>> {
        self.nodes.borrow().get(Path::new(path)).and_then(|node| node.content.clone())
    }

    /// Follows the links on the way to a path.
    fn real(&self, path: &Path) -> PathBuf {
        let Some((parent, name)) = path.parent().zip(path.file_name()) else { return path.to_owned() };
        let parent = self.real(parent);
        let to = self.nodes.borrow().get(&parent).and_then(|node| node.to.clone());
        to.map_or(parent, |to| self.real(&to)).join(name)
    }

    fn get(&self, path: &Path) -> io::Result<Node> {
        self.nodes.borrow().get(&self.real(path)).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn add(&self, path: &Path, content: Option<Vec<u8>>) -> io::Result<()> {
        if !self.is_elevated {
            return Err(io::ErrorKind::PermissionDenied.into()); // ERROR_INVALID_OWNER
        }
        let path = self.real(path);
        self.get(path.parent().unwrap())?;
        if self.nodes.borrow().contains_key(&path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.nodes.borrow_mut().insert(path, Node { to: None, content, descriptor: administrators_only() });
        Ok(())
    }
}

impl Volume for StandIn {
    fn own(&self) -> Option<Sid> {
        self.own.clone()
    }

    fn look(&self, path: &Path) -> io::Result<Found> {
        let node = self.get(path)?;
        let is_folder = node.content.is_none();
        Ok(Found { is_link: node.to.is_some(), is_folder, descriptor: node.descriptor })
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        if let Some((path, node)) = self.race.take() {
            self.nodes.borrow_mut().insert(path, node);
        }
        self.add(path, None)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.remove(path)
    }

    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let content = self.get(path)?.content.ok_or(io::ErrorKind::IsADirectory)?;
        if content.len() as u64 > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(content) }
    }

    fn create(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.add(path, Some(content.to_vec()))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (node, from, to) = (self.get(from)?, self.real(from), self.real(to));
        let mut nodes = self.nodes.borrow_mut();
        nodes.remove(&from);
        nodes.insert(to, node);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let path = self.real(path);
        self.nodes.borrow_mut().remove(&path).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

const RECORD: &str = "/ProgramData/halprof/threads.json";

fn unprotected(result: io::Result<()>) -> (PathBuf, Cause) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    let found = Unprotected::of(&error).unwrap_or_else(|| panic!("{error}")).clone();
    assert!(error.to_string().starts_with(&found.path.display().to_string()), "{error}");
    (found.path, found.cause)
}

fn forged(volume: &StandIn) -> io::Result<()> {
    read(volume, Path::new(RECORD), 100).map(|content| panic!("{content:?} was read"))
}

fn someone() -> Sid {
    Sid::parse(&sid_bytes(5, SOMEONE)).unwrap()
}

#[test]
fn what_was_written_is_read_and_removed_and_the_folder_is_created_once() {
    let volume = StandIn::new();
    let record = Path::new(RECORD);
    assert_eq!(read(&volume, record, 100).unwrap_err().kind(), io::ErrorKind::NotFound);
    remove(&volume, record).unwrap();
    for content in [&b"first"[..], b"second"] {
        write(&volume, record, content).unwrap();
        assert_eq!(read(&volume, record, 6).unwrap(), content);
    }
    assert_eq!(read(&volume, record, 5).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    assert_eq!(volume.nodes.borrow().len(), StandIn::new().nodes.borrow().len() + 2, "nothing else is left");
    remove(&volume, record).unwrap();
    remove(&volume, record).unwrap();
    assert_eq!(volume.content(RECORD), None);
}

#[test]
fn a_folder_that_a_user_made_a_junction_is_neither_read_nor_written_through() {
    let volume = StandIn::new();
    // The target belongs to Administrators, so its owner says nothing.
    volume.folder("/Windows/target", administrators_only());
    volume.file("/Windows/target/threads.json", b"true", administrators_only());
    volume.link("/ProgramData/halprof", "/Windows/target", of_user());
    let junction = (PathBuf::from("/ProgramData/halprof"), Cause::Link);
    assert_eq!(unprotected(forged(&volume)), junction);
    assert_eq!(unprotected(write(&volume, Path::new(RECORD), b"new")), junction);
    assert_eq!(unprotected(remove(&volume, Path::new(RECORD))), junction);
    assert_eq!(volume.content("/Windows/target/threads.json").unwrap(), b"true");
    assert_eq!(volume.content("/Windows/target/threads.json.new"), None);
}

#[test]
fn a_folder_or_a_file_of_a_user_is_not_taken_over() {
    let volume = StandIn::new();
    volume.folder("/ProgramData/halprof", of_user());
    volume.file(RECORD, b"true", administrators_only());
    let owner = Cause::Exposed(Exposure::Owner(someone()));
    assert_eq!(unprotected(forged(&volume)), ("/ProgramData/halprof".into(), owner.clone()));
    assert_eq!(unprotected(write(&volume, Path::new(RECORD), b"new")), ("/ProgramData/halprof".into(), owner.clone()));
    volume.folder("/ProgramData/halprof", administrators_only());
    volume.file(RECORD, b"true", of_user());
    assert_eq!(unprotected(forged(&volume)), (RECORD.into(), owner));
    // In a folder that only administrators can write to, it is replaced.
    write(&volume, Path::new(RECORD), b"new").unwrap();
    assert_eq!(read(&volume, Path::new(RECORD), 9).unwrap(), b"new");
}

#[test]
fn a_folder_of_administrators_in_which_users_can_create_files_is_not_trusted() {
    let volume = StandIn::new();
    // `mkdir %ProgramData%\halprof` of an administrator: users may create files in it, by an inherited entry.
    let made = descriptor(
        ADMINISTRATORS,
        &[ace(ALLOW, TO_CHILDREN | INHERITED, FULL, ADMINISTRATORS), ace(ALLOW, 0x2 | INHERITED, PREPARE, USERS)],
    );
    volume.folder("/ProgramData/halprof", made);
    volume.file(RECORD, b"true", administrators_only());
    let users = Sid::parse(&sid_bytes(5, USERS)).unwrap();
    let (path, cause) = unprotected(forged(&volume));
    assert_eq!((path.as_path(), cause), (Path::new("/ProgramData/halprof"), Cause::Exposed(Exposure::Rights(users))));
    let error = write(&volume, Path::new(RECORD), b"new").unwrap_err();
    assert_eq!(
        error.to_string(),
        "/ProgramData/halprof is not protected: S-1-5-32-545, which is not SYSTEM, Administrators or TrustedInstaller, \
         can change it"
    );
}

#[test]
fn where_nothing_is_there_is_nothing_to_distrust() {
    let volume = StandIn::new();
    volume.folder("/ProgramData/halprof", of_user());
    let record = Path::new(RECORD);
    assert_eq!(read(&volume, record, 100).unwrap_err().kind(), io::ErrorKind::NotFound);
    remove(&volume, record).unwrap();
    volume.file(RECORD, b"true", of_user());
    unprotected(forged(&volume));
    unprotected(remove(&volume, record));
    assert!(volume.content(RECORD).is_some(), "what a user can change is left alone");
}

#[test]
fn a_user_who_is_faster_than_the_check_is_noticed() {
    let volume = StandIn::new();
    let junction = Node { to: Some("/Temp".into()), content: None, descriptor: of_user() };
    volume.race.replace(Some(("/ProgramData/halprof".into(), junction)));
    assert_eq!(unprotected(write(&volume, Path::new(RECORD), b"new")).1, Cause::Link);
    assert_eq!(volume.content("/Temp/threads.json"), None);
}

#[test]
fn without_elevation_nothing_is_created() {
    let volume = StandIn { is_elevated: false, ..StandIn::new() };
    let error = write(&volume, Path::new(RECORD), b"new").unwrap_err();
    assert_eq!((error.kind(), Unprotected::of(&error)), (io::ErrorKind::PermissionDenied, None));
    assert_eq!(volume.nodes.borrow().len(), StandIn::new().nodes.borrow().len());
}

/// As under Wine, where every file belongs to the account of the process.
#[test]
fn a_folder_that_was_created_and_is_not_protected_is_removed_again() {
    struct Unkind(StandIn);
    impl Volume for Unkind {
        fn look(&self, path: &Path) -> io::Result<Found> {
            self.0.look(path)
        }
        fn create_folder(&self, path: &Path) -> io::Result<()> {
            self.0.folder(path.to_str().unwrap(), of_user());
            Ok(())
        }
        fn remove_folder(&self, path: &Path) -> io::Result<()> {
            self.0.remove_folder(path)
        }
        fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
            self.0.read(path, most)
        }
        fn create(&self, path: &Path, content: &[u8]) -> io::Result<()> {
            self.0.create(path, content)
        }
        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.0.rename(from, to)
        }
        fn remove(&self, path: &Path) -> io::Result<()> {
            self.0.remove(path)
        }
    }
    let volume = Unkind(StandIn::new());
    assert_eq!(unprotected(write(&volume, Path::new(RECORD), b"new")).0, Path::new("/ProgramData/halprof"));
    assert_eq!(volume.0.nodes.borrow().len(), StandIn::new().nodes.borrow().len());
}

#[test]
fn a_service_trusts_its_own_files_and_no_others() {
    let mut volume = StandIn::new();
    volume.folder("/data", of_user());
    assert_eq!(unprotected(check_folder(&volume, Path::new("/data"))).0, Path::new("/data"));
    volume.own = Some(someone());
    check_folder(&volume, Path::new("/data")).unwrap();
    let other = descriptor(SOMEONE, &[ace(ALLOW, 0, MODIFY, AUTHENTICATED)]);
    volume.folder("/data", other);
    assert!(matches!(unprotected(check_folder(&volume, Path::new("/data"))).1, Cause::Exposed(Exposure::Rights(_))));
}

#[test]
fn each_part_of_a_path_is_checked_for_what_others_could_do_with_it() {
    let volume = StandIn::new();
    volume.folder("/a", administrators_only());
    volume.folder("/a/b", administrators_only());
    volume.file("/a/b/file", b"", administrators_only());
    let file = Path::new("/a/b/file");
    check_file(&volume, file).unwrap();
    let with = |entry: Vec<u8>| descriptor(ADMINISTRATORS, &[ace(ALLOW, TO_CHILDREN, FULL, ADMINISTRATORS), entry]);
    // Mask, and whether users may have it on the root, an ancestor, the folder and the file.
    for (mask, allowed) in [
        (READ, [true; 4]),
        (0x2, [true, true, false, false]),
        (0x4, [true, true, false, false]),
        (0x10, [true, true, false, false]),
        (0x100, [true, true, false, false]),
        (0x1_0000, [true, false, false, false]),
        (0x40, [false; 4]),
        (0x4_0000, [false; 4]),
        (0x8_0000, [false; 4]),
        (0x1000_0000, [false; 4]),
        (0x4000_0000, [true, true, false, false]),
        (FULL, [false; 4]),
    ] {
        for (path, allowed) in ["/", "/a", "/a/b", "/a/b/file"].iter().zip(allowed) {
            let before = volume.nodes.borrow()[Path::new(path)].clone();
            for (kind, flags, is_allowed) in [
                (ALLOW, 0, allowed),
                (ALLOW, INHERITED, allowed),
                (9, 0, allowed),
                (DENY, 0, true),
                // What children get matters where something is created.
                (ALLOW, ONLY_TO_CHILDREN, allowed || ["/", "/a"].contains(path)),
                // An entry for objects, of a kind that files do not have.
                (5, 0, false),
            ] {
                volume.put(path, Node { descriptor: with(ace(kind, flags, mask, USERS)), ..before.clone() });
                let checked = check_file(&volume, file);
                assert_eq!(checked.is_ok(), is_allowed, "{path} {mask:#x} {kind} {flags}: {checked:?}");
            }
            volume.put(path, before);
        }
    }
    check_file(&volume, file).unwrap();
}

#[test]
fn links_other_kinds_and_relative_paths_are_refused_anywhere() {
    let volume = StandIn::new();
    volume.folder("/a", administrators_only());
    volume.folder("/a/b", administrators_only());
    volume.file("/a/b/file", b"", administrators_only());
    assert_eq!(unprotected(check_folder(&volume, Path::new("/a/b/file"))).1, Cause::Kind);
    assert_eq!(unprotected(check_file(&volume, Path::new("/a/b"))).1, Cause::Kind);
    assert_eq!(unprotected(check_file(&volume, Path::new("/a/b/file/x"))).1, Cause::Kind);
    // A link of an administrator, too: what it leads to was not checked.
    volume.link("/c", "/a", administrators_only());
    assert_eq!(unprotected(check_file(&volume, Path::new("/c/b/file"))), ("/c".into(), Cause::Link));
    volume.link("/a/b/link", "/a/b/file", administrators_only());
    assert_eq!(unprotected(check_file(&volume, Path::new("/a/b/link"))), ("/a/b/link".into(), Cause::Link));
    for path in ["a/b/file", "/a/../a/b/file", ""] {
        assert_eq!(check_file(&volume, Path::new(path)).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{path:?}");
    }
}

#[test]
fn a_descriptor_without_an_access_list_or_without_sense_is_no_protection() {
    let volume = StandIn::new();
    let good = administrators_only();
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let everyone = [changed(2, 0), changed(16, 0)];
    let unknown = [
        changed(4, 0),
        changed(4, 0xFF),
        changed(16, 0xFF),
        changed(20, 2),
        good[..good.len() - 1].to_vec(),
        Vec::new(),
    ];
    for (cases, cause) in [(&everyone[..], Exposure::Everyone), (&unknown[..], Exposure::Unknown)] {
        for bytes in cases {
            volume.folder("/a", bytes.clone());
            assert_eq!(
                unprotected(check_folder(&volume, Path::new("/a"))).1,
                Cause::Exposed(cause.clone()),
                "{bytes:?}"
            );
        }
    }
    // An empty list gives no one a right.
    volume.folder("/a", descriptor(TRUSTED_INSTALLER, &[]));
    check_folder(&volume, Path::new("/a")).unwrap();
}

proptest! {
    /// Whatever the bytes are, they are judged; and a prefix of a good descriptor is never trusted.
    #[test]
    fn any_bytes_are_judged(bytes in prop::collection::vec(any::<u8>(), 0..200), length in 0..120_usize) {
        let _ = descriptor::check(&bytes, Part::Target, None);
        let good = administrators_only();
        prop_assume!(length < good.len());
        prop_assert!(descriptor::check(&good[..length], Part::Target, None).is_err());
    }
}
