//! What expressions of metrics mean, and where malformed ones are wrong.
#![cfg(test)]

use events::expression::{Environment, Expression, MAX_DEPTH, Unavailable};
use events::metric::Values;

fn values() -> Values {
    let mut values = Values::default();
    let known = [
        ("a", 6.0),
        ("b", 3.0),
        ("zero", 0.0),
        ("SMT_on", 1.0),
        ("UOPS_RETIRED.MS:c1:e1", 7.0),
        ("cpu_core@EVENT,cmask=1@", 8.0),
        ("topdown-retiring", 9.0),
        ("x[0]", 10.0),
        ("x[2]", 12.0),
        ("system.sockets[0].cpus.count", 16.0),
        ("huge", 1e300),
    ];
    for (name, value) in known {
        values.set(name, value);
    }
    values.set_unavailable("LOST", "no counter was free");
    values
}

fn evaluate(text: &str) -> Result<f64, Unavailable> {
    Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).evaluate(&values())
}

/// An event that several counts make up.
struct Several;

impl Environment for Several {
    fn value(&self, _: &str) -> Result<f64, Unavailable> {
        Ok(5.0)
    }

    fn sources(&self, _: &str) -> u32 {
        3
    }
}

#[test]
fn an_event_of_several_counts_is_one_event() {
    for (text, expected) in [("has_event(a)", 1.0), ("source_count(a)", 3.0)] {
        let value = Expression::parse(text).unwrap().evaluate(&Several).unwrap();
        assert!((value - expected).abs() < 1e-9, "{text}: {value} instead of {expected}");
    }
}

#[test]
fn operators_bind_and_group_as_in_the_makers_files() {
    for (text, expected) in [
        ("1", 1.0),
        (".5 + 1.", 1.5),
        ("2.5e3 + 1E-1", 2_500.1),
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("10 - 4 - 3", 3.0),
        ("100 / 10 / 5", 2.0),
        ("100 / 10 * 5", 50.0),
        ("17 % 5 * 2", 4.0),
        ("-a + b", -3.0),
        ("- - a * -b", -18.0),
        ("+a", 6.0),
        ("2 * -b", -6.0),
        ("A + a", 12.0),
        ("1 < 2", 1.0),
        ("2 < 1", 0.0),
        ("2 <= 2", 1.0),
        ("2 >= 3", 0.0),
        ("2 == 2.0", 1.0),
        ("2 != 2", 0.0),
        ("1 + 1 > 1", 1.0),
        ("a > 5 & b > 5", 0.0),
        ("a > 5 | b > 5", 1.0),
        ("a > 5 and b > 2 or 0", 1.0),
        ("0 & 0 | 1", 1.0),
        ("1 | 0 & 0", 1.0),
        ("2 && 4", 1.0),
        ("2 || 4", 1.0),
        ("a | missing", 1.0),
        ("0 || 0", 0.0),
        ("1 if SMT_on else 2", 1.0),
        ("1 if #SMT_on else 2", 1.0),
        ("1 if 0 else 2 if 0 else 3", 3.0),
        ("1 + 1 if a > b else 5", 2.0),
        ("10 * (1 if a < b else 5)", 50.0),
        ("a / zero if zero else 4", 4.0),
        ("0 & a / zero", 0.0),
        ("0 and missing", 0.0),
        ("a < b & LOST", 0.0),
        ("0 & x[1e300] | b", 1.0),
        ("1 | missing", 1.0),
        ("min(a, b)", 3.0),
        ("max(a, b, 9)", 9.0),
        ("min(a, max(b, 4))", 4.0),
        ("MAX(-5, -6)", -5.0),
        ("d_ratio(a, b)", 2.0),
        ("has_event(a) + has_event(missing) + has_event(LOST)", 1.0),
        ("source_count(a)", 1.0),
        ("source_count(missing)", 0.0),
        ("UOPS_RETIRED.MS:c1:e1", 7.0),
        ("cpu_core@EVENT\\,cmask\\=1@", 8.0),
        ("topdown\\-retiring / b", 3.0),
        ("x[0] + x[b - 1]", 22.0),
        ("system.sockets[0].cpus.count * 2", 32.0),
        ("\t a\n+ b ", 9.0),
    ] {
        let value = evaluate(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!((value - expected).abs() < 1e-9, "{text}: {value} instead of {expected}");
    }
}

#[test]
fn an_expression_without_value_has_a_reason_and_never_infinity() {
    for (text, reason) in [
        ("a / zero", "division by zero in column 3"),
        ("1 + a % (b - 3)", "division by zero in column 7"),
        ("d_ratio(a, zero)", "division by zero in column 1"),
        ("zero / zero", "division by zero in column 6"),
        ("a + missing", "missing has no value"),
        ("max(a, missing)", "missing has no value"),
        ("LOST * 2", "LOST was not counted: no counter was free"),
        ("huge * huge", "the result in column 6 is too large"),
        ("huge * 1e300 - huge * 1e300", "the result in column 6 is too large"),
        ("x[1]", "x[1] has no value"),
        ("x[0 - 1]", "the index in column 2 is no whole number"),
        ("x[b / 2]", "the index in column 2 is no whole number"),
        ("x[1e300]", "the index in column 2 is no whole number"),
        ("x[4294967295]", "x[4294967295] has no value"),
        ("x[4294967296]", "the index in column 2 is no whole number"),
        ("a if missing else b", "missing has no value"),
    ] {
        assert_eq!(evaluate(text).unwrap_err().to_string(), reason, "{text}");
    }
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut values = Values::default();
        values.set("a", value);
        let error = Expression::parse("a if 1 else 2").unwrap().evaluate(&values).unwrap_err();
        assert_eq!(error.to_string(), "a has no value");
    }
}

