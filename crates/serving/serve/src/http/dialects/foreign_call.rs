//! What clients ask for through the API of another model server.

use cudock_project::Dialect;
use hyper::StatusCode;

use crate::http::route::{ModelEffect, ModelName};

/// A request to the API of another model server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignRoute {
    pub(crate) dialect: Dialect,
    pub(crate) call: ForeignCall,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ForeignCall {
    /// An inference request, to the only model if none is named.
    Predict(Option<ModelName>),
    /// Is the server ready?
    Probe,
    /// The state of the server, for people.
    Health,
    Models,
    /// The state of a model.
    Model(ModelName),
    Metadata(ModelName),
}

impl ForeignCall {
    pub(super) fn allowed(&self, dialect: Dialect) -> &'static str {
        match self {
            // `curl -T` sends PUT, and TorchServe's documentation uses it.
            Self::Predict(_) if dialect == Dialect::TorchServe => "POST, PUT",
            Self::Predict(_) => "POST",
            _ => "GET, HEAD",
        }
    }

    /// The effect of a request on the models.
    pub(crate) fn effect(&self) -> ModelEffect {
        match self {
            Self::Predict(_) | Self::Metadata(_) => ModelEffect::Needs,
            Self::Probe | Self::Health | Self::Models | Self::Model(_) => ModelEffect::None,
        }
    }

    /// Whether it needs no API key.
    pub(crate) fn is_public(&self) -> bool {
        *self == Self::Probe
    }
}

pub(super) fn is_root(parts: &[&str]) -> bool {
    matches!(parts, [] | [""])
}

/// 200, or the status with which an API says that the server is not ready.
pub(super) fn status_or(is_ready: bool, other: StatusCode) -> StatusCode {
    if is_ready { StatusCode::OK } else { other }
}
