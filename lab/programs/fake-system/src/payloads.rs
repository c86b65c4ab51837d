//! What Windows delivers and files have, byte by byte: payloads of trace events, lists of modules, an image.

/// Returns the bytes of words.
pub fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns the bytes of a text in UTF-16 with its end.
pub fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// S-1-5-21-1-2-3-1001 behind a TOKEN_USER.
fn sid() -> Vec<u8> {
    [&[0x11; 16][..], &[1, 5, 0, 0, 0, 0, 0, 5], &words(&[21, 1, 2, 3, 1_001])].concat()
}

/// Creates the payload of a process event.
pub fn process(version: u8, id: u32, name: &str) -> Vec<u8> {
    let mut bytes = [&[0xAA; 8][..], &words(&[id, 4, 1, 259])].concat();
    if version >= 3 {
        bytes.extend([0xBB; 8]);
    }
    if version >= 4 {
        bytes.extend(words(&[0]));
    }
    [bytes, sid(), name.as_bytes().to_vec(), vec![0], wide("app.exe --option")].concat()
}

/// Creates the payload of an image event.
pub fn image(process: u32, base: u64, size: u64, path: &str) -> Vec<u8> {
    let numbers = words(&[process, 0x1234, 0x5F00_0001, 0x0000_0C06]);
    [&base.to_le_bytes()[..], &size.to_le_bytes(), &numbers, &base.to_le_bytes(), &[0; 16], &wide(path)].concat()
}

/// Creates the payload of a method event.
pub fn method(address: u64, size: u32, [namespace, name, signature]: [&str; 3]) -> Vec<u8> {
    let wide = |text: &str| text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let numbers = [&[0xAA; 16][..], &address.to_le_bytes(), &size.to_le_bytes(), &[0xBB; 8]].concat();
    [numbers, wide(namespace), wide(name), wide(signature), vec![0; 10]].concat()
}

/// Returns the list of Windows 11 24H2 for a token without SeDebugPrivilege.
pub fn hidden_modules() -> Vec<u8> {
    list(2, &[entry(0, 0x0104_6000, "\\SystemRoot\\system32\\ntoskrnl.exe"), entry(0, 0x6000, "\\SystemRoot\\hal.dll")])
}

/// Returns an entry of the list of modules.
pub fn entry(base: u64, size: u32, path: &str) -> Vec<u8> {
    let mut bytes = [[0xEE; 16].as_slice(), &base.to_le_bytes(), &size.to_le_bytes(), &[0xEE; 12]].concat();
    bytes.extend(path.bytes().chain([0]));
    bytes.resize(296, 0xEE);
    bytes
}

/// Returns a list of modules that says how many there are.
pub fn list(count: u32, entries: &[Vec<u8>]) -> Vec<u8> {
    [&count.to_le_bytes()[..], &[0xEE; 4], &entries.concat()].concat()
}

/// Overwrites a field.
pub fn put(bytes: &mut [u8], offset: usize, field: &[u8]) {
    bytes[offset..offset + field.len()].copy_from_slice(field);
}

/// Creates a PE32+ image of 0x3000 bytes of address space with one section, which contains the debug directory. The
/// offsets are those of "PE Format" in Microsoft's documentation.
pub fn tiny_image() -> Vec<u8> {
    let mut file = vec![0; 0x400];
    put(&mut file, 0, b"MZ");
    put(&mut file, 0x3C, &0x40_u32.to_le_bytes());
    put(&mut file, 0x40, b"PE\0\0");
    put(&mut file, 0x44, &0x8664_u16.to_le_bytes());
    put(&mut file, 0x46, &1_u16.to_le_bytes()); // sections
    put(&mut file, 0x48, &0x5F00_0001_u32.to_le_bytes()); // TimeDateStamp
    put(&mut file, 0x54, &0xF0_u16.to_le_bytes()); // SizeOfOptionalHeader
    put(&mut file, 0x58, &0x20B_u16.to_le_bytes()); // PE32+
    put(&mut file, 0x90, &0x3000_u32.to_le_bytes()); // SizeOfImage
    put(&mut file, 0xC4, &16_u32.to_le_bytes()); // NumberOfRvaAndSizes
    put(&mut file, 0xC8 + 6 * 8, &0x1000_u32.to_le_bytes()); // the debug directory
    put(&mut file, 0xCC + 6 * 8, &28_u32.to_le_bytes());
    put(&mut file, 0x148, b".rdata");
    for (offset, field) in [(0x150, 0x200_u32), (0x154, 0x1000), (0x158, 0x200), (0x15C, 0x200)] {
        put(&mut file, offset, &field.to_le_bytes()); // sizes and places of the section
    }
    for (offset, field) in [(0x20C, 2_u32), (0x210, 0x21), (0x214, 0x1020), (0x218, 0x220)] {
        put(&mut file, offset, &field.to_le_bytes()); // CodeView, its size and places
    }
    put(&mut file, 0x220, b"RSDS");
    put(&mut file, 0x224, &[0x78, 0x56, 0x34, 0x12, 0xBC, 0x9A, 0xF0, 0xDE, 1, 2, 3, 4, 5, 6, 7, 8]);
    put(&mut file, 0x234, &0x1B_u32.to_le_bytes());
    put(&mut file, 0x238, b"tiny.pdb\0");
    file
}
