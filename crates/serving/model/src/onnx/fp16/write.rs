//! Writes the converted graph. What does not change is copied byte for byte.

use std::collections::BTreeMap;

use cudock_base::protobuf::{FieldValue, Fields, WireValue};

use super::graph::{ElementType, FLOAT, FLOAT16, Form, Graph, Node, NodeKind, Role, Value, value_info};
use super::operators::Compute;
use super::stats::Fp16Stats;
use super::weights::WeightStore;
use crate::onnx::wire::WriteFields;

/// `AttributeProto.INT` and `AttributeProto.TENSOR`.
const INT: u64 = 2;
const TENSOR: u64 = 4;

pub(super) struct GraphWriter<'graph, 'a, 'weights> {
    graph: &'graph Graph<'a>,
    suffix: String,
    weights: WeightStore<'weights>,
    pub(super) stats: Fp16Stats,
}

impl<'graph, 'a, 'weights> GraphWriter<'graph, 'a, 'weights> {
    pub(super) fn new(graph: &'graph Graph<'a>, weights: WeightStore<'weights>) -> Result<Self, String> {
        let mut stats = Fp16Stats::default();
        let mut kept = BTreeMap::<&[u8], usize>::new();
        for node in &graph.nodes {
            let ids = node.inputs.iter().chain(&node.outputs).flatten();
            let has_floats = ids.filter_map(|&id| graph.values.get(id)).any(Value::is_float);
            if node.kind != NodeKind::Operator || !has_floats || node.operator.compute == Compute::Follow {
                continue;
            }
            match node.form {
                Form::Half => stats.half_nodes += 1,
                Form::Full | Form::Either => *kept.entry(node.name).or_default() += 1,
            }
        }
        stats.full_nodes = kept
            .into_iter()
            .map(|(name, count)| (String::from_utf8_lossy(name).into_owned(), count))
            .collect();
        Ok(Self { graph, suffix: graph.suffix()?, weights, stats })
    }

    pub(super) fn write(&mut self, out: &mut Vec<u8>, message: &[u8]) -> Result<(), String> {
        let graph = self.graph;
        for value in &graph.values {
            if value.role == Role::Input && value.is_float() && value.half_wanted {
                self.put_cast(out, value.name, &self.half_name(value), FLOAT16);
            }
        }
        let mut nodes = graph.nodes.iter();
        for field in Fields::new(message).with_encoding() {
            let field = field?;
            match field.number {
                1 => match nodes.next() {
                    Some(node) => self.node(out, node, field.value.bytes()?, field.encoded)?,
                    None => out.extend_from_slice(field.encoded),
                },
                5 => self.initializer(out, field.value.bytes()?)?,
                11 if self.is_converted_initializer(field.value.bytes()?)? => {}
                13 => self.value_info(out, field.value.bytes()?, field.encoded)?,
                _ => out.extend_from_slice(field.encoded),
            }
        }
        Ok(())
    }

    /// The name of a value in fp16.
    fn half_name(&self, value: &Value<'a>) -> Vec<u8> {
        match value.half_source.and_then(|id| self.graph.values.get(id)) {
            Some(source) => source.name.to_vec(),
            None => [value.name, self.suffix.as_bytes()].concat(),
        }
    }

    fn value(&self, id: Option<usize>) -> Option<&'graph Value<'a>> {
        id.and_then(|id| self.graph.values.get(id))
    }

    fn put_cast(&mut self, out: &mut Vec<u8>, from: &[u8], to: &[u8], element: u64) {
        let mut attribute = Vec::new();
        attribute.put_bytes(1, b"to");
        attribute.put_number(3, element);
        attribute.put_number(20, INT);
        let mut node = Vec::new();
        node.put_bytes(1, from);
        node.put_bytes(2, to);
        node.put_bytes(4, b"Cast");
        node.put_bytes(5, &attribute);
        out.put_bytes(1, &node);
        self.stats.casts += 1;
    }

