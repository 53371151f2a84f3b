//! Estimates the memory of intermediate values while a graph runs.
//!
//! The nodes of an ONNX graph are topologically sorted. A value is live from the node that produces it to the last one that
//! consumes it; the maximum of live bytes is a lower bound of what a run needs besides the weights. Engines share and pad
//! buffers, so this is an estimate, and only possible if the file has the shapes of the values.

use std::collections::{HashMap, HashSet};

use cudock_base::protobuf::{Fields, WireError};

use super::tensor::format_from_onnx;

/// A graph with more nodes or values is rejected.
const MAX_ITEMS: usize = 5_000_000;

const MAX_PEAKS: usize = 64;

/// Bytes of values: a constant part, and a part for each row of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LiveBytes {
    fixed: u64,
    per_row: u64,
}

impl LiveBytes {
    const fn with_rows(self, rows: u32) -> u64 {
        self.fixed.saturating_add(self.per_row.saturating_mul(rows as u64))
    }

    fn plus(self, other: Self) -> Self {
        Self {
            fixed: self.fixed.saturating_add(other.fixed),
            per_row: self.per_row.saturating_add(other.per_row),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            fixed: self.fixed.saturating_sub(other.fixed),
            per_row: self.per_row.saturating_sub(other.per_row),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activations {
    /// Peaks of live bytes, each of which is the largest for some batch size.
    peaks: Vec<LiveBytes>,
    all: LiveBytes,
    /// The number of values with a known size.
    pub known: u64,
    pub values: u64,
}

impl Activations {
    /// Whether the sizes of all values are known.
    pub const fn is_complete(&self) -> bool {
        self.known == self.values && self.values > 0
    }

    /// The maximum of live bytes for a batch size.
    pub fn peak(&self, rows: u32) -> u64 {
        self.peaks.iter().map(|live| live.with_rows(rows)).max().unwrap_or(0)
    }

    /// All values for a batch size: training keeps them for the backward pass.
    pub const fn all(&self, rows: u32) -> u64 {
        self.all.with_rows(rows)
    }

    /// Combines two graphs that run one after another.
    pub(crate) fn followed_by(mut self, other: Self) -> Self {
        for live in other.peaks {
            peak(&mut self.peaks, live);
        }
        self.all = self.all.plus(other.all);
        self.known += other.known;
        self.values += other.values;
        self
    }
}

/// Adds a peak unless another one is larger in both parts.
fn peak(peaks: &mut Vec<LiveBytes>, live: LiveBytes) {
    let covers =
        |one: &LiveBytes, other: &LiveBytes| one.fixed >= other.fixed && one.per_row >= other.per_row;
    if peaks.iter().any(|known| covers(known, &live)) {
        return;
    }
    peaks.retain(|known| !covers(&live, known));
    peaks.push(live);
    // A hostile file could have many peaks; replace them by one that bounds all.
    if peaks.len() > MAX_PEAKS {
        let most = |part: fn(&LiveBytes) -> u64| peaks.iter().map(part).max().unwrap_or(0);
        let cover = LiveBytes { fixed: most(|live| live.fixed), per_row: most(|live| live.per_row) };
        *peaks = vec![cover];
    }
}

/// The parts of a graph that determine which values are live.
#[derive(Default)]
pub(super) struct GraphParts<'a> {
    pub(super) nodes: Vec<&'a [u8]>,
    pub(super) inputs: Vec<&'a [u8]>,
    pub(super) outputs: Vec<&'a [u8]>,
    pub(super) values: Vec<&'a [u8]>,
    pub(super) weights: HashSet<&'a [u8]>,
}

impl GraphParts<'_> {
    pub(super) fn is_too_large(&self) -> bool {
        let parts = [self.nodes.len(), self.inputs.len(), self.outputs.len(), self.values.len()];
        parts.into_iter().any(|count| count > MAX_ITEMS) || self.weights.len() > MAX_ITEMS
    }
}

struct ValueInfo<'a> {
    name: &'a [u8],
    /// The first dimension if it is dynamic: its name, or none if it has none.
    #[allow(clippy::option_option, reason = "static and dynamic without a name are different")]
    dynamic_first: Option<Option<&'a [u8]>>,
    /// The bytes of all other dimensions; none if one of them is dynamic, or the format is unknown.
    bytes: Option<u64>,
}

/// Simulates a run of the graph.
pub(super) fn activations(parts: &GraphParts<'_>) -> Result<Activations, String> {
    let mut sizes: HashMap<&[u8], Option<LiveBytes>> = HashMap::new();
    let mut batch_names: HashSet<Option<&[u8]>> = HashSet::new();
    let mut inputs = Vec::new();
    for message in &parts.inputs {
        let input = value_info(message)?;
        if !parts.weights.contains(input.name) {
            batch_names.extend(input.dynamic_first);
            inputs.push(input.name);
        }
    }
    for message in parts.inputs.iter().chain(&parts.outputs).chain(&parts.values) {
        let value = value_info(message)?;
        sizes.insert(value.name, size(&value, &batch_names));
    }
    let outputs: HashSet<&[u8]> = parts
        .outputs
        .iter()
        .map(|message| value_info(message).map(|value| value.name))
        .collect::<Result<_, _>>()?;
    let mut last_use: HashMap<&[u8], usize> = HashMap::new();
    for (number, node) in parts.nodes.iter().enumerate() {
        for name in names(node, 1) {
            last_use.insert(name?, number);
        }
    }
    let mut run = LivenessTracker {
        sizes,
        live: HashMap::new(),
        current: LiveBytes::default(),
        activations: Activations::default(),
    };
    for name in inputs {
        run.start(name);
    }
    for (number, node) in parts.nodes.iter().enumerate() {
        if is_constant(node)? {
            continue;
        }
        for name in names(node, 2) {
            run.start(name?);
        }
        for name in names(node, 1) {
            let name = name?;
            if last_use.get(name) == Some(&number) && !outputs.contains(name) {
                run.end(name);
            }
        }
    }
    Ok(run.activations)
}

