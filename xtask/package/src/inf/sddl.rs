//! Security descriptors as text (Windows, "Security Descriptor String Format"), as far as halprof.inf uses it.

/// SIDs by their names ("SID Strings"), without the revision and with the authority in front: S-1-5-18 is 5, 18.
const SIDS: [(&str, &[u32]); 3] = [("SY", &[5, 18]), ("BA", &[5, 32, 544]), ("WD", &[1, 0])];

/// Returns the bytes of a SID (MS-DTYP 2.4.2.2).
fn sid(name: &str) -> Option<Vec<u8>> {
    let (_, [authority, numbers @ ..]) = SIDS.iter().find(|(known, _)| *known == name)? else { return None };
    let count = u8::try_from(numbers.len()).ok()?;
    let begin = [&[1, count, 0, 0][..], &authority.to_be_bytes()].concat();
    Some([begin, numbers.iter().flat_map(|number| number.to_le_bytes()).collect()].concat())
}

/// Returns the bytes of an entry, without its parentheses (MS-DTYP 2.4.4.2).
fn entry(text: &str) -> Option<Vec<u8>> {
    let ["A", "", rights, "", "", trustee] = text.split(';').collect::<Vec<_>>()[..] else { return None };
    let (mask, sid) = (u32::from_str_radix(rights.strip_prefix("0x")?, 16).ok()?, sid(trustee)?);
    let size = u16::try_from(8 + sid.len()).ok()?;
    Some([&[0, 0][..], &size.to_le_bytes(), &mask.to_le_bytes(), &sid].concat())
}

/// Returns the self-relative descriptor (MS-DTYP 2.4.6) of a text with owner, group and entries that allow something.
pub fn self_relative(text: &str) -> Option<Vec<u8>> {
    let (owner, rest) = text.strip_prefix("O:")?.split_once("G:")?;
    let (group, entries) = rest.split_once("D:")?;
    let entries = entries.strip_prefix('(')?.strip_suffix(')')?.split(")(").map(entry).collect::<Option<Vec<_>>>()?;
    let (count, entries) = (u16::try_from(entries.len()).ok()?, entries.concat());
    let size = u16::try_from(8 + entries.len()).ok()?;
    let dacl = [&[2, 0][..], &size.to_le_bytes(), &count.to_le_bytes(), &[0, 0], &entries].concat();
    let (owner, group) = (sid(owner)?, sid(group)?);
    let offset = |parts: &[&Vec<u8>]| {
        let before: usize = parts.iter().map(|part| part.len()).sum();
        u32::try_from(20 + before).ok().map(u32::to_le_bytes)
    };
    let header = [&[1, 0, 0x04, 0x80][..], &offset(&[&dacl])?, &offset(&[&dacl, &owner])?, &[0; 4], &offset(&[])?];
    Some([header.concat(), dacl, owner, group].concat())
}

#[test]
fn an_example_has_the_bytes_of_its_parts() {
    let wanted = [
        &[1, 0, 0x04, 0x80, 48, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0][..],
        &[2, 0, 28, 0, 1, 0, 0, 0],
        &[0, 0, 20, 0, 0x80, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0],
        &[1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0],
        &[1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 32, 2, 0, 0],
    ];
    assert_eq!(self_relative("O:SYG:BAD:(A;;0x80;;;WD)"), Some(wanted.concat()));
    for text in
        ["", "D:", "O:BAG:BAD:", "O:BAG:BAD:(D;;0x80;;;WD)", "O:BAG:XXD:(A;;0x80;;;WD)", "O:BAG:BAD:(A;;GA;;;WD)"]
    {
        assert_eq!(self_relative(text), None, "{text}");
    }
}
