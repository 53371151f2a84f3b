//! The graph of a model as nodes and values, with the types of the values.

use std::collections::{HashMap, HashSet};

use cudock_base::protobuf::{FieldValue, Fields, WireValue};

use super::operators::{Operator, ResultType};
use crate::onnx::MAX_DEPTH;

/// The ONNX numbers of fp32 and fp16.
pub(super) const FLOAT: u64 = 1;
pub(super) const FLOAT16: u64 = 10;

/// A graph with more nodes or values is rejected.
const MAX_ITEMS: usize = 5_000_000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ElementType {
    /// Not a tensor, or not known.
    #[default]
    Unknown,
    Float,
    Half,
    /// Any integer type, or Boolean.
    Integer,
    Other,
}

impl ElementType {
    fn from_onnx(number: u64) -> Self {
        match number {
            0 => Self::Unknown,
            FLOAT => Self::Float,
            FLOAT16 => Self::Half,
            2..=7 | 9 | 12 | 13 | 21 | 22 | 25 | 26 => Self::Integer,
            _ => Self::Other,
        }
    }
}

/// The precision in which a value exists first, or a node computes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Form {
    Half,
    #[default]
    Full,
    /// Either precision, as its consumers require: a constant, or computed from constants and integers.
    Either,
}

#[derive(Debug, Default)]
pub(super) struct Value<'a> {
    pub(super) name: &'a [u8],
    pub(super) element: ElementType,
    pub(super) role: Role,
    pub(super) form: Form,
    pub(super) half_wanted: bool,
    pub(super) full_wanted: bool,
    /// A value of the model that is the same in fp16.
    pub(super) half_source: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Role {
    #[default]
    Computed,
    Input,
    Initializer,
}

impl Value<'_> {
    pub(super) fn is_float(&self) -> bool {
        self.element == ElementType::Float
    }

    /// Whether the converted model has it in fp32, under its own name.
    pub(super) fn exists_full(&self) -> bool {
        !self.is_float() || self.form == Form::Full || self.full_wanted
    }

    pub(super) fn exists_half(&self) -> bool {
        self.is_float() && (self.form == Form::Half || self.half_wanted)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeKind {
    Operator,
    Constant,
    ConstantOfShape,
    Cast { from: ElementType, to: ElementType },
}

#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) name: &'a [u8],
    pub(super) kind: NodeKind,
    pub(super) operator: Operator,
    /// `None` for an input or output that is omitted.
    pub(super) inputs: Vec<Option<usize>>,
    pub(super) outputs: Vec<Option<usize>>,
    /// Values that its subgraphs use.
    pub(super) captured: Vec<usize>,
    pub(super) form: Form,
}

/// Properties of a model besides its graph.
#[derive(Default)]
pub(super) struct ModelContext<'a> {
    /// The version of the ONNX operator set.
    pub(super) version: u64,
    /// Domain and name of the functions that the model defines.
    pub(super) functions: HashSet<(&'a [u8], &'a [u8])>,
}

impl<'a> ModelContext<'a> {
    pub(super) fn add_operator_set(&mut self, message: &'a [u8]) -> Result<(), String> {
        let (mut domain, mut version): (&[u8], _) = (&[], 0);
        for field in Fields::new(message) {
            match field? {
                (1, value) => domain = value.bytes()?,
                (2, value) => version = value.number()?,
                _ => {}
            }
        }
        if matches!(domain, b"" | b"ai.onnx") {
            self.version = version;
        }
        Ok(())
    }

    pub(super) fn add_function(&mut self, message: &'a [u8]) -> Result<(), String> {
        let (mut domain, mut name): (&[u8], &[u8]) = (&[], &[]);
        for field in Fields::new(message) {
            match field? {
                (1, value) => name = value.bytes()?,
                (10, value) => domain = value.bytes()?,
                _ => {}
            }
        }
        self.functions.insert((domain, name));
        Ok(())
    }
}

#[derive(Default)]
pub(super) struct Graph<'a> {
    pub(super) values: Vec<Value<'a>>,
    pub(super) nodes: Vec<Node<'a>>,
    ids: HashMap<&'a [u8], usize>,
    /// The types in `value_info` and of the outputs.
    declared: HashMap<&'a [u8], ElementType>,
    /// Underscores at the end of the longest name that ends as those of fp16 values do.
    taken_suffix: usize,
}

