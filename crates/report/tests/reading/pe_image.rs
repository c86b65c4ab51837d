//! Small PE images with chosen contents ("PE Format", Microsoft Learn).

/// Address of the code.
pub const CODE: u32 = 0x1000;

/// Type of symbols of functions, of those of Go 1.19 ("array of structs"), and of labels.
pub const FUNCTION: u16 = 0x20;
pub const GO: u16 = 0x0308;
pub const UNTYPED: u16 = 0;

/// Time stamp of an image that has no other one.
pub const TIMESTAMP: u32 = 0x5F00_0001;

const UNWIND: u32 = 0x2000;
const ENTRIES: u32 = 0x3000;
const EXPORTS: u32 = 0x4000;
const LINK: u32 = 0x5000;
const DEBUG: u32 = 0x6000;
const IMAGE_SIZE: u32 = 0x7000;
const FILE_ALIGNMENT: usize = 0x200;

/// An image. Addresses are relative to its base.
#[derive(Debug, Clone)]
pub struct PeImage {
    pub timestamp: u32,
    pub code: Vec<u8>,
    /// Begin and end of each entry of the exception directory, and of the entry to which it is chained.
    pub unwind: Vec<([u32; 2], Option<[u32; 2]>)>,
    /// Exports in the order of their names; one without a name has an ordinal only.
    pub exports: Vec<(&'static str, u32)>,
    /// Symbols with addresses in the code, types, and whether they are external.
    pub symbols: Vec<(&'static str, u32, u16, bool)>,
    /// File with debug information, and its checksum.
    pub debug_link: Option<(&'static str, u32)>,
    /// Path of the PDB, and the four words of its GUID. Its age is 1.
    pub pdb: Option<(String, [u32; 4])>,
}

impl Default for PeImage {
    fn default() -> Self {
        let (code, unwind, exports, symbols) = Default::default();
        Self { timestamp: TIMESTAMP, code, unwind, exports, symbols, debug_link: None, pdb: None }
    }
}

impl PeImage {
    pub fn size() -> u32 {
        IMAGE_SIZE
    }

    /// Returns the bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut names = vec![];
        let mut sections: Vec<(&str, u32, Vec<u8>, u32)> = vec![(".text", CODE, self.code.clone(), 0x6000_0020)];
        let (unwind, entries) = self.unwind();
        sections.push((".xdata", UNWIND, unwind, 0x4000_0040));
        sections.push((".pdata", ENTRIES, entries, 0x4000_0040));
        sections.push((".edata", EXPORTS, self.export_table(), 0x4000_0040));
        if let Some((name, checksum)) = self.debug_link {
            let mut bytes = format!("{name}\0").into_bytes();
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes.extend(checksum.to_le_bytes());
            sections.push((".gnu_debuglink", LINK, bytes, 0x4200_0040));
        }
        if self.pdb.is_some() {
            sections.push((".rdata", DEBUG, vec![], 0x4000_0040));
        }
        let headers = (0x40 + 24 + 240 + 40 * sections.len()).next_multiple_of(FILE_ALIGNMENT);
        let mut offset = headers;
        let mut table = Vec::new();
        let mut body = Vec::new();
        for (name, address, mut bytes, flags) in sections {
            if address == DEBUG {
                bytes = debug_directory(self.pdb.as_ref().unwrap(), u32::try_from(offset).unwrap());
            }
            let mut field = name.as_bytes().to_vec();
            if name.len() > 8 {
                field = format!("/{}", 4 + names.len()).into_bytes();
                names.extend(format!("{name}\0").into_bytes());
            }
            field.resize(8, 0);
            table.extend(field);
            let length = u32::try_from(bytes.len()).unwrap();
            bytes.resize(bytes.len().next_multiple_of(FILE_ALIGNMENT), 0);
            words(&mut table, &[length, address, u32::try_from(bytes.len()).unwrap(), u32::try_from(offset).unwrap()]);
            words(&mut table, &[0, 0, 0, flags]);
            offset += bytes.len();
            body.extend(bytes);
        }
        let mut symbols = Vec::new();
        for (name, address, kind, is_external) in &self.symbols {
            words(&mut symbols, &[0, 4 + u32::try_from(names.len()).unwrap(), address - CODE]);
            names.extend(format!("{name}\0").into_bytes());
            symbols.extend(1_u16.to_le_bytes());
            symbols.extend(kind.to_le_bytes());
            symbols.extend([if *is_external { 2 } else { 3 }, 0]);
        }
        let mut file = b"MZ".to_vec();
        file.resize(0x3C, 0);
        words(&mut file, &[0x40]);
        file.extend(b"PE\0\0");
        file.extend(0x8664_u16.to_le_bytes());
        file.extend(u16::try_from(table.len() / 40).unwrap().to_le_bytes());
        words(&mut file, &[self.timestamp, u32::try_from(offset).unwrap(), u32::try_from(self.symbols.len()).unwrap()]);
        file.extend(240_u16.to_le_bytes());
        file.extend(0x2022_u16.to_le_bytes());
        file.extend(self.optional_header(headers));
        file.extend(table);
        file.resize(headers, 0);
        file.extend(body);
        file.extend(symbols);
        words(&mut file, &[4 + u32::try_from(names.len()).unwrap()]);
        file.extend(names);
        file
    }

    fn optional_header(&self, headers: usize) -> Vec<u8> {
        let mut header = vec![0x0B, 2, 0, 0];
        words(&mut header, &[0, 0, 0, CODE, CODE, 0x8000_0000, 1, 0x1000, 0x200, 6, 0, 6, 0]);
        words(&mut header, &[IMAGE_SIZE, u32::try_from(headers).unwrap(), 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16]);
        let mut directories = [[0; 2]; 16];
        if !self.exports.is_empty() {
            directories[0] = [EXPORTS, u32::try_from(self.export_table().len()).unwrap()];
        }
        if !self.unwind.is_empty() {
            directories[3] = [ENTRIES, u32::try_from(self.unwind().1.len()).unwrap()];
        }
        if self.pdb.is_some() {
            directories[6] = [DEBUG, 28];
        }
        words(&mut header, &directories.concat());
        header
    }

    /// Returns the unwind information and the exception directory.
    fn unwind(&self) -> (Vec<u8>, Vec<u8>) {
        let (mut unwind, mut entries) = (Vec::new(), Vec::new());
        for ([begin, end], chained) in &self.unwind {
            words(&mut entries, &[*begin, *end, UNWIND + u32::try_from(unwind.len()).unwrap()]);
            unwind.extend([if chained.is_some() { 0x21 } else { 1 }, 0, 0, 0]);
            if let Some([begin, end]) = chained {
                // The whole function has the first information.
                words(&mut unwind, &[*begin, *end, UNWIND]);
            }
        }
        (unwind, entries)
    }

    fn export_table(&self) -> Vec<u8> {
        let number = u32::try_from(self.exports.len()).unwrap();
        let named: Vec<_> = self.exports.iter().enumerate().filter(|(_, (name, _))| !name.is_empty()).collect();
        let number_of_names = u32::try_from(named.len()).unwrap();
        let addresses = EXPORTS + 40;
        let (pointers, ordinals) = (addresses + 4 * number, addresses + 4 * number + 4 * number_of_names);
        let mut table = Vec::new();
        words(&mut table, &[0, 0, 0, 0, 1, number, number_of_names, addresses, pointers, ordinals]);
        words(&mut table, &self.exports.iter().map(|(_, address)| *address).collect::<Vec<_>>());
        let mut text = Vec::new();
        for (_, (name, _)) in &named {
            words(&mut table, &[ordinals + 2 * number_of_names + u32::try_from(text.len()).unwrap()]);
            text.extend(format!("{name}\0").into_bytes());
        }
        for (ordinal, _) in &named {
            table.extend(u16::try_from(*ordinal).unwrap().to_le_bytes());
        }
        table.extend(text);
        table
    }
}

/// Returns the debug directory at an offset in the file, and the record that names a PDB.
fn debug_directory((pdb, guid): &(String, [u32; 4]), offset: u32) -> Vec<u8> {
    let mut record = b"RSDS".to_vec();
    words(&mut record, guid);
    words(&mut record, &[1]);
    record.extend(format!("{pdb}\0").into_bytes());
    let mut directory = Vec::new();
    words(&mut directory, &[0, 0, 0, 2, u32::try_from(record.len()).unwrap(), DEBUG + 28, offset + 28]);
    directory.extend(record);
    directory
}

fn words(bytes: &mut Vec<u8>, words: &[u32]) {
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}
