//! The security descriptor of the provider's GUID, parsed by MS-DTYP alone.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use protocol::trace::PROVIDER_ID;
use protocol::trace::security::{REGISTRY_KEY, VALUE_NAME, descriptor, is_restriction, rights};

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Returns a SID as text, and its size (MS-DTYP 2.4.2.1 and 2.4.2.2).
fn sid(bytes: &[u8]) -> (String, usize) {
    let count = usize::from(bytes[1]);
    let authority = bytes[2..8].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let numbers = (0..count).map(|number| u32_at(bytes, 8 + 4 * number).to_string());
    let parts = [bytes[0].to_string(), authority.to_string()].into_iter().chain(numbers);
    (format!("S-{}", parts.collect::<Vec<_>>().join("-")), 8 + 4 * count)
}

/// An entry of an access control list: its type, flags, mask and SID.
type Entry = (u8, u8, u32, String);

/// Returns owner, group and the entries of a self-relative descriptor (MS-DTYP 2.4.4 to 2.4.6). Each part must lie
/// within the descriptor and have the size that it says.
fn parse(bytes: &[u8]) -> (String, String, Vec<Entry>) {
    assert_eq!((bytes[0], bytes[1]), (1, 0), "revision, and the resource manager's byte");
    assert_eq!(u16_at(bytes, 2), 0x8004, "self-relative, with a DACL alone");
    let [owner, group, sacl, dacl] = [4, 8, 12, 16].map(|at| u32_at(bytes, at) as usize);
    assert_eq!(sacl, 0);
    let ((owner, owner_size), (group, group_size)) = (sid(&bytes[owner..]), sid(&bytes[group..]));
    let acl = &bytes[dacl..];
    assert_eq!((acl[0], acl[1], u16_at(acl, 6)), (2, 0, 0), "the revision, and two fields of zeros");
    let (acl_size, count) = (usize::from(u16_at(acl, 2)), u16_at(acl, 4));
    let (mut entries, mut at) = (Vec::new(), 8);
    for _ in 0..count {
        let entry = &acl[at..];
        let ((trustee, sid_size), size) = (sid(&entry[8..]), usize::from(u16_at(entry, 2)));
        assert_eq!(size, 8 + sid_size);
        entries.push((entry[0], entry[1], u32_at(entry, 4), trustee));
        at += size;
    }
    assert_eq!(at, acl_size, "the entries fill the list");
    assert_eq!(bytes.len(), 20 + acl_size + owner_size + group_size, "nothing else is in the descriptor");
    (owner, group, entries)
}

const SYSTEM: &str = "S-1-5-18";
const ADMINISTRATORS: &str = "S-1-5-32-544";

#[test]
fn only_system_and_administrators_have_access_to_the_provider() {
    let (owner, group, entries) = parse(descriptor());
    assert_eq!((owner.as_str(), group.as_str()), (ADMINISTRATORS, ADMINISTRATORS));
    let allow_all = |trustee: &str| (0, 0, 0x0012_0FFF, trustee.to_owned());
    assert_eq!(entries, [allow_all(SYSTEM), allow_all(ADMINISTRATORS)]);
    assert_eq!(rights::ALL, 0x0012_0FFF, "WMIGUID_ALL_ACCESS in the examples of the WDK");
    assert_eq!(descriptor().len() % 4, 0);
}

#[test]
fn the_value_has_the_name_of_the_providers_guid() {
    // The first three groups of a GUID are little-endian in memory.
    let groups: [&[usize]; 5] = [&[3, 2, 1, 0], &[5, 4], &[7, 6], &[8, 9], &[10, 11, 12, 13, 14, 15]];
    let group =
        |places: &[usize]| places.iter().map(|place| format!("{:02x}", PROVIDER_ID[*place])).collect::<Vec<_>>();
    assert_eq!(VALUE_NAME, groups.map(|places| group(places).concat()).join("-"));
    assert!(REGISTRY_KEY.ends_with("\\Control\\WMI\\Security"));
}

/// Returns the descriptor with owner and group before the DACL.
fn reordered() -> Vec<u8> {
    let (header, rest) = descriptor().split_at(20);
    let (dacl, sids) = rest.split_at(rest.len() - 32);
    let mut bytes = [header, sids, dacl].concat();
    for (at, offset) in [(4, 20_u32), (8, 36), (16, 52)] {
        bytes[at..at + 4].copy_from_slice(&offset.to_le_bytes());
    }
    bytes
}

#[test]
fn the_restriction_is_recognized_in_any_layout_and_no_other_is() {
    assert_eq!(parse(&reordered()), parse(descriptor()));
    assert!(is_restriction(descriptor()) && is_restriction(&reordered()));
    assert!(is_restriction(&[descriptor(), &[0; 4]].concat()), "bytes behind it do not matter");
    for length in 0..descriptor().len() {
        assert!(!is_restriction(&descriptor()[..length]), "{length}");
    }
    for at in 0..descriptor().len() {
        // The byte for resource managers and the flags of inheritance do not change the access.
        let is_free = |bit: u8| at == 1 || at == 2 && !matches!(bit, 0x04 | 0x10) || at == 3 && bit != 0x80;
        let is_sacl_offset = (12..16).contains(&at);
        // Owner and group are the same SID, 16 bytes apart.
        let is_the_other = |bit: u8| (at == 4 || at == 8) && bit == 16;
        for bit in (0..8).map(|bit| 1 << bit) {
            let mut changed = descriptor().to_vec();
            changed[at] ^= bit;
            assert_eq!(
                is_restriction(&changed),
                is_free(bit) || is_sacl_offset || is_the_other(bit),
                "bit {bit:#x} of byte {at}"
            );
        }
    }
}
