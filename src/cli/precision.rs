//! Precisions as arguments.

use clap::ValueEnum;
use pdawl::codelet::NumberFormat;

/// The format of matrices whose sums are computed in single precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum NumberFormatArg {
    #[default]
    F32,
    /// IEEE's half precision; sums are singles
    F16,
    /// bfloat16; sums are singles
    Bf16,
    /// Singles, whose products have factors rounded to 10 bits of the mantissa
    Tf32,
}

impl From<NumberFormatArg> for NumberFormat {
    fn from(arg: NumberFormatArg) -> Self {
        match arg {
            NumberFormatArg::F32 => Self::F32,
            NumberFormatArg::F16 => Self::F16,
            NumberFormatArg::Bf16 => Self::Bf16,
            NumberFormatArg::Tf32 => Self::Tf32,
        }
    }
}