impl<'a> Graph<'a> {
    pub(super) fn read(message: &'a [u8], context: &ModelContext<'a>) -> Result<Self, String> {
        let mut graph = Self::default();
        let mut outputs = Vec::new();
        for field in Fields::new(message) {
            let (number, field) = field?;
            match number {
                5 => {
                    let (name, element) = initializer(field.bytes()?)?;
                    graph.define(name, element, Role::Initializer)?;
                }
                15 => {
                    // Only its name is needed, which is that of its values.
                    for field in Fields::new(field.bytes()?) {
                        if let (1, values) = field? {
                            let (name, _) = initializer(values.bytes()?)?;
                            graph.define(name, ElementType::Unknown, Role::Initializer)?;
                        }
                    }
                }
                11 => {
                    let (name, element) = value_info(field.bytes()?)?;
                    // An input with the name of an initializer only declares it.
                    if !graph.ids.contains_key(name) {
                        graph.define(name, element, Role::Input)?;
                    }
                }
                12 | 13 => {
                    let (name, element) = value_info(field.bytes()?)?;
                    graph.declared.insert(name, element);
                    if number == 12 {
                        outputs.push(name);
                    }
                }
                _ => {}
            }
        }
        for field in Fields::new(message) {
            if let (1, node) = field? {
                graph.add_node(node.bytes()?, context)?;
            }
        }
        for name in outputs {
            if let Some(&id) = graph.ids.get(name)
                && let Some(value) = graph.values.get_mut(id)
            {
                value.full_wanted = true;
            }
        }
        Ok(graph)
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<&Value<'a>> {
        self.values.get(*self.ids.get(name)?)
    }

    /// The end of the names of fp16 values, which no name of the model has.
    pub(super) fn suffix(&self) -> Result<String, String> {
        // A longer one would make the model grow with the square of its size.
        if self.taken_suffix > 16 {
            return Err("a name in the model ends with too many underscores".to_owned());
        }
        Ok(format!("{SUFFIX}{}", "_".repeat(self.taken_suffix)))
    }

    fn define(&mut self, name: &'a [u8], element: ElementType, role: Role) -> Result<usize, String> {
        let id = self.id(name)?;
        if let Some(value) = self.values.get_mut(id) {
            value.element = element;
            value.role = role;
            if role == Role::Initializer {
                value.form = Form::Either;
            }
        }
        Ok(id)
    }

    fn id(&mut self, name: &'a [u8]) -> Result<usize, String> {
        if let Some(&id) = self.ids.get(name) {
            return Ok(id);
        }
        let id = self.values.len();
        if id >= MAX_ITEMS {
            return Err("too many values".to_owned());
        }
        self.note_name(name);
        self.ids.insert(name, id);
        self.values.push(Value { name, ..Value::default() });
        Ok(id)
    }

    fn note_name(&mut self, name: &[u8]) {
        let end = name.iter().rposition(|byte| *byte != b'_').map_or(0, |last| last + 1);
        if name.get(..end).is_some_and(|stem| stem.ends_with(SUFFIX.as_bytes())) {
            self.taken_suffix = self.taken_suffix.max(name.len() - end + 1);
        }
    }

    fn add_node(&mut self, message: &'a [u8], context: &ModelContext<'a>) -> Result<(), String> {
        if self.nodes.len() >= MAX_ITEMS {
            return Err("too many nodes".to_owned());
        }
        let (mut name, mut domain): (&[u8], &[u8]) = (&[], &[]);
        let (mut inputs, mut output_names) = (Vec::new(), Vec::new());
        let mut attributes = NodeAttributes::default();
        for field in Fields::new(message) {
            match field? {
                (1, input) => inputs.push(self.optional_id(input.bytes()?)?),
                (2, output) => output_names.push(output.bytes()?),
                (4, operator) => name = operator.bytes()?,
                (5, attribute) => self.read_attribute(attribute.bytes()?, &mut attributes)?,
                (7, value) => domain = value.bytes()?,
                _ => {}
            }
        }
        let is_function = context.functions.contains(&(domain, name));
        let operator =
            if is_function { Operator::UNLISTED } else { Operator::find(domain, name, context.version) };
        let is_onnx = !is_function && matches!(domain, b"" | b"ai.onnx");
        let input_type = |index: usize| self.element_of(inputs.get(index).copied().flatten());
        let kind = match name {
            b"Constant" if is_onnx => NodeKind::Constant,
            b"ConstantOfShape" if is_onnx => NodeKind::ConstantOfShape,
            b"Cast" if is_onnx => NodeKind::Cast { from: input_type(0), to: attributes.to },
            _ => NodeKind::Operator,
        };
        let named = attributes.dtype;
        let types: Vec<ElementType> = (0..output_names.len())
            .map(|index| match kind {
                // Without a value it is zero in fp32.
                NodeKind::ConstantOfShape if attributes.constant == ElementType::Unknown => {
                    ElementType::Float
                }
                NodeKind::Constant | NodeKind::ConstantOfShape => attributes.constant,
                NodeKind::Cast { to, .. } => to,
                NodeKind::Operator => match operator.result(index) {
                    ResultType::OfInput(input) => input_type(input),
                    ResultType::Integer => ElementType::Integer,
                    ResultType::Float => ElementType::Float,
                    ResultType::Named if named != ElementType::Unknown => named,
                    ResultType::Named if inputs.is_empty() => ElementType::Float,
                    ResultType::Named => input_type(0),
                    ResultType::Unknown => attributes.body_output(index, name),
                },
            })
            .collect();
        let mut outputs = Vec::new();
        for (name, element) in output_names.into_iter().zip(types) {
            let id = self.optional_id(name)?;
            let declared = self.declared.get(name).copied().unwrap_or_default();
            if let Some(value) = id.and_then(|id| self.values.get_mut(id)) {
                value.element = if element == ElementType::Unknown { declared } else { element };
            }
            outputs.push(id);
        }
        let captured = attributes.names.into_iter().filter_map(|name| self.ids.get(name).copied()).collect();
        self.nodes.push(Node { name, kind, operator, inputs, outputs, captured, form: Form::Full });
        Ok(())
    }