/// Malformed expressions, each with the beginning of its message.
const MALFORMED: [(&str, &str); 95] = [
    ("", "column 1: expected a number, a name or '(', found the end"),
    ("   ", "column 4: expected a number, a name or '(', found the end"),
    ("\t\n", "column 3: expected a number, a name or '(', found the end"),
    ("(", "column 2: expected a number, a name or '(', found the end"),
    (")", "column 1: expected a number, a name or '(', found ')'"),
    ("()", "column 2: expected a number, a name or '(', found ')'"),
    ("(a", "column 3: expected ')' for the '(' in column 1, found the end"),
    ("((a)", "column 5: expected ')' for the '(' in column 1, found the end"),
    ("a)", "column 2: expected an operator, found ')'"),
    ("(a))", "column 4: expected an operator, found ')'"),
    ("a b", "column 3: expected an operator, found b"),
    ("a 1", "column 3: expected an operator, found 1"),
    ("1 a", "column 3: expected an operator, found a"),
    ("(a) (b)", "column 5: expected an operator, found '('"),
    ("(a)b", "column 4: expected an operator, found b"),
    ("2(a)", "column 2: expected an operator, found '('"),
    ("a +", "column 4: expected a number, a name or '(', found the end"),
    ("a *", "column 4: expected a number, a name or '(', found the end"),
    ("a -", "column 4: expected a number, a name or '(', found the end"),
    ("* a", "column 1: expected a number, a name or '(', found '*'"),
    ("/ a", "column 1: expected a number, a name or '(', found '/'"),
    ("a * / b", "column 5: expected a number, a name or '(', found '/'"),
    ("a ** b", "column 4: expected a number, a name or '(', found '*'"),
    ("a // b", "column 4: expected a number, a name or '(', found '/'"),
    ("a ++", "column 5: expected a number, a name or '(', found the end"),
    ("a < < b", "column 5: expected a number, a name or '(', found '<'"),
    ("a <> b", "column 4: expected a number, a name or '(', found '>'"),
    ("a = b", "column 3: unexpected character '='"),
    ("a === b", "column 5: unexpected character '='"),
    ("a =! b", "column 3: unexpected character '='"),
    ("!a", "column 1: unexpected character '!'"),
    ("a ! b", "column 3: unexpected character '!'"),
    ("~a", "column 1: unexpected character '~'"),
    ("a ^ b", "column 3: unexpected character '^'"),
    ("a ? b : c", "column 3: unexpected character '?'"),
    ("a; b", "column 2: unexpected character ';'"),
    ("{a}", "column 1: unexpected character '{'"),
    ("a'", "column 2: unexpected character '\\''"),
    ("\"a\"", "column 1: unexpected character '\\\"'"),
    ("a`", "column 2: unexpected character '`'"),
    ("a\u{0}", "column 2: unexpected character '\\u{0}'"),
    ("\u{1b}[31m", "column 1: unexpected character '\\u{1b}'"),
    ("a + \u{e9}", "column 5: unexpected character '\\u{e9}'"),
    ("\u{20ac}", "column 1: unexpected character '\\u{20ac}'"),
    ("1 + \u{661}", "column 5: unexpected character '\\u{661}'"),
    ("a \u{2212} b", "column 3: unexpected character '\\u{2212}'"),
    ("1.2.3", "column 1: \"1.2.3\" is no number"),
    ("a + 1..2", "column 5: \"1..2\" is no number"),
    ("1e", "column 1: \"1e\" is no number"),
    ("1e+", "column 1: \"1e+\" is no number"),
    ("1e5e5", "column 1: \"1e5e5\" is no number"),
    ("0x10", "column 1: \"0x10\" is no number"),
    ("12abc", "column 1: \"12abc\" is no number"),
    ("a * 1_000", "column 5: \"1_000\" is no number"),
    ("1e999", "column 1: \"1e999\" is no number"),
    ("-1e400", "column 2: \"1e400\" is no number"),
    ("a + .", "column 5: expected a number, a name or '(', found ."),
    (".name", "column 1: expected a number, a name or '(', found .name"),
    ("1,000", "column 2: expected an operator, found ','"),
    ("a, b", "column 2: expected an operator, found ','"),
    (",", "column 1: expected a number, a name or '(', found ','"),
    ("(a, b)", "column 3: expected ')' for the '(' in column 1, found ','"),
    ("#", "column 1: expected a number, a name or '(', found '#'"),
    ("# smt_on", "column 1: expected a number, a name or '(', found '#'"),
    ("a + $", "column 5: expected a number, a name or '(', found '$'"),
    ("a#b", "column 2: expected an operator, found #b"),
    ("a\\", "column 3: unexpected character '\\\\'"),
    ("a\\b", "column 3: unexpected character 'b'"),
    ("a\\(b", "column 3: unexpected character '('"),
    ("if", "column 1: expected a number, a name or '(', found 'if'"),
    ("a if", "column 5: expected a number, a name or '(', found the end"),
    ("a if b", "column 7: expected 'else' for the 'if' in column 3, found the end"),
    ("a if b else", "column 12: expected a number, a name or '(', found the end"),
    ("a if else b", "column 6: expected a number, a name or '(', found 'else'"),
    ("if a else b", "column 1: expected a number, a name or '(', found 'if'"),
    ("a else b", "column 3: expected an operator, found 'else'"),
    ("a if b if c else d", "column 8: expected 'else' for the 'if' in column 3, found 'if'"),
    ("(a if b) else c", "column 8: expected 'else' for the 'if' in column 4, found ')'"),
    ("and a", "column 1: expected a number, a name or '(', found '&'"),
    ("a or", "column 5: expected a number, a name or '(', found the end"),
    ("a and or b", "column 7: expected a number, a name or '(', found '|'"),
    ("sqrt(a)", "column 1: no function is called sqrt"),
    ("1 + __import__(a)", "column 5: no function is called __import__"),
    ("min(", "column 5: expected a number, a name or '(', found the end"),
    ("min()", "column 1: min takes two or more values, not 0"),
    ("min(a)", "column 1: min takes two or more values, not 1"),
    ("a + max(b,)", "column 11: expected a number, a name or '(', found ')'"),
    ("max(a b)", "column 7: expected ')' for the '(' in column 4, found b"),
    ("max(a, b", "column 9: expected ')' for the '(' in column 4, found the end"),
    ("d_ratio(a)", "column 1: d_ratio takes two values, not 1"),
    ("d_ratio(a, b, c)", "column 1: d_ratio takes two values, not 3"),
    ("has_event(1)", "column 1: has_event takes the name of an event, not 1"),
    ("source_count(a, b)", "column 1: source_count takes the name of an event, not 2"),
    ("x[", "column 3: expected a number, a name or '(', found the end"),
    ("x[0", "column 4: expected ']' for the '[' in column 2, found the end"),
];

