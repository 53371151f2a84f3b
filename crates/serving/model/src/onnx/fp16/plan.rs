//! Decides in which precision each node computes and in which each value must exist.
//!
//! A value keeps its name in fp32 and gets another one in fp16, so that subgraphs, which stay as they are, find the
//! values they use. Where a value exists in one precision and is wanted in the other, one `Cast` makes it.

use super::graph::{ElementType, Form, Graph, Node, NodeKind, Role, Value};
use super::operators::{Compute, ResultType};
use cudock_base::bug::Parts;

/// Sets the form of every node and value, and which forms are wanted.
pub(super) fn plan(graph: &mut Graph<'_>) {
    let mut kept = exact_nodes(graph);
    keep_variances(graph, &mut kept);
    choose_forms(graph, &kept);
    spread_demands(graph);
}

/// Where the numbers of a value come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Constant,
    Integer,
    Input,
    Computed,
}

/// Nodes that make sizes, indices or angles of integers or inputs: with eleven bits, 2049 is 2048, and the angle of
/// position 5000 is anything.
fn exact_nodes(graph: &Graph<'_>) -> Vec<bool> {
    let mut origins: Vec<Origin> = graph.values.iter().map(first_origin).collect();
    for node in &graph.nodes {
        let origin = origin_of(node, &graph.values, &origins);
        for &id in node.outputs.iter().flatten() {
            if let (Some(known), Some(value)) = (origins.get_mut(id), graph.values.get(id)) {
                *known = if value.is_float() { origin } else { first_origin(value) };
            }
        }
    }
    let mut exact = vec![false; graph.values.len()];
    let mut kept = vec![false; graph.nodes.len()];
    for (node, kept) in graph.nodes.iter().zip(&mut kept).rev() {
        let outputs = node.outputs.iter().flatten();
        let is_direct =
            outputs.clone().all(|&id| origins.get(id).is_some_and(|origin| *origin <= Origin::Input));
        let is_used = outputs.clone().any(|&id| exact.get(id).is_some_and(|exact| *exact));
        *kept = is_direct && is_used;
        let is_index = matches!(node.kind, NodeKind::Cast { to: ElementType::Integer, .. });
        let all = *kept || is_index || node.operator.needs_exact_inputs;
        for (index, &id) in node.inputs.iter().enumerate() {
            let is_exact = all || index >= node.operator.first_full_input;
            if let Some(exact) = id.filter(|_| is_exact).and_then(|id| exact.get_mut(id)) {
                *exact = true;
            }
        }
    }
    kept
}

fn first_origin(value: &Value<'_>) -> Origin {
    match (value.role, value.element) {
        (Role::Initializer, ElementType::Float) => Origin::Constant,
        (_, ElementType::Integer) => Origin::Integer,
        (Role::Input, _) => Origin::Input,
        _ => Origin::Computed,
    }
}

/// The origin of a node's fp32 results.
fn origin_of(node: &Node<'_>, values: &[Value<'_>], origins: &[Origin]) -> Origin {
    if matches!(node.kind, NodeKind::Constant | NodeKind::ConstantOfShape) {
        return Origin::Constant;
    }
    let is_cast = matches!(node.kind, NodeKind::Cast { .. });
    let operands = node.inputs.iter().flatten().filter_map(|&id| {
        let (value, origin) = (values.get(id)?, *origins.get(id)?);
        (is_cast || matches!(value.element, ElementType::Float | ElementType::Unknown)).then_some(origin)
    });
    let origin = operands.max().unwrap_or(Origin::Computed);
    if node.operator.is_product && origin == Origin::Input { Origin::Computed } else { origin }
}

/// Keeps normalizations that are written as single operators in fp32: the squares of values above 255 exceed fp16. ONNX
/// Runtime fuses them as well in this form.
///
/// ```text
/// x ─▶ ReduceMean ─▶ Sub ─▶ Pow ─▶ ReduceMean ─▶ Add ─▶ Sqrt ─▶ Div
/// ```
fn keep_variances(graph: &Graph<'_>, kept: &mut [bool]) {
    let links = Links::of(graph);
    let mut keep = |node: usize| {
        if let Some(kept) = kept.get_mut(node) {
            *kept = true;
        }
    };
    for (number, node) in graph.nodes.iter().enumerate() {
        let Some(square) = links.producer(graph, node, 0).filter(|_| node.name == b"ReduceMean") else {
            continue;
        };
        let Some(squaring) = graph.nodes.get(square).filter(|node| is_square(node)) else { continue };
        keep(square);
        keep(number);
        if let Some(difference) = links.producer(graph, squaring, 0)
            && let Some(subtraction) = graph.nodes.get(difference).filter(|node| node.name == b"Sub")
        {
            keep(difference);
            for operand in [0, 1] {
                let mean = links.producer(graph, subtraction, operand);
                let is_mean =
                    |node: &usize| graph.nodes.get(*node).is_some_and(|node| node.name == b"ReduceMean");
                mean.filter(is_mean).into_iter().for_each(&mut keep);
            }
        }
        // The sum with epsilon, the root, and the division by it.
        let mut next = vec![number];
        for operators in [&[b"Add".as_slice()][..], &[b"Sqrt"], &[b"Div", b"Reciprocal"]] {
            let users = next.iter().flat_map(|&node| links.users(graph, node));
            next = users
                .filter(|&user| graph.nodes.get(user).is_some_and(|node| operators.contains(&node.name)))
                .collect();
            next.iter().copied().for_each(&mut keep);
        }
    }
}

/// Whether a node computes the square of a value, or another power.
fn is_square(node: &Node<'_>) -> bool {
    node.name == b"Pow" || (node.name == b"Mul" && node.inputs.first() == node.inputs.get(1))
}

