//! GPUs of container instances: `gpu` with a count and a SKU, in groups, templates and programs.

use std::collections::HashSet;

use super::context::Contexts;
use super::draft::{Draft, Found};
use super::key::Key;
use super::names::folded;
use super::tree::{Tree, slice};
use crate::choice::{Service, What};

/// Takes the GPU requests of a tree.
pub(super) fn read(text: &str, tree: &Tree, draft: &mut Draft<'_>) {
    let contexts = Contexts::of(text, tree);
    let mut seen = HashSet::new();
    let mut requested = HashSet::new();
    // Requests before limits: a container that names both makes one choice.
    for limits in [false, true] {
        for pair in tree.pairs.iter().filter(|pair| matches!(pair.key, Key::Count | Key::Sku)) {
            let Some(request) = Request::around(text, tree, &contexts, pair.scope) else { continue };
            if request.limits != limits || !seen.insert(pair.scope) {
                continue;
            }
            if limits && requested.contains(&request.container) {
                continue;
            }
            requested.insert(request.container);
            if let Some(found) = request.found(text, tree, &contexts, pair.scope) {
                draft.add(found);
            }
        }
    }
}

/// A map or call that asks for GPUs.
struct Request {
    limits: bool,
    /// What it is a part of: the same for a container's request and its limit.
    container: Option<usize>,
    by: String,
}

impl Request {
    fn around(text: &str, tree: &Tree, contexts: &Contexts<'_>, scope: Option<usize>) -> Option<Self> {
        let here = tree.scope(scope)?;
        let key = slice(text, here.key);
        let name = folded(key.rsplit('.').next().unwrap_or(key));
        if !matches!(name.as_str(), "gpu" | "gpulimit" | "gpuresource") {
            return None;
        }
        // A map in braces stands in a scope of the same key.
        let outer = tree
            .around(here.parent)
            .find(|outer| tree.scope(*outer).is_none_or(|outer| folded(slice(text, outer.key)) != name));
        let outer = outer.flatten();
        let around = tree.scope(outer).map_or_else(String::new, |outer| folded(slice(text, outer.key)));
        let limits = around.contains("limit") || name == "gpulimit";
        let asked_for = limits || around.contains("request") || name == "gpuresource";
        let known = asked_for || contexts.get(scope).service == Some(Service::Aci);
        let by = match name.as_str() {
            "gpu" if limits => "resources.limits.gpu".to_owned(),
            "gpu" if asked_for => "resources.requests.gpu".to_owned(),
            _ => key.to_owned(),
        };
        let container = tree.scope(outer).and_then(|outer| outer.parent);
        known.then_some(Self { limits, container: if asked_for { container } else { scope }, by })
    }

    fn found(&self, text: &str, tree: &Tree, contexts: &Contexts<'_>, scope: Option<usize>) -> Option<Found> {
        let sku = tree.first(scope, Key::Sku);
        let count = tree.first(scope, Key::Count);
        let at = sku.or(count)?.value;
        let number = count.and_then(|pair| slice(text, pair.value).parse::<f64>().ok());
        let what = What::ContainerGpu {
            sku: sku.map(|pair| slice(text, pair.value).to_owned()),
            count: number.filter(|count| (1.0..1e3).contains(count)).map(whole),
            by_option: false,
        };
        Some(Found {
            by: self.by.clone(),
            service: Some(Service::Aci),
            region: contexts.get(scope).region.map(str::to_owned),
            ..Found::new(at.0, at.1, what)
        })
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it lies between 1 and 1000")]
fn whole(count: f64) -> u32 {
    count.round() as u32
}
