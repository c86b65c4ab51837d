//! Data with an address in the image.

use crate::type_table::TypeTable;

/// Maximum number of data before an address that are tried: data can overlap.
const MAX_TRIED: usize = 16;

/// A variable with an address.
#[derive(Debug)]
pub(crate) struct Datum {
    /// Relative to the image.
    pub address: u32,
    pub kind: u32,
    pub name: Box<str>,
}

/// Finds the datum at `address`, and the offset in it. `data` is in ascending order.
pub(crate) fn datum_at<'a>(data: &'a [Datum], address: u32, types: &TypeTable) -> Option<(&'a Datum, u64)> {
    let end = data.partition_point(|datum| datum.address <= address);
    data.get(..end)?.iter().rev().take(MAX_TRIED).find_map(|datum| {
        let offset = u64::from(address.checked_sub(datum.address)?);
        (offset < types.size(datum.kind)?).then_some((datum, offset))
    })
}
