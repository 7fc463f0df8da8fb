//! Macros, and their replacement in a text.

use std::collections::{BTreeMap, BTreeSet};

use super::function::{close, parts};
use super::preprocess::Seen;
use super::token::{Token, is_name};

/// A macro.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Macro {
    /// Its text.
    Plain(Vec<Token>),
    /// Its parameters and its text.
    Function(Vec<Token>, Vec<Token>),
    /// One that cannot be read, such as with GNU's names for any number of arguments. It
    /// is not replaced.
    Opaque,
}

/// Joins the tokens beside it.
const JOIN: &str = "##";
/// The name of what `...` takes.
const VARIADIC: &str = "__VA_ARGS__";

/// The macros that are defined.
pub(super) type Macros = BTreeMap<String, Macro>;

/// Most levels of macros within macros.
const DEEPEST: usize = 16;

/// Most tokens that macros may make: a few short ones can grow without bounds.
const MOST: usize = 4_000_000;

/// The macro that a directive defines.
pub(super) fn defined_as(directive: &str, rest: &[Token]) -> Option<(String, Macro)> {
    let (name, value) = rest.split_first()?;
    // A macro has arguments only if a bracket follows its name at once.
    let behind = directive
        .find(name.as_str())
        .map(|at| &directive[at + name.len()..]);
    let known = match behind.is_some_and(|text| text.starts_with('(')) {
        true => function(value),
        false => Macro::Plain(substituted(&[], value, &[], &mut <[Token]>::to_vec)),
    };
    Some((name.clone(), known))
}

fn function(value: &[Token]) -> Macro {
    let Some(end) = close(value, 0) else {
        return Macro::Opaque;
    };
    let names: Vec<&[Token]> = parts(&value[1..end]);
    let text = &value[end + 1..];
    let last = names.len().saturating_sub(1);
    let names: Option<Vec<Token>> = (names.iter().enumerate())
        .map(|(index, name)| match name {
            [one] if is_name(one) => Some(one.clone()),
            [one] if one == "..." && index == last => Some(VARIADIC.to_owned()),
            _ => None,
        })
        .collect();
    let optional = text.iter().any(|token| token == "__VA_OPT__");
    match names {
        Some(names) if !optional => Macro::Function(names, text.to_vec()),
        _ => Macro::Opaque,
    }
}

/// Adds tokens with their macros replaced.
pub(super) fn expanded(given: &[(Token, usize)], macros: &Macros, seen: &mut Seen) {
    let tokens: Vec<Token> = given.iter().map(|(token, _)| token.clone()).collect();
    let mut within = BTreeSet::new();
    let mut at = 0;
    while at < tokens.len() {
        let line = given[at].1;
        at = one(&tokens, at, macros, &mut within, seen);
        seen.lines.resize(seen.tokens.len(), line);
    }
}

/// Adds the token at `at`, or what its macro makes of it. Returns the index of what
/// follows.
fn one(
    tokens: &[Token],
    at: usize,
    macros: &Macros,
    within: &mut BTreeSet<String>,
    seen: &mut Seen,
) -> usize {
    let token = &tokens[at];
    let known = macros.get(token).filter(|_| is_name(token));
    let too_many = within.len() >= DEEPEST || seen.tokens.len() > MOST;
    let replaced = match known {
        None => None,
        Some(_) if within.contains(token) || too_many => None,
        Some(Macro::Plain(text)) => Some((text.clone(), at + 1)),
        Some(Macro::Function(names, text)) => {
            let mut whole = |given: &[Token]| {
                let mut made = Seen::default();
                let mut inner = 0;
                while inner < given.len() {
                    inner = one(given, inner, macros, within, &mut made);
                }
                seen.has_macros |= made.has_macros;
                made.tokens
            };
            called(tokens, at, (names, text), &mut whole)
        }
        Some(Macro::Opaque) => None,
    };
    match replaced {
        Some((text, next)) => {
            within.insert(token.clone());
            let mut inner = 0;
            while inner < text.len() {
                inner = one(&text, inner, macros, within, seen);
            }
            within.remove(token);
            next
        }
        None => {
            // Within its own text, the name of a plain macro is what it stands for.
            let is_itself = within.contains(token) && matches!(known, Some(Macro::Plain(_)));
            seen.has_macros |= known.is_some() && !is_itself;
            seen.tokens.push(token.clone());
            at + 1
        }
    }
}

/// A call of a macro with arguments, replaced; `None` if it is none. `whole` replaces the
/// macros within an argument. The index is that of what follows.
fn called(
    tokens: &[Token],
    at: usize,
    (names, text): (&[Token], &[Token]),
    whole: &mut dyn FnMut(&[Token]) -> Vec<Token>,
) -> Option<(Vec<Token>, usize)> {
    if tokens.get(at + 1)? != "(" {
        return None;
    }
    let end = close(tokens, at + 1)?;
    let given = arguments(&tokens[at + 2..end], names)?;
    Some((substituted(names, text, &given, whole), end + 1))
}

