//! Compares two sets of bindings item by item.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

use syn::{BareFnArg, FnArg, GenericArgument, PathArguments, ReturnType, Type};

use crate::bindings::{Bindings, Composite, Entry, integer, written};

/// A type after all aliases are resolved.
pub enum Kind<'a> {
    /// A primitive type of Rust.
    Plain(String),
    Pointer(bool, &'a Type),
    Array(&'a Type, String),
    /// ABI, parameters, result.
    Function(String, Vec<&'a Type>, Option<&'a Type>),
    Composite(String, &'a Composite),
    /// A generic type such as `Option<T>`.
    Generic(String, Vec<&'a Type>),
}

impl Display for Kind<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(name) | Self::Composite(name, _) => formatter.write_str(name),
            Self::Pointer(true, to) => write!(formatter, "*mut {}", written(to)),
            Self::Pointer(false, to) => write!(formatter, "*const {}", written(to)),
            Self::Array(of, length) => write!(formatter, "[{}; {length}]", written(of)),
            Self::Function(..) => formatter.write_str("a function"),
            Self::Generic(name, _) => write!(formatter, "{name}<...>"),
        }
    }
}

/// A comparison and its results.
pub struct Comparison<'a> {
    pub ours: &'a Bindings,
    pub theirs: &'a Bindings,
    /// Composites that were compared, by their names in both sets.
    pub composites: BTreeSet<(String, String)>,
    pub differences: BTreeSet<String>,
}

impl<'a> Comparison<'a> {
    pub const fn new(ours: &'a Bindings, theirs: &'a Bindings) -> Self {
        Self { ours, theirs, composites: BTreeSet::new(), differences: BTreeSet::new() }
    }

    /// Compares the meaning of a name in both sets, and everything it consists of.
    pub fn item(&mut self, name: &str) {
        match (self.ours.get(name), self.theirs.get(name)) {
            (None, _) => self.differ(name, "not in the kit's bindings"),
            (_, None) => self.differ(name, "not in the official bindings"),
            (Some(Entry::Constant(ours, value)), Some(Entry::Constant(theirs, other))) => {
                self.types(name, ours, theirs);
                if integer(value).map_or(value != other, |value| Some(value) != integer(other)) {
                    self.differ(name, &format!("is {value}, officially {other}"));
                }
            }
            (Some(Entry::Module), Some(Entry::Module)) => {}
            (Some(Entry::Function(ours)), Some(Entry::Function(theirs))) => {
                let parameters = [ours, theirs].map(|signature| {
                    let types = signature.inputs.iter().filter_map(|input| match input {
                        FnArg::Typed(input) => Some(&*input.ty),
                        FnArg::Receiver(_) => None,
                    });
                    types.collect::<Vec<_>>()
                });
                self.functions(name, &parameters, [result(&ours.output), result(&theirs.output)]);
            }
            (Some(Entry::Alias(_) | Entry::Composite(_)), Some(Entry::Alias(_) | Entry::Composite(_))) => {
                self.kinds(name, named(self.ours, name), named(self.theirs, name));
            }
            _ => self.differ(name, "is another kind of item officially"),
        }
    }

    fn differ(&mut self, place: &str, what: &str) {
        self.differences.insert(format!("{place}: {what}"));
    }

    fn types(&mut self, place: &str, ours: &'a Type, theirs: &'a Type) {
        self.kinds(place, kind(self.ours, ours), kind(self.theirs, theirs));
    }

    fn kinds(&mut self, place: &str, ours: Kind<'a>, theirs: Kind<'a>) {
        match (ours, theirs) {
            (Kind::Plain(a), Kind::Plain(b)) if a == b => {}
            (Kind::Pointer(a, ours), Kind::Pointer(b, theirs)) if a == b => self.types(place, ours, theirs),
            (Kind::Array(ours, a), Kind::Array(theirs, b)) if a == b => self.types(place, ours, theirs),
            (Kind::Function(a, ours, our_result), Kind::Function(b, theirs, their_result)) if a == b => {
                self.functions(place, &[ours, theirs], [our_result, their_result]);
            }
            (Kind::Generic(a, ours), Kind::Generic(b, theirs)) if a == b && ours.len() == theirs.len() => {
                for (ours, theirs) in ours.into_iter().zip(theirs) {
                    self.types(place, ours, theirs);
                }
            }
            (Kind::Composite(a, ours), Kind::Composite(b, theirs)) => self.composites(&a, ours, &b, theirs),
            (ours, theirs) => self.differ(place, &format!("is {ours}, officially {theirs}")),
        }
    }

