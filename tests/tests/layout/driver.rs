//! Reads from the driver's source which names of wdk-sys it uses and what it declares itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprField, FieldPat, FieldValue, ItemConst, ItemUse, Lit, Macro, Member, Meta, UseTree};

use crate::bindings::{integer, written};

/// The crate that the names belong to.
const BINDINGS: &str = "wdk_sys";

/// The findings in a source tree.
#[derive(Default)]
pub struct Source {
    /// Names of wdk-sys, without the crate's name; `MODULE::NAME` for a name that is used through an imported module.
    pub names: BTreeSet<String>,
    /// Names of fields, of any type.
    pub fields: BTreeSet<String>,
    /// Integer constants.
    pub constants: Vec<Constant>,
    /// Values of assertions that compare with a number: `offset_of!(TYPE, FIELD)` as `TYPE,FIELD`, and
    /// `size_of::<TYPE>()`.
    pub asserted: BTreeMap<String, u64>,
}

/// An integer constant that the driver declares.
pub struct Constant {
    pub file: PathBuf,
    pub name: String,
    /// The first word of a doc comment that begins with `NAME (HEADER.h)` or `NAME of something (HEADER.h)`.
    pub stands_for: Option<String>,
    pub value: i128,
}

impl Source {
    /// Reads all Rust files below a folder, except those named `excluded`.
    pub fn read(folder: &Path, excluded: &str) -> Self {
        let mut found = Self::default();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|it| it == "rs")
                    && path.file_name().is_none_or(|it| it != excluded)
                {
                    found.add(&fs::read_to_string(&path).unwrap(), &path);
                }
            }
        }
        found
    }

    /// Adds what was found in another source tree.
    pub fn extend(&mut self, other: Self) {
        self.names.extend(other.names);
        self.fields.extend(other.fields);
        self.constants.extend(other.constants);
        self.asserted.extend(other.asserted);
    }

    fn add(&mut self, text: &str, path: &Path) {
        let file = syn::parse_file(text).unwrap();
        let mut imports = Imports::default();
        imports.visit_file(&file);
        self.names.extend(imports.0.values().cloned());
        Uses { source: self, imports: &imports.0, path }.visit_file(&file);
    }
}

/// The names that `use` imports from wdk-sys, by their local names.
#[derive(Default)]
struct Imports(BTreeMap<String, String>);

impl Imports {
    fn add(&mut self, tree: &UseTree, path: &[String]) {
        let deeper = |name: &syn::Ident| path.iter().cloned().chain([name.to_string()]).collect::<Vec<_>>();
        match tree {
            UseTree::Path(step) => self.add(&step.tree, &deeper(&step.ident)),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add(tree, path)),
            UseTree::Name(name) => self.insert(&deeper(&name.ident), &name.ident.to_string()),
            UseTree::Rename(name) => self.insert(&deeper(&name.ident), &name.rename.to_string()),
            UseTree::Glob(_) => {
                assert!(path.first().is_none_or(|first| first != BINDINGS), "a glob hides which names are used");
            }
        }
    }

    fn insert(&mut self, path: &[String], here: &str) {
        if let [first, rest @ ..] = path
            && first == BINDINGS
        {
            self.0.insert(here.to_owned(), within(rest));
        }
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.add(&item.tree, &[]);
    }
}

/// Returns a path below `wdk_sys` as in the bindings, which do not have the crate's module `ntddk`.
fn within(path: &[String]) -> String {
    path.iter().skip_while(|step| *step == "ntddk").cloned().collect::<Vec<_>>().join("::")
}

/// Collects the names in one file.
struct Uses<'a> {
    source: &'a mut Source,
    imports: &'a BTreeMap<String, String>,
    path: &'a Path,
}

impl Uses<'_> {
    fn path(&mut self, path: &[String]) {
        let Some((first, rest)) = path.split_first() else { return };
        if first == BINDINGS {
            self.source.names.insert(within(rest));
        } else if let (Some(meant), [_, ..]) = (self.imports.get(first), rest) {
            self.source.names.insert(format!("{meant}::{}", rest.join("::")));
        }
    }

    /// Collects paths in the arguments of a macro, which syn does not parse.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => colons += 1,
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.path(&std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                other => {
                    self.path(&std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.path(&path);
    }
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_item_use(&mut self, _: &'ast ItemUse) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.path(&names);
        visit::visit_path(self, path);
    }

    fn visit_expr_field(&mut self, field: &'ast ExprField) {
        self.source.fields.insert(written(&field.member));
        visit::visit_expr_field(self, field);
    }

    fn visit_field_value(&mut self, field: &'ast FieldValue) {
        self.source.fields.insert(written(&field.member));
        visit::visit_field_value(self, field);
    }

    fn visit_field_pat(&mut self, field: &'ast FieldPat) {
        if let Member::Named(name) = &field.member {
            self.source.fields.insert(name.to_string());
        }
        visit::visit_field_pat(self, field);
    }

    fn visit_item_const(&mut self, item: &'ast ItemConst) {
        if let Some(value) = value(&item.expr) {
            let (file, name) = (self.path.to_path_buf(), item.ident.to_string());
            let stands_for = item.attrs.iter().find_map(stands_for);
            self.source.constants.push(Constant { file, name, stands_for, value });
        }
        visit::visit_item_const(self, item);
    }

    fn visit_macro(&mut self, found: &'ast Macro) {
        if found.path.is_ident("assert")
            && let Ok(Expr::Binary(equation)) = found.parse_body()
            && let Some(value) = value(&equation.right)
        {
            let what = match &*equation.left {
                Expr::Macro(offset) => written(&offset.mac.tokens),
                other => written(other),
            };
            self.source.asserted.insert(what.replace(' ', ""), value.try_into().unwrap());
        }
        self.tokens(found.tokens.clone());
    }
}

fn stands_for(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(document) = &attribute.meta else { return None };
    let Expr::Lit(text) = &document.value else { return None };
    let Lit::Str(text) = &text.lit else { return None };
    let text = text.value();
    let (before, rest) = text.trim().split_once(" (")?;
    rest.split_once(".h)")?;
    Some(before.split(' ').next()?.to_owned())
}

/// Returns the value of a literal, which may have a sign or `cast_signed`.
fn value(expression: &Expr) -> Option<i128> {
    match expression {
        Expr::MethodCall(call) if call.method == "cast_signed" => {
            let value = u32::try_from(value(&call.receiver)?).ok()?;
            Some(value.cast_signed().into())
        }
        Expr::Lit(_) | Expr::Unary(_) => integer(&written(expression)),
        _ => None,
    }
}
