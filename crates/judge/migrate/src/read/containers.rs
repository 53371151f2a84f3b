//! Reads GPUs of container instances: `gpu` with a count and a SKU, in groups, templates and programs.

use cudock_facts::services::AzureService;
use std::collections::HashSet;

use super::collector::ChoiceCollector;
use super::context::Contexts;
use super::key::Key;
use super::names::folded;
use super::syntax::tree::Tree;
use crate::choice::{Choice, ChoiceKind};

/// Collects the GPU requests of a tree.
pub(super) fn read(tree: &Tree<'_>, contexts: &Contexts<'_>, collector: &mut ChoiceCollector<'_>) {
    let mut seen = HashSet::new();
    let mut requested = HashSet::new();
    // Requests before limits: a container that names both makes one choice.
    for limits in [false, true] {
        for pair in tree.pairs.iter().filter(|pair| matches!(pair.key, Key::Count | Key::Sku)) {
            let Some(request) = ContainerGpuRequest::around(tree, contexts, pair.scope) else { continue };
            if request.limits != limits || !seen.insert(pair.scope) {
                continue;
            }
            if requested.insert(request.container) || !limits {
                request
                    .choice(tree, contexts, pair.scope)
                    .into_iter()
                    .for_each(|choice| collector.add(choice));
            }
        }
    }
}

/// A map or call that requests GPUs.
struct ContainerGpuRequest {
    limits: bool,
    /// The scope it belongs to: the same for a container's request and its limit.
    container: Option<usize>,
    role: String,
}

impl ContainerGpuRequest {
    fn around(tree: &Tree<'_>, contexts: &Contexts<'_>, scope: Option<usize>) -> Option<Self> {
        let here = tree.scope(scope)?;
        let key = tree.slice(here.key);
        let name = folded(key.rsplit('.').next().unwrap_or(key));
        if !matches!(name.as_str(), "gpu" | "gpulimit" | "gpuresource") {
            return None;
        }
        // A map in braces is in a scope of the same key.
        let outer = tree
            .around(here.parent)
            .find(|outer| tree.scope(*outer).is_none_or(|outer| folded(tree.slice(outer.key)) != name));
        let outer = outer.flatten();
        let around = tree.scope(outer).map_or_else(String::new, |outer| folded(tree.slice(outer.key)));
        let limits = around.contains("limit") || name == "gpulimit";
        let asked_for = limits || around.contains("request") || name == "gpuresource";
        let known = asked_for || contexts.get(scope).service == Some(AzureService::Aci);
        let role = match name.as_str() {
            "gpu" if limits => "resources.limits.gpu".to_owned(),
            "gpu" if asked_for => "resources.requests.gpu".to_owned(),
            _ => key.to_owned(),
        };
        let container = tree.scope(outer).and_then(|outer| outer.parent);
        known.then_some(Self { limits, container: if asked_for { container } else { scope }, role })
    }

    fn choice(&self, tree: &Tree<'_>, contexts: &Contexts<'_>, scope: Option<usize>) -> Option<Choice> {
        let sku = tree.first(scope, Key::Sku);
        let count = tree.first(scope, Key::Count);
        let at = sku.or(count)?.value;
        let number = count.and_then(|pair| tree.slice(pair.value).parse::<f64>().ok());
        let kind = ChoiceKind::ContainerGpu {
            sku: sku.map(|pair| tree.slice(pair.value).to_owned()),
            count: number.filter(|count| (1.0..1e3).contains(count)).map(whole),
            by_option: false,
        };
        Some(Choice {
            role: self.role.clone(),
            service: Some(AzureService::Aci),
            region: contexts.get(scope).region.map(str::to_owned),
            ..Choice::at(at.0, at.1, kind)
        })
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 1 and 1000")]
fn whole(count: f64) -> u32 {
    count.round() as u32
}