    fn optional_id(&mut self, name: &'a [u8]) -> Result<Option<usize>, String> {
        if name.is_empty() { Ok(None) } else { self.id(name).map(Some) }
    }

    pub(super) fn element_of(&self, id: Option<usize>) -> ElementType {
        id.and_then(|id| self.values.get(id)).map_or(ElementType::Unknown, |value| value.element)
    }

    fn read_attribute(
        &mut self,
        message: &'a [u8],
        attributes: &mut NodeAttributes<'a>,
    ) -> Result<(), String> {
        let (mut name, mut number): (&[u8], _) = (&[], None);
        let mut graphs = Vec::new();
        for field in Fields::new(message) {
            match field? {
                (1, value) => name = value.bytes()?,
                (3, FieldValue { wire: WireValue::Varint(value), .. }) => number = Some(value),
                (5, tensor) => attributes.constant = initializer(tensor.bytes()?)?.1,
                // `value_float`, `value_floats` and `value_ints` of a constant.
                (2 | 7, _) => attributes.constant = ElementType::Float,
                (8, _) => attributes.constant = ElementType::Integer,
                (6 | 11, graph) => graphs.push(graph.bytes()?),
                _ => {}
            }
        }
        match (name, number) {
            (b"to", Some(number)) => attributes.to = ElementType::from_onnx(number),
            (b"dtype", Some(number)) => attributes.dtype = ElementType::from_onnx(number),
            (b"value_int", Some(_)) => attributes.constant = ElementType::Integer,
            _ => {}
        }
        let known = attributes.names.len();
        for graph in graphs {
            attributes.bodies = read_body(graph, &mut attributes.names, 1)?;
        }
        for name in attributes.names.iter().skip(known) {
            self.note_name(name);
        }
        Ok(())
    }
}

/// The end of the name of a value in fp16.
const SUFFIX: &str = "_fp16";

/// The attributes of a node that matter here.
#[derive(Default)]
struct NodeAttributes<'a> {
    to: ElementType,
    dtype: ElementType,
    constant: ElementType,
    /// All names in its subgraphs.
    names: Vec<&'a [u8]>,
    /// The types of the outputs of its subgraph.
    bodies: Vec<ElementType>,
}

impl NodeAttributes<'_> {
    /// The type of an output of `If`, `Loop` or `Scan`. The first output of a loop's body is its condition.
    fn body_output(&self, index: usize, operator: &[u8]) -> ElementType {
        self.bodies.get(index + usize::from(operator == b"Loop")).copied().unwrap_or_default()
    }
}

/// Collects all names in a subgraph; returns the types of its outputs.
fn read_body<'a>(
    message: &'a [u8],
    names: &mut Vec<&'a [u8]>,
    depth: u32,
) -> Result<Vec<ElementType>, String> {
    if depth > MAX_DEPTH {
        return Err(format!("graphs are nested more than {MAX_DEPTH} levels deep"));
    }
    let mut outputs = Vec::new();
    for field in Fields::new(message) {
        match field? {
            (1, node) => {
                for field in Fields::new(node.bytes()?) {
                    match field? {
                        (1 | 2, name) => names.push(name.bytes()?),
                        (5, attribute) => {
                            for field in Fields::new(attribute.bytes()?) {
                                if let (6 | 11, graph) = field? {
                                    read_body(graph.bytes()?, names, depth + 1)?;
                                }
                            }
                        }
                        _ => {}
                    }
                }
            }
            (5, tensor) => names.push(initializer(tensor.bytes()?)?.0),
            (12, output) => {
                let (name, element) = value_info(output.bytes()?)?;
                names.push(name);
                outputs.push(element);
            }
            _ => {}
        }
    }
    Ok(outputs)
}

/// Name and type of a tensor.
fn initializer(message: &[u8]) -> Result<(&[u8], ElementType), String> {
    let (mut name, mut element): (&[u8], _) = (&[], ElementType::Unknown);
    for field in Fields::new(message) {
        match field? {
            (2, number) => element = ElementType::from_onnx(number.number()?),
            (8, value) => name = value.bytes()?,
            _ => {}
        }
    }
    Ok((name, element))
}

/// Name and element type of a value; the type is unknown if it is not a tensor.
pub(super) fn value_info(message: &[u8]) -> Result<(&[u8], ElementType), String> {
    let (mut name, mut element): (&[u8], _) = (&[], ElementType::Unknown);
    for field in Fields::new(message) {
        match field? {
            (1, value) => name = value.bytes()?,
            (2, kind) => {
                for field in Fields::new(kind.bytes()?) {
                    let (1, tensor) = field? else { continue };
                    for field in Fields::new(tensor.bytes()?) {
                        if let (1, number) = field? {
                            element = ElementType::from_onnx(number.number()?);
                        }
                    }
                }
            }
            _ => {}
        }
    }
    Ok((name, element))
}
