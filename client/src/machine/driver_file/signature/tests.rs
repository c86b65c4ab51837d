//! Tests of what makes Windows refuse a signature.

use super::*;
use crate::machine::driver_file::tests::{CHECKSUM, IDENTITY, SECURITY_DIRECTORY, SIZE, driver, sign};

const TEST_SIGNED: &[(&str, &str)] = &[("me", "me")];
const BY_MICROSOFT: &[(&str, &str)] = &[
    ("Microsoft Windows Hardware Compatibility Publisher", "Microsoft Windows Third Party Component CA 2014"),
    ("Microsoft Windows Third Party Component CA 2014", "Microsoft Root Certificate Authority 2010"),
];

const USUAL: CodeIntegrity = CodeIntegrity { is_enforced: true, accepts_test_signatures: false };
const TEST: CodeIntegrity = CodeIntegrity { is_enforced: true, accepts_test_signatures: true };
const OFF: CodeIntegrity = CodeIntegrity { is_enforced: false, accepts_test_signatures: false };

#[test]
fn signer_and_root_are_found_by_name() {
    let found = |chain| read(&sign(driver("x"), chain)).unwrap().map(|found| (found.signer, found.root));
    let names = |signer: &str, root: &str| Some((signer.to_owned(), root.to_owned()));
    assert_eq!(found(TEST_SIGNED), names("me", "me"));
    assert_eq!(found(BY_MICROSOFT), names(BY_MICROSOFT[0].0, "Microsoft Root Certificate Authority 2010"));
    // A company's certificate with the cross-certificate of its authority.
    let crossed = &[("Company", "Class 3"), ("Class 3", "Root"), ("Root", "Microsoft Code Verification Root")];
    assert_eq!(found(crossed), names("Company", "Microsoft Code Verification Root"));
    assert_eq!(found(&[("a", "b"), ("b", "a")]).map(|(signer, _)| signer), Some("a".to_owned()), "a circle");
    assert_eq!(found(&[]), None, "no certificates");
}

#[test]
fn a_signature_is_refused_only_where_windows_would_refuse_it() {
    let missing = Err(SignatureError::Missing);
    let for_tests = |signer: &str| Err(SignatureError::ForTests { signer: signer.to_owned() });
    let unsigned = driver("x");
    let signed = |chain| sign(driver("x"), chain);
    let changed = {
        let mut file = signed(BY_MICROSOFT);
        file[IDENTITY + 0x100] ^= 1;
        file
    };
    let testing_root = signed(&[("me", "Microsoft Testing Root Certificate Authority 2010")]);
    for (what, file, usual, test) in [
        ("unsigned", unsigned, missing.clone(), missing),
        ("changed", changed, Err(SignatureError::OtherFile), Err(SignatureError::OtherFile)),
        ("signed for tests", signed(TEST_SIGNED), for_tests("me"), Ok(())),
        ("signed by Microsoft's testing root", testing_root, for_tests("me"), Ok(())),
        ("signed by Microsoft", signed(BY_MICROSOFT), Ok(()), Ok(())),
        ("without certificates, so unknown", signed(&[]), Ok(()), Ok(())),
    ] {
        assert_eq!(check(&file, USUAL), usual, "{what}");
        assert_eq!(check(&file, TEST), test, "{what}");
        assert_eq!(check(&file, OFF), Ok(()), "{what}");
    }
}

#[test]
fn the_hash_covers_every_byte_except_checksum_directory_entry_and_signature() {
    let signed = sign(driver("name"), TEST_SIGNED);
    let covered = (SIZE + "name".len()).next_multiple_of(8);
    for place in 0..covered {
        let mut file = signed.clone();
        file[place] ^= 0x80;
        let is_free = (CHECKSUM..CHECKSUM + 4).contains(&place);
        if (SECURITY_DIRECTORY..SECURITY_DIRECTORY + 8).contains(&place) {
            continue; // another place of the signature
        }
        let result = read(&file);
        // A file with damaged headers cannot be read, and `driver_file::check` has refused it before.
        let is_read = PeFile64::parse(&*file).is_ok();
        assert_eq!(matches!(result, Ok(Some(_))), is_free, "{place:#x}: {result:?}");
        assert!(is_free || !is_read || place < 0x200 || result == Err(SignatureError::OtherFile), "{place:#x}");
    }
}

#[test]
fn a_damaged_signature_neither_panics_nor_refuses() {
    let signed = sign(driver("x"), TEST_SIGNED);
    let table = (SIZE + 1).next_multiple_of(8);
    for place in table..signed.len() {
        for flip in [0x01, 0x80, 0xFF] {
            let mut file = signed.clone();
            file[place] ^= flip;
            let _ = check(&file, USUAL);
        }
    }
    let mut file = signed;
    file[table + 8..].fill(0);
    assert_eq!(check(&file, USUAL), Ok(()), "Windows decides");
}

#[test]
fn a_library_that_fails_leaves_the_decision_to_windows() {
    assert_eq!(unless_it_fails(|| panic!("no certificates")), Ok(None));
    assert_eq!(unless_it_fails(|| Err(SignatureError::OtherFile)), Err(SignatureError::OtherFile));
}
