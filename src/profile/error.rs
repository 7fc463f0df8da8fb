//! Why a profile fails.
