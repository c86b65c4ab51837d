//! The modules of each process.

use std::collections::BTreeMap;

use protocol::{AnySample, UNKNOWN};
use recording::{KERNEL, Method, Methods, Module, Process};

use crate::locations::{Detail, SampleLocation};
use crate::modules::{ModuleId, Modules};
use crate::pattern::NamePattern;
use crate::perf_map::PerfMap;
use crate::process_keys::{Creations, ProcessKey};

/// Name of a process, thread or module that is not known.
pub const UNKNOWN_NAME: &str = "[unknown]";

/// A module loaded in an address space.
#[derive(Debug, Clone, Copy)]
struct LoadedModule {
    base: u64,
    size: u64,
    module: ModuleId,
}

impl LoadedModule {
    fn end(&self) -> u64 {
        self.base.saturating_add(self.size)
    }
}

#[derive(Debug, Clone, Default)]
struct AddressSpace {
    name: String,
    /// Modules in ascending order; they do not overlap.
    loaded: Vec<LoadedModule>,
}

impl AddressSpace {
    /// Adds a module and removes every module that overlaps it, because that one must have been unloaded before.
    fn load(&mut self, module: LoadedModule) {
        let first = self.loaded.partition_point(|other| other.end() <= module.base && other.base < module.base);
        let after = self.loaded.partition_point(|other| other.base < module.end() || other.base <= module.base);
        self.loaded.splice(first..after.max(first), [module]);
    }

    fn at(&self, address: u64) -> Option<(ModuleId, u64)> {
        let after = self.loaded.partition_point(|other| other.base <= address);
        let LoadedModule { base, size, module } = *self.loaded.get(after.checked_sub(1)?)?;
        let offset = address - base;
        (offset < size).then_some((module, offset))
    }
}

/// The processes of a recording, and the kernel.
#[derive(Debug, Clone, Default)]
pub struct Processes {
    spaces: BTreeMap<ProcessKey, AddressSpace>,
    creations: Creations,
    modules: Modules,
    /// Functions of just-in-time compilers.
    methods: BTreeMap<ProcessKey, PerfMap>,
}

impl Processes {
    /// Creates a map without names and modules, which knows when processes were created.
    pub(crate) fn with_creations(creations: Creations) -> Self {
        Self { creations, ..Self::default() }
    }

    /// Adds a block. The last name of a process counts; modules are added to those of earlier blocks, and a module
    /// replaces those that it overlaps.
    pub fn add(&mut self, process: &Process) {
        let key = ProcessKey::of(process);
        self.creations.add(key);
        let space = self.spaces.entry(key).or_default();
        process.name.clone_into(&mut space.name);
        for module in &process.modules {
            let Module { base, size, .. } = *module;
            space.load(LoadedModule { base, size, module: self.modules.intern(module) });
        }
    }

    /// Adds functions of a just-in-time compiler. A later one replaces those that it overlaps.
    pub fn add_methods(&mut self, block: &Methods) {
        let mut methods: Vec<&Method> = block.methods.iter().collect();
        methods.sort_by_key(|method| method.loaded);
        for Method { address, size, name, loaded } in methods {
            let process = match block.created {
                Some(created) => ProcessKey { id: block.id, created },
                None => self.at(block.id, *loaded),
            };
            self.methods.entry(process).or_default().add(*address, *size, name);
        }
    }

    /// Returns the recorded function of a just-in-time compiler at `address`.
    pub(crate) fn method_at(&self, process: ProcessKey, address: u64) -> Option<&str> {
        self.methods.get(&process)?.at(address)
    }

    /// Adds a block as [`add`](Self::add) does, and forgets the processes that had its ID before.
    pub fn add_newest(&mut self, process: &Process) {
        let newest = ProcessKey::of(process);
        for earlier in self.creations.replace(newest) {
            self.spaces.remove(&earlier);
        }
        self.add(process);
    }

    /// Returns the process that had an ID at a time, in units of the recording's clock.
    #[must_use]
    pub fn at(&self, id: u32, time: u64) -> ProcessKey {
        self.creations.at(id, time)
    }

    /// Returns the process that was created last with an ID.
    #[must_use]
    pub fn latest(&self, id: u32) -> ProcessKey {
        self.creations.at(id, u64::MAX)
    }

    /// Returns all processes that had an ID, the oldest first.
    pub fn with_id(&self, id: u32) -> impl Iterator<Item = ProcessKey> {
        self.creations.of_id(id)
    }

    /// Returns the location of a sample without thread and processor.
    #[must_use]
    pub fn location(&self, sample: &AnySample) -> SampleLocation {
        SampleLocation::of(sample, self.at(sample.process, sample.time), Detail::default())
    }

    /// Returns the name of a process, if it is known.
    #[must_use]
    pub fn name(&self, process: ProcessKey) -> Option<&str> {
        let space = self.spaces.get(&process).filter(|_| process.id != KERNEL);
        space.map(|space| space.name.as_str()).filter(|name| !name.is_empty())
    }

    /// Returns the name of a process, or `[unknown]`.
    #[must_use]
    pub fn name_or_unknown(&self, process: ProcessKey) -> &str {
        self.name(process).unwrap_or(UNKNOWN_NAME)
    }

    /// Returns the processes named `name`, in which `*` and `?` stand for other characters. Case and the suffix `.exe`
    /// are ignored.
    pub fn named(&self, name: &str) -> impl Iterator<Item = ProcessKey> {
        let wanted = NamePattern::new(normalized(name));
        let spaces = self.spaces.iter().filter(|(process, _)| process.id != KERNEL);
        spaces.filter(move |(_, space)| wanted.matches(&normalized(&space.name))).map(|(process, _)| *process)
    }

