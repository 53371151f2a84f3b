//! Kinds of resources that may exist before a deployment.

mod details;

use serde_json::Value;

use crate::call::Call;
use crate::services::bodies::request::get;
use crate::spec::{ExistingDetails, ExistingResources, ProfileDetails};

/// A kind of resource that may exist before a deployment.
pub(crate) trait ExistingKind: Sync {
    /// The name of the kind in messages: "Batch account".
    fn noun(&self) -> &'static str;

    fn resource_type(&self) -> &'static str;

    fn version(&self) -> &'static str;

    /// The command that lists those that exist.
    fn list(&self) -> &'static str;

    /// Its name, if the user names one.
    fn name<'e>(&self, existing: &'e ExistingResources) -> Option<&'e str>;

    /// The pool or cluster in it, if the user names one.
    fn nodes<'e>(&self, _existing: &'e ExistingResources) -> Option<&'e str> {
        None
    }

    /// The name of [`Self::nodes`] in messages, and the command that lists those that exist in
    /// `GROUP/NAME`.
    fn nodes_list(&self, _group: &str, _name: &str, _details: &ExistingDetails) -> (&'static str, String) {
        ("machines", String::new())
    }

    /// The request for the pool or cluster.
    fn nodes_call(&self, scope: &ExistingScope<'_>, nodes: &str) -> Call {
        get(&format!("{}/computes/{nodes}", scope.id), self.version())
    }

    /// The host of its own API, according to the response.
    fn endpoint(&self, _response: &Value) -> Option<String> {
        None
    }

    /// Its profiles, where machines are called so.
    fn profiles(&self, _response: &Value) -> Option<Vec<ProfileDetails>> {
        None
    }
}

/// A resource that exists, and what was read of it.
pub(crate) struct ExistingScope<'e> {
    pub(crate) id: String,
    pub(crate) name: &'e str,
    pub(crate) details: &'e ExistingDetails,
}

/// A region as the tables write it: `West Europe` is `westeurope`.
pub fn bare_region(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_whitespace()).flat_map(char::to_lowercase).collect()
}
