//! From what a model file says to the GPU memory it takes.

use crate::Model;
use crate::figures::{Figure, INFERENCE_PERCENT, PROCESS, TRAINING_BYTES, TRAINING_PERCENT};
use crate::format::NumberFormat;

/// How the model is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// The format its floating point weights are kept in; as they are in the file if left out.
    pub precision: Option<NumberFormat>,
    /// Rows at a time.
    pub rows: u32,
    /// Whether it is trained.
    pub training: bool,
}

/// What it takes, term by term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// The terms.
    pub terms: Vec<Term>,
}

/// A part of the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// What for.
    pub kind: TermKind,
    /// How much.
    pub bytes: u64,
    /// In words: "102 MB of fp32 weights".
    pub words: String,
    /// What the figure rests on: the model file, a source, or nothing.
    pub basis: String,
}

/// What memory is taken by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermKind {
    /// Weights; while training, gradients and the optimizer's states too.
    Weights,
    /// What lies between input and output.
    Activations,
    /// The CUDA context and the framework.
    Process,
}

impl Estimate {
    /// The sum of the terms.
    pub fn total(&self) -> u64 {
        self.terms.iter().fold(0, |sum, term| sum.saturating_add(term.bytes))
    }

    /// All terms in one line.
    pub fn words(&self) -> String {
        self.terms.iter().map(|term| term.words.as_str()).collect::<Vec<_>>().join(" + ")
    }
}

/// Estimates the memory of one GPU that holds the whole model. The cache of a language model for long texts is not
/// counted: it depends on what is asked of it.
pub fn estimate(model: &Model, question: Question) -> Estimate {
    let weights = if question.training { trained(model) } else { weights(model, question.precision) };
    let activations = activations(model, question, weights.bytes);
    let process = Term {
        kind: TermKind::Process,
        bytes: PROCESS.value,
        words: format!("{} for the CUDA context and the framework", size(PROCESS.value)),
        basis: basis(&PROCESS),
    };
    Estimate { terms: vec![weights, activations, process] }
}

fn weights(model: &Model, precision: Option<NumberFormat>) -> Term {
    let mut bytes = 0_u64;
    for (format, share) in &model.tensors.by_format {
        let kept = precision.filter(|_| format.is_float()).and_then(|wanted| wanted.bytes(share.elements));
        bytes = bytes.saturating_add(kept.unwrap_or(share.bytes));
    }
    let main = model.tensors.main_format();
    let (format, basis) = match (precision, main) {
        (Some(wanted), Some(main)) if main.is_float() && main != wanted => {
            (Some(wanted), format!("{} parameters, kept as {main} in the file", model.tensors.parameters()))
        }
        _ => (main, format!("{} parameters in the file", model.tensors.parameters())),
    };
    let format = format.map_or_else(String::new, |format| format!("{format} "));
    Term { kind: TermKind::Weights, bytes, words: format!("{} of {format}weights", size(bytes)), basis }
}

fn trained(model: &Model) -> Term {
    let parameters = model.tensors.parameters();
    let bytes = parameters.saturating_mul(TRAINING_BYTES.value);
    let words = format!(
        "{} of weights, gradients and Adam's states ({} bytes for each of {parameters} parameters)",
        size(bytes),
        TRAINING_BYTES.value
    );
    Term { kind: TermKind::Weights, bytes, words, basis: basis(&TRAINING_BYTES) }
}

fn activations(model: &Model, question: Question, weights: u64) -> Term {
    let rows = question.rows.max(1);
    let figure = if question.training { &TRAINING_PERCENT } else { &INFERENCE_PERCENT };
    let guess = percent(weights, figure.value);
    let term = |bytes, how: String, basis| Term {
        kind: TermKind::Activations,
        bytes,
        words: format!("{} of activations ({how})", size(bytes)),
        basis,
    };
    let Some(known) = &model.activations else {
        return term(guess, format!("estimate: {} %", figure.value), basis(figure));
    };
    let given = if question.training { known.all(rows) } else { known.peak(rows) };
    let row = if rows == 1 { "row" } else { "rows" };
    if known.is_complete() {
        return term(given, format!("estimate at {rows} {row}"), "shapes in the model file".to_owned());
    }
    // What is known is there at least, whatever the guess.
    let how = format!("estimate: {} %, since the file has no shapes for some values", figure.value);
    term(guess.max(given), how, basis(figure))
}

fn percent(bytes: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

fn basis(figure: &Figure) -> String {
    match figure.source {
        Some(source) => format!("{} ({source}, {})", figure.meaning, figure.dated),
        None => format!("assumed: {}", figure.meaning),
    }
}

/// Three digits and a unit of thousands.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in UNITS {
        // 999.95 would be shown as 1000.0.
        if value < 999.95 {
            break;
        }
        value /= 1000.0;
        unit = larger;
    }
    if value < 99.95 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}
