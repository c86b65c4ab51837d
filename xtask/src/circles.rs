//! Test of the imports inside the crates of the workspace: no files import each other in a circle.
//!
//! A name belongs to the file that defines it, also where another re-exports it. A file and those of its folder
//! (`hal.rs` and `hal/`) are one module to a reader: imports between a module and its own submodules are not arrows.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    slice::from_ref,
};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::test_targets;

/// Names from the root of a crate: of a module, or of an item.
type Names = Vec<String>;

/// How often a name is followed through re-exports.
const MAX_STEPS: usize = 8;

/// A module, in a file of its own or inside another.
#[derive(Debug, Default)]
struct Module {
    /// The module whose file has it.
    file: Names,
    /// What its `use` items import, by the name here; globs have the name `*`.
    imports: Vec<(String, Names)>,
    /// Paths in its code that begin with `crate`, `self` or `super`.
    paths: Vec<Names>,
    /// The items that it defines.
    items: BTreeSet<String>,
}

/// Where the files of submodules are.
#[derive(Debug, Clone, Copy)]
struct Folders<'a> {
    /// The folder of the file, for the attribute `path`.
    of_file: &'a Path,
    of_submodules: &'a Path,
}

/// The modules of a crate, except those of tests.
#[derive(Debug, Default)]
struct Crate(BTreeMap<Names, Module>);

impl Crate {
    fn read(root: &Path) -> Self {
        let mut modules = Self::default();
        modules.read_file(root, root.parent().unwrap(), &Names::new());
        modules
    }

    /// Reads a file, whose submodules are in `folder`.
    fn read_file(&mut self, path: &Path, folder: &Path, module: &Names) {
        let tokens = fs::read_to_string(path).unwrap().parse().unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let folders = Folders { of_file: path.parent().unwrap(), of_submodules: folder };
        self.read_module(tokens, folders, module.clone(), module);
    }

    fn read_module(&mut self, tokens: TokenStream, folders: Folders<'_>, file: Names, module: &Names) {
        self.0.insert(module.clone(), Module { file, ..Module::default() });
        self.read_tokens(&tokens.into_iter().collect::<Vec<_>>(), folders, module, true);
    }

    /// Reads items, or the inside of an item.
    fn read_tokens(&mut self, tokens: &[TokenTree], folders: Folders<'_>, module: &Names, are_items: bool) {
        let mut rest = tokens;
        // Of the attribute `path` before a module.
        let mut path = None;
        while let [first, after @ ..] = rest {
            rest = after;
            match (first, after) {
                (TokenTree::Punct(hash), [TokenTree::Group(attribute), ..])
                    if hash.as_char() == '#' && attribute.stream().to_string().starts_with("path =") =>
                {
                    let text = attribute.stream().to_string();
                    path = text.split('"').nth(1).map(|path| folders.of_file.join(path));
                    rest = &after[1..];
                }
                (TokenTree::Punct(hash), [TokenTree::Group(attribute), after @ ..])
                    if hash.as_char() == '#' && is_of_tests(&attribute.stream().to_string()) =>
                {
                    rest = after_item(after);
                }
                (TokenTree::Group(group), _) => {
                    self.read_tokens(&group.stream().into_iter().collect::<Vec<_>>(), folders, module, false);
                }
                (TokenTree::Ident(word), _) if word == "use" => {
                    let end = after.iter().position(|token| is_punct(token, ';')).unwrap_or(after.len());
                    let mut imports = Vec::new();
                    read_use(&after[..end], &[], &mut imports);
                    self.0.get_mut(module).unwrap().imports.extend(imports);
                    rest = &after[end..];
                }
                (TokenTree::Ident(word), [TokenTree::Ident(name), next, ..]) if word == "mod" => {
                    let child = [module.as_slice(), &[name.to_string()]].concat();
                    let inside = folders.of_submodules.join(name.to_string());
                    match (next, path.take()) {
                        (TokenTree::Group(body), _) => {
                            let file = self.0[module].file.clone();
                            self.read_module(
                                body.stream(),
                                Folders { of_submodules: &inside, ..folders },
                                file,
                                &child,
                            );
                        }
                        (_, Some(file)) => self.read_file(&file, file.parent().unwrap(), &child),
                        _ => {
                            let files = [inside.with_extension("rs"), inside.join("mod.rs")];
                            let file = files.iter().find(|file| file.is_file());
                            self.read_file(file.unwrap_or_else(|| panic!("no file of {child:?}")), &inside, &child);
                        }
                    }
                    rest = &after[2..];
                }
                (TokenTree::Ident(word), _) if ["crate", "self", "super"].iter().any(|root| word == root) => {
                    let path = path_of(rest_with(first, after));
                    if path.len() > 1 {
                        self.0.get_mut(module).unwrap().paths.push(path);
                    }
                }
                (TokenTree::Ident(word), [TokenTree::Ident(name), ..])
                    if are_items && DEFINERS.iter().any(|definer| word == definer) =>
                {
                    self.0.get_mut(module).unwrap().items.insert(name.to_string());
                }
                _ => {}
            }
        }
    }

