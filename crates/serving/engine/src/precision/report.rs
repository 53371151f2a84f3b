//! What became of a requested precision.

/// The precision in which a model was requested and runs.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct PrecisionReport {
    /// "fp16".
    pub requested: String,
    /// "fp16", or "fp32" if the converted model cannot be used.
    pub used: String,
    /// Why another precision is used than requested, or why the results are not compared.
    pub reason: Option<String>,
    /// Operators that stay in fp32 with their number, such as "Loop 1".
    pub fp32_operators: Vec<String>,
    /// Weights beyond the range of fp16, which became its largest number.
    pub clamped_weights: u64,
    /// Weights too close to zero for fp16, which became its smallest number.
    pub raised_weights: u64,
    /// The difference from the model in fp32 on sample inputs.
    pub difference: Option<Difference>,
}

/// The largest difference of any output.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Difference {
    pub max_absolute: f64,
    /// As a share of the largest value of the output.
    pub max_relative: f64,
    /// Share of rows with the same largest score, for outputs of scores, or of equal elements, for integers.
    pub same_result: Option<f64>,
    /// The first output that has an infinity or NaN where the original has none.
    pub not_finite: Option<String>,
}
