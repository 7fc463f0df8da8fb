//! Parsing: from tokens to a tree, by recursive descent.
//!
//! Splitting a text into tokens, each with its position.

use std::ops::Range;

use super::value::{Number, Operator};
use super::{At, Cause, excerpt};

/// Most levels of nesting; the limit protects the stack.
const DEEPEST: usize = 100;

/// Most operators of a text. Each makes the tree of a chain such as `1 + 1 + 1` one
/// level deeper.
const MOST_OPERATORS: usize = 1000;

/// A node of the tree, with the position of its first token or its operator.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tree {
    pub at: usize,
    pub node: Node,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Number(Number),
    Name(String),
    Minus(Box<Tree>),
    Binary(Operator, Box<Tree>, Box<Tree>),
    Call(String, Vec<Tree>),
}

impl Tree {
    pub(super) fn leaf(node: Node) -> Self {
        Self { at: 0, node }
    }
}

/// Parses a text as one expression.
pub(super) fn parse(text: &str) -> Result<Tree, At> {
    let mut parser = Parser::of(text)?;
    let tree = parser.sum()?;
    parser.end()?;
    Ok(tree)
}

/// The bytes of each expression in a text with one or several.
pub(super) fn list(text: &str) -> Result<Vec<Range<usize>>, At> {
    let mut parser = Parser::of(text)?;
    let close = match parser.list_bracket() {
        Some(close) => {
            parser.next += 1;
            Some(close)
        }
        None => None,
    };
    let mut parts = Vec::new();
    loop {
        if let Some(close) = close
            && parser.take(close)
        {
            break;
        }
        let begin = parser.offset();
        parser.sum()?;
        parts.push(begin..parser.passed());
        if !parser.take(",") {
            if let Some(close) = close {
                parser.expect(close, "`,` or the closing bracket")?;
            }
            break;
        }
    }
    parser.end()?;
    Ok(parts)
}

struct Parser {
    tokens: Vec<Placed>,
    next: usize,
    depth: usize,
    operators: usize,
    /// Length of the text, in characters and bytes.
    length: (usize, usize),
}

impl Parser {
    fn of(text: &str) -> Result<Self, At> {
        Ok(Self {
            tokens: tokens(text)?,
            next: 0,
            depth: 0,
            operators: 0,
            length: (text.chars().count(), text.len()),
        })
    }

    /// `a + b - c`
    fn sum(&mut self) -> Result<Tree, At> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(At(self.at(), Cause::Deep(DEEPEST)));
        }
        let operators = [("+", Operator::Add), ("-", Operator::Subtract)];
        let tree = self.chain(&operators, Self::product);
        self.depth -= 1;
        tree
    }

    /// `a * b / c // d % e`
    fn product(&mut self) -> Result<Tree, At> {
        let operators = [
            ("*", Operator::Multiply),
            ("/", Operator::Divide),
            ("//", Operator::Floor),
            ("%", Operator::Modulo),
        ];
        self.chain(&operators, Self::signed)
    }

    fn chain(
        &mut self,
        operators: &[(&'static str, Operator)],
        part: fn(&mut Self) -> Result<Tree, At>,
    ) -> Result<Tree, At> {
        let mut left = part(self)?;
        loop {
            let at = self.at();
            let Some((_, operator)) = operators.iter().find(|(sign, _)| self.take(sign)) else {
                return Ok(left);
            };
            self.operators += 1;
            if self.operators > MOST_OPERATORS {
                return Err(At(at, Cause::Long(MOST_OPERATORS)));
            }
            let right = part(self)?;
            left = Tree {
                at,
                node: Node::Binary(*operator, Box::new(left), Box::new(right)),
            };
        }
    }

    /// `-a ** b`, which is `-(a ** b)`.
    fn signed(&mut self) -> Result<Tree, At> {
        let at = self.at();
        let mut negative = false;
        loop {
            if self.take("-") {
                negative = !negative;
            } else if !self.take("+") {
                break;
            }
        }
        let power = self.power()?;
        Ok(match negative {
            true => Tree {
                at,
                node: Node::Minus(Box::new(power)),
            },
            false => power,
        })
    }

    /// `a ** b ** c`, which is `a ** (b ** c)`.
    fn power(&mut self) -> Result<Tree, At> {
        let base = self.atom()?;
        let at = self.at();
        if !self.take("**") {
            return Ok(base);
        }
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(At(at, Cause::Deep(DEEPEST)));
        }
        let exponent = self.signed()?;
        self.depth -= 1;
        Ok(Tree {
            at,
            node: Node::Binary(Operator::Power, Box::new(base), Box::new(exponent)),
        })
    }

    fn atom(&mut self) -> Result<Tree, At> {
        let at = self.at();
        let Some(token) = self.tokens.get(self.next).map(|t| t.token.clone()) else {
            return Err(At(at, Cause::Ends));
        };
        self.next += 1;
        let node = match token {
            Token::Number(number) => Node::Number(number),
            Token::Name(name) if self.take("(") => Node::Call(name, self.arguments()?),
            Token::Name(name) => Node::Name(name),
            Token::Sign("(") => {
                let inner = self.sum()?;
                self.expect(")", "an operator or `)`")?;
                return Ok(inner);
            }
            Token::Sign(found) => {
                let wanted = "a number, a name or `(`";
                let found = found.to_owned();
                return Err(At(at, Cause::Unexpected { found, wanted }));
            }
        };
        Ok(Tree { at, node })
    }

    fn arguments(&mut self) -> Result<Vec<Tree>, At> {
        let mut arguments = Vec::new();
        if self.take(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.sum()?);
            if !self.take(",") {
                self.expect(")", "`,` or `)`")?;
                return Ok(arguments);
            }
        }
    }

    /// The closing bracket, if the text is a list in brackets; `(a)*b` is not one.
    fn list_bracket(&self) -> Option<&'static str> {
        let first = &self.tokens.first()?.token;
        let last = &self.tokens.last()?.token;
        match (first, last) {
            (Token::Sign("["), _) => Some("]"),
            (Token::Sign("("), Token::Sign(")")) => self.is_tuple().then_some(")"),
            _ => None,
        }
    }

    /// Whether the first bracket closes at the end and has a comma of its own.
    fn is_tuple(&self) -> bool {
        let (mut depth, mut comma) = (0u32, false);
        for (index, placed) in self.tokens.iter().enumerate() {
            match placed.token {
                Token::Sign("(") => depth += 1,
                Token::Sign(")") => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 && index + 1 < self.tokens.len() {
                        return false;
                    }
                }
                Token::Sign(",") => comma |= depth == 1,
                _ => {}
            }
        }
        comma
    }

    fn at(&self) -> usize {
        (self.tokens.get(self.next)).map_or(self.length.0, |token| token.at)
    }

    fn offset(&self) -> usize {
        (self.tokens.get(self.next)).map_or(self.length.1, |token| token.bytes.start)
    }

    fn passed(&self) -> usize {
        let last = self.next.checked_sub(1);
        last.map_or(0, |last| self.tokens[last].bytes.end)
    }

    fn take(&mut self, sign: &str) -> bool {
        let there = matches!(self.tokens.get(self.next), Some(Placed { token: Token::Sign(s), .. }) if *s == sign);
        self.next += usize::from(there);
        there
    }

    fn expect(&mut self, sign: &str, wanted: &'static str) -> Result<(), At> {
        match self.take(sign) {
            true => Ok(()),
            false => Err(self.unexpected(wanted)),
        }
    }

    fn end(&self) -> Result<(), At> {
        match self.next < self.tokens.len() {
            true => Err(self.unexpected("an operator or the end")),
            false => Ok(()),
        }
    }

    fn unexpected(&self, wanted: &'static str) -> At {
        let found = match self.tokens.get(self.next).map(|t| &t.token) {
            None => return At(self.at(), Cause::Ends),
            Some(Token::Number(number)) => number.to_string(),
            Some(Token::Name(name)) => excerpt(name, 0),
            Some(Token::Sign(sign)) => (*sign).to_owned(),
        };
        At(self.at(), Cause::Unexpected { found, wanted })
    }
}

