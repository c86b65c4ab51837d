//! Analyzes recordings: samples by process, module and symbol.
//!
//! A recording is read once, block by block. [`SampleCounts`] counts samples by location, so memory grows with the
//! number of distinct addresses, not with the number of samples. [`Processes`] keeps the modules of each process. Then
//! [`SymbolIndex`] resolves every address to its module and, through [`SymbolFinder`], to its symbol. Tables
//! ([`Table`]), folded stacks, flame graphs, profiles for the Firefox Profiler and CSV are made from these.
//!
//! A sample is one address, and its callers if call stacks were recorded: [`CallStacks`] makes functions of both.
//!
//! inferno, the library that draws the flame graphs, is under the CDDL 1.0.
//!
//! | module | contents |
//! |---|---|
//! | `input`, `read` | a recording; the passes over it |
//! | `sample_counts` | samples by location; losses, throttling and sleep |
//! | `locations`, `sums`, `numbering` | locations and their samples, counted by several threads |
//! | `filter`, `slice`, `pattern` | selection of samples |
//! | `process_keys`, `processes`, `modules` | which process had an ID at which time; the modules of each process |
//! | `pe` | headers of PE images |
//! | `perf_map` | functions of just-in-time compilers |
//! | `symbols` | search for the symbol files of a module |
//! | `sampled_sources` | sources by core type and mode |
//! | `symbol_index`, `module_names` | modules and symbols of all addresses |
//! | `table`, `proportion` | sums by columns, shares and their confidence intervals |
//! | `change` | changes between two measurements and their confidence intervals |
//! | `stack_stats`, `call_stacks` | how many samples have call stacks; their functions |
//! | `call_tree`, `call_rows` | trees of functions; rows of tables with what their functions call |
//! | `branches` | branches of BTS by source and target |
//! | `last_branches`, `branch_table` | the last branches of samples; by source and target |
//! | `branch_history` | last branches as call stacks |
//! | `branch_profile`, `branch_code` | what they say of the code of a module; its branch instructions |
//! | `block_counts` | executions and cycles of blocks of code |
//! | `data_source`, `accesses` | where the data of an access came from; the accesses of precise samples |
//! | `access_names` | the data of accesses, by the types of PDBs |
//! | `access_table`, `cache_lines` | accesses by columns; cache lines that several threads access |
//! | `rates` | events over time |
//! | `timeline` | ordinary samples and precise records in one order |
//! | `wait_reason` | why a thread did not run |
//! | `escape` | names in formats without escapes |
//! | `folded`, `firefox`, `pprof`, `samples_csv`, `script`, `speedscope` | exports for other programs |
//! | `function_code`, `annotation` | machine code of a function, its instructions with samples |

#![forbid(unsafe_code)]

mod access_names;
mod access_table;
mod accesses;
mod annotation;
mod block_counts;
mod branch_code;
mod branch_history;
mod branch_profile;
mod branch_table;
mod branches;
mod cache_lines;
mod call_rows;
mod call_stacks;
mod call_tree;
mod change;
mod code_flow;
mod data_source;
mod demangle;
mod dwarf;
mod escape;
mod filter;
mod firefox;
mod folded;
mod found_symbol;
mod function_code;
mod guard;
mod image_symbols;
mod input;
mod last_branches;
mod locations;
mod module_names;
mod modules;
mod newer_code;
mod numbering;
mod parallelism;
mod pattern;
mod pdb_symbols;
mod pe;
mod perf_map;
mod pprof;
mod process_keys;
mod processes;
mod proportion;
mod rates;
mod read;
mod recorded_build;
mod sample_counts;
mod sampled_sources;
mod samples_csv;
mod schedule;
mod script;
mod selected;
mod slice;
mod speedscope;
mod stack_stats;
mod sums;
mod symbol_index;
mod symbol_path;
mod symbol_servers;
mod symbol_stores;
mod symbols;
mod table;
mod time_order;
mod timeline;
mod unwind_functions;
mod wait_reason;

pub use access_names::{AccessNames, NamedBy};
pub use access_table::{AccessColumn, AccessRow, AccessTable};
pub use accesses::{Access, AccessStats, Accesses, DataAddress};
pub use annotation::{AnnotatedInstruction, Annotation, AnnotationError};
pub use block_counts::{BlockCount, InstructionCount};
pub use branch_profile::{BranchProfile, BranchProfiles, CodeAgreement, branch_profiles, have_ranges};
pub use branch_table::{LastBranch, LastBranchCount, LastBranchTable};
pub use branches::{Branch, BranchCount, BranchCounts};
pub use cache_lines::{CacheLine, CacheLines, LineAccess, LineLoads, LineSize, Sharing};
pub use call_stacks::{CallStacks, Caller, Frame, Function, StackNote};
pub use call_tree::{CallNode, CallOrder, CallTree};
pub use change::{Change, Confidence, Estimate};
pub use data_source::{Blocked, DataSource, MemoryLevel, ModifiedCopy, Snoop, Translation, reports_modified};
pub use filter::Filter;
pub use firefox::{Thinned, firefox};
pub use folded::{
    WAITS, flamegraph, folded, folded_for_graph, folded_latency, folded_with_numbers, wall_clock_for_graph,
};
pub use found_symbol::{Missing, Reason, SourceLine};
pub use function_code::CodeError;
pub use guard::guarded;
pub use input::Input;
pub use last_branches::{BranchStack, LastBranchStats, for_each_branch_stack};
pub use locations::{Detail, SampleLocation};
pub use module_names::Symbol;
pub use modules::{ModuleId, Modules};
pub use pattern::{NamePattern, shortened};
pub use pe::{PeError, PeHeaders};
pub use pprof::pprof;
pub use process_keys::ProcessKey;
pub use processes::{Processes, UNKNOWN_NAME};
pub use proportion::{Interval, real};
pub use rates::{Rates, rates};
pub use read::{Contents, ExportError};
pub use sample_counts::{LossStats, SampleCounts, Total};
pub use sampled_sources::{SampledSource, qualified};
pub use samples_csv::samples_csv;
pub use schedule::{Schedule, ThreadSchedule, schedule};
pub use script::{script, script_with_branches};
pub use slice::{RecordedTime, Slice};
pub use speedscope::speedscope;
pub use stack_stats::StackStats;
pub use sums::SampleWeight;
pub use symbol_index::{PerfMapProblem, SymbolId, SymbolIndex};
pub use symbols::SymbolFinder;
pub use table::{Column, FirstRows, Limits, OmittedRows, RowTotal, Table, TableRow};
pub use timeline::{TimelineSample, timeline};
pub use wait_reason::wait_reason;
