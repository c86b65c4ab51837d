//! Names of functions as their source has them.

use msvc_demangler::DemangleFlags;

/// Returns the demangled form of a symbol. A name of another form is returned as it is.
pub(crate) fn demangle(name: &str) -> String {
    let demangled = match name {
        _ if name.starts_with('?') => microsoft(name).filter(|_| has_known_forms(name)),
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

/// Number of digits of a constant that always fits into 32 bits with its sign.
const SURE_DIGITS: usize = 7;

/// Returns whether a decorated name has only forms that msvc-demangler 0.11 demangles rightly. It skips a `$` in front
/// of a template argument that it does not know, takes the address of a function for a pointer to a member of it, and
/// cuts constants to 32 bits.
fn has_known_forms(name: &str) -> bool {
    let is_initializer = ["??__E", "??__F"].iter().any(|prefix| name.starts_with(prefix));
    !is_initializer && name.match_indices('$').all(|(index, _)| is_known_form(name, index))
}

fn is_known_form(name: &str, index: usize) -> bool {
    let (Some(before), Some(after)) = (name.get(..index), name.get(index + 1..)) else { return false };
    // The name of a template, and the second and third sign of a form that the first one begins.
    if before.ends_with(['?', '$']) {
        return true;
    }
    if let Some(constant) = after.strip_prefix('0') {
        let digits = constant.trim_start_matches('?');
        return digits.bytes().take_while(|digit| (b'A'..=b'P').contains(digit)).count() <= SURE_DIGITS;
    }
    after.starts_with('S')
        || ["A6", "A8@@", "BY", "C", "Q", "T", "V", "Y", "Z", "$V"]
            .iter()
            .any(|form| after.strip_prefix('$').is_some_and(|rest| rest.starts_with(form)))
}

/// Expansions of a parameter pack by rvalue reference, by reference and by pointer.
const PACKS: [&str; 3] = ["DpO", "DpR", "DpP"];

/// Demangles a name of the Itanium ABI. cpp_demangle 0.4 drops most references and pointers when it expands a parameter
/// pack, so these names have no parameters, and it writes a comma in front of an empty pack.
fn itanium(name: &str) -> Option<String> {
    let options = cpp_demangle::DemangleOptions::default().no_return_type();
    let options = if PACKS.iter().any(|pack| name.contains(pack)) { options.no_params() } else { options };
    let demangled = cpp_demangle::Symbol::new(name).ok()?.demangle(&options).ok()?;
    Some(demangled.replace(", >", ">"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decorated_name_that_would_be_demangled_wrongly_is_kept() {
        for name in [
            // f<0> of `template <auto> void f()`, which would be f<float, int, float, float>.
            "??$f@$MH00@@YAXXZ",
            "??$f@$M_N00@@YAXXZ",
            // f<&g>, which would be a pointer to a member of a class g, and f<&S::m>.
            "??$f@$1?g@@YAXXZ@@YAXXZ",
            "??$f@$1?m@S@@QEAAXXZ@@YAXXZ",
            // f<4294967296>, which would be f<0>, and f<4294967295>, which would be f<-1>.
            "??$f@$0BAAAAAAAA@@@YAXXZ",
            "??$f@$0PPPPPPPP@@@YAXXZ",
            // The initializer of x, which would be a function of a namespace x.
            "??__Ex@@YAXXZ",
        ] {
            assert_eq!(demangle(name), name);
        }
        for (name, wanted) in [
            ("??$f@$0A@@@YAXXZ", "f<0>(void)"),
            ("??$f@$0?0@@YAXXZ", "f<-1>(void)"),
            ("??$f@H$$V@@YAXXZ", "f<int>(void)"),
            ("??$f@$$T@@YAXXZ", "f<std::nullptr_t>(void)"),
            ("??$f@$$QEAH@@YAXXZ", "f<int&&>(void)"),
            ("??$f@$$A6AXH@Z@@YAXXZ", "f<void (int)>(void)"),
            ("?f@@YAX$$QEAH@Z", "f(int&&)"),
        ] {
            assert_eq!(demangle(name), wanted, "{name}");
        }
    }

    #[test]
    fn each_form_is_demangled_and_every_other_name_is_kept() {
        for (name, wanted) in [
            ("_ZN2ns1fEi", "ns::f(int)"),
            ("__ZN2ns1fEi", "ns::f(int)"),
            ("_Z1fIiJEEvv", "f<int>()"),
            ("_Z1fIiJi1aEEvDpOT0_", "f<int, int, a>"),
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
