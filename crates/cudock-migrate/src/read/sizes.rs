//! Reads sizes, GPUs and low-priority nodes in maps and calls.

use std::collections::HashMap;

use super::collector::ChoiceCollector;
use super::context::{Contexts, is_region};
use super::key::Key;
use super::names::{folded, is_bare_gpu_size, is_gpu_size};
use super::tree::{Pair, Range, Tree, slice};
use crate::choice::{Choice, ChoiceKind, Service};

/// Collects the choices of a tree.
pub(super) fn read(text: &str, tree: &Tree, hint: Option<Service>, collector: &mut ChoiceCollector<'_>) {
    let contexts = Contexts::of(text, tree);
    let named = named_sizes(text, tree);
    let counts = named_counts(text, tree);
    // The use of a variable has more context than its definition.
    for pair in tree.pairs.iter().filter(|pair| pair.key == Key::Size) {
        if let Some(at) = named.get(reference(slice(text, pair.value))) {
            collector.add(size(text, tree, &contexts, pair, *at, hint));
        }
    }
    for pair in &tree.pairs {
        let value = slice(text, pair.value);
        match pair.key {
            Key::Location if pair.literal && is_region(value) => collector.set_region(value),
            Key::LowPriorityNodes => low_priority_nodes(text, &contexts, pair, &counts, collector),
            Key::Accelerators => accelerator(text, &contexts, pair, collector),
            Key::Type | Key::Cloud | Key::Location => {}
            key => {
                let expected = key == Key::Size && is_bare_gpu_size(value);
                if pair.literal && (expected || is_gpu_size(value)) {
                    collector.add(size(text, tree, &contexts, pair, pair.value, hint));
                }
            }
        }
    }
}

/// Variables and parameters whose value is a size.
fn named_sizes<'t>(text: &'t str, tree: &Tree) -> HashMap<&'t str, Range> {
    let mut named = HashMap::new();
    for pair in tree.pairs.iter().filter(|pair| pair.literal && is_gpu_size(slice(text, pair.value))) {
        let name = if pair.key == Key::Default {
            let Some(scope) = tree.scope(pair.scope) else { continue };
            // variable "name" { default = … } of Terraform has its name in the head, others in the key.
            let head = slice(text, scope.head);
            let quoted = head.trim_start().strip_prefix("variable").and_then(|rest| rest.split('"').nth(1));
            quoted.unwrap_or_else(|| slice(text, scope.key))
        } else {
            slice(text, pair.name)
        };
        named.entry(name).or_insert(pair.value);
    }
    named
}

/// Numbers of low-priority nodes by variable name.
fn named_counts<'t>(text: &'t str, tree: &Tree) -> HashMap<&'t str, &'t str> {
    let counts = tree.pairs.iter().filter(|pair| pair.key == Key::LowPriorityCount);
    counts.map(|pair| (slice(text, pair.name), slice(text, pair.value))).collect()
}

/// The name in `var.size`, `"${var.size}"`, `[parameters('size')]` and `$(size)`.
fn reference(value: &str) -> &str {
    let value = value.trim_matches(['[', ']', '$', '{', '}', '(', ')', ' ']);
    let value = value.split_once('\'').map_or(value, |(_, name)| name.split('\'').next().unwrap_or(name));
    value.rsplit('.').next().unwrap_or(value)
}

/// The size at `at`, with the context of the pair that contains or uses it.
fn size(
    text: &str,
    tree: &Tree,
    contexts: &Contexts<'_>,
    pair: &Pair,
    at: Range,
    hint: Option<Service>,
) -> Choice {
    let around = contexts.get(pair.scope);
    Choice {
        role: role(text, tree, pair),
        service: around.service.or(hint),
        region: around.region.map(str::to_owned),
        low_priority: around.low_priority,
        ..Choice::at(at.0, at.1, ChoiceKind::Size { name: slice(text, at).to_owned() })
    }
}

/// The role of a pair: its key, with the call or resource it belongs to.
fn role(text: &str, tree: &Tree, pair: &Pair) -> String {
    let key = slice(text, pair.name);
    let around = tree.scope(pair.scope).map(|scope| (slice(text, scope.key), slice(text, scope.head)));
    match around {
        Some((name, _)) if name.contains('.') || name.starts_with(|ch: char| ch.is_ascii_uppercase()) => {
            // A call, of which the last two names are enough.
            let mut parts: Vec<&str> = name.rsplit('.').take(2).collect();
            parts.reverse();
            format!("{}({key})", parts.join("."))
        }
        Some(("resource", head)) => {
            let kind = head.split('"').nth(1).unwrap_or("resource");
            format!("{kind}.{key}")
        }
        _ => key.to_owned(),
    }
}

/// Collects a number above zero, or a variable with one: schemas and clients also have the key, but choose nothing.
fn low_priority_nodes(
    text: &str,
    contexts: &Contexts<'_>,
    pair: &Pair,
    counts: &HashMap<&str, &str>,
    collector: &mut ChoiceCollector<'_>,
) {
    let value = slice(text, pair.value);
    let value = counts.get(reference(value)).copied().unwrap_or(value);
    if value.parse::<u32>().unwrap_or(0) == 0 {
        return;
    }
    collector.add(Choice {
        role: slice(text, pair.name).to_owned(),
        service: Some(Service::Batch),
        region: contexts.get(pair.scope).region.map(str::to_owned),
        low_priority: true,
        ..Choice::at(pair.value.0, pair.value.1, ChoiceKind::LowPriorityNodes)
    });
}

/// Collects `accelerators: K80:4` of `SkyPilot`, alone, in a list, or as a key of a map.
fn accelerator(text: &str, contexts: &Contexts<'_>, pair: &Pair, collector: &mut ChoiceCollector<'_>) {
    let around = contexts.get(pair.scope);
    let (cloud, infra_region) = around.cloud.map_or((None, None), |cloud| match cloud.split_once('/') {
        Some((cloud, region)) => (Some(cloud), Some(region)),
        None => (Some(cloud), None),
    });
    if cloud.is_some_and(|cloud| folded(cloud) != "azure") {
        return;
    }
    let in_map = folded(slice(text, pair.name)) != "accelerators";
    let (at, gpu, count) = if in_map {
        (pair.name, slice(text, pair.name), slice(text, pair.value))
    } else {
        let value = slice(text, pair.value);
        let (gpu, count) = value.split_once(':').unwrap_or((value, "1"));
        (pair.value, gpu, count)
    };
    let looks_like_one = gpu.starts_with(|ch: char| ch.is_ascii_alphabetic())
        && gpu.bytes().any(|byte| byte.is_ascii_digit())
        && gpu.len() <= 24;
    if !looks_like_one {
        return;
    }
    let region = around.region.or(infra_region);
    collector.add(Choice {
        role: "accelerators".to_owned(),
        service: Some(Service::Vm),
        region: region.map(str::to_owned),
        low_priority: around.low_priority,
        ..Choice::at(
            at.0,
            at.1,
            ChoiceKind::Accelerator { name: gpu.to_owned(), count: count.trim().parse().unwrap_or(1) },
        )
    });
}
