//! What holds whatever is asked.

mod money;
mod plans;
