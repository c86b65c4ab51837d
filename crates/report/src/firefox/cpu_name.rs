//! The name of the processor in a profile, which `fxprof_processed_profile` cannot set.

use std::io::{self, Write};

/// Adds `CPUName` to the first object in the object that is written: `meta`, which is the first member of a profile.
pub struct WithCpuName<W> {
    out: W,
    /// The text of the member, until it is written.
    member: Option<String>,
    /// Number of braces until the place of the member.
    braces: u8,
}

impl<W: Write> WithCpuName<W> {
    /// Creates a writer that adds `name`.
    pub fn new(out: W, name: &str) -> Self {
        Self { out, member: Some(format!("\"CPUName\":{},", serde_json::Value::from(name))), braces: 2 }
    }
}

impl<W: Write> Write for WithCpuName<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.member.is_none() {
            return self.out.write(bytes);
        }
        for (index, byte) in bytes.iter().enumerate() {
            self.braces -= u8::from(*byte == b'{');
            if self.braces == 0 {
                let (before, after) = bytes.split_at(index + 1);
                self.out.write_all(before)?;
                self.out.write_all(self.member.take().unwrap_or_default().as_bytes())?;
                self.out.write_all(after)?;
                return Ok(bytes.len());
            }
        }
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_first_member_of_meta_however_the_text_is_split() {
        let text = br#"{"meta":{"a":{}},"b":{"c":{}}}"#;
        for size in 1..=text.len() {
            let mut out = Vec::new();
            let mut writer = WithCpuName::new(&mut out, "A \"B\" {C}");
            text.chunks(size).for_each(|part| writer.write_all(part).unwrap());
            writer.flush().unwrap();
            let wanted = r#"{"meta":{"CPUName":"A \"B\" {C}","a":{}},"b":{"c":{}}}"#;
            assert_eq!(String::from_utf8(out).unwrap(), wanted, "{size}");
        }
    }
}
