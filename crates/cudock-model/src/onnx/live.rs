//! What lies between input and output while a graph runs.
//!
//! Nodes of an ONNX graph stand in the order they may run in. A value is there from the node that makes it until the
//! last that takes it; the most that is there at once is what a run needs at least beside the weights. Engines share and
//! pad buffers, so this is an estimate, and it is one only where the file gives the shapes of the values.

use std::collections::{HashMap, HashSet};

use super::tensor::format_numbered;
use super::wire::Fields;

/// More nodes or values than this are no model.
const MOST: usize = 5_000_000;

/// Moments that are told apart.
const MOST_PEAKS: usize = 64;

/// Bytes of values: some whatever the batch, some for each row of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Live {
    /// Whatever the batch.
    pub fixed: u64,
    /// For each row.
    pub per_row: u64,
}

impl Live {
    /// With so many rows.
    pub const fn with_rows(self, rows: u32) -> u64 {
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

/// What lies between input and output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activations {
    /// The moments with the most, none of which is less than another whatever the batch.
    peaks: Vec<Live>,
    /// All values together.
    all: Live,
    /// Values whose size the file gives.
    pub known: u64,
    /// Values there are.
    pub values: u64,
}

impl Activations {
    /// Whether the file gives the size of every value.
    pub const fn is_complete(&self) -> bool {
        self.known == self.values && self.values > 0
    }

    /// The most that is there at once, with so many rows.
    pub fn peak(&self, rows: u32) -> u64 {
        self.peaks.iter().map(|live| live.with_rows(rows)).max().unwrap_or(0)
    }

    /// All values, with so many rows: training keeps them until the way back.
    pub const fn all(&self, rows: u32) -> u64 {
        self.all.with_rows(rows)
    }

    /// Two graphs, of which one runs after the other.
    pub(crate) fn beside(mut self, other: Self) -> Self {
        for live in other.peaks {
            peak(&mut self.peaks, live);
        }
        self.all = self.all.plus(other.all);
        self.known += other.known;
        self.values += other.values;
        self
    }
}

/// Keeps a moment if no other has more of both.
fn peak(peaks: &mut Vec<Live>, live: Live) {
    let covers = |one: &Live, other: &Live| one.fixed >= other.fixed && one.per_row >= other.per_row;
    if peaks.iter().any(|known| covers(known, &live)) {
        return;
    }
    peaks.retain(|known| !covers(&live, known));
    peaks.push(live);
    // Files made to be slow have many such moments; one that covers them all stands for them.
    if peaks.len() > MOST_PEAKS {
        let most = |part: fn(&Live) -> u64| peaks.iter().map(part).max().unwrap_or(0);
        let cover = Live { fixed: most(|live| live.fixed), per_row: most(|live| live.per_row) };
        *peaks = vec![cover];
    }
}

/// The parts of a graph that say what is there when.
#[derive(Default)]
pub(super) struct Parts<'a> {
    pub(super) nodes: Vec<&'a [u8]>,
    pub(super) inputs: Vec<&'a [u8]>,
    pub(super) outputs: Vec<&'a [u8]>,
    pub(super) values: Vec<&'a [u8]>,
    pub(super) weights: HashSet<&'a [u8]>,
}

impl Parts<'_> {
    pub(super) fn is_too_large(&self) -> bool {
        let parts = [self.nodes.len(), self.inputs.len(), self.outputs.len(), self.values.len()];
        parts.into_iter().any(|count| count > MOST) || self.weights.len() > MOST
    }
}

/// A value as the file describes it.
struct Described<'a> {
    name: &'a [u8],
    /// The dimension that stands first, if it is open: its name, or none if it has none.
    #[allow(clippy::option_option, reason = "not open, and open without a name, are two things")]
    open_first: Option<Option<&'a [u8]>>,
    /// Bytes of all other dimensions; none if one of them is open, or the format is not known.
    bytes: Option<u64>,
}

/// What is there, node by node.
pub(super) fn activations(parts: &Parts<'_>) -> Result<Activations, String> {
    let mut sizes: HashMap<&[u8], Option<Live>> = HashMap::new();
    let mut batch_names: HashSet<Option<&[u8]>> = HashSet::new();
    let mut inputs = Vec::new();
    for message in &parts.inputs {
        let input = described(message)?;
        if !parts.weights.contains(input.name) {
            batch_names.extend(input.open_first);
            inputs.push(input.name);
        }
    }
    for message in parts.inputs.iter().chain(&parts.outputs).chain(&parts.values) {
        let value = described(message)?;
        sizes.insert(value.name, size(&value, &batch_names));
    }
    let outputs: HashSet<&[u8]> = parts
        .outputs
        .iter()
        .map(|message| described(message).map(|value| value.name))
        .collect::<Result<_, _>>()?;
    let mut last_use: HashMap<&[u8], usize> = HashMap::new();
    for (number, node) in parts.nodes.iter().enumerate() {
        for name in names(node, 1) {
            last_use.insert(name?, number);
        }
    }
    let mut run = Run { sizes, there: HashMap::new(), now: Live::default(), found: Activations::default() };
    for name in inputs {
        run.begins(name);
    }
    for (number, node) in parts.nodes.iter().enumerate() {
        if is_constant(node)? {
            continue;
        }
        for name in names(node, 2) {
            run.begins(name?);
        }
        for name in names(node, 1) {
            let name = name?;
            if last_use.get(name) == Some(&number) && !outputs.contains(name) {
                run.ends(name);
            }
        }
    }
    Ok(run.found)
}

