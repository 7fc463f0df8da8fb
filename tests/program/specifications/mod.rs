//! Specification files of kernels and graphs.
//!
//! `forms` covers the accepted forms, `reader` and `infer` what is read from
//! OpenCL C sources, `bad` a mistake in each field, `broken` damaged files, `run` the
//! program on valid ones, and `first_launch` kernels and drivers that would end it.

mod bad;
mod broken;
mod first_launch;
mod fixtures;
mod forms;
mod infer;
mod reader;
mod run;
mod sources;
