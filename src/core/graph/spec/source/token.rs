//! The tokens of a source as words.

use crate::codelet::opencl_c::{self, Kind, lines};

/// A token: a word, a number, or an operator of one or more characters.
pub(super) type Token = String;

/// The word of a token. What is quoted is no code, and is empty.
pub(super) fn word(token: &opencl_c::Token) -> Token {
    match token.kind {
        Kind::Quoted if token.word.starts_with('"') => "\"\"".to_owned(),
        Kind::Quoted => "0".to_owned(),
        _ => token.word.to_owned(),
    }
}

/// The tokens of a text without directives.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let lines = lines(text);
    lines
        .iter()
        .flat_map(|line| &line.tokens)
        .map(word)
        .collect()
}

/// Whether a token can be a name.
pub(super) fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
