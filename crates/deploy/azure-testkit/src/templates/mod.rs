//! Templates of Resource Manager, and their deployments.

pub(crate) mod deployments;
mod expression;
mod template;
