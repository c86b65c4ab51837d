//! Call stacks as functions.
//!
//! A caller is a [`SampleLocation`] like the sampled address, with the callers of it as its stack: whatever is known
//! about a sampled address is known about a caller. Its address is the one before the return address, because a call
//! can be the last instruction of a function, or of an inlined one. The innermost caller in user mode of code in kernel
//! mode did not call it: an interrupt or a fault came at its address, or a `syscall` is before it in the same function.
//! Its address is the recorded one. Code in kernel mode that a fault or an interrupt has interrupted is taken for a
//! call: Windows' stacks have addresses alone, and only the unwind information of the kernel's image says which
//! functions are entered by an interrupt.

use std::borrow::Cow;

use protocol::{UNKNOWN, is_kernel_address};
use recording::{MissingStack, StackEnd, StackId, StackNode};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::locations::SampleLocation;
use crate::process_keys::ProcessKey;
use crate::read::Contents;
use crate::symbol_index::{Name, Owner, Resolved, SymbolIndex};

/// Maximum number of callers of which the functions are kept.
const MAX_KNOWN: usize = 1 << 18;

/// What a call stack has instead of its outer callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StackNote {
    /// Outer callers are missing: Windows cuts long stacks.
    Truncated,
    /// The callers in user mode did not arrive.
    UserLost,
    /// There is no stack.
    Missing(MissingStack),
}

impl StackNote {
    /// Returns the note of a stack that is not complete. `end` is the stack of its outermost caller.
    pub(crate) fn of(end: StackId) -> Option<Self> {
        match end.end() {
            Some(StackEnd::Truncated) => Some(Self::Truncated),
            Some(StackEnd::UserLost) => Some(Self::UserLost),
            Some(StackEnd::Complete) => None,
            None => end.missing().map(Self::Missing),
        }
    }

    /// Returns the note as a frame shows it.
    #[must_use]
    pub fn text(self) -> Cow<'static, str> {
        match self {
            Self::Truncated => "[truncated]".into(),
            Self::UserLost => "[user stack lost]".into(),
            Self::Missing(reason) => format!("[no stack: {}]", reason.name()).into(),
        }
    }
}

/// A function in call stacks, or what is there instead of one. [`SymbolIndex`] has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Function {
    /// Whether its code is in kernel mode.
    pub kernel: bool,
    kind: FunctionKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum FunctionKind {
    Process(ProcessKey),
    Code(Owner, Name),
    Branch(BranchEnd),
    Note(StackNote),
}

/// An end of a branch in a [branch history](crate::Contents::use_branch_history): code and the offset in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct BranchEnd {
    owner: Owner,
    name: Name,
    place: Place,
    /// Whether it is the target, not the branch instruction.
    is_target: bool,
}

impl Function {
    /// Returns a process, which takes the place of the outermost function.
    #[must_use]
    pub const fn process(process: ProcessKey) -> Self {
        Self { kernel: false, kind: FunctionKind::Process(process) }
    }

    /// Returns the process, if this is one.
    #[must_use]
    pub const fn as_process(&self) -> Option<ProcessKey> {
        match self.kind {
            FunctionKind::Process(process) => Some(process),
            FunctionKind::Code(..) | FunctionKind::Branch(_) | FunctionKind::Note(_) => None,
        }
    }

    /// Returns the note, if this is one.
    #[must_use]
    pub const fn note(&self) -> Option<StackNote> {
        match self.kind {
            FunctionKind::Note(note) => Some(note),
            FunctionKind::Code(..) | FunctionKind::Branch(_) | FunctionKind::Process(_) => None,
        }
    }

    /// Returns whether this is an end of a branch in a [history](crate::Contents::use_branch_history).
    pub(crate) const fn is_branch_end(&self) -> bool {
        matches!(self.kind, FunctionKind::Branch(_))
    }

    /// Returns the module and the name of a function.
    pub(crate) const fn code(&self) -> Option<(Owner, Name)> {
        match self.kind {
            FunctionKind::Code(owner, name) => Some((owner, name)),
            FunctionKind::Branch(_) | FunctionKind::Note(_) | FunctionKind::Process(_) => None,
        }
    }

