//! Templates that are being carried out.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A template that is being carried out.
#[derive(Debug, Clone)]
pub(crate) struct TemplateRun {
    pub(crate) scope: Scope,
    /// Entries of the template that have not begun.
    pub(crate) pending: Vec<Value>,
    pub(crate) outputs: Value,
    /// Resources that have begun, by key.
    pub(crate) begun: Vec<String>,
}

/// All templates that are being carried out, by the key of their deployment.
#[derive(Debug, Clone, Default)]
pub(crate) struct TemplateRuns {
    pub(crate) active: BTreeMap<String, TemplateRun>,
    /// The operations that end with them.
    pub(crate) operations: BTreeMap<String, String>,
}

/// The target and the values with which a template is evaluated.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    /// The group that is deployed to; none for the subscription.
    pub(crate) group: Option<String>,
    pub(crate) parameters: Map<String, Value>,
    pub(crate) variables: Map<String, Value>,
}
