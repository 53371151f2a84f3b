//! Estimates the GPU memory of a model.

use crate::Model;
use crate::figures::{Figure, INFERENCE_PERCENT, PROCESS, TRAINING_BYTES, TRAINING_PERCENT};
use crate::format::NumberFormat;

/// How the model is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EstimateOptions {
    /// The format of its floating point weights; by default as in the file.
    pub precision: Option<NumberFormat>,
    pub rows: u32,
    pub training: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    pub terms: Vec<EstimateTerm>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EstimateTerm {
    pub kind: TermKind,
    pub bytes: u64,
    /// The term as text: "102 MB of fp32 weights".
    pub text: String,
    /// The basis of the figure: the model file, a source, or an assumption.
    pub basis: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermKind {
    /// Weights; for training, also gradients and optimizer states.
    Weights,
    /// Values between input and output.
    Activations,
    /// The CUDA context and the framework.
    Process,
}

impl Estimate {
    pub fn total(&self) -> u64 {
        self.terms.iter().fold(0, |sum, term| sum.saturating_add(term.bytes))
    }

    /// All terms in one line.
    pub fn summary(&self) -> String {
        self.terms.iter().map(|term| term.text.as_str()).collect::<Vec<_>>().join(" + ")
    }
}

/// Estimates the memory of one GPU that holds the whole model. The KV cache of a language model for long contexts is not
/// included, because it depends on the requests.
pub fn estimate(model: &Model, options: EstimateOptions) -> Estimate {
    let weights = if options.training { training(model) } else { weights(model, options.precision) };
    let activations = activations(model, options, weights.bytes);
    let process = EstimateTerm {
        kind: TermKind::Process,
        bytes: PROCESS.value,
        text: format!("{} for the CUDA context and the framework", size(PROCESS.value)),
        basis: basis(&PROCESS),
    };
    Estimate { terms: vec![weights, activations, process] }
}

fn weights(model: &Model, precision: Option<NumberFormat>) -> EstimateTerm {
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
    EstimateTerm {
        kind: TermKind::Weights,
        bytes,
        text: format!("{} of {format}weights", size(bytes)),
        basis,
    }
}

fn training(model: &Model) -> EstimateTerm {
    let parameters = model.tensors.parameters();
    let bytes = parameters.saturating_mul(TRAINING_BYTES.value);
    let text = format!(
        "{} of weights, gradients and Adam's states ({} bytes for each of {parameters} parameters)",
        size(bytes),
        TRAINING_BYTES.value
    );
    EstimateTerm { kind: TermKind::Weights, bytes, text, basis: basis(&TRAINING_BYTES) }
}

fn activations(model: &Model, options: EstimateOptions, weights: u64) -> EstimateTerm {
    let rows = options.rows.max(1);
    let figure = if options.training { &TRAINING_PERCENT } else { &INFERENCE_PERCENT };
    let guess = percent(weights, figure.value);
    let term = |bytes, how: String, basis| EstimateTerm {
        kind: TermKind::Activations,
        bytes,
        text: format!("{} of activations ({how})", size(bytes)),
        basis,
    };
    let Some(known) = &model.activations else {
        return term(guess, format!("estimate: {} %", figure.value), basis(figure));
    };
    let given = if options.training { known.all(rows) } else { known.peak(rows) };
    let row = if rows == 1 { "row" } else { "rows" };
    if known.is_complete() {
        return term(given, format!("estimate at {rows} {row}"), "shapes in the model file".to_owned());
    }
    // The known sizes are a lower bound.
    let how = format!("estimate: {} %, because the file has no shapes for some values", figure.value);
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

/// Formats a size with three digits and a decimal unit.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in UNITS {
        // 999.95 would be formatted as 1000.0.
        if value < 999.95 {
            break;
        }
        value /= 1000.0;
        unit = larger;
    }
    if value < 99.95 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}