    /// Returns whether the compiler inlined the function into its caller.
    #[must_use]
    pub const fn is_inlined(&self) -> bool {
        matches!(self.kind, FunctionKind::Code(_, Name::Inlined(_)))
    }
}

/// Where an end of a branch is in the code that has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Place {
    /// At the offset from the beginning of the code.
    Offset(u64),
    /// At the address; the beginning of the code is unknown.
    Address(u64),
}

/// A function in the call stack of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The function.
    pub function: Function,
    /// The sampled address, or a return address; 0 for a [note](StackNote).
    pub address: u64,
    /// Where the code is, of which everything that [`SymbolIndex`] and [`Processes`](crate::Processes) know can be
    /// asked; of a [call](Caller::is_call) the address before the return address. For a note, that of its caller
    /// inward.
    pub location: SampleLocation,
}

/// A caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// Where its code is.
    pub location: SampleLocation,
    /// The recorded address: a return address if it is a [call](Self::is_call).
    pub address: u64,
}

impl Caller {
    /// Returns whether its code is a call, which is before the recorded address.
    #[must_use]
    pub const fn is_call(&self) -> bool {
        self.location.ip != self.address
    }
}

impl SymbolIndex {
    /// Returns the name of a function: as [`symbol`](Self::symbol), without a mark of inlined ones; of an end of a
    /// branch which end it is, and its symbol and offset; of a process its name and number; of a note its text.
    #[must_use]
    pub fn function_name(&self, function: Function, contents: &Contents) -> Cow<'_, str> {
        match function.kind {
            FunctionKind::Code(_, name) => self.function_text(name),
            FunctionKind::Branch(BranchEnd { name, place, is_target, .. }) => {
                let end = if is_target { "to" } else { "from" };
                let place = match place {
                    Place::Offset(0) => String::new(),
                    Place::Offset(offset) => format!("+{offset:#x}"),
                    Place::Address(address) => format!(" {address:#x}"),
                };
                format!("{end} {}{place}", self.function_text(name)).into()
            }
            FunctionKind::Note(note) => note.text(),
            FunctionKind::Process(process) => {
                let name = contents.processes.name_or_unknown(process);
                if process.id == UNKNOWN { name.to_owned() } else { format!("{name} ({})", process.id) }.into()
            }
        }
    }

    /// Returns the name of the module of a function, as [`module`](Self::module); empty if it is not one.
    #[must_use]
    pub fn function_module(&self, function: Function) -> &str {
        match function.kind {
            FunctionKind::Code(owner, _) | FunctionKind::Branch(BranchEnd { owner, .. }) => self.owner_text(owner),
            FunctionKind::Note(_) | FunctionKind::Process(_) => "",
        }
    }
}

impl Contents {
    /// Returns the caller of the code at a location, if it is known. [`Detail::stacks`](crate::Detail::stacks) must
    /// have been selected.
    #[must_use]
    pub fn caller(&self, location: &SampleLocation) -> Option<Caller> {
        let StackNode { parent: stack, address } = self.stacks.node(location.stack)?;
        let kernel = is_kernel_address(address);
        let is_call = !self.has_branch_history && (kernel || !location.kernel);
        // Nothing is before 0, where the stacks of some threads end.
        let ip = address.saturating_sub(is_call.into());
        Some(Caller { location: SampleLocation { kernel, ip, stack, ..*location }, address })
    }

    /// Returns the callers of all these locations, each caller in a process once.
    pub fn callers(&self, locations: impl Iterator<Item = SampleLocation>) -> impl Iterator<Item = SampleLocation> {
        let mut processes: FxHashMap<ProcessKey, u64> = FxHashMap::default();
        let mut seen: FxHashSet<(u64, bool)> = FxHashSet::default();
        locations.filter(|location| location.stack.node().is_some()).flat_map(move |location| {
            let next = processes.len() as u64;
            let process = *processes.entry(location.process).or_insert(next);
            let mut new = Vec::new();
            let mut at = location;
            while let Some(caller) = self.caller(&at) {
                if !seen.insert((process << 32 | u64::from(at.stack.number()), caller.is_call())) {
                    break;
                }
                new.push(caller.location);
                at = caller.location;
            }
            new
        })
    }
}