    /// Returns the module at `address` and the offset in it, among the modules of the kernel or of a process. An
    /// [unknown](protocol::UNKNOWN) process has no modules.
    pub(crate) fn module_at(&self, process: ProcessKey, kernel: bool, address: u64) -> Option<(ModuleId, u64)> {
        if !kernel && process.id == UNKNOWN {
            return None;
        }
        self.spaces.get(&if kernel { KERNEL.into() } else { process })?.at(address)
    }

    /// Returns whether an address in user mode is in a module or in a compiled function of `process`.
    pub(crate) fn has_code_at(&self, process: ProcessKey, address: u64) -> bool {
        self.module_at(process, false, address).is_some() || self.method_at(process, address).is_some()
    }

    /// Returns whether the recording has modules of a process, or of the [kernel](KERNEL).
    pub(crate) fn has_modules(&self, process: ProcessKey) -> bool {
        self.spaces.get(&process).is_some_and(|space| !space.loaded.is_empty())
    }

    /// Returns the modules of all processes.
    #[must_use]
    pub fn modules(&self) -> &Modules {
        &self.modules
    }
}

fn normalized(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    name.strip_suffix(".exe").map(ToOwned::to_owned).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn module(base: u64, size: u64, path: &str) -> Module {
        Module { base, size, path: path.to_owned(), timestamp: 1, image_size: 0, debug: None }
    }

    fn process(id: u32, modules: &[Module]) -> Process {
        Process { id, created: None, name: format!("p{id}"), modules: modules.to_vec() }
    }

    fn name_at(processes: &Processes, id: u32, kernel: bool, address: u64) -> Option<(&str, u64)> {
        processes
            .module_at(id.into(), kernel, address)
            .map(|(module, offset)| (processes.modules().name(module), offset))
    }

    #[test]
    fn address_belongs_to_the_module_that_covers_it() {
        let mut processes = Processes::default();
        processes.add(&process(7, &[module(0x1000, 0x100, "a"), module(0x2000, 0x100, "b")]));
        processes.add(&process(KERNEL, &[module(0x2000, 0x100, "nt")]));
        for (address, wanted) in [
            (0xFFF, None),
            (0x1000, Some(("a", 0))),
            (0x10FF, Some(("a", 0xFF))),
            (0x1100, None),
            (0x2001, Some(("b", 1))),
            (u64::MAX, None),
        ] {
            assert_eq!(name_at(&processes, 7, false, address), wanted, "{address:#x}");
        }
        assert_eq!(name_at(&processes, 7, true, 0x2001), Some(("nt", 1)));
        assert_eq!(name_at(&processes, 8, false, 0x1000), None);
    }

    #[test]
    fn kernel_modules_belong_to_no_process_not_even_an_unknown_one() {
        let mut processes = Processes::default();
        let kernel = Process {
            id: KERNEL,
            created: None,
            name: "kernel".to_owned(),
            modules: vec![module(0x2000, 0x100, "nt")],
        };
        processes.add(&kernel);
        assert_eq!(name_at(&processes, UNKNOWN, true, 0x2001), Some(("nt", 1)));
        assert_eq!(name_at(&processes, UNKNOWN, false, 0x2001), None);
        assert_eq!((processes.name_or_unknown(UNKNOWN.into()), processes.named("kernel").next()), ("[unknown]", None));
    }

    #[test]
    fn later_blocks_add_modules_and_replace_the_name() {
        let mut processes = Processes::default();
        processes.add(&process(7, &[module(0x1000, 0x100, "a")]));
        processes.add(&Process {
            id: 7,
            created: None,
            name: "renamed".to_owned(),
            modules: vec![module(0x2000, 0x100, "b")],
        });
        assert_eq!(processes.name(7.into()), Some("renamed"));
        assert_eq!(name_at(&processes, 7, false, 0x1000), Some(("a", 0)));
        assert_eq!(name_at(&processes, 7, false, 0x2000), Some(("b", 0)));
        let next = Process { created: Some(1), ..process(7, &[module(0x3000, 0x100, "c")]) };
        let mut newest = processes.clone();
        newest.add_newest(&next);
        assert_eq!((newest.spaces.len(), newest.at(7, 0)), (1, ProcessKey { id: 7, created: 1 }));
        newest.add_newest(&next);
        assert_eq!(newest.name(newest.latest(7)), Some("p7"));
        assert_eq!([7, 8, KERNEL].map(|id| processes.has_modules(id.into())), [true, false, false]);
    }

    proptest! {
        /// Compares with a list from which each new module removes those that it overlaps.
        #[test]
        fn last_of_overlapping_modules_stays(
            bases in prop::collection::vec((0_u64..64, 1_u64..32), 1..12), address in 0_u64..100
        ) {
            let modules: Vec<Module> =
                bases.iter().enumerate().map(|(index, (base, size))| module(*base, *size, &index.to_string())).collect();
            let mut processes = Processes::default();
            processes.add(&process(1, &modules));
            let mut left: Vec<&Module> = Vec::new();
            for module in &modules {
                left.retain(|other| other.base >= module.base + module.size || module.base >= other.base + other.size);
                left.push(module);
            }
            let wanted = left.iter().find(|module| (module.base..module.base + module.size).contains(&address));
            let wanted = wanted.map(|module| (module.path.as_str(), address - module.base));
            prop_assert_eq!(name_at(&processes, 1, false, address), wanted);
        }
    }
}