/// Which node makes a value, and which ones use it.
struct Links {
    producers: Vec<Option<usize>>,
    /// Pairs of value and node, sorted.
    uses: Vec<(usize, usize)>,
}

impl Links {
    fn of(graph: &Graph<'_>) -> Self {
        let mut producers = vec![None; graph.values.len()];
        let mut uses = Vec::new();
        for (number, node) in graph.nodes.iter().enumerate() {
            for &id in node.outputs.iter().flatten() {
                if let Some(producer) = producers.get_mut(id) {
                    *producer = Some(number);
                }
            }
            uses.extend(node.inputs.iter().flatten().map(|&id| (id, number)));
        }
        uses.sort_unstable();
        uses.dedup();
        Self { producers, uses }
    }

    /// The node that makes an input of a node.
    fn producer(&self, graph: &Graph<'_>, node: &Node<'_>, input: usize) -> Option<usize> {
        let id = node.inputs.get(input).copied().flatten()?;
        graph.values.get(id).filter(|value| value.is_float())?;
        self.producers.get(id).copied().flatten()
    }

    /// The nodes that use the first output of a node. A value that many use is not part of a normalization.
    fn users<'links>(
        &'links self,
        graph: &Graph<'_>,
        node: usize,
    ) -> impl Iterator<Item = usize> + use<'links> {
        const MAX_USERS: usize = 8;
        let id = graph.nodes.get(node).and_then(|node| node.outputs.first().copied().flatten());
        let first = id.map_or(self.uses.len(), |id| self.uses.partition_point(|(other, _)| *other < id));
        let uses = self.uses.part(first..);
        uses.iter().take_while(move |(other, _)| Some(*other) == id).take(MAX_USERS).map(|(_, user)| *user)
    }
}

fn choose_forms(graph: &mut Graph<'_>, kept: &[bool]) {
    let Graph { nodes, values, .. } = graph;
    for (node, kept) in nodes.iter_mut().zip(kept) {
        let inputs = node.inputs.iter().enumerate();
        let operands = inputs.filter(|(index, _)| *index < node.operator.first_full_input);
        let operands = operands.filter_map(|(_, id)| values.get((*id)?));
        let has_unknown = operands.clone().any(|value| value.element == ElementType::Unknown);
        node.form = match (node.kind, node.operator.compute) {
            (NodeKind::Cast { from: ElementType::Half, to: ElementType::Float }, _) => Form::Half,
            (NodeKind::Cast { from: ElementType::Float, .. }, _) => follow(operands, *kept),
            (NodeKind::Constant | NodeKind::ConstantOfShape | NodeKind::Cast { .. }, _) => Form::Either,
            (NodeKind::Operator, Compute::Half) if !has_unknown && !kept => Form::Half,
            (NodeKind::Operator, Compute::Follow) if !has_unknown => follow(operands, *kept),
            (NodeKind::Operator, _) => Form::Full,
        };
        for (index, &id) in node.outputs.iter().enumerate() {
            let always_full =
                node.kind == NodeKind::Operator && node.operator.result(index) == ResultType::Float;
            if let Some(value) = id.and_then(|id| values.get_mut(id)) {
                value.form = if always_full { Form::Full } else { node.form };
            }
        }
        if let NodeKind::Cast { from: ElementType::Half, to: ElementType::Float } = node.kind
            && let (Some(&source), Some(&Some(id))) = (node.inputs.first(), node.outputs.first())
            && let Some(value) = values.get_mut(id)
        {
            value.half_source = source;
        }
    }
}

/// The form of a node that computes as its operands do.
fn follow<'a>(operands: impl Iterator<Item = &'a Value<'a>>, kept: bool) -> Form {
    let mut form = Form::Either;
    for operand in operands.filter(|operand| operand.is_float() && !kept) {
        form = match (form, operand.form) {
            (Form::Half, _) | (_, Form::Half) => Form::Half,
            (Form::Full, _) | (_, Form::Full) => Form::Full,
            (Form::Either, Form::Either) => Form::Either,
        };
    }
    if kept { Form::Full } else { form }
}

/// Passes on what is wanted, from the last node to the first, and settles what is either.
fn spread_demands(graph: &mut Graph<'_>) {
    let Graph { nodes, values, .. } = graph;
    for node in nodes.iter_mut().rev() {
        if node.form == Form::Either {
            let wanted = |wants: fn(&Value<'_>) -> bool| {
                node.outputs
                    .iter()
                    .flatten()
                    .any(|&id| values.get(id).is_some_and(|value| value.is_float() && wants(value)))
            };
            // A constant may exist in both; a `Cast` to fp32 is more exact than one to fp16.
            let is_source = node.kind != NodeKind::Operator;
            let full = wanted(|value| value.full_wanted);
            let half = wanted(|value| value.half_wanted);
            node.form = if half && !(full && is_source) { Form::Half } else { Form::Full };
            for &id in node.outputs.iter().flatten() {
                if let Some(value) = values.get_mut(id).filter(|value| value.form == Form::Either) {
                    value.form = node.form;
                }
            }
        }
        for (index, &id) in node.inputs.iter().enumerate() {
            if let Some(value) = id.and_then(|id| values.get_mut(id)).filter(|value| value.is_float()) {
                let half = node.form == Form::Half && index < node.operator.first_full_input;
                value.half_wanted |= half;
                value.full_wanted |= !half;
            }
        }
        for &id in &node.captured {
            if let Some(value) = values.get_mut(id) {
                value.full_wanted = true;
            }
        }
    }
    for value in values.iter_mut().filter(|value| value.form == Form::Either) {
        value.form = if value.half_wanted && !value.full_wanted { Form::Half } else { Form::Full };
    }
}
