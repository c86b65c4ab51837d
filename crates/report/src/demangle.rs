//! Names of functions as their source has them.

use msvc_demangler::DemangleFlags;

/// Returns the demangled form of a symbol. A name of another form is returned as it is.
pub(crate) fn demangle(name: &str) -> String {
    let demangled = match name {
        _ if name.starts_with('?') => microsoft(name),
        _ if let Ok(rust) = rustc_demangle::try_demangle(name) => Some(format!("{rust:#}")),
        // On 32-bit systems, C names have an underscore in front.
        _ if name.starts_with("_Z") || name.starts_with("__Z") => itanium(name),
        _ => None,
    };
    demangled.unwrap_or_else(|| name.to_owned())
}

fn microsoft(name: &str) -> Option<String> {
    let flags = DemangleFlags::NO_ACCESS_SPECIFIERS
        | DemangleFlags::NO_FUNCTION_RETURNS
        | DemangleFlags::NO_MEMBER_TYPE
        | DemangleFlags::NO_MS_KEYWORDS
        | DemangleFlags::NO_THISTYPE
        | DemangleFlags::NO_CLASS_TYPE
        | DemangleFlags::SPACE_AFTER_COMMA
        | DemangleFlags::HUG_TYPE;
    msvc_demangler::demangle(name, flags).ok()
}

fn itanium(name: &str) -> Option<String> {
    let options = cpp_demangle::DemangleOptions::default().no_return_type();
    cpp_demangle::Symbol::new(name).ok()?.demangle(&options).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_demangled_and_every_other_name_is_kept() {
        for (name, wanted) in [
            ("_ZN2ns1fEi", "ns::f(int)"),
            ("__ZN2ns1fEi", "ns::f(int)"),
            ("_ZN3app5inner17h0123456789abcdefE", "app::inner"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("?f@ns@@YAXH@Z", "ns::f(int)"),
            // Names of Fortran, of the C runtime, of Go and of Zig begin or end with underscores, too.
            ("__mod_MOD_step", "__mod_MOD_step"),
            ("_initterm", "_initterm"),
            ("_Zebra", "_Zebra"),
            ("?", "?"),
            ("main.(*T).run", "main.(*T).run"),
            ("camlStdlib__List__map_1", "camlStdlib__List__map_1"),
        ] {
            assert_eq!(demangle(name), wanted, "{name}");
        }
    }
}
