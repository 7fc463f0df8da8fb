//! What somebody learns who watches launches, to tell a compiler's failure from a kernel's.

/// A moment of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The kernel is compiled and its buffers, the last memory that was allocated, are
    /// filled. The launch follows.
    Begins,
    /// It has ended well, and its buffers are still there.
    Ended,
}
