//! Specification files of kernels and graphs.
//!
//! `forms` covers the accepted forms, `reader` and `infer` what is read from
//! OpenCL C sources, `bad` a mistake in each field, `broken` damaged files, and
//! `run` the program on valid ones.

mod bad;
mod broken;
mod fixtures;
mod forms;
mod infer;
mod reader;
mod run;
mod sources;
