//! Which operators compute in fp16, and the types of their results.
//!
//! An operator computes in fp16 if ONNX Runtime has a CUDA kernel for it and the result is sound: sums over many elements,
//! angles and quantization need more than the eleven bits of fp16, or exceed its range. An operator that is not listed
//! stays in fp32.

/// How an operator computes with floating-point numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compute {
    Half,
    /// The precision of its inputs: it moves or compares numbers.
    Follow,
    Full,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultType {
    OfInput(usize),
    /// An integer or Boolean type.
    Integer,
    /// Always fp32.
    Float,
    /// The type in the attribute `dtype`, else that of the first input, else fp32.
    Named,
    Unknown,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Operator {
    pub(super) compute: Compute,
    /// The first operator set of whose version there is an fp16 kernel.
    half_since: u64,
    /// The types of its results; the last one is that of all others.
    pub(super) results: &'static [ResultType],
    /// Inputs from this one on stay in fp32.
    pub(super) first_full_input: usize,
    /// Whether it multiplies with weights.
    pub(super) is_product: bool,
    /// Whether rounding its inputs to eleven bits changes the result beyond rounding: a size, an index, an angle.
    pub(super) needs_exact_inputs: bool,
}

const OF_FIRST: &[ResultType] = &[ResultType::OfInput(0)];
const OF_FIRST_AND_INTEGER: &[ResultType] = &[ResultType::OfInput(0), ResultType::Integer];
const INTEGER: &[ResultType] = &[ResultType::Integer];

const HALF: Operator = Operator::new(Compute::Half, OF_FIRST);
const FOLLOW: Operator = Operator::new(Compute::Follow, OF_FIRST);
const FULL: Operator = Operator::new(Compute::Full, OF_FIRST);

/// Operators of ONNX: their names, and what they have in common.
const ONNX: &[(&str, Operator)] = &[
    ("Conv ConvTranspose Einsum GRU Gemm LSTM MatMul RNN", Operator { is_product: true, ..HALF }),
    (
        "Abs Add AveragePool BatchNormalization Ceil Div Elu Erf Exp Floor Gelu GlobalAveragePool \
         GlobalMaxPool HardSigmoid HardSwish InstanceNormalization LRN LeakyRelu Log LogSoftmax Mish Mul Neg \
         PRelu Pow Reciprocal ReduceMax ReduceMean ReduceMin Relu Round Selu Sigmoid Softmax Softplus \
         Softsign Sqrt Sub Sum Tanh ThresholdedRelu",
        HALF,
    ),
    ("Clip Max Min", Operator { half_since: 12, ..HALF }),
    ("MaxPool", Operator { results: OF_FIRST_AND_INTEGER, ..HALF }),
    (
        "LayerNormalization SimplifiedLayerNormalization",
        Operator { results: &[ResultType::OfInput(0), ResultType::Float], ..HALF },
    ),
    // Scales and regions of interest.
    ("Resize Upsample", Operator { first_full_input: 1, ..HALF }),
    (
        "Compress Concat DepthToSpace Expand Flatten Gather GatherElements GatherND Identity Pad Reshape \
         ReverseSequence Scatter ScatterElements ScatterND Slice SpaceToDepth Split Squeeze Tile Transpose \
         Trilu Unsqueeze",
        FOLLOW,
    ),
    ("Dropout", Operator { first_full_input: 1, results: OF_FIRST_AND_INTEGER, ..FOLLOW }),
    ("Where", Operator { results: &[ResultType::OfInput(1)], ..FOLLOW }),
    (
        "And ArgMax ArgMin BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Equal Greater GreaterOrEqual IsNaN \
         Less LessOrEqual Not Or Shape Size Xor",
        Operator { results: INTEGER, ..FOLLOW },
    ),
    ("Cos CumSum Mod Range Sin Tan", Operator { needs_exact_inputs: true, ..FULL }),
    ("OneHot", Operator { needs_exact_inputs: true, results: &[ResultType::OfInput(2)], ..FULL }),
    (
        "Acos Acosh Asin Asinh Atan Atanh Celu Cosh DFT DeformConv GridSample GroupNormalization Hardmax LpNormalization \
         LpPool MaxRoiPool MaxUnpool Mean MeanVarianceNormalization RMSNormalization ReduceL1 ReduceL2 \
         ReduceLogSum ReduceLogSumExp ReduceProd ReduceSum ReduceSumSquare RoiAlign STFT Shrink Sign Sinh",
        FULL,
    ),
    ("TopK", Operator { results: OF_FIRST_AND_INTEGER, ..FULL }),
    (
        "ConvInteger IsInf MatMulInteger Multinomial NonMaxSuppression NonZero QLinearConv QLinearMatMul QuantizeLinear",
        Operator { results: INTEGER, ..FULL },
    ),
    ("CastLike DequantizeLinear", Operator { results: &[ResultType::OfInput(1)], ..FULL }),
    (
        "DynamicQuantizeLinear",
        Operator { results: &[ResultType::Integer, ResultType::Float, ResultType::Integer], ..FULL },
    ),
    (
        "EyeLike RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
        Operator { results: &[ResultType::Named], ..FULL },
    ),
];

/// Operators of ONNX Runtime.
const MICROSOFT: &[(&str, Operator)] = &[
    ("BiasGelu FastGelu Gelu QuickGelu", HALF),
    ("FusedMatMul", Operator { is_product: true, ..HALF }),
    (
        "SkipLayerNormalization",
        Operator {
            results: &[ResultType::OfInput(0), ResultType::Float, ResultType::Float, ResultType::OfInput(0)],
            ..HALF
        },
    ),
];

impl Operator {
    pub(super) const UNLISTED: Self = Self::new(Compute::Full, &[ResultType::Unknown]);

    const fn new(compute: Compute, results: &'static [ResultType]) -> Self {
        Self {
            compute,
            half_since: 0,
            results,
            first_full_input: usize::MAX,
            is_product: false,
            needs_exact_inputs: false,
        }
    }

    /// An operator of the ONNX operator set `version`, or one of ONNX Runtime's own.
    pub(super) fn find(domain: &[u8], name: &[u8], version: u64) -> Self {
        let table = match domain {
            b"" | b"ai.onnx" => ONNX,
            b"com.microsoft" => MICROSOFT,
            _ => &[],
        };
        let mut operators = table.iter();
        let listed = operators.find(|(names, _)| names.split(' ').any(|listed| listed.as_bytes() == name));
        let operator = listed.map_or(Self::UNLISTED, |(_, operator)| *operator);
        let compute = if version < operator.half_since { Compute::Full } else { operator.compute };
        Self { compute, ..operator }
    }

    pub(super) fn result(&self, index: usize) -> ResultType {
        self.results.get(index).or(self.results.last()).copied().unwrap_or(ResultType::Unknown)
    }
}
