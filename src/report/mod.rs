//! What a run's user reads.
