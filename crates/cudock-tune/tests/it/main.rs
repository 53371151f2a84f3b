//! Tests of the search on generated surfaces.

mod search;
mod surface;
