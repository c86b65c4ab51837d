//! Functions in assembly language, for the prologs and epilogs that the compiler does not make of this program.

#![expect(unsafe_code, reason = "assembly language")]

use crate::Function;

core::arch::global_asm!(include_str!("prologs.s"));

macro_rules! functions {
    ($($name:ident),*) => {
        unsafe extern "win64" {
            $(safe fn $name(seed: u64) -> u64;)*
            #[link_name = "prolog_sizes"]
            safe static SIZES: [u64; COUNT];
        }

        const COUNT: usize = [$(stringify!($name)),*].len();

        /// Returns the functions in the order of their sizes in the assembly file.
        pub fn functions() -> impl Iterator<Item = Function> {
            let functions = [$((stringify!($name), $name as *const ())),*].into_iter();
            functions.zip(&SIZES).map(|((name, address), size)| Function { name, address: address.addr(), size: *size })
        }
    };
}

functions!(
    leaf,
    push_all,
    frame_rbp,
    frame_r13,
    save_registers,
    allocate_pages,
    jump_near,
    jump_through_memory,
    chained,
    end_with_call,
    after_the_call,
    skip_caller
);

/// Executes every instruction of the functions.
#[inline(never)]
pub fn exercise(seed: u64) -> u64 {
    let both =
        |function: extern "win64" fn(u64) -> u64, seed: u64| function(seed & !1).wrapping_add(function(seed | 1));
    let pages = both(allocate_pages, seed);
    let jumps = both(jump_near, pages) ^ both(jump_through_memory, pages);
    end_with_call(jumps) ^ after_the_call(jumps)
}
