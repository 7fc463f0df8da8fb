//! The provenance of a dataset, in its first lines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pairs of a key and a value, in order: hardware, driver, date, command. A
/// key may come several times, as when a profile was continued.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(from = "Vec<(String, String)>")]
pub struct Provenance(Vec<(String, String)>);

impl Provenance {
    /// Adds a pair, if it is not there. Every pair is one line of a file
    /// `# key: value`, so line breaks and other control characters become
    /// blanks, blanks around are dropped, and so is a `:` in a key.
    pub fn add(&mut self, key: &str, value: &str) {
        let pair = (line(&key.replace(':', " ")), line(value));
        if !self.0.contains(&pair) {
            self.0.push(pair);
        }
    }

    /// Adds every pair of another that is not there.
    pub fn merge(&mut self, other: &Self) {
        for (key, value) in &other.0 {
            self.add(key, value);
        }
    }

    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// Parses the text after `#` in a line.
    pub(super) fn read_line(&mut self, text: &str) -> bool {
        match text.split_once(':') {
            Some((key, value)) if !key.trim().is_empty() => {
                self.add(key, value);
                true
            }
            _ => false,
        }
    }
}

impl From<Vec<(String, String)>> for Provenance {
    fn from(pairs: Vec<(String, String)>) -> Self {
        let mut provenance = Self::default();
        for (key, value) in &pairs {
            provenance.add(key, value);
        }
        provenance
    }
}

/// The text as a part of a line.
fn line(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_stay_in_order_each_once_and_on_one_line() {
        let mut provenance = Provenance::default();
        provenance.add("date", "2026-11-20");
        provenance.add("command: line", "pdawl profile\n--budget 5m ");
        provenance.add("date", "2026-11-20");
        provenance.add("date", "2026-11-21");
        let text: Vec<String> = provenance
            .pairs()
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        assert_eq!(
            text,
            [
                "date=2026-11-20",
                "command  line=pdawl profile --budget 5m",
                "date=2026-11-21"
            ]
        );
    }
}
