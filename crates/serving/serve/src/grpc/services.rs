//! The names of the services, and a limit that they share.

pub(in crate::grpc) const INFERENCE: &str = "inference.GRPCInferenceService";
pub(in crate::grpc) const HEALTH: &str = "grpc.health.v1.Health";

/// Largest message without tensors.
pub(in crate::grpc) const SMALL: usize = 1 << 20;
