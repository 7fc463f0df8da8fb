//! The tile operations' OpenCL implementations: sources, options and sizes. `product`
//! has products and symmetric updates, `triangle` solutions and factors.

mod product;
mod triangle;

pub(super) use product::{product, symmetric};
pub(super) use triangle::{factor, solution, unfinished, unfinished_rows};
