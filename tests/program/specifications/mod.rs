//! Specifications: the forms in which they are written, what is inferred from
//! sources, and what is wrong in each field.

mod bad;
mod broken;
mod fixtures;
mod forms;
mod infer;
mod reader;
mod run;
