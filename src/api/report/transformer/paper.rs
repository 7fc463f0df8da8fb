//! The ratios of the PySchedCL paper, as its text gives them. Its Figures 11 and 12
//! show them point by point.

use schemars::JsonSchema;
use serde::Serialize;

/// A ratio of the paper, on a GTX 970 beside four cores of an i5-4690K.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Claim {
    /// The ratio, as in the report: `coarse`, `eager` or `heft` over the best
    /// clustering, or `eager/heft`.
    pub ratio: &'static str,
    /// For which points.
    pub points: &'static str,
    pub least: f64,
    pub greatest: f64,
    /// Where the paper has it.
    pub source: &'static str,
}

/// Every ratio of the text.
pub fn claims() -> Vec<Claim> {
    vec![
        Claim {
            ratio: "coarse",
            points: "1 to 10 heads, beta 256",
            least: 1.15,
            greatest: 1.17,
            source: "section 5, experiment 1 (Figure 11); more for 11 to 16 heads, with one \
                     head on the CPU",
        },
        Claim {
            ratio: "eager or heft",
            points: "16 heads, beta 64 to 512",
            least: 1.4,
            greatest: 3.4,
            source: "section 1, third contribution (Figure 12)",
        },
        Claim {
            ratio: "eager over heft",
            points: "16 heads, beta 512",
            least: 2.4,
            greatest: 2.4,
            source: "section 5, comparative evaluation (Figure 13)",
        },
    ]
}
