//! How many packages the wire brings. The test is here, since cargo may lack those of MPI
//! elsewhere.

#[path = "../../tests/architecture/packages.rs"]
mod packages;

#[test]
fn the_wire_brings_few_packages() {
    packages::assert_few(env!("CARGO_PKG_NAME"));
}