    fn node(
        &mut self,
        out: &mut Vec<u8>,
        node: &Node<'a>,
        message: &[u8],
        encoded: &[u8],
    ) -> Result<(), String> {
        match node.kind {
            NodeKind::Constant | NodeKind::ConstantOfShape => {
                let Some(value) = self.value(node.outputs.first().copied().flatten()) else {
                    out.extend_from_slice(encoded);
                    return Ok(());
                };
                if value.exists_half() {
                    let constant = self.half_constant(node, message, &self.half_name(value))?;
                    out.put_bytes(1, &constant);
                }
                if value.exists_full() {
                    out.extend_from_slice(encoded);
                }
                return Ok(());
            }
            NodeKind::Cast { from: ElementType::Half, to: ElementType::Float } => {
                if self.value(node.outputs.first().copied().flatten()).is_none_or(|value| value.full_wanted) {
                    out.extend_from_slice(encoded);
                }
                return Ok(());
            }
            NodeKind::Cast { .. } | NodeKind::Operator => {}
        }
        if node.form == Form::Half {
            let rewritten = self.half_node(node, message)?;
            out.put_bytes(1, &rewritten);
        } else {
            out.extend_from_slice(encoded);
        }
        let graph = self.graph;
        for value in node.outputs.iter().flatten().filter_map(|&id| graph.values.get(id)) {
            let half = self.half_name(value);
            match value.form {
                _ if !value.is_float() => {}
                Form::Half if value.full_wanted => self.put_cast(out, &half, value.name, FLOAT),
                Form::Full if value.half_wanted => self.put_cast(out, value.name, &half, FLOAT16),
                _ => {}
            }
        }
        Ok(())
    }

    /// A node with the fp16 names of its values.
    fn half_node(&self, node: &Node<'a>, message: &[u8]) -> Result<Vec<u8>, String> {
        let is_cast_to_float = matches!(node.kind, NodeKind::Cast { to: ElementType::Float, .. });
        let mut out = Vec::with_capacity(message.len() + 32);
        let mut inputs = node.inputs.iter().enumerate();
        let mut outputs = node.outputs.iter();
        for field in Fields::new(message).with_encoding() {
            let field = field?;
            let value = match field.number {
                1 => inputs
                    .next()
                    .filter(|(index, _)| *index < node.operator.first_full_input)
                    .and_then(|(_, &id)| self.value(id))
                    .filter(|value| value.is_float()),
                2 => outputs
                    .next()
                    .and_then(|&id| self.value(id))
                    .filter(|value| value.is_float() && value.form == Form::Half),
                _ => None,
            };
            match value {
                Some(value) => out.put_bytes(field.number, &self.half_name(value)),
                None if field.number == 5 && is_cast_to_float => {
                    out.put_bytes(5, &cast_attribute(field.value.bytes()?)?);
                }
                None => out.extend_from_slice(field.encoded),
            }
        }
        Ok(out)
    }

    /// A `Constant` or `ConstantOfShape` node with its value in fp16.
    fn half_constant(&mut self, node: &Node<'a>, message: &[u8], name: &[u8]) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        let mut has_value = false;
        for field in Fields::new(message).with_encoding() {
            let field = field?;
            match field.number {
                2 => out.put_bytes(2, name),
                5 => {
                    has_value = true;
                    let attribute = self.half_attribute(field.value.bytes()?)?;
                    out.put_bytes(5, &attribute);
                }
                _ => out.extend_from_slice(field.encoded),
            }
        }
        if !has_value && node.kind == NodeKind::ConstantOfShape {
            let attribute = self.tensor_attribute(&float_tensor(Some(1), &[0; 4]))?;
            out.put_bytes(5, &attribute);
        }
        Ok(out)
    }

    /// The attribute `value` with the numbers of `value`, `value_float` or `value_floats`.
    fn half_attribute(&mut self, message: &[u8]) -> Result<Vec<u8>, String> {
        let mut list = None::<Vec<u8>>;
        for field in Fields::new(message) {
            match field? {
                (5, tensor) => return self.tensor_attribute(tensor.bytes()?),
                (2, FieldValue { wire: WireValue::Fixed32(number), .. }) => {
                    return self.tensor_attribute(&float_tensor(None, &number));
                }
                (7, FieldValue { wire: WireValue::Fixed32(number), .. }) => {
                    list.get_or_insert_default().extend(number);
                }
                (7, FieldValue { wire: WireValue::Bytes(packed), .. }) => {
                    list.get_or_insert_default().extend(packed);
                }
                _ => {}
            }
        }
        let list = list.unwrap_or_default();
        self.tensor_attribute(&float_tensor(Some(list.len() / 4), &list))
    }

