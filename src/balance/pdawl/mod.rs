//! PDAWL: DAWL that begins with a cost model's plan (Geng et al., section 3.2).

pub mod forecast;

pub use forecast::{Expected, Forecast, Planner};
