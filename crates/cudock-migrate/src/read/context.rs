//! Which service a choice is for, by what stands around it.

use super::key::{Key, is_low_priority};
use super::tree::{Tree, slice};
use crate::choice::Service;

/// What stands in heads, types and schemas, and the service it belongs to; the first that fits counts.
const MARKS: &[(&str, Service)] = &[
    ("microsoft.batch", Service::Batch),
    ("microsoft.machinelearning", Service::Ml),
    ("microsoft.containerservice", Service::Aks),
    ("microsoft.containerinstance", Service::Aci),
    ("microsoft.compute", Service::Vm),
    ("azurerm_batch", Service::Batch),
    ("azurerm_machine_learning", Service::Ml),
    ("azurerm_kubernetes", Service::Aks),
    ("azurerm_container_group", Service::Aci),
    ("virtual_machine", Service::Vm),
    ("azuremlschemas", Service::Ml),
    ("amlcompute", Service::Ml),
    ("computeinstance", Service::Ml),
    ("computecluster", Service::Ml),
    ("onlinedeployment", Service::Ml),
    ("agentpool", Service::Aks),
    ("default_node_pool", Service::Aks),
    ("pooladdparameter", Service::Batch),
    ("models.pool", Service::Batch),
    ("batchpool", Service::Batch),
    ("pool_specification", Service::Batch),
    ("virtualmachineconfiguration", Service::Batch),
    ("hardwareprofile", Service::Vm),
    ("hardware_profile", Service::Vm),
    ("gpuresource", Service::Aci),
];

/// Imports and packages of programs, and the service they are for.
const IMPORTS: &[(&str, Service)] = &[
    ("azureml", Service::Ml),
    ("azure.ai.ml", Service::Ml),
    ("azure.batch", Service::Batch),
    ("azure.mgmt.batch", Service::Batch),
    ("azure.mgmt.compute", Service::Vm),
    ("azure.mgmt.containerservice", Service::Aks),
    ("azure.mgmt.containerinstance", Service::Aci),
];

/// Heads are looked at so far: names of resources stand at their beginning.
const HEAD: usize = 300;

/// What holds for everything in a scope, unless it says otherwise itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Around<'t> {
    pub(super) service: Option<Service>,
    /// A region that stands there as it is.
    pub(super) region: Option<&'t str>,
    /// Where a `SkyPilot` task runs.
    pub(super) cloud: Option<&'t str>,
    pub(super) low_priority: bool,
}

/// What holds in each scope of a tree, found out once.
pub(super) struct Contexts<'t> {
    root: Around<'t>,
    scopes: Vec<Around<'t>>,
}

impl<'t> Contexts<'t> {
    pub(super) fn of(text: &'t str, tree: &Tree) -> Self {
        let root = own(text, tree, None, Around::default());
        let mut contexts = Self { root, scopes: Vec::with_capacity(tree.scopes.len()) };
        // A scope comes after the one it stands in.
        for (id, scope) in tree.scopes.iter().enumerate() {
            let around = own(text, tree, Some(id), contexts.get(scope.parent));
            contexts.scopes.push(around);
        }
        contexts
    }

    pub(super) fn get(&self, scope: Option<usize>) -> Around<'t> {
        scope.and_then(|id| self.scopes.get(id)).copied().unwrap_or(self.root)
    }
}

fn own<'t>(text: &'t str, tree: &Tree, scope: Option<usize>, outer: Around<'t>) -> Around<'t> {
    let literal =
        |key: Key| tree.first(scope, key).filter(|pair| pair.literal).map(|pair| slice(text, pair.value));
    let tier = tree.first(scope, Key::Tier).map(|pair| slice(text, pair.value));
    Around {
        service: service(text, tree, scope).or(outer.service),
        region: literal(Key::Location).filter(|region| is_region(region)).or(outer.region),
        cloud: literal(Key::Cloud).or(outer.cloud),
        low_priority: tier.map_or(outer.low_priority, is_low_priority),
    }
}

fn service(text: &str, tree: &Tree, scope: Option<usize>) -> Option<Service> {
    if tree.first(scope, Key::DedicatedNodes).is_some() {
        return Some(Service::Batch);
    }
    let kind = tree.first(scope, Key::Type).map(|pair| slice(text, pair.value));
    let head = tree.scope(scope).map(|scope| (slice(text, scope.head), slice(text, scope.key)));
    let (head, key) = head.unwrap_or_default();
    [kind, Some(key), Some(head)].into_iter().flatten().find_map(of_words)
}

fn of_words(words: &str) -> Option<Service> {
    let mut end = words.len().min(HEAD);
    while !words.is_char_boundary(end) {
        end -= 1;
    }
    let words = words.get(..end).unwrap_or_default().to_ascii_lowercase();
    MARKS.iter().find(|(mark, _)| words.contains(mark)).map(|(_, service)| *service)
}

/// The service a program is for, if its imports name one alone.
pub(super) fn hint_of(text: &str) -> Option<Service> {
    let mut hint = None;
    for (name, service) in IMPORTS {
        if text.contains(name) {
            match hint {
                None => hint = Some(*service),
                Some(other) if other == *service => {}
                Some(_) => return None,
            }
        }
    }
    hint
}

/// Whether a word may be a region: `westeurope`, `West Europe`, not an expression.
pub(super) fn is_region(word: &str) -> bool {
    (3..=30).contains(&word.len())
        && word.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b' ' || byte == b'-')
}