    fn tensor_attribute(&mut self, tensor: &[u8]) -> Result<Vec<u8>, String> {
        let mut converted = Vec::new();
        self.weights.put_half(&mut converted, tensor, b"", &mut self.stats)?;
        let mut attribute = Vec::new();
        attribute.put_bytes(1, b"value");
        attribute.put_bytes(5, &converted);
        attribute.put_number(20, TENSOR);
        Ok(attribute)
    }

    fn initializer(&mut self, out: &mut Vec<u8>, message: &[u8]) -> Result<(), String> {
        let name = crate::onnx::tensor::read(message)?.name;
        let value = self.graph.find(name);
        if let Some(value) = value.filter(|value| value.exists_half()) {
            let name = self.half_name(value);
            let mut tensor = Vec::new();
            self.weights.put_half(&mut tensor, message, &name, &mut self.stats)?;
            out.put_bytes(5, &tensor);
        }
        if value.is_none_or(Value::exists_full) {
            let mut tensor = Vec::new();
            self.weights.copy(&mut tensor, message)?;
            out.put_bytes(5, &tensor);
        }
        Ok(())
    }

    /// Whether an input declares an initializer that no longer exists.
    fn is_converted_initializer(&self, message: &[u8]) -> Result<bool, String> {
        let value = self.graph.find(value_info(message)?.0);
        Ok(value.is_some_and(|value| value.role == Role::Initializer && !value.exists_full()))
    }

    fn value_info(&self, out: &mut Vec<u8>, message: &[u8], encoded: &[u8]) -> Result<(), String> {
        let value = self.graph.find(value_info(message)?.0);
        if value.is_none_or(Value::exists_full) {
            out.extend_from_slice(encoded);
        }
        if let Some(value) = value.filter(|value| value.exists_half() && value.half_source.is_none()) {
            out.put_bytes(13, &half_value_info(message, &self.half_name(value))?);
        }
        Ok(())
    }
}

/// An fp32 tensor; a scalar if there is no size.
fn float_tensor(size: Option<usize>, numbers: &[u8]) -> Vec<u8> {
    let mut tensor = Vec::new();
    if let Some(size) = size {
        tensor.put_number(1, size as u64);
    }
    tensor.put_number(2, FLOAT);
    tensor.put_bytes(9, numbers);
    tensor
}

/// The attributes of a `Cast`, to fp16.
fn cast_attribute(message: &[u8]) -> Result<Vec<u8>, String> {
    rewrite(message, |number, value| match (number, value) {
        (3, FieldValue { wire: WireValue::Varint(FLOAT), .. }) => Ok(Some(Replacement::Number(FLOAT16))),
        _ => Ok(None),
    })
}

/// The description of a value with another name and fp16 elements.
fn half_value_info(message: &[u8], name: &[u8]) -> Result<Vec<u8>, String> {
    let tensor = |message: &[u8]| {
        rewrite(message, |number, _| Ok((number == 1).then_some(Replacement::Number(FLOAT16))))
    };
    let kind = |message: &[u8]| {
        rewrite(message, |number, value| match number {
            1 => Ok(Some(Replacement::Bytes(tensor(value.bytes()?)?))),
            _ => Ok(None),
        })
    };
    rewrite(message, |number, value| match number {
        1 => Ok(Some(Replacement::Bytes(name.to_vec()))),
        2 => Ok(Some(Replacement::Bytes(kind(value.bytes()?)?))),
        _ => Ok(None),
    })
}

enum Replacement {
    Number(u64),
    Bytes(Vec<u8>),
}

/// Copies a message, with some of its fields replaced.
fn rewrite(
    message: &[u8],
    replace: impl Fn(u32, FieldValue<'_>) -> Result<Option<Replacement>, String>,
) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(message.len() + 16);
    for field in Fields::new(message).with_encoding() {
        let field = field?;
        match replace(field.number, field.value)? {
            Some(Replacement::Number(number)) => out.put_number(field.number, number),
            Some(Replacement::Bytes(bytes)) => out.put_bytes(field.number, &bytes),
            None => out.extend_from_slice(field.encoded),
        }
    }
    Ok(out)
}
