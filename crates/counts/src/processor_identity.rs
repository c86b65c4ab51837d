//! Vendor, brand and signature of a processor.

use serde::Serialize;
use x86_defs::cpuid::Signature;

use terminal::format::{hexadecimal, text};

/// Identity of the processor according to CPUID. It is only displayed.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct ProcessorIdentity {
    /// Vendor string of leaf 0.
    pub vendor: String,
    /// Brand string, if the processor has one.
    pub brand: Option<String>,
    /// EAX of leaf 1.
    pub signature: u32,
    family: u16,
    model: u8,
    stepping: u8,
}

impl ProcessorIdentity {
    /// Creates an identity from the bytes of both strings and EAX of leaf 1.
    #[must_use]
    pub fn new(vendor: &[u8], brand: &[u8], signature: u32) -> Self {
        let bits = Signature::from_bits(signature);
        let brand = Some(text(brand)).filter(|brand| !brand.is_empty());
        Self {
            vendor: text(vendor),
            brand,
            signature,
            family: bits.family(),
            model: bits.model(),
            stepping: bits.stepping(),
        }
    }

    /// Returns the identity as properties of a machine.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, String); 3] {
        let family = format!("family {:#x}, model {:#x}, stepping {}", self.family, self.model, self.stepping);
        [
            ("Vendor", self.vendor.clone()),
            ("Processor", self.brand.clone().unwrap_or_else(|| "(no brand string)".to_owned())),
            ("Signature", format!("{}: {family}", hexadecimal(self.signature.into()))),
        ]
    }
}
