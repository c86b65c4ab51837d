//! Reads bindings as bindgen writes them: types with the layout that clang reported, constants and functions.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use quote::ToTokens;
use syn::visit::Visit;
use syn::{Expr, ExprIndex, ForeignItem, Lit, Macro, Signature, Type, UseTree};

/// The files of one set of bindings. They are millions of bytes, so each item is parsed on first use.
#[derive(Default)]
pub struct Bindings {
    /// Items by name. bindgen writes an enum as a module, which is an item with the module's name.
    items: BTreeMap<String, Item>,
    /// bindgen's layout checks, by the name of the type.
    checks: BTreeMap<String, Item>,
}

/// The text of an item, and its content once it has been parsed.
#[derive(Default)]
struct Item {
    text: String,
    entries: OnceCell<BTreeMap<String, Entry>>,
    facts: OnceCell<BTreeMap<String, u64>>,
}

/// The meaning of a name.
pub enum Entry {
    Alias(Type),
    Composite(Composite),
    /// Type, and value as written.
    Constant(Type, String),
    Function(Signature),
    /// A module; its content has entries of its own.
    Module,
}

/// A structure or a union.
pub struct Composite {
    pub union: bool,
    pub fields: Vec<(String, Type)>,
}

impl Bindings {
    pub fn read(files: &[impl AsRef<Path>]) -> Self {
        let mut bindings = Self::default();
        for file in files {
            let file = file.as_ref();
            bindings.add(&fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())));
        }
        bindings
    }

    /// Adds the items of a file. bindgen formats its output: an item ends with the first unindented line that ends with
    /// `}` or `;`.
    pub fn add(&mut self, text: &str) {
        let mut item = String::new();
        for line in text.lines().filter(|line| !line.starts_with("//") && !line.starts_with("/*")) {
            let line = line.split_once("; //").map_or(line.into(), |(code, _)| format!("{code};"));
            item.push_str(&line);
            item.push('\n');
            if !line.starts_with(' ') && line.ends_with(['}', ';']) {
                self.add_item(std::mem::take(&mut item));
            }
        }
    }

    fn add_item(&mut self, text: String) {
        let head = text.lines().find(|line| !line.is_empty() && !line.starts_with("#[")).unwrap_or_default();
        let words: Vec<&str> = head.split([' ', ':', '<', '(', ';']).filter(|word| !word.is_empty()).collect();
        let item = |text| Item { text, ..Item::default() };
        match words[..] {
            ["pub", "struct" | "union" | "type" | "const" | "mod" | "static", name, ..] | ["pub", "use", .., name] => {
                let name = name.to_owned();
                self.items.entry(name).or_insert(item(text));
            }
            // The module is private, and its names are re-exported.
            ["mod", ..] => {
                let inside: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("    ")).collect();
                self.add(&inside.join("\n"));
            }
            ["extern", ..] | ["unsafe", "extern", ..] => {
                let function = text.lines().find_map(|line| line.trim().strip_prefix("pub fn "));
                if let Some((name, _)) = function.and_then(|line| line.split_once('(')) {
                    let name = name.to_owned();
                    self.items.entry(name).or_insert(item(text));
                }
            }
            ["const", "_", ..] => {
                if let Some((name, _)) = text.split_once("\"Size of ").and_then(|(_, rest)| rest.split_once('"')) {
                    let name = name.to_owned();
                    self.checks.insert(name, item(text));
                }
            }
            ["fn", name, ..] => {
                if let Some(name) = name.strip_prefix("bindgen_test_layout_") {
                    let name = name.to_owned();
                    self.checks.insert(name, item(text));
                }
            }
            _ => {}
        }
    }

    pub fn get(&self, name: &str) -> Option<&Entry> {
        let item = self.items.get(name.split("::").next()?)?;
        let entries = item.entries.get_or_init(|| {
            let mut entries = BTreeMap::new();
            let file = syn::parse_file(&item.text).unwrap_or_else(|error| panic!("{error}: {}", item.text));
            file.items.iter().for_each(|item| add_entry(&mut entries, "", item));
            entries
        });
        entries.get(name)
    }

    /// Returns the constant of this name, at the top level or in an enum.
    pub fn constant(&self, name: &str) -> Option<i128> {
        let declaration = format!("pub const {name}: ");
        let (outer, _) = self.items.iter().find(|(_, item)| item.text.contains(&declaration))?;
        let full = if outer == name { name.to_owned() } else { format!("{outer}::{name}") };
        match self.get(&full)? {
            Entry::Constant(_, value) => integer(value),
            _ => None,
        }
    }

    pub fn size(&self, name: &str) -> Option<u64> {
        self.fact(name, &format!("Size of {name}"))
    }

    pub fn alignment(&self, name: &str) -> Option<u64> {
        self.fact(name, &format!("Alignment of {name}"))
    }

    pub fn offset(&self, name: &str, field: &str) -> Option<u64> {
        self.fact(name, &format!("Offset of field: {name}::{field}"))
    }

    fn fact(&self, name: &str, label: &str) -> Option<u64> {
        let item = self.checks.get(name)?;
        let facts = item.facts.get_or_init(|| {
            let mut facts = BTreeMap::new();
            Facts(&mut facts).visit_file(&syn::parse_file(&item.text).unwrap());
            facts
        });
        facts.get(label).copied()
    }
}

