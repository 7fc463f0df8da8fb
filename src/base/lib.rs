//! What every part uses and no other library has: floats in messages ([`exact`]), the program's
//! own file ([`executable`]), files by name ([`file_store`]), installed libraries ([`installed`]),
//! loops over all cores ([`parallel`]), figures with units ([`quantity`]), random data ([`random`])
//! and [`time`].

pub mod exact;
pub mod executable;
pub mod file_store;
pub mod installed;
pub mod parallel;
pub mod quantity;
pub mod random;
pub mod time;

#[cfg(test)]
#[path = "../../tests/fixtures/own_home.rs"]
mod own_home;
