//! Determines the service, region and priority of a choice from its context.

use super::key::{Key, is_low_priority};
use super::syntax::tree::Tree;
use cudock_facts::services::AzureService;

/// Text in heads, types and schemas, and the service it identifies; the first match counts.
const MARKS: &[(&str, AzureService)] = &[
    ("microsoft.batch", AzureService::Batch),
    ("microsoft.machinelearning", AzureService::Ml),
    ("microsoft.containerservice", AzureService::Aks),
    ("microsoft.containerinstance", AzureService::Aci),
    ("microsoft.compute", AzureService::Vm),
    ("azurerm_batch", AzureService::Batch),
    ("azurerm_machine_learning", AzureService::Ml),
    ("azurerm_kubernetes", AzureService::Aks),
    ("azurerm_container_group", AzureService::Aci),
    ("virtual_machine", AzureService::Vm),
    ("azuremlschemas", AzureService::Ml),
    ("amlcompute", AzureService::Ml),
    ("computeinstance", AzureService::Ml),
    ("computecluster", AzureService::Ml),
    ("onlinedeployment", AzureService::Ml),
    ("agentpool", AzureService::Aks),
    ("default_node_pool", AzureService::Aks),
    ("pooladdparameter", AzureService::Batch),
    ("models.pool", AzureService::Batch),
    ("batchpool", AzureService::Batch),
    ("pool_specification", AzureService::Batch),
    ("virtualmachineconfiguration", AzureService::Batch),
    ("hardwareprofile", AzureService::Vm),
    ("hardware_profile", AzureService::Vm),
    ("gpuresource", AzureService::Aci),
];

/// Imports and packages of programs, and their service.
const IMPORTS: &[(&str, AzureService)] = &[
    ("azureml", AzureService::Ml),
    ("azure.ai.ml", AzureService::Ml),
    ("azure.batch", AzureService::Batch),
    ("azure.mgmt.batch", AzureService::Batch),
    ("azure.mgmt.compute", AzureService::Vm),
    ("azure.mgmt.containerservice", AzureService::Aks),
    ("azure.mgmt.containerinstance", AzureService::Aci),
];

/// The part of a head that is searched: names of resources are at its start.
const MAX_HEAD: usize = 300;

/// The defaults for everything in a scope.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScopeContext<'t> {
    pub(super) service: Option<AzureService>,
    /// A literal region.
    pub(super) region: Option<&'t str>,
    /// The cloud of a `SkyPilot` task.
    pub(super) cloud: Option<&'t str>,
    pub(super) low_priority: bool,
}

/// The context of each scope of a tree.
pub(super) struct Contexts<'t> {
    root: ScopeContext<'t>,
    scopes: Vec<ScopeContext<'t>>,
}

impl<'t> Contexts<'t> {
    pub(super) fn of(tree: &Tree<'t>) -> Self {
        let root = own(tree, None, ScopeContext::default());
        let mut contexts = Self { root, scopes: Vec::with_capacity(tree.scopes.len()) };
        // A scope comes after its parent.
        for (id, scope) in tree.scopes.iter().enumerate() {
            let around = own(tree, Some(id), contexts.get(scope.parent));
            contexts.scopes.push(around);
        }
        contexts
    }

    pub(super) fn get(&self, scope: Option<usize>) -> ScopeContext<'t> {
        scope.and_then(|id| self.scopes.get(id)).copied().unwrap_or(self.root)
    }
}

fn own<'t>(tree: &Tree<'t>, scope: Option<usize>, outer: ScopeContext<'t>) -> ScopeContext<'t> {
    let literal =
        |key: Key| tree.first(scope, key).filter(|pair| pair.literal).map(|pair| tree.slice(pair.value));
    let tier = tree.first(scope, Key::Tier).map(|pair| tree.slice(pair.value));
    ScopeContext {
        service: service(tree, scope).or(outer.service),
        region: literal(Key::Location).filter(|region| is_region(region)).or(outer.region),
        cloud: literal(Key::Cloud).or(outer.cloud),
        low_priority: tier.map_or(outer.low_priority, is_low_priority),
    }
}

fn service(tree: &Tree<'_>, scope: Option<usize>) -> Option<AzureService> {
    if tree.first(scope, Key::DedicatedNodes).is_some() {
        return Some(AzureService::Batch);
    }
    let kind = tree.first(scope, Key::Type).map(|pair| pair.value);
    let (key, head) = tree.scope(scope).map(|scope| (scope.key, scope.head)).unzip();
    [kind, key, head].into_iter().flatten().find_map(|range| service_in(tree.slice(range)))
}

fn service_in(text: &str) -> Option<AzureService> {
    let head = text.get(..text.floor_char_boundary(MAX_HEAD)).unwrap_or_default().to_ascii_lowercase();
    MARKS.iter().find(|(mark, _)| head.contains(mark)).map(|(_, service)| *service)
}

/// The service of a program, if its imports name only one.
pub(super) fn hint_of(text: &str) -> Option<AzureService> {
    let mut services = IMPORTS.iter().filter(|(name, _)| text.contains(name)).map(|(_, service)| *service);
    let first = services.next()?;
    services.all(|service| service == first).then_some(first)
}

/// Whether a value may be a region: `westeurope`, `West Europe`, not an expression.
pub(super) fn is_region(value: &str) -> bool {
    (3..=30).contains(&value.len())
        && value.starts_with(|ch: char| ch.is_ascii_alphabetic())
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b' ' || byte == b'-')
}
