//! The labels that containers of other engines carry, by which cudock recognizes its own.

/// The label of every container that cudock creates.
pub(super) const LABEL: &str = "dev.cudock";
/// The label with the value of `--gpus`.
pub(super) const GPUS: &str = "dev.cudock.gpus";
pub(super) const GROUP: &str = "dev.cudock.group";