struct Run<'a> {
    sizes: HashMap<&'a [u8], Option<Live>>,
    there: HashMap<&'a [u8], Live>,
    now: Live,
    found: Activations,
}

impl<'a> Run<'a> {
    fn begins(&mut self, name: &'a [u8]) {
        // An output that is not wanted has no name.
        if name.is_empty() || self.there.contains_key(name) {
            return;
        }
        self.found.values += 1;
        let Some(live) = self.sizes.get(name).copied().flatten() else { return };
        self.found.known += 1;
        self.there.insert(name, live);
        self.now = self.now.plus(live);
        self.found.all = self.found.all.plus(live);
        peak(&mut self.found.peaks, self.now);
    }

    fn ends(&mut self, name: &[u8]) {
        if let Some(live) = self.there.remove(name) {
            self.now = self.now.minus(live);
        }
    }
}

fn size(value: &Described<'_>, batch_names: &HashSet<Option<&[u8]>>) -> Option<Live> {
    let bytes = value.bytes?;
    match &value.open_first {
        None => Some(Live { fixed: bytes, per_row: 0 }),
        Some(name) if batch_names.contains(name) => Some(Live { fixed: 0, per_row: bytes }),
        // Another open size: not the batch's.
        Some(_) => None,
    }
}

/// The texts of a field of a node: 1 what it takes, 2 what it gives.
fn names(node: &[u8], field: u64) -> impl Iterator<Item = Result<&[u8], String>> {
    Fields::of(node).filter_map(move |read| match read {
        Ok((number, value)) => (number == field).then(|| value.bytes()),
        Err(error) => Some(Err(error)),
    })
}

fn is_constant(node: &[u8]) -> Result<bool, String> {
    names(node, 4).next().map_or(Ok(false), |name| Ok(name? == b"Constant"))
}

/// Name, element type and shape of a value.
fn described(message: &[u8]) -> Result<Described<'_>, String> {
    let mut value = Described { name: &[], open_first: None, bytes: None };
    for field in Fields::of(message) {
        match field? {
            (1, name) => value.name = name.bytes()?,
            (2, kind) => {
                for field in Fields::of(kind.bytes()?) {
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

/// The name of a value that is a tensor without a shape.
pub(super) fn unranked(message: &[u8]) -> Result<Option<&[u8]>, String> {
    let mut has_shape = true;
    for field in Fields::of(message) {
        let (2, kind) = field? else { continue };
        for field in Fields::of(kind.bytes()?) {
            let (1, tensor) = field? else { continue };
            has_shape = false;
            for field in Fields::of(tensor.bytes()?) {
                has_shape |= field?.0 == 2;
            }
        }
    }
    Ok(if has_shape { None } else { Some(described(message)?.name) })
}

fn tensor_type<'a>(message: &'a [u8], value: &mut Described<'a>) -> Result<(), String> {
    let (mut format, mut shape) = (None, None);
    for field in Fields::of(message) {
        match field? {
            (1, number) => format = Some(format_numbered(number.number()?)),
            (2, dimensions) => shape = Some(dimensions.bytes()?),
            _ => {}
        }
    }
    let (Some(format), Some(shape)) = (format, shape) else { return Ok(()) };
    let mut elements = Some(1_u64);
    let mut place = 0_usize;
    for field in Fields::of(shape) {
        let (1, dimension) = field? else { continue };
        match (one_dimension(dimension.bytes()?)?, place) {
            (Dimension::Fixed(size), _) => elements = elements.and_then(|product| product.checked_mul(size)),
            (Dimension::Open(name), 0) => value.open_first = Some(name),
            (Dimension::Open(_), _) => elements = None,
        }
        place += 1;
    }
    value.bytes = elements.and_then(|elements| format.bytes(elements));
    Ok(())
}

enum Dimension<'a> {
    Fixed(u64),
    Open(Option<&'a [u8]>),
}

fn one_dimension(message: &[u8]) -> Result<Dimension<'_>, String> {
    let mut found = Dimension::Open(None);
    for field in Fields::of(message) {
        match field? {
            // Exporters write -1 or 0 where they do not know.
            (1, size) => match i64::try_from(size.number()?) {
                Ok(size @ 1..) => found = Dimension::Fixed(size.unsigned_abs()),
                _ => found = Dimension::Open(None),
            },
            (2, name) => found = Dimension::Open(Some(name.bytes()?)),
            _ => {}
        }
    }
    Ok(found)
}
