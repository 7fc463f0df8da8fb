//! Expressions against Python's rules, and random ones against a second
//! implementation in 128 bits.

use proptest::prelude::*;

use super::value::partition_round;
use super::*;

fn symbols(pairs: &[(&str, i64)]) -> Symbols {
    pairs
        .iter()
        .map(|(name, n)| ((*name).to_owned(), Number::Int(*n)))
        .collect()
}

fn whole(text: &str, pairs: &[(&str, i64)]) -> Result<i64, ExpressionError> {
    text.parse::<Expression>()?.whole(&symbols(pairs))
}

fn message(text: &str, pairs: &[(&str, i64)]) -> String {
    match whole(text, pairs) {
        Ok(value) => panic!("`{text}` is {value}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn whole_numbers_are_divided_as_python_does() {
    for (text, value) in [
        ("7/2", 3),
        ("-7/2", -4),
        ("7//-2", -4),
        ("-7 // -2", 3),
        ("-8/-3", 2),
        ("7%3", 1),
        ("-7%3", 2),
        ("7%-3", -2),
        ("6%-3", 0),
        ("2+3*4", 14),
        ("(2+3)*4", 20),
        ("100/7/2", 7),
        ("2**3**2", 512),
        ("-2**2", -4),
        ("2*-3", -6),
        ("--3", 3),
        ("min(4, 2+1, 9)", 3),
        ("max(4, -2)", 4),
        ("abs(-5)+int(2.9)", 7),
        ("min(1, 2)*max(3)", 3),
    ] {
        assert_eq!(whole(text, &[]), Ok(value), "{text}");
    }
}

#[test]
fn names_are_tokens_and_not_parts_of_others() {
    let pairs = [("m", 3), ("m1", 64), ("TS", 16), ("wpt", 2)];
    assert_eq!(whole("m1/wpt", &pairs), Ok(32));
    assert_eq!(whole("m*m1", &pairs), Ok(192));
    let e: Expression = "m1 * TS + m1".parse().unwrap();
    assert_eq!(e.names(), ["TS", "m1"]);
    assert!(message("m2", &pairs).contains("`m2` has no value (known: TS, m, m1, wpt)"));
}

#[test]
fn lists_come_in_all_the_forms_that_files_have() {
    let texts = |text| -> Vec<String> {
        let list = list(text).unwrap_or_else(|e| panic!("{e}"));
        list.iter().map(ToString::to_string).collect()
    };
    assert_eq!(texts("[m1/wpt,n1]"), ["m1/wpt", "n1"]);
    assert_eq!(texts("( a , b+1 )"), ["a", "b+1"]);
    assert_eq!(texts("dataset"), ["dataset"]);
    assert_eq!(texts("a, min(b, c)"), ["a", "min(b, c)"]);
    assert_eq!(texts("(a+b)*c"), ["(a+b)*c"]);
    assert_eq!(texts("(a)*(b)"), ["(a)*(b)"]);
    assert_eq!(texts("[a,]"), ["a"]);
    assert!(texts("[]").is_empty());
    assert!(list("[a, b").is_err());
    assert!(list("a b").is_err());
}

#[test]
fn faults_are_reported_with_their_place() {
    let pairs = [("n", 4), ("z", 0)];
    for (text, part) in [
        ("n/z", "character 2: division by zero"),
        ("n%(z*2)", "division by zero"),
        ("n + * 2", "character 5: `*` is found instead of a number"),
        ("n +", "character 4: it is incomplete"),
        ("", "it is incomplete"),
        ("n 4", "character 3: `4` is found instead of an operator"),
        ("(n", "it is incomplete"),
        ("n)", "`)` is found instead of"),
        ("n ^ 2", "character 3: `^` is not allowed"),
        ("9223372036854775808", "not a number that fits"),
        ("1x", "`1x` is not a number"),
        ("9223372036854775807 + 1", "does not fit in 64 bits"),
        ("2**64", "does not fit"),
        ("2**-1", "exponent -1"),
        ("sqrt(n)", "no function `sqrt`"),
        ("partition_round(n)", "takes two, not 1 arguments"),
        ("partition_round(n, 101)", "from 0 to 100"),
        ("min()", "takes one or more"),
        (
            "1.5*n",
            "an integer is needed, and the value is the fraction 6.0; int",
        ),
    ] {
        let message = message(text, &pairs);
        assert!(message.contains(part), "{text}: {message}");
    }
    let deep = "(".repeat(1000) + "1" + &")".repeat(1000);
    assert!(message(&deep, &[]).contains("nested more than"));
    let deep = "2**".repeat(5000) + "1";
    assert!(message(&deep, &[]).contains("nested more than"));
}

#[test]
fn long_expressions_are_refused_and_long_texts_shortened() {
    let sum = |terms: usize| vec!["1"; terms].join("+");
    assert_eq!(whole(&sum(1001), &[]), Ok(1001));
    // In brackets or not, a tree stays flat enough for the stack.
    for text in [sum(40_000), format!("({})*({})", sum(600), sum(600))] {
        let message = message(&text, &[]);
        assert!(message.contains("more than 1000 operators"), "{message}");
        assert!(message.len() < 250, "{message}");
    }
    let wrong = format!("{}+*{}", sum(300), sum(300));
    let message = message(&wrong, &[]);
    assert!(message.contains("1+*1"), "{message}");
    assert!(message.len() < 250, "{message}");
    let name = whole(&"n".repeat(5000), &[]).unwrap_err().to_string();
    assert!(name.len() < 400, "{name}");
}

#[test]
fn fractions_stay_fractions() {
    let value = |text: &str| text.parse::<Expression>().unwrap().value(&Symbols::new());
    assert_eq!(value("0.5f"), Ok(Number::Float(0.5)));
    assert_eq!(value("1e-3*2"), Ok(Number::Float(0.002)));
    assert_eq!(value("7/2.0"), Ok(Number::Float(3.5)));
    assert_eq!(value("7//2.0"), Ok(Number::Float(3.0)));
    assert!(matches!(value("1.0/0"), Err(e) if e.cause == Cause::DivisionByZero));
    assert!(matches!(value("1e308*10"), Err(e) if e.cause == Cause::Overflow));
}

#[test]
fn parts_are_rounded_as_the_authors_round_them() {
    // Of their own function, for even numbers, and odd ones within 1 to 99 %.
    for (elements, percent, part) in [
        (1024, 33, 337),
        (1024, 67, 687),
        (1024, 50, 512),
        (99, 30, 30),
        (99, 70, 69),
        (98, 25, 24),
        (7, 0, 0),
        (7, 100, 7),
    ] {
        assert_eq!(partition_round(elements, percent), Ok(part), "{elements}");
    }
}

/// A tree, as text with every bracket, and its value in 128 bits.
fn random() -> impl proptest::strategy::Strategy<Value = (String, Option<i128>)> {
    let leaf = (-50i64..50).prop_map(|n| match n < 0 {
        true => (format!("({n})"), Some(i128::from(n))),
        false => (n.to_string(), Some(i128::from(n))),
    });
    leaf.prop_recursive(6, 48, 2, |inner| {
        (inner.clone(), inner, 0usize..5, any::<bool>()).prop_map(|((a, x), (b, y), op, space)| {
            let sign = ["+", "-", "*", "/", "%"][op];
            let gap = if space { " " } else { "" };
            let value = x.zip(y).and_then(|(x, y)| {
                let floor = |x: i128, y: i128| (x - (x % y + y) % y) / y;
                match sign {
                    "+" => Some(x + y),
                    "-" => Some(x - y),
                    "*" => x.checked_mul(y),
                    _ if y == 0 => None,
                    "/" => Some(floor(x, y)),
                    _ => Some(x - y * floor(x, y)),
                }
            });
            (format!("({a}{gap}{sign}{gap}{b})"), value)
        })
    })
}

proptest! {
    #[test]
    fn random_expressions_have_the_value_of_wider_arithmetic((text, value) in random()) {
        let ours = whole(&text, &[]);
        match value {
            Some(value) if i64::try_from(value).is_ok() => {
                // A partial result beyond 64 bits is refused even if a later
                // one would fit again.
                if let Ok(ours) = ours {
                    prop_assert_eq!(i128::from(ours), value, "{}", text);
                } else {
                    prop_assert_eq!(ours.unwrap_err().cause, Cause::Overflow, "{}", text);
                }
            }
            _ => prop_assert!(ours.is_err(), "{text} is {ours:?}"),
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "[ a-z0-9.+*/%(),\\[\\]-]{0,40}|\\PC{0,30}") {
        let _ = text.parse::<Expression>().map(|e| e.value(&Symbols::new()));
        let _ = list(&text);
    }

    #[test]
    fn parts_make_the_whole(elements in 0i64..1_000_000, percent in 0i64..=100) {
        let part = partition_round(elements, percent).unwrap();
        let rest = partition_round(elements, 100 - percent).unwrap();
        // At one half of an odd number both are the smaller part.
        let twice = i64::from(percent == 50 && elements % 2 == 1);
        prop_assert_eq!(part + rest, elements + twice);
        prop_assert!((0..=elements).contains(&part));
    }
}
