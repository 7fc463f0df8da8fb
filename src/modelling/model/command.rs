//! The commands that profile and train a codelet, for the remedies of error messages.

use crate::codelet::stencil::{self, Dimensions, Precision};

/// The command that profiles more runs of this codelet on a machine, and its option
/// that adds runs.
pub fn profile(codelet: &str, machine: &str) -> String {
    let products = codelet.starts_with("spmv");
    let (what, more) = match products {
        true => ("spmv", "a greater --count"),
        false => ("stencil", "more --configurations"),
    };
    let options = options(codelet).replace(PRODUCTS, "");
    format!("`pdawl profile {what} --machine {machine}{options}` with a longer --budget or {more}")
}

/// Whether `pdawl train` makes models of this codelet.
pub fn is_trained(codelet: &str) -> bool {
    codelet == "spmv-f64" || codelet == "spmv-f32" || stencil::named(codelet).is_some()
}

/// The option for products.
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
    fn products_are_profiled_as_products() {
        assert_eq!(
            profile("spmv-f32", "lab"),
            "`pdawl profile spmv --machine lab --precision f32` with a longer --budget or a \
             greater --count"
        );
        assert_eq!(
            profile("stencil7-f64", "lab"),
            "`pdawl profile stencil --machine lab --dims 3` with a longer --budget or more \
             --configurations"
        );
    }

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
            assert_eq!(is_trained(codelet), codelet != "other", "{codelet}");
        }
    }
}
