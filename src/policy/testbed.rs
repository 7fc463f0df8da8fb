//! Problems for the policies' tests.
