//! Numbers that are exact, and those that chance decides.

pub(crate) mod arithmetic;
pub(crate) mod money;
pub(crate) mod rate;
pub(crate) mod rng;
