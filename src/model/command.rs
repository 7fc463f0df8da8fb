//! How the program is told what to profile and train: for errors that send
//! users there.

use crate::codelet::stencil::{self, Dimensions, Precision};

/// What products are called there.
const PRODUCTS: &str = " --workload spmv";

/// The options of `pdawl train` for this codelet, a space before each: nothing
/// for the codelet that it takes by default, nor for one that it cannot run.
pub fn options(codelet: &str) -> String {
    match codelet {
        "spmv-f64" => return PRODUCTS.to_owned(),
        "spmv-f32" => return format!("{PRODUCTS} --precision f32"),
        _ => {}
    }
    let Some((dimensions, precision)) = stencil::named(codelet) else {
        return String::new();
    };
    let mut options = String::new();
    if dimensions == Dimensions::Three {
        options.push_str(" --dims 3");
    }
    if precision == Precision::F32 {
        options.push_str(" --precision f32");
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_the_default_is_named() {
        for (codelet, expected) in [
            ("stencil5-f64", ""),
            ("stencil5-f32", " --precision f32"),
            ("stencil7-f64", " --dims 3"),
            ("stencil7-f32", " --dims 3 --precision f32"),
            ("spmv-f64", " --workload spmv"),
            ("spmv-f32", " --workload spmv --precision f32"),
            ("other", ""),
        ] {
            assert_eq!(options(codelet), expected, "{codelet}");
        }
    }
}
