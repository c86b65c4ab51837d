//! Accesses whose address the compiler knows.

use crate::program::{Program, member};

/// The programs, and the number of accesses that each says.
const PROGRAMS: [(&str, usize); 3] = [("objects", 60), ("records", 15), ("statics", 14)];

#[test]
fn the_member_of_each_known_access_is_named() {
    for (name, number) in PROGRAMS {
        let program = Program::read(name);
        let (types, known) = (program.types(), program.known());
        assert_eq!(known.len(), number, "{name}");
        let mut wrong = Vec::new();
        for known in known {
            let found = types.global(known.address, known.size);
            let found = found.map(|place| (place.path.clone(), place.type_name.clone(), member(&place)));
            let expected = (known.path, known.type_name, known.member);
            if found.as_ref() != Some(&expected) {
                wrong.push(format!("{expected:?}\n  {found:?}"));
            }
        }
        assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    }
}
