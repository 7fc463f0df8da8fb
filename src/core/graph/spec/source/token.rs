//! The tokens of a source as words.

use crate::codelet::opencl_c::{self, Kind, lines};

/// A token: a word, a number, or an operator of one or more characters.
pub(super) type Token = String;

/// The word of a token of a text. What is quoted is no code, and is empty.
pub(super) fn word(text: &str, token: &opencl_c::Token) -> Token {
    let word = &text[token.at.clone()];
    match token.kind {
        Kind::Quoted if word.starts_with('"') => "\"\"".to_owned(),
        Kind::Quoted => "0".to_owned(),
        _ => word.to_owned(),
    }
}

/// The tokens of a text without directives.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let lines = lines(text);
    let tokens = lines.iter().flat_map(|line| &line.tokens);
    tokens.map(|token| word(text, token)).collect()
}

/// Whether a token can be a name.
pub(super) fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
