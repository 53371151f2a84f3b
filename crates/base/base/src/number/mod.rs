//! Numbers that are exact, those that people write with a unit, and those that chance decides.

pub(crate) mod arithmetic;
pub(crate) mod money;
pub(crate) mod quantity;
pub(crate) mod rate;
pub(crate) mod rng;