/// Makes functions of call stacks. Those of recent callers are kept.
#[derive(Debug)]
pub struct CallStacks<'a> {
    contents: &'a Contents,
    symbol_index: &'a SymbolIndex,
    /// Functions by process, stack, and whether the innermost caller of the stack is a call.
    known: FxHashMap<(ProcessKey, StackId, bool), Resolved>,
    frames: Vec<Frame>,
}

impl<'a> CallStacks<'a> {
    /// Creates a translator of the stacks of a recording. Only those that `symbol_index` was made for have symbols.
    #[must_use]
    pub fn new(contents: &'a Contents, symbol_index: &'a SymbolIndex) -> Self {
        Self { contents, symbol_index, known: FxHashMap::default(), frames: Vec::new() }
    }

    /// Returns the functions at a location and of its callers, from the innermost to the outermost. Functions that the
    /// compiler inlined have frames of their own. A stack that is not complete has a [note](StackNote) as its outermost
    /// frame.
    pub fn frames(&mut self, location: &SampleLocation) -> &[Frame] {
        self.frames.clear();
        let resolved = self.symbol_index.resolve(location);
        self.add(location, location.ip, &resolved);
        let mut at = *location;
        // In a branch history, a target follows, then the branch to it, then the target before that.
        let mut is_target = true;
        while let Some(caller) = self.contents.caller(&at) {
            let resolved = self.resolve(at.stack, &caller);
            if self.contents.has_branch_history {
                self.add_branch_end(&caller.location, &resolved, is_target);
                is_target = !is_target;
            } else {
                self.add(&caller.location, caller.address, &resolved);
            }
            at = caller.location;
        }
        if let Some(note) = StackNote::of(at.stack) {
            let function = Function { kernel: false, kind: FunctionKind::Note(note) };
            self.frames.push(Frame { function, address: 0, location: at });
        }
        &self.frames
    }

    fn resolve(&mut self, stack: StackId, caller: &Caller) -> Resolved {
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        let key = (caller.location.process, stack, caller.is_call());
        *self.known.entry(key).or_insert_with(|| self.symbol_index.resolve(&caller.location))
    }

    /// Adds the functions of an address.
    fn add(&mut self, location: &SampleLocation, address: u64, resolved: &Resolved) {
        let kernel = location.kernel;
        let is_unattributed = location.process.id == UNKNOWN && !kernel;
        let behind = address.wrapping_sub(location.ip);
        let outer = match resolved.name {
            _ if is_unattributed => Name::Unknown,
            // Without a function, a call is known by its return address.
            Name::Offset(module, offset) => Name::Offset(module, offset + behind),
            Name::Address(_) => Name::Address(address),
            name => name,
        };
        let names = self.symbol_index.inlined_names(resolved.inlined).chain([outer]);
        self.frames.extend(names.map(|name| {
            let function = Function { kernel, kind: FunctionKind::Code(resolved.owner, name) };
            Frame { function, address, location: *location }
        }));
    }

    /// Adds an end of a branch.
    fn add_branch_end(&mut self, location: &SampleLocation, resolved: &Resolved, is_target: bool) {
        let SampleLocation { process, kernel, ip, .. } = *location;
        let Resolved { owner, name, .. } = *resolved;
        let place = match name {
            Name::Symbol(id) => {
                let module = self.contents.processes.module_at(process, kernel, ip);
                let begin = self.symbol_index.symbol_of(id).map_or(0, |symbol| symbol.address);
                Place::Offset(module.map_or(0, |(_, offset)| offset.saturating_sub(begin.into())))
            }
            Name::Unmapped(region) => Place::Offset(ip.saturating_sub(region)),
            Name::Jit(_) | Name::Inlined(_) => Place::Address(ip),
            // The name is the address.
            Name::Offset(..) | Name::Address(_) | Name::Unknown => Place::Offset(0),
        };
        let end = BranchEnd { owner, name, place, is_target };
        let function = Function { kernel, kind: FunctionKind::Branch(end) };
        self.frames.push(Frame { function, address: ip, location: *location });
    }
}
