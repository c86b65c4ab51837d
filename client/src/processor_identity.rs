//! Vendor, brand and signature of a processor.

use serde::Serialize;

use crate::format::{hexadecimal, text};

/// Identity of the processor according to CPUID. It is only displayed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ProcessorIdentity {
    /// Vendor string of leaf 0.
    pub vendor: String,
    /// Brand string, if the processor has one.
    pub brand: Option<String>,
    /// EAX of leaf 1.
    pub signature: u32,
    family: u32,
    model: u32,
    stepping: u32,
}

impl ProcessorIdentity {
    /// Creates an identity from the bytes of both strings and EAX of leaf 1.
    pub fn new(vendor: &[u8], brand: &[u8], signature: u32) -> Self {
        let Signature { family, model, stepping } = decode(signature);
        let brand = Some(text(brand)).filter(|brand| !brand.is_empty());
        Self { vendor: text(vendor), brand, signature, family, model, stepping }
    }

    /// Returns the identity as properties of a machine.
    pub fn rows(&self) -> [(&'static str, String); 3] {
        let family = format!("family {:#x}, model {:#x}, stepping {}", self.family, self.model, self.stepping);
        [
            ("Vendor", self.vendor.clone()),
            ("Processor", self.brand.clone().unwrap_or_else(|| "(no brand string)".to_owned())),
            ("Signature", format!("{}: {family}", hexadecimal(self.signature.into()))),
        ]
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Signature {
    family: u32,
    model: u32,
    stepping: u32,
}

/// Decodes family, model and stepping from EAX of CPUID leaf 1 (SDM Vol. 2A, CPUID, "Version Information"; APM Vol. 3
/// E.3.2).
fn decode(eax: u32) -> Signature {
    let (base_family, base_model) = (eax >> 8 & 0xF, eax >> 4 & 0xF);
    let (extended_family, extended_model) = (eax >> 20 & 0xFF, eax >> 16 & 0xF);
    Signature {
        family: if base_family == 0xF { base_family + extended_family } else { base_family },
        model: if matches!(base_family, 6 | 0xF) { extended_model << 4 | base_model } else { base_model },
        stepping: eax & 0xF,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_family_and_model_are_used_only_as_the_manuals_define() {
        for (eax, family, model, stepping) in [
            (0x0001_067A, 6, 0x17, 10),   // Core 2: extended model with family 6
            (0x0000_0F29, 15, 2, 9),      // Pentium 4
            (0x0002_0FB1, 15, 0x2B, 1),   // Athlon 64 X2: extended model with family 15
            (0x0087_0F10, 0x17, 0x71, 0), // Zen 2: extended family
            (0x0FFF_0543, 5, 4, 3),       // Pentium: neither
        ] {
            assert_eq!(decode(eax), Signature { family, model, stepping }, "{eax:#x}");
        }
    }
}