/// The arguments of a call, one a name; those of `...` are one argument.
fn arguments(tokens: &[Token], names: &[Token]) -> Option<Vec<Vec<Token>>> {
    let mut given: Vec<Vec<Token>> = vec![Vec::new()];
    let takes_all = names.last().is_some_and(|name| name == VARIADIC);
    let mut depth = 0usize;
    for token in tokens {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            "," if depth == 0 && !(takes_all && given.len() == names.len()) => {
                given.push(Vec::new());
                continue;
            }
            _ => {}
        }
        given.last_mut()?.push(token.clone());
    }
    match given.len() {
        1 if names.is_empty() => given[0].is_empty().then(Vec::new),
        // Nothing for `...` needs no comma.
        count if takes_all && count + 1 == names.len() => {
            given.push(Vec::new());
            Some(given)
        }
        count => (count == names.len()).then_some(given),
    }
}

/// A macro's text with these arguments. Tokens beside `##` are joined, with the arguments
/// as they were given; `#` makes a string; other arguments have their macros replaced.
fn substituted(
    names: &[Token],
    text: &[Token],
    given: &[Vec<Token>],
    whole: &mut dyn FnMut(&[Token]) -> Vec<Token>,
) -> Vec<Token> {
    let place = |token: Option<&Token>| names.iter().position(|name| Some(name) == token);
    let mut made: Vec<Token> = Vec::new();
    // Where the tokens begin that the last one of the text became.
    let mut last = 0;
    let mut at = 0;
    while at < text.len() {
        let joins = text[at] == JOIN && at > 0;
        at += usize::from(joins);
        let Some(token) = text.get(at) else { break };
        let beside = joins || text.get(at + 1).is_some_and(|next| next == JOIN);
        let argument = place(Some(token));
        let piece = match argument {
            _ if token == "#" && place(text.get(at + 1)).is_some() => {
                at += 1;
                vec!["\"\"".to_owned()]
            }
            Some(index) if beside => given[index].clone(),
            Some(index) => whole(&given[index]),
            None => vec![token.clone()],
        };
        let begin = made.len();
        match joins {
            // GNU's `, ## __VA_ARGS__`: the comma goes where there are no arguments.
            true if token == VARIADIC && made.last().is_some_and(|last| last == ",") => {
                if piece.is_empty() {
                    made.pop();
                }
                made.extend(piece);
            }
            true if begin > last => {
                let mut piece = piece.into_iter();
                if let (Some(left), Some(right)) = (made.last_mut(), piece.next()) {
                    left.push_str(&right);
                }
                made.extend(piece);
                last = last.min(made.len());
                at += 1;
                continue;
            }
            _ => made.extend(piece),
        }
        last = begin.min(made.len());
        at += 1;
    }
    made
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::preprocess::preprocess;

    /// The tokens of a text, and whether a macro stayed.
    fn read(text: &str) -> (String, bool) {
        let seen = preprocess(text, &BTreeMap::new());
        (seen.tokens.join(" "), seen.has_macros)
    }

    #[test]
    fn tokens_are_joined_as_compilers_do() {
        for (text, expected) in [
            ("#define K(t) add_##t\nK(float)", "add_float"),
            (
                "#define J(a,b) a##b\n#define X(a,b) J(a,b)\n#define T int\nX(k_,T) J(k_,T)",
                "k_int k_T",
            ),
            ("#define J(a,b,c) a##_##b##_##c\nJ(k,2,x)", "k_2_x"),
            ("#define J(a,b) a##b c\nJ(,x) J(x,) J(,)", "x c x c c"),
            ("#define N k##1\nN", "k1"),
            ("#define S(x) f(#x, x)\nS(a b)", "f ( \"\" , a b )"),
            (
                "#define V(f, ...) f(__VA_ARGS__)\nV(g, 1, (2, 3)) V(g)",
                "g ( 1 , ( 2 , 3 ) ) g ( )",
            ),
            (
                "#define P(f, ...) printf(f, ##__VA_ARGS__)\nP(a) P(a, 1, 2)",
                "printf ( a ) printf ( a , 1 , 2 )",
            ),
            ("#define E() 7\nE() E", "7 E"),
        ] {
            let (tokens, stayed) = read(text);
            assert_eq!(tokens, expected, "{text}");
            // The name of a macro with arguments stays where none are given.
            assert_eq!(stayed, expected.ends_with(" E"), "{text}");
        }
    }

    #[test]
    fn a_call_with_other_arguments_stays() {
        for text in [
            "#define F(a, b) a\nF(1)",
            "#define F() 1\nF(2)",
            "#define V(a...) a\nV(1)",
        ] {
            assert!(read(text).1, "{text}");
        }
    }
}
