//! What holds whatever is asked.

mod plans;
