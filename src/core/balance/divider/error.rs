//! Errors of dividers.

use std::ops::Range;

use thiserror::Error;

/// Why a divider cannot be made, or cannot go on.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum DividerError {
    #[error("{option}: {why}")]
    Option { option: &'static str, why: String },
    #[error(
        "part {part}: {seconds} are no seconds; they are a number of 0 or more, or none where the part is lost"
    )]
    Seconds { part: usize, seconds: f64 },
    #[error("{given} entries for {parts} parts; there is one a part, in the parts' order")]
    Entries { given: usize, parts: usize },
    #[error("there is no part {part}; there are {parts}, from 0 on")]
    NoPart { part: usize, parts: usize },
    #[error("part {0} is lost; `back` brings it back")]
    Lost(usize),
    #[error("all parts are lost; `back` brings one back")]
    AllLost,
    #[error(
        "the limits of the parts that are left have room for {room} of {needed}; raise a limit, choose a smaller granularity, or bring a part back"
    )]
    NoRoom { room: u64, needed: u64 },
    #[error("units {}..{} are outside 0..{units}", .range.start, .range.end)]
    Outside { range: Range<u64>, units: u64 },
    #[error("no step has begun; `next` begins one")]
    NoStep,
    #[error("part {part} still has units {}..{}; `done` or `lost` ends them", .range.start, .range.end)]
    Unfinished { part: usize, range: Range<u64> },
    #[error("part {0} has no units that were taken; `take` gives some")]
    NotTaken(usize),
    #[error("the step has units that were taken one after the other; `done` tells their seconds")]
    Taken,
    #[error("units {}..{} are not yet taken; `take` gives them", .0.start, .0.end)]
    Left(Range<u64>),
    #[error("this is no state of a divider: {0}")]
    State(String),
}
