//! The modules of a recording. A module that several processes have loaded is stored once.

use recording::{DebugFile, Module};
use rustc_hash::FxHashMap;

/// Index of a module in [`Modules`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(u32);

/// Identity of a module across processes: everything except its address range.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ModuleKey {
    path: String,
    timestamp: u32,
    image_size: u32,
    debug: Option<(String, String)>,
}

impl ModuleKey {
    fn of(module: &Module) -> Self {
        let debug = module.debug.as_ref().map(|DebugFile { name, id }| (name.clone(), id.clone()));
        Self { path: module.path.clone(), timestamp: module.timestamp, image_size: module.image_size, debug }
    }
}

/// The modules of a recording.
#[derive(Debug, Clone, Default)]
pub struct Modules {
    list: Vec<Module>,
    ids: FxHashMap<ModuleKey, ModuleId>,
}

impl Modules {
    /// Returns the index of `module`, adding it if it is new.
    pub(crate) fn intern(&mut self, module: &Module) -> ModuleId {
        *self.ids.entry(ModuleKey::of(module)).or_insert_with(|| {
            self.list.push(module.clone());
            // More modules than this do not fit into memory.
            ModuleId(u32::try_from(self.list.len() - 1).unwrap_or(u32::MAX))
        })
    }

    /// Returns the module with this index. Its base is that in the first process that had it.
    #[must_use]
    pub fn get(&self, id: ModuleId) -> Option<&Module> {
        self.list.get(id.0 as usize)
    }

    /// Returns the file name of a module.
    #[must_use]
    pub fn name(&self, id: ModuleId) -> &str {
        self.get(id).map_or("", |module| file_name(&module.path))
    }
}

/// Returns the file name of a Windows path, on any system.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_follows_the_last_separator() {
        for (path, name) in
            [("C:\\Windows\\System32\\ntdll.dll", "ntdll.dll"), ("/usr/bin/app", "app"), ("a.exe", "a.exe"), ("", "")]
        {
            assert_eq!(file_name(path), name);
        }
    }

    #[test]
    fn module_is_identified_by_its_build_not_its_base() {
        let module = |base, timestamp| Module {
            base,
            size: 0x1000,
            path: "C:\\a.dll".to_owned(),
            timestamp,
            image_size: 0x1000,
            debug: None,
        };
        let mut modules = Modules::default();
        let first = modules.intern(&module(0x1_0000, 7));
        assert_eq!(modules.intern(&module(0x2_0000, 7)), first);
        assert_ne!(modules.intern(&module(0x1_0000, 8)), first);
        assert_eq!(modules.name(first), "a.dll");
    }
}
