//! Names data of programs by the types of their PDBs.
//!
//! An access of memory has an address of data and one of code. The first leads to a variable with an address in the
//! image, and from there to its member: `table.rows[3].lock`. For the others, the instruction has an operand as
//! `[rbx+0x18]`, and the PDB can say which variable the register has: `node->next`.
//!
//! | module | what it does |
//! |---|---|
//! | `source`, `bytes` | the file, and the fields of its records |
//! | `leaf`, `basic_types`, `type_table` | records of types; their sizes, names and definitions |
//! | `place` | from an offset in a value to its member |
//! | `symbol_records`, `module`, `data`, `registers` | records of variables, and where they are |
//! | `pdb_types` | the types and variables of a PDB |
//! | `operand`, `pointers` | from an instruction to the variable that its operand is in |
//!
//! A PDB is a file of others. The code here reads its records with bounds for circles and lengths, and returns nothing
//! where records contradict each other. A library finds the streams of a PDB; the caller can guard the calls.

#![forbid(unsafe_code)]

mod basic_types;
mod bytes;
mod data;
mod leaf;
mod module;
mod operand;
mod pdb_types;
mod place;
mod pointers;
mod registers;
mod source;
mod symbol_records;
mod type_table;

pub use operand::{Code, MemoryOperand, Operation};
pub use pdb_types::{DataTypes, ReadError};
pub use place::{Member, Place};