struct LivenessTracker<'a> {
    sizes: HashMap<&'a [u8], Option<LiveBytes>>,
    live: HashMap<&'a [u8], LiveBytes>,
    current: LiveBytes,
    activations: Activations,
}

impl<'a> LivenessTracker<'a> {
    fn start(&mut self, name: &'a [u8]) {
        // An unused output has no name.
        if name.is_empty() || self.live.contains_key(name) {
            return;
        }
        self.activations.values += 1;
        let Some(live) = self.sizes.get(name).copied().flatten() else { return };
        self.activations.known += 1;
        self.live.insert(name, live);
        self.current = self.current.plus(live);
        self.activations.all = self.activations.all.plus(live);
        peak(&mut self.activations.peaks, self.current);
    }

    fn end(&mut self, name: &[u8]) {
        if let Some(live) = self.live.remove(name) {
            self.current = self.current.minus(live);
        }
    }
}

fn size(value: &ValueInfo<'_>, batch_names: &HashSet<Option<&[u8]>>) -> Option<LiveBytes> {
    let bytes = value.bytes?;
    match &value.dynamic_first {
        None => Some(LiveBytes { fixed: bytes, per_row: 0 }),
        Some(name) if batch_names.contains(name) => Some(LiveBytes { fixed: 0, per_row: bytes }),
        // Dynamic, but not the batch dimension.
        Some(_) => None,
    }
}

/// The strings of a node's field: 1 for inputs, 2 for outputs.
fn names(node: &[u8], field: u32) -> impl Iterator<Item = Result<&[u8], WireError>> {
    Fields::new(node).filter_map(move |read| match read {
        Ok((number, value)) => (number == field).then(|| value.bytes()),
        Err(error) => Some(Err(error)),
    })
}

fn is_constant(node: &[u8]) -> Result<bool, String> {
    names(node, 4).next().map_or(Ok(false), |name| Ok(name? == b"Constant"))
}

fn value_info(message: &[u8]) -> Result<ValueInfo<'_>, String> {
    let mut value = ValueInfo { name: &[], dynamic_first: None, bytes: None };
    for field in Fields::new(message) {
        match field? {
            (1, name) => value.name = name.bytes()?,
            (2, kind) => {
                for field in Fields::new(kind.bytes()?) {
                    if let (1, tensor) = field? {
                        tensor_type(tensor.bytes()?, &mut value)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(value)
}

/// The name of a tensor value without a shape.
pub(super) fn unranked(message: &[u8]) -> Result<Option<&[u8]>, String> {
    let mut has_shape = true;
    for field in Fields::new(message) {
        let (2, kind) = field? else { continue };
        for field in Fields::new(kind.bytes()?) {
            let (1, tensor) = field? else { continue };
            has_shape = false;
            for field in Fields::new(tensor.bytes()?) {
                has_shape |= field?.0 == 2;
            }
        }
    }
    Ok(if has_shape { None } else { Some(value_info(message)?.name) })
}

fn tensor_type<'a>(message: &'a [u8], value: &mut ValueInfo<'a>) -> Result<(), String> {
    let (mut format, mut shape) = (None, None);
    for field in Fields::new(message) {
        match field? {
            (1, number) => format = Some(format_from_onnx(number.number()?)),
            (2, dimensions) => shape = Some(dimensions.bytes()?),
            _ => {}
        }
    }
    let (Some(format), Some(shape)) = (format, shape) else { return Ok(()) };
    let mut elements = Some(1_u64);
    let mut index = 0_usize;
    for field in Fields::new(shape) {
        let (1, dimension) = field? else { continue };
        match (one_dimension(dimension.bytes()?)?, index) {
            (Dimension::Fixed(size), _) => elements = elements.and_then(|product| product.checked_mul(size)),
            (Dimension::Dynamic(name), 0) => value.dynamic_first = Some(name),
            (Dimension::Dynamic(_), _) => elements = None,
        }
        index += 1;
    }
    value.bytes = elements.and_then(|elements| format.bytes(elements));
    Ok(())
}

enum Dimension<'a> {
    Fixed(u64),
    Dynamic(Option<&'a [u8]>),
}

fn one_dimension(message: &[u8]) -> Result<Dimension<'_>, String> {
    let mut dimension = Dimension::Dynamic(None);
    for field in Fields::new(message) {
        match field? {
            // Exporters write -1 or 0 for unknown sizes.
            (1, size) => match i64::try_from(size.number()?) {
                Ok(size @ 1..) => dimension = Dimension::Fixed(size.unsigned_abs()),
                _ => dimension = Dimension::Dynamic(None),
            },
            (2, name) => dimension = Dimension::Dynamic(Some(name.bytes()?)),
            _ => {}
        }
    }
    Ok(dimension)
}