    /// Returns the module that defines what a path in `module` names; `None` if it is in another crate.
    fn definer(&self, module: &Names, path: &[String], steps: usize) -> Option<Names> {
        let [first, ..] = path else { return Some(module.clone()) };
        let (mut at, mut rest) = match first.as_str() {
            "crate" => (Names::new(), &path[1..]),
            "self" | "super" => (module.clone(), path),
            // Of a submodule; otherwise of another crate.
            _ if self.0.contains_key(&[module.as_slice(), &path[..1]].concat()) => (module.clone(), path),
            _ => return None,
        };
        while let [name, after @ ..] = rest {
            match name.as_str() {
                "self" => {}
                "super" => {
                    at.pop();
                }
                _ => {
                    let child = [at.as_slice(), from_ref(name)].concat();
                    if self.0.contains_key(&child) {
                        at = child;
                    } else {
                        return Some(self.import(&at, name, after, steps).unwrap_or(at));
                    }
                }
            }
            rest = after;
        }
        Some(at)
    }

    /// Returns the module that defines what a module imports by this name.
    fn import(&self, module: &Names, name: &String, after: &[String], steps: usize) -> Option<Names> {
        let steps = steps.checked_sub(1)?;
        let known = &self.0[module];
        if known.items.contains(name) {
            return None;
        }
        let follow = |path: &[String]| self.definer(module, &[path, after].concat(), steps);
        let by_name = known.imports.iter().find(|(imported, _)| imported == name);
        by_name.and_then(|(_, path)| follow(path)).or_else(|| {
            let globs = known.imports.iter().filter(|(imported, _)| imported == "*");
            let mut found = globs.filter_map(|(_, path)| self.definer(module, path, steps)).filter_map(|from| {
                let is_there = self.0[&from].items.contains(name);
                if is_there { Some(from) } else { self.import(&from, name, after, steps) }
            });
            found.next()
        })
    }

    /// Returns the arrows from file to file.
    fn arrows(&self) -> BTreeSet<(Names, Names)> {
        let mut arrows = BTreeSet::new();
        for (name, module) in &self.0 {
            for path in module.imports.iter().map(|(_, path)| path).chain(&module.paths) {
                let Some(definer) = self.definer(name, path, MAX_STEPS) else { continue };
                let (from, to) = (&module.file, &self.0[&definer].file);
                if !from.starts_with(to) && !to.starts_with(from) {
                    arrows.insert((from.clone(), to.clone()));
                }
            }
        }
        arrows
    }

    /// Returns the arrows that are part of a circle: those from whose end others lead back to their beginning.
    fn circles(&self) -> BTreeSet<(Names, Names)> {
        let arrows = self.arrows();
        let leads_back = |(begin, end): &&(Names, Names)| {
            let mut reached = BTreeSet::from([end]);
            let mut new = vec![end];
            while let Some(file) = new.pop() {
                let next = arrows.iter().filter(|(from, _)| from == file).map(|(_, to)| to);
                new.extend(next.filter(|to| reached.insert(to)));
            }
            reached.contains(begin)
        };
        arrows.iter().filter(leads_back).cloned().collect()
    }
}

/// Words before the name of an item.
const DEFINERS: [&str; 9] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"];

/// Returns whether an attribute leaves an item to tests: `#[cfg(test)]`, `#[cfg(all(test, windows))]`.
fn is_of_tests(attribute: &str) -> bool {
    let attribute: String = attribute.split_whitespace().collect();
    attribute == "test" || ["cfg(test", "cfg(all(test"].iter().any(|begin| attribute.starts_with(begin))
}

fn is_punct(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

/// Returns what follows the next item.
fn after_item(tokens: &[TokenTree]) -> &[TokenTree] {
    let is_end = |token: &TokenTree| {
        is_punct(token, ';') || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
    };
    let end = tokens.iter().position(is_end).map_or(tokens.len(), |end| end + 1);
    &tokens[end..]
}

/// Returns the names of the path that the tokens begin with.
fn path_of<'a>(mut tokens: impl Iterator<Item = &'a TokenTree>) -> Names {
    let mut names = Names::new();
    while let Some(TokenTree::Ident(name)) = tokens.next() {
        names.push(name.to_string());
        let colons = [tokens.next(), tokens.next()];
        if !colons.iter().all(|colon| colon.is_some_and(|token| is_punct(token, ':'))) {
            break;
        }
    }
    names
}