    fn functions(&mut self, place: &str, parameters: &[Vec<&'a Type>; 2], results: [Option<&'a Type>; 2]) {
        let [ours, theirs] = parameters;
        if ours.len() != theirs.len() {
            self.differ(place, &format!("takes {} parameters, officially {}", ours.len(), theirs.len()));
        }
        for (number, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
            self.types(&format!("{place}({number})"), ours, theirs);
        }
        match results {
            [Some(ours), Some(theirs)] => self.types(&format!("{place}(result)"), ours, theirs),
            [None, None] => {}
            _ => self.differ(place, "one has a result, the other none"),
        }
    }

    fn composites(&mut self, a: &str, ours: &'a Composite, b: &str, theirs: &'a Composite) {
        let both = if a == b { a.to_owned() } else { format!("{a}, officially {b}") };
        if !self.composites.insert((a.to_owned(), b.to_owned())) || ours.is_opaque() && theirs.is_opaque() {
            return;
        }
        if ours.union != theirs.union || ours.is_opaque() != theirs.is_opaque() {
            return self.differ(&both, "is another kind of type officially");
        }
        let sizes = [(self.ours.size(a), self.theirs.size(b)), (self.ours.alignment(a), self.theirs.alignment(b))];
        for ((ours, theirs), what) in sizes.into_iter().zip(["size", "alignment"]) {
            if ours != theirs || ours.is_none() {
                self.differ(&both, &format!("{what} {ours:?}, officially {theirs:?}"));
            }
        }
        for (name, our_type) in &ours.fields {
            let Some((_, their_type)) = theirs.fields.iter().find(|(other, _)| other == name) else { continue };
            let place = format!("{a}.{name}");
            let (here, there) = (self.ours.offset(a, name), self.theirs.offset(b, name));
            if here != there {
                self.differ(&place, &format!("at {here:?}, officially {there:?}"));
            }
            self.types(&place, our_type, their_type);
        }
        let only_in = |one: &Composite, other: &Composite| {
            let has = |name: &String| other.fields.iter().any(|(other, _)| other == name);
            one.fields.iter().filter(|(name, _)| !has(name)).map(|(name, _)| name.clone()).collect::<Vec<_>>().join(" ")
        };
        let (here, there) = (only_in(ours, theirs), only_in(theirs, ours));
        if !(here.is_empty() && there.is_empty()) {
            self.differ(&both, &format!("only in ours: {here}; only in the official one: {there}"));
        }
    }
}

fn result(output: &ReturnType) -> Option<&Type> {
    match output {
        ReturnType::Default => None,
        ReturnType::Type(_, result) => Some(result),
    }
}

/// Returns the type after all aliases are resolved.
pub fn kind<'a>(bindings: &'a Bindings, ty: &'a Type) -> Kind<'a> {
    match ty {
        Type::Ptr(pointer) => Kind::Pointer(pointer.mutability.is_some(), &pointer.elem),
        Type::Array(array) => Kind::Array(&array.elem, written(&array.len)),
        Type::BareFn(function) => {
            let parameters = function.inputs.iter().map(|BareFnArg { ty, .. }| ty).collect();
            Kind::Function(written(&function.abi), parameters, result(&function.output))
        }
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return Kind::Plain(written(ty)) };
            if let PathArguments::AngleBracketed(arguments) = &last.arguments {
                let inner = arguments.args.iter().filter_map(|argument| match argument {
                    GenericArgument::Type(ty) => Some(ty),
                    _ => None,
                });
                return Kind::Generic(last.ident.to_string(), inner.collect());
            }
            let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            let name = names.join("::");
            named(bindings, &name)
        }
        _ => Kind::Plain(written(ty)),
    }
}

pub fn named<'a>(bindings: &'a Bindings, name: &str) -> Kind<'a> {
    match bindings.get(name) {
        Some(Entry::Alias(meant)) => kind(bindings, meant),
        Some(Entry::Composite(composite)) => Kind::Composite(name.to_owned(), composite),
        _ => Kind::Plain(plain(name.rsplit("::").next().unwrap_or(name)).to_owned()),
    }
}

/// Returns Rust's name of a C type on Windows.
fn plain(name: &str) -> &str {
    match name {
        "c_char" | "c_schar" => "i8",
        "c_uchar" => "u8",
        "c_short" => "i16",
        "c_ushort" => "u16",
        "c_int" | "c_long" => "i32",
        "c_uint" | "c_ulong" => "u32",
        "c_longlong" => "i64",
        "c_ulonglong" => "u64",
        other => other,
    }
}
