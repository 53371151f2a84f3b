//! Where work runs: plans, groups, and deployments on Azure.

pub(super) mod deployments;
pub(super) mod groups;
pub(super) mod plan;
