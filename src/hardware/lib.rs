//! What there is, and how it is used: a [`machine`] says what devices a machine has, and a
//! [`runtime`] runs commands on them, real or simulated.

use pdawl_base::{file_store, random, time};
use pdawl_codelet as codelet;

pub mod machine;
pub mod runtime;

#[cfg(test)]
#[path = "../../tests/fixtures/own_home.rs"]
mod own_home;