fn rest_with<'a>(first: &'a TokenTree, after: &'a [TokenTree]) -> impl Iterator<Item = &'a TokenTree> {
    std::iter::once(first).chain(after)
}

/// Reads the tree of a `use` item: each name that it imports, and its path.
fn read_use(tokens: &[TokenTree], before: &[String], imports: &mut Vec<(String, Names)>) {
    for tree in tokens.split(|token| is_punct(token, ',')).filter(|tree| !tree.is_empty()) {
        let mut path = before.to_vec();
        let mut name = None;
        let mut tokens = tree.iter();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(word) if word == "as" => name = tokens.next().map(ToString::to_string),
                TokenTree::Ident(word) if word == "self" && path.len() > before.len().min(1) => {}
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Group(group) => {
                    read_use(&group.stream().into_iter().collect::<Vec<_>>(), &path, imports);
                    path.clear();
                }
                mark if is_punct(mark, '*') => name = Some("*".to_owned()),
                _ => {}
            }
        }
        if let Some(last) = path.last() {
            imports.push((name.unwrap_or_else(|| last.clone()), path));
        }
    }
}

#[test]
fn no_files_of_a_crate_import_each_other_in_a_circle() {
    let mut found = Vec::new();
    let (mut files, mut arrows) = (0, 0);
    for package in test_targets::packages() {
        for target in package["targets"].as_array().unwrap() {
            let read = Crate::read(Path::new(target["src_path"].as_str().unwrap()));
            files += read.0.values().map(|module| &module.file).collect::<BTreeSet<_>>().len();
            arrows += read.arrows().len();
            let line =
                |(from, to): (Names, Names)| format!("{}: {} -> {}", target["name"], from.join("::"), to.join("::"));
            found.extend(read.circles().into_iter().map(line));
        }
    }
    println!("{files} files, {arrows} arrows");
    assert!(files > 900 && arrows > 1_500, "{files} files, {arrows} arrows");
    assert!(found.is_empty(), "arrows of circles:\n{}", found.join("\n"));
}

#[test]
fn a_circle_is_noticed_through_re_exports_and_inside_code() {
    let folder = tempfile::tempdir().unwrap();
    let circles = |files: [(&str, &str); 5]| {
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let arrows = Crate::read(&folder.path().join("lib.rs")).circles().into_iter();
        arrows.map(|(from, to)| format!("{} -> {}", from.join("::"), to.join("::"))).collect::<Vec<_>>()
    };
    let root = "mod a; mod b; mod c; pub use self::b::{Two as Deux};";
    let [one, two] = ["pub struct One;", "pub struct Two;"];
    // Of a parent and its child, of tests, and in comments and literals.
    let none = [
        ("lib.rs", root),
        ("a.rs", "pub mod d; use d::Four; use crate::b::Two; pub struct One;"),
        ("a/d.rs", "use super::One; pub struct Four;"),
        (
            "b.rs",
            "#[cfg(test)] mod tests { use crate::a::One; } // crate::a::One\npub struct Two; const X: &str = \"crate::a::One\";",
        ),
        ("c.rs", "use crate::{a::One, b::{self, Two}};"),
    ];
    assert_eq!(circles(none), Vec::<String>::new());
    let direct = "use crate::a::One; pub struct Two;";
    assert_eq!(circles([none[0], none[1], none[2], ("b.rs", direct), none[4]]), ["a -> b", "b -> a"]);
    let inside = "pub struct Two; fn f() { if x { super::a::d::f(vec![1]) } }";
    let from_child = ("a/d.rs", "use crate::Deux; pub struct Four;");
    assert_eq!(
        circles([none[0], ("a.rs", "pub mod d;"), from_child, ("b.rs", inside), none[4]]),
        ["a::d -> b", "b -> a::d"]
    );
    let in_module = "mod inner { use super::super::c::f; } pub struct Two;";
    assert_eq!(
        circles([none[0], ("a.rs", one), none[2], ("b.rs", in_module), ("c.rs", "use crate::b::*; fn f() {}")]),
        ["b -> c", "c -> b"]
    );
    assert_eq!(
        circles([none[0], ("a.rs", one), none[2], ("b.rs", two), ("c.rs", "use crate::b::*; fn f() {}")]),
        Vec::<String>::new()
    );
}
