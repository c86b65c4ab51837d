//! The pages at which the registers of the local APIC are or were mapped.

use crate::{
    lock::lock,
    nt::{self, Pointer},
};
use std::sync::Mutex;

/// Size of the register page in bytes.
pub const PAGE: usize = 0x1000;

/// The mapped and the unmapped pages.
#[derive(Default)]
pub struct ApicPages(Mutex<Vec<ApicPage>>);

struct ApicPage {
    address: usize,
    /// False after the unmapping. The addresses are not reused, so that a late access is recognized.
    mapped: bool,
}

impl ApicPages {
    /// Reserves a page for the registers of the APIC. Returns null if no addresses are free.
    pub fn map(&self) -> Pointer {
        let page = nt::reserve(PAGE);
        if !page.is_null() {
            lock(&self.0).push(ApicPage { address: page.addr(), mapped: true });
        }
        page
    }

    /// Unmaps the page at `address`. Returns false if none is mapped there.
    pub fn unmap(&self, address: usize) -> bool {
        let mut pages = lock(&self.0);
        let page = pages.iter_mut().find(|page| page.address == address && page.mapped);
        page.map(|page| page.mapped = false).is_some()
    }

    /// Unmaps every page. Returns false if none was mapped.
    pub fn unmap_all(&self) -> bool {
        let mut pages = lock(&self.0);
        let any = pages.iter().any(|page| page.mapped);
        pages.iter_mut().for_each(|page| page.mapped = false);
        any
    }

    /// Returns the offset of the register and whether its page is mapped. Returns None for other addresses.
    pub fn find(&self, address: usize) -> Option<(usize, bool)> {
        let within = |page: &ApicPage| {
            let offset = address.checked_sub(page.address).filter(|offset| *offset < PAGE)?;
            Some((offset, page.mapped))
        };
        lock(&self.0).iter().find_map(within)
    }
}