/// The kinds of tokens.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Number(Number),
    Name(String),
    /// An operator, a bracket or a comma.
    Sign(&'static str),
}

/// A token, with its begin in characters, for messages, and its range in bytes.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub token: Token,
    pub at: usize,
    pub bytes: std::ops::Range<usize>,
}

/// The longest operators first.
const SIGNS: [&str; 12] = ["**", "//", "+", "-", "*", "/", "%", "(", ")", "[", "]", ","];

/// Splits the whole text.
pub(super) fn tokens(text: &str) -> Result<Vec<Placed>, At> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut at = 0;
    while let Some(first) = rest.chars().next() {
        let begin = text.len() - rest.len();
        let (token, length) = if first.is_whitespace() {
            (None, first.len_utf8())
        } else if first.is_ascii_digit() || first == '.' {
            let length = number_length(rest);
            let digits = &rest[..length];
            let number = number(digits).ok_or(At(at, Cause::Number(excerpt(digits, 0))))?;
            (Some(Token::Number(number)), length)
        } else if first.is_alphabetic() || first == '_' {
            let end = |c: char| !(c.is_alphanumeric() || c == '_');
            let length = rest.find(end).unwrap_or(rest.len());
            (Some(Token::Name(rest[..length].to_owned())), length)
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or(At(at, Cause::Character(first)))?;
            (Some(Token::Sign(sign)), sign.len())
        };
        if let Some(token) = token {
            tokens.push(Placed {
                token,
                at,
                bytes: begin..begin + length,
            });
        }
        at += rest[..length].chars().count();
        rest = &rest[length..];
    }
    Ok(tokens)
}

/// Digits, a point, an exponent with its sign, and letters, so that an error names
/// all of `1x`.
fn number_length(text: &str) -> usize {
    let mut before = ' ';
    let end = |c: char| {
        let sign = (c == '+' || c == '-') && matches!(before, 'e' | 'E');
        let goes_on = c.is_alphanumeric() || c == '.' || c == '_' || sign;
        before = c;
        !goes_on
    };
    text.find(end).unwrap_or(text.len())
}

fn number(digits: &str) -> Option<Number> {
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        return digits.parse().ok().map(Number::Int);
    }
    // `0.5f` is common in files with arguments of C functions.
    let plain = digits.strip_suffix(['f', 'F']).unwrap_or(digits);
    let spelled = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    if !plain.chars().all(spelled) {
        return None;
    }
    plain
        .parse()
        .ok()
        .filter(|x: &f64| x.is_finite())
        .map(Number::Float)
}
