//! Creating deployments: where they can run, the checks before that, and waiting for them.

pub(crate) mod account;
mod allowed;
pub(crate) mod attached;
mod choices;
pub(crate) mod existing;
mod image;
pub(crate) mod phase;
pub(crate) mod placements;
pub(crate) mod preflight;
pub(crate) mod request;
pub(crate) mod requester;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod wait;