fn add_entry(entries: &mut BTreeMap<String, Entry>, module: &str, item: &syn::Item) {
    use syn::Item;
    let (name, entry) = match item {
        Item::Type(alias) => (&alias.ident, Entry::Alias((*alias.ty).clone())),
        Item::Struct(item) => (&item.ident, Entry::Composite(Composite::new(false, item.fields.iter()))),
        Item::Union(item) => (&item.ident, Entry::Composite(Composite::new(true, item.fields.named.iter()))),
        Item::Const(item) => (&item.ident, Entry::Constant((*item.ty).clone(), written(&item.expr))),
        Item::Mod(item) => {
            let inner = format!("{module}{}::", item.ident);
            item.content.iter().flat_map(|(_, items)| items).for_each(|item| add_entry(entries, &inner, item));
            (&item.ident, Entry::Module)
        }
        Item::ForeignMod(block) => {
            for item in &block.items {
                if let ForeignItem::Fn(function) = item {
                    entries.insert(function.sig.ident.to_string(), Entry::Function(function.sig.clone()));
                }
            }
            return;
        }
        // pub use self::_EVENT_TYPE::Type as EVENT_TYPE;
        Item::Use(item) => {
            let mut path = Vec::new();
            let mut tree = &item.tree;
            while let UseTree::Path(step) = tree {
                path.push(step.ident.to_string());
                tree = &step.tree;
            }
            if let (UseTree::Rename(renamed), ["self", path @ ..]) =
                (tree, &path.iter().map(String::as_str).collect::<Vec<_>>()[..])
            {
                let meant = syn::parse_str(&format!("{}::{}", path.join("::"), renamed.ident)).unwrap();
                entries.insert(renamed.rename.to_string(), Entry::Alias(meant));
            }
            return;
        }
        _ => return,
    };
    entries.insert(format!("{module}{name}"), entry);
}

impl Composite {
    fn new<'a>(union: bool, fields: impl Iterator<Item = &'a syn::Field>) -> Self {
        /// Fields that bindgen adds.
        const FILL: [&str; 3] = ["__bindgen_padding_", "_bitfield_align_", "_bindgen_align"];
        let named = fields.filter_map(|field| Some((field.ident.as_ref()?.to_string(), field.ty.clone())));
        Self { union, fields: named.filter(|(name, _)| !FILL.iter().any(|fill| name.starts_with(fill))).collect() }
    }

    /// Returns whether the type is opaque in C.
    pub fn is_opaque(&self) -> bool {
        matches!(&self.fields[..], [(name, _)] if name == "_unused" || name == "_address")
    }
}

/// Parses an integer as bindgen writes it: with or without sign, suffix and base.
pub fn integer(text: &str) -> Option<i128> {
    let text = text.replace([' ', '_'], "");
    let (negative, digits) = text.strip_prefix('-').map_or((false, &text[..]), |digits| (true, digits));
    let literal: syn::LitInt = syn::parse_str(digits).ok()?;
    let value: i128 = literal.base10_parse().ok()?;
    Some(if negative { -value } else { value })
}

pub fn written(tokens: &impl ToTokens) -> String {
    tokens.to_token_stream().to_string()
}

/// Collects the layouts in bindgen's checks, in the forms of both versions: `["Size of X"][size_of::<X>() - 8usize]`
/// and `assert_eq!(size_of::<X>(), 8usize, concat!("Size of: ", ...))`.
struct Facts<'a>(&'a mut BTreeMap<String, u64>);

impl Facts<'_> {
    fn add(&mut self, label: &str, value: &Expr) {
        let Expr::Lit(value) = value else { return };
        if let Lit::Int(value) = &value.lit {
            self.0.insert(label.replace("Size of: ", "Size of "), value.base10_parse().unwrap());
        }
    }
}

impl<'ast> Visit<'ast> for Facts<'_> {
    fn visit_expr_index(&mut self, index: &'ast ExprIndex) {
        if let (Expr::Array(array), Expr::Binary(difference)) = (&*index.expr, &*index.index)
            && let Some(Expr::Lit(label)) = array.elems.first()
            && let Lit::Str(label) = &label.lit
        {
            self.add(&label.value(), &difference.right);
        }
    }

    fn visit_macro(&mut self, found: &'ast Macro) {
        let parse = syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated;
        if !found.path.is_ident("assert_eq") {
            return;
        }
        let arguments = found.parse_body_with(parse).unwrap();
        if let (Some(value), Some(Expr::Macro(label))) = (arguments.get(1), arguments.get(2)) {
            let parts = label.mac.parse_body_with(parse).unwrap();
            let parts = parts.iter().map(|part| match part {
                Expr::Lit(text) => match &text.lit {
                    Lit::Str(text) => text.value(),
                    _ => String::new(),
                },
                Expr::Macro(name) => written(&name.mac.tokens),
                _ => String::new(),
            });
            self.add(&parts.collect::<String>(), value);
        }
    }
}
