//! An event as Windows delivers it: an EVENT_RECORD in slices.

/// GUID by its digits.
pub type Guid = u128;

/// The driver's provider.
pub const HALPROF: Guid = guid(protocol::trace::PROVIDER_ID);

/// The class of process events (MOF class Process).
pub const PROCESS: Guid = 0x3D6F_A8D0_FE05_11D0_9DDA_00C0_4FD7_BA7C;

/// The class of thread events, which has the context switches (MOF class Thread).
pub const THREAD: Guid = 0x3D6F_A8D1_FE05_11D0_9DDA_00C0_4FD7_BA7C;

/// The class of samples and their intervals (MOF class PerfInfo).
pub const PERF_INFO: Guid = 0xCE1D_BFB4_137E_4DA6_87B0_3F59_AA10_2CBC;

/// The class of stacks (MOF class StackWalk).
pub const STACK_WALK: Guid = 0xDEF2_FE46_7BD6_4B80_BD94_F57F_E20D_0CE3;

/// The class of image events (MOF class Image_Load).
pub const IMAGE: Guid = 0x2CB1_5D1D_5FC1_11D2_ABE1_00A0_C911_F518;

/// Microsoft-Windows-DotNETRuntime.
pub const DOTNET: Guid = 0xE13C_0D23_CCBC_4E12_931B_D9CC_2EEE_27E4;

/// Microsoft-Windows-DotNETRuntimeRundown.
pub const DOTNET_RUNDOWN: Guid = 0xA669_021C_C450_4609_A035_5AF5_9AF4_DF18;

/// Returns the digits of a GUID in memory, where the first three groups are little-endian.
const fn guid(bytes: [u8; 16]) -> Guid {
    let groups = u64::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7], bytes[0], bytes[1], bytes[2], bytes[3]]);
    let groups = (groups & !0xFFFF_FFFF) | (groups & 0xFFFF) << 16 | (groups >> 16 & 0xFFFF);
    let last = [bytes[8], bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]];
    (groups as u128) << u64::BITS | u64::from_be_bytes(last) as u128
}

/// EVENT_HEADER_EXT_TYPE_STACK_TRACE32 and EVENT_HEADER_EXT_TYPE_STACK_TRACE64.
pub const STACK_TRACE32: u16 = 5;
/// See [`STACK_TRACE32`].
pub const STACK_TRACE64: u16 = 6;

/// An EVENT_HEADER_EXTENDED_DATA_ITEM.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extension<'a> {
    /// ExtType.
    pub kind: u16,
    /// The data.
    pub bytes: &'a [u8],
}

/// An event.
#[derive(Debug, Clone, Copy)]
pub struct RawTraceEvent<'a> {
    /// ProviderId; for MOF events the class.
    pub provider: Guid,
    /// EventDescriptor.Id.
    pub id: u16,
    /// EventDescriptor.Version.
    pub version: u8,
    /// EventDescriptor.Opcode.
    pub opcode: u8,
    /// ProcessId, or 0xFFFFFFFF.
    pub process: u32,
    /// ThreadId, or 0xFFFFFFFF.
    pub thread: u32,
    /// The CPU that wrote it.
    pub processor: u32,
    /// TimeStamp, in units of the performance counter.
    pub time: u64,
    /// Size of a pointer in the payload.
    pub pointer: usize,
    /// The payload.
    pub payload: &'a [u8],
    /// The extended data items.
    pub extensions: &'a [Extension<'a>],
}

impl RawTraceEvent<'static> {
    /// An event without anything.
    pub const EMPTY: Self = Self {
        provider: 0,
        id: 0,
        version: 0,
        opcode: 0,
        process: u32::MAX,
        thread: u32::MAX,
        processor: 0,
        time: 0,
        pointer: 8,
        payload: &[],
        extensions: &[],
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_groups_of_a_guid_are_little_endian() {
        assert_eq!(HALPROF, 0x1E73_BB95_D033_5693_4748_A63E_860B_83C2);
    }
}
