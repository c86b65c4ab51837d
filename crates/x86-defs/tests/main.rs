//! Definitions of the processor, against numbers from the manuals. One program, because each is linked anew.

mod addresses;
mod bits;
mod formats;