/// More of them.
const MALFORMED_INDEXES: [(&str, &str); 8] = [
    ("x[]", "column 3: expected a number, a name or '(', found ']'"),
    ("x]", "column 2: expected an operator, found ']'"),
    ("[0]", "column 1: expected a number, a name or '(', found '['"),
    ("x[0)", "column 4: expected ']' for the '[' in column 2, found ')'"),
    ("(x[0]", "column 6: expected ')' for the '(' in column 1, found the end"),
    ("x[0] y", "column 6: expected an operator, found y"),
    ("1[0]", "column 2: expected an operator, found '['"),
    ("x[0,1]", "column 4: expected ']' for the '[' in column 2, found ','"),
];

#[test]
fn each_malformed_expression_has_a_position_and_a_cause() {
    for (text, expected) in MALFORMED.into_iter().chain(MALFORMED_INDEXES) {
        let error = Expression::parse(text).expect_err(text).to_string();
        assert_eq!(error, expected, "{text}");
    }
}

#[test]
fn the_depth_and_the_length_of_an_expression_are_bounded() {
    let deep = |open: &str, close: &str, depth: usize| format!("{}a{}", open.repeat(depth), close.repeat(depth));
    for (open, close) in [("(", ")"), ("-", ""), ("min(1, ", ")"), ("x[", "]"), ("1 + (", ")"), ("1 if a else ", "")] {
        assert!(Expression::parse(&deep(open, close, MAX_DEPTH / 3)).is_ok(), "{open}");
        for depth in [MAX_DEPTH + 1, 10_000] {
            let error = Expression::parse(&deep(open, close, depth)).unwrap_err().to_string();
            assert!(error.ends_with(": more than 128 nested parts"), "{open}: {error}");
        }
    }
    let sum = |terms: usize| vec!["a"; terms].join(" + ");
    assert!(Expression::parse(&sum(MAX_DEPTH)).unwrap().evaluate(&values()).is_ok());
    let error = Expression::parse(&sum(MAX_DEPTH + 1)).unwrap_err().to_string();
    assert_eq!(error, "column 511: more than 128 nested parts");
    let error = Expression::parse(&"a ".repeat(1 << 17)).unwrap_err().to_string();
    assert_eq!(error, "column 1: longer than 131072 bytes");
}

#[test]
fn the_names_of_an_expression_are_listed_once_in_their_order() {
    let text = "max(b, a) / x[i] if has_event(E) & b else -#SMT_on";
    assert_eq!(Expression::parse(text).unwrap().names(), ["b", "a", "x", "i", "E", "#SMT_on"]);
}
