//! Reads sizes, GPUs and low-priority nodes in maps and calls.

use cudock_facts::services::AzureService;
use std::collections::HashMap;

use super::collector::ChoiceCollector;
use super::context::{Contexts, is_region};
use super::key::Key;
use super::names::{folded, is_bare_gpu_size, is_gpu_size};
use super::syntax::tree::{Pair, Range, Tree};
use crate::choice::{Choice, ChoiceKind};

pub(super) fn read<'t>(
    tree: &Tree<'t>,
    contexts: &Contexts<'t>,
    hint: Option<AzureService>,
    collector: &mut ChoiceCollector<'_>,
) {
    let reader = TreeReader { tree, contexts };
    let sized = |pair: &Pair, at: Range| {
        let mut choice = reader.choice(pair, at, ChoiceKind::Size { name: tree.slice(at).to_owned() });
        choice.service = choice.service.or(hint);
        choice
    };
    let named = reader.named_sizes();
    let counts = reader.named_counts();
    // The use of a variable has more context than its definition.
    for pair in tree.pairs.iter().filter(|pair| pair.key == Key::Size) {
        if let Some(at) = named.get(reference(tree.slice(pair.value))) {
            collector.add(sized(pair, *at));
        }
    }
    for pair in &tree.pairs {
        let value = tree.slice(pair.value);
        match pair.key {
            Key::Location if pair.literal && is_region(value) => collector.set_region(value),
            Key::LowPriorityNodes => {
                reader.low_priority_nodes(pair, &counts).into_iter().for_each(|choice| collector.add(choice));
            }
            Key::Accelerators => {
                reader.accelerator(pair).into_iter().for_each(|choice| collector.add(choice));
            }
            Key::Type | Key::Cloud | Key::Location => {}
            key => {
                let expected = key == Key::Size && is_bare_gpu_size(value);
                if pair.literal && (expected || is_gpu_size(value)) {
                    collector.add(sized(pair, pair.value));
                }
            }
        }
    }
}

struct TreeReader<'a, 't> {
    tree: &'a Tree<'t>,
    contexts: &'a Contexts<'t>,
}

impl<'t> TreeReader<'_, 't> {
    /// Variables and parameters whose value is a size.
    fn named_sizes(&self) -> HashMap<&'t str, Range> {
        let tree = self.tree;
        let mut named = HashMap::new();
        for pair in tree.pairs.iter().filter(|pair| pair.literal && is_gpu_size(tree.slice(pair.value))) {
            let name = if pair.key == Key::Default {
                let Some(scope) = tree.scope(pair.scope) else { continue };
                // variable "name" { default = … } of Terraform has its name in the head, others in the key.
                let head = tree.slice(scope.head).trim_start();
                let quoted = head.strip_prefix("variable").and_then(|rest| rest.split('"').nth(1));
                quoted.unwrap_or_else(|| tree.slice(scope.key))
            } else {
                tree.slice(pair.name)
            };
            named.entry(name).or_insert(pair.value);
        }
        named
    }

    /// Numbers of low-priority nodes by variable name.
    fn named_counts(&self) -> HashMap<&'t str, &'t str> {
        let counts = self.tree.pairs.iter().filter(|pair| pair.key == Key::LowPriorityCount);
        counts.map(|pair| (self.tree.slice(pair.name), self.tree.slice(pair.value))).collect()
    }

    /// The choice at `at`, with the context of the pair that contains or uses it.
    fn choice(&self, pair: &Pair, at: Range, kind: ChoiceKind) -> Choice {
        let around = self.contexts.get(pair.scope);
        Choice {
            role: self.role(pair),
            service: around.service,
            region: around.region.map(str::to_owned),
            low_priority: around.low_priority,
            ..Choice::at(at.0, at.1, kind)
        }
    }

    /// The role of a pair: its key, with the call or resource it belongs to.
    fn role(&self, pair: &Pair) -> String {
        let tree = self.tree;
        let key = tree.slice(pair.name);
        let around = tree.scope(pair.scope).map(|scope| (tree.slice(scope.key), tree.slice(scope.head)));
        match around {
            Some((name, _)) if name.contains('.') || name.starts_with(|ch: char| ch.is_ascii_uppercase()) => {
                // A call, of which the last two names are enough.
                let mut parts: Vec<&str> = name.rsplit('.').take(2).collect();
                parts.reverse();
                format!("{}({key})", parts.join("."))
            }
            Some(("resource", head)) => format!("{}.{key}", head.split('"').nth(1).unwrap_or("resource")),
            _ => key.to_owned(),
        }
    }

    /// A number above zero, or a variable with one: schemas and clients also have the key, but choose nothing.
    fn low_priority_nodes(&self, pair: &Pair, counts: &HashMap<&str, &str>) -> Option<Choice> {
        let value = self.tree.slice(pair.value);
        let value = counts.get(reference(value)).copied().unwrap_or(value);
        (value.parse::<u32>().unwrap_or(0) > 0).then(|| Choice {
            role: self.tree.slice(pair.name).to_owned(),
            service: Some(AzureService::Batch),
            low_priority: true,
            ..self.choice(pair, pair.value, ChoiceKind::LowPriorityNodes)
        })
    }

    /// `accelerators: K80:4` of `SkyPilot`, alone, in a list, or as a key of a map.
    fn accelerator(&self, pair: &Pair) -> Option<Choice> {
        let cloud = self.contexts.get(pair.scope).cloud.unwrap_or("azure");
        let (cloud, infra_region) =
            cloud.split_once('/').map_or((cloud, None), |(cloud, region)| (cloud, Some(region)));
        let (name, value) = (self.tree.slice(pair.name), self.tree.slice(pair.value));
        let in_map = folded(name) != "accelerators";
        let (at, gpu, count) = if in_map {
            (pair.name, name, value)
        } else {
            let (gpu, count) = value.split_once(':').unwrap_or((value, "1"));
            (pair.value, gpu, count)
        };
        let looks_like_one = gpu.starts_with(|ch: char| ch.is_ascii_alphabetic())
            && gpu.bytes().any(|byte| byte.is_ascii_digit())
            && gpu.len() <= 24;
        if folded(cloud) != "azure" || !looks_like_one {
            return None;
        }
        let count = count.trim().parse().unwrap_or(1);
        let choice = self.choice(pair, at, ChoiceKind::Accelerator { name: gpu.to_owned(), count });
        Some(Choice {
            role: "accelerators".to_owned(),
            service: Some(AzureService::Vm),
            region: choice.region.or(infra_region.map(str::to_owned)),
            ..choice
        })
    }
}

/// The name in `var.size`, `"${var.size}"`, `[parameters('size')]` and `$(size)`.
fn reference(value: &str) -> &str {
    let value = value.trim_matches(['[', ']', '$', '{', '}', '(', ')', ' ']);
    let value = value.split_once('\'').map_or(value, |(_, name)| name.split('\'').next().unwrap_or(name));
    value.rsplit('.').next().unwrap_or(value)
}
