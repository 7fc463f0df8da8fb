//! Identifies a machine: a machine file describes this machine if its fingerprint
//! matches.

use std::fmt;

/// CPU model, cores and GPU models in one short readable line, such as
/// `Intel Xeon E5-2670 x16 + 2 NVIDIA H200`.
///
/// Memory sizes are left out, since they may grow; so are clocks and drivers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Of a machine with this CPU, this many cores, and these GPUs in any
    /// order.
    pub fn of<'a>(cpu: &str, cores: u32, gpus: impl IntoIterator<Item = &'a str>) -> Self {
        let mut models: Vec<String> = gpus.into_iter().map(plain).collect();
        models.sort();
        let mut line = format!("{} x{cores}", plain(cpu));
        for same in models.chunk_by(|a, b| a == b) {
            line.push_str(" + ");
            if same.len() > 1 {
                line.push_str(&format!("{} ", same.len()));
            }
            line.push_str(&same[0]);
        }
        Self(line)
    }

    /// Whether a machine file's fingerprint is this one, perhaps with GPUs beside those that
    /// this one has.
    pub fn begins(&self, recorded: Option<&str>) -> bool {
        let own = self.0.split_whitespace();
        let mut recorded = recorded.unwrap_or_default().split_whitespace();
        own.eq(recorded.by_ref().take(self.0.split_whitespace().count()))
            && recorded.next().is_none_or(|next| next == "+")
    }

    /// Whether a machine file's fingerprint is this one. A file without one
    /// describes no particular machine.
    pub fn is(&self, recorded: Option<&str>) -> bool {
        recorded.is_some_and(|r| r.split_whitespace().eq(self.0.split_whitespace()))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A model without trademarks, filler words and the clock, which drivers and
/// kernels write differently.
fn plain(model: &str) -> String {
    let model = model.split('@').next().unwrap_or(model);
    let model = model
        .replace("(R)", " ")
        .replace("(TM)", " ")
        .replace("(tm)", " ");
    let words: Vec<&str> = model
        .split_whitespace()
        .filter(|word| !matches!(*word, "CPU" | "Processor"))
        .collect();
    words.join(" ")
}
