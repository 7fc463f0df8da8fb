//! The tokens of Rust sources, as far as imports need them: no comments, and strings whole.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name, a keyword or a number.
    Word,
    /// A string, without its quotes.
    Text,
    /// A character, or `::`.
    Mark,
}

/// A token and where it begins.
#[derive(Clone, Debug)]
pub struct Token {
    pub kind: Kind,
    pub text: String,
    /// Counted from 1.
    pub line: usize,
}

impl Token {
    /// Whether this is the word or mark `text`.
    pub fn is(&self, text: &str) -> bool {
        self.kind != Kind::Text && self.text == text
    }
}

/// The tokens of a source.
pub fn tokens(source: &str) -> Vec<Token> {
    let mut reader = Reader {
        rest: source.chars().collect(),
        at: 0,
        line: 1,
        tokens: Vec::new(),
    };
    while reader.at < reader.rest.len() {
        reader.next();
    }
    reader.tokens
}

struct Reader {
    rest: Vec<char>,
    at: usize,
    line: usize,
    tokens: Vec<Token>,
}

impl Reader {
    fn peek(&self, ahead: usize) -> char {
        self.rest.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn skip(&mut self, count: usize) {
        let end = (self.at + count).min(self.rest.len());
        self.line += self.rest[self.at..end]
            .iter()
            .filter(|&&c| c == '\n')
            .count();
        self.at = end;
    }

    fn push(&mut self, kind: Kind, length: usize) {
        let text = self.rest[self.at..self.at + length].iter().collect();
        let line = self.line;
        self.tokens.push(Token { kind, text, line });
        self.skip(length);
    }

    /// Reads what begins here.
    fn next(&mut self) {
        match (self.peek(0), self.peek(1)) {
            ('/', '/') => {
                while self.at < self.rest.len() && self.peek(0) != '\n' {
                    self.skip(1);
                }
            }
            ('/', '*') => self.block_comment(),
            ('"', _) => self.string(),
            ('\'', _) => self.quote(),
            (':', ':') => self.push(Kind::Mark, 2),
            (c, _) if c.is_whitespace() => self.skip(1),
            (c, _) if c == '_' || c.is_alphanumeric() => self.word(),
            _ => self.push(Kind::Mark, 1),
        }
    }

    /// Block comments nest.
    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.rest.len() {
            match (self.peek(0), self.peek(1)) {
                ('/', '*') => {
                    depth += 1;
                    self.skip(2);
                }
                ('*', '/') => {
                    depth -= 1;
                    self.skip(2);
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.skip(1),
            }
        }
    }

    fn string(&mut self) {
        let mut length = 1;
        while self.at + length < self.rest.len() && self.peek(length) != '"' {
            length += if self.peek(length) == '\\' { 2 } else { 1 };
        }
        self.text(1, length, 1);
    }

    /// A string that begins `before` characters from here, ends at `end`, and has `after`
    /// characters after it.
    fn text(&mut self, before: usize, end: usize, after: usize) {
        self.skip(before);
        self.push(Kind::Text, (end - before).min(self.rest.len() - self.at));
        self.skip(after);
    }

    /// A character, or the name of a lifetime.
    fn quote(&mut self) {
        if self.peek(1) != '\\' && self.peek(2) != '\'' {
            return self.skip(1);
        }
        let mut length = if self.peek(1) == '\\' { 3 } else { 2 };
        while self.at + length < self.rest.len() && self.peek(length) != '\'' {
            length += 1;
        }
        self.skip(length + 1);
    }

    /// A word, or a string with a prefix.
    fn word(&mut self) {
        let mut length = 1;
        while self.peek(length) == '_' || self.peek(length).is_alphanumeric() {
            length += 1;
        }
        let word: String = self.rest[self.at..self.at + length].iter().collect();
        let mut hashes = 0;
        while self.peek(length + hashes) == '#' {
            hashes += 1;
        }
        let quoted = self.peek(length + hashes) == '"';
        match word.as_str() {
            "r" | "br" | "cr" if quoted => self.raw_string(length, hashes),
            // `r#type` is a name.
            "r" if hashes == 1 => self.skip(2),
            "b" | "c" if self.peek(length) == '"' => {
                self.skip(length);
                self.string();
            }
            "b" if self.peek(length) == '\'' => {
                self.skip(length);
                self.quote();
            }
            _ => self.push(Kind::Word, length),
        }
    }

    fn raw_string(&mut self, prefix: usize, hashes: usize) {
        let begin = prefix + hashes + 1;
        let mut end = begin;
        let closes = |reader: &Self, end: usize| {
            reader.peek(end) == '"' && (1..=hashes).all(|hash| reader.peek(end + hash) == '#')
        };
        while self.at + end < self.rest.len() && !closes(self, end) {
            end += 1;
        }
        self.text(begin, end, hashes + 1);
    }
}
