//! Resources outside of a deployment's own groups, and the requests that delete them.

use cudock_http::Method;

use crate::call::{Call, Plane};
use crate::services::bodies::names::Existing;

/// Resources outside of the deployment's own groups that are deleted with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outside<'a> {
    /// The scope of the reaper's further rights: an existing resource and its type.
    pub(crate) scope: Option<(Existing<'a>, &'static str)>,
    pub(crate) actions: Vec<OutsideAction>,
}

/// A request of the reaper.
#[derive(Debug, Clone)]
pub(crate) struct OutsideAction {
    /// Letters and underscores.
    pub(crate) name: String,
    pub(crate) method: &'static str,
    pub(crate) address: Address,
    /// Whether the reaper stays until this is gone: not for what is free.
    pub(crate) is_awaited: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Address {
    /// A path and query of the resource manager.
    ResourceManager(String),
    /// A path and query of a Batch account.
    Batch { plane: Plane, path: String },
}

impl OutsideAction {
    /// The same request, sent by the client.
    pub(crate) fn call(&self) -> Call {
        let method = if self.method == "DELETE" { Method::DELETE } else { Method::POST };
        match &self.address {
            Address::ResourceManager(path) => {
                Call { method, plane: Plane::ResourceManager, path: path.clone(), body: None }
            }
            Address::Batch { plane, path } => {
                Call { method, plane: plane.clone(), path: path.clone(), body: None }
            }
        }
    }
}
