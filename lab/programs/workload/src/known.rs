//! The known functions as the program describes them.

use crate::{
    Function,
    functions::{alpha, beta, gamma},
    windows::size,
};

/// Returns the description of a function.
pub fn function(name: &'static str, address: *const ()) -> Function {
    Function { name, address: address.addr(), size: size(address.addr()).into() }
}

/// Returns the known functions.
pub fn known() -> impl Iterator<Item = Function> {
    [("alpha", alpha as fn(u64) -> u64), ("beta", beta), ("gamma", gamma)]
        .into_iter()
        .map(|(name, address)| function(name, address as *const ()))
}
