//! What halprof.sys says about itself in its file, so that a client can examine the file before Windows loads it.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes, Unaligned};

use crate::PROTOCOL_VERSION;

/// Name of the section of halprof.sys that begins with a [`DriverIdentity`].
pub const IDENTITY_SECTION: &str = ".halprof";

/// The first field of a [`DriverIdentity`].
const MAGIC: [u8; 12] = *b"halprof.sys\0";

/// The protocol version of a driver, in its file. This layout never changes, because clients read it in drivers of
/// other versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DriverIdentity {
    magic: [u8; 12],
    protocol: [u8; 4],
}

const _: () = assert!(size_of::<DriverIdentity>() == 16);

impl DriverIdentity {
    /// The identity of the driver of this version.
    pub const CURRENT: Self = Self::with_protocol(PROTOCOL_VERSION);

    /// Returns the identity of a driver of a protocol version.
    #[must_use]
    pub const fn with_protocol(protocol: u32) -> Self {
        Self { magic: MAGIC, protocol: protocol.to_le_bytes() }
    }

    /// Reads the identity from the content of [`IDENTITY_SECTION`]; `None` if the section is not that of halprof.sys.
    #[must_use]
    pub fn read(section: &[u8]) -> Option<Self> {
        let (identity, _) = Self::try_read_from_prefix(section).ok()?;
        (identity.magic == MAGIC).then_some(identity)
    }

    /// Returns the protocol version of the driver.
    #[must_use]
    pub const fn protocol(&self) -> u32 {
        u32::from_le_bytes(self.protocol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_with_whatever_follows_it() {
        let bytes = [DriverIdentity::with_protocol(5).as_bytes(), &[0; 0x1F0]].concat();
        assert_eq!(DriverIdentity::read(&bytes).map(|identity| identity.protocol()), Some(5));
        assert_eq!(&bytes[..16], b"halprof.sys\0\x05\0\0\0");
    }

    #[test]
    fn another_section_has_no_identity() {
        let whole = DriverIdentity::CURRENT;
        assert_eq!(DriverIdentity::read(&whole.as_bytes()[..15]), None);
        for byte in 0..12 {
            let mut bytes = whole.as_bytes().to_vec();
            bytes[byte] ^= 1;
            assert_eq!(DriverIdentity::read(&bytes), None, "{byte}");
        }
    }
}
