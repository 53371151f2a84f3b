//! What holds for every request.

mod plans;
