//! Texts into tensors of token ids.

use cudock_base::text::suggest;
use cudock_project::TextOptions;
use cudock_tensor::{DType, RequestLimits, Signature, Tensor, TensorSpec};
use tokenizers::{Encoding, Tokenizer, TruncationParams};

use crate::error::contain_panic;
use crate::{InputError, OptionError};

/// Upper bound of the bytes that a tokenizer allocates per byte of text: alignments of the original and the normalized
/// text, and a token with its string and offsets for each byte.
const MEMORY_FACTOR: usize = 256;
/// Tokens that pad texts, in tokenizers that do not name theirs.
const PAD_TOKENS: [&str; 3] = ["[PAD]", "<pad>", "<|endoftext|>"];
/// The input in JSON requests.
const REQUEST_INPUT: &str = "text";

/// How texts become the inputs of a model.
#[derive(Debug)]
pub struct TextInput {
    tokenizer: Tokenizer,
    /// The inputs, in signature order.
    inputs: Vec<TokenInput>,
    /// Maximum number of tokens of a text.
    max_length: Option<usize>,
    /// Length of every row, if the model fixes it.
    row_length: Option<usize>,
    pad_id: u32,
    request_signature: Signature,
}

#[derive(Clone, Copy, Debug)]
struct TokenInput {
    role: TokenRole,
    /// Whether elements have 64 bits, not 32.
    is_long: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenRole {
    Ids,
    Mask,
    Types,
}

impl TextInput {
    /// Reads the tokenizer, and checks that it can make every input of the model.
    pub fn load(options: &TextOptions, signature: &Signature) -> Result<Self, OptionError> {
        let inputs = inputs(options, signature)?;
        let row_length = signature.inputs.iter().find_map(|spec| spec.shape.get(1).copied().flatten());
        let error = |problem| OptionError::new("serve.text.tokenizer", problem);
        let path = &options.tokenizer;
        let mut tokenizer = Tokenizer::from_file(path)
            .map_err(|cause| error(format!("cannot read {}: {cause}", path.display())))?;
        let padding = tokenizer.get_padding().map(|padding| padding.pad_id);
        let pad_token = || PAD_TOKENS.iter().find_map(|token| tokenizer.token_to_id(token));
        let pad_id = padding.or_else(pad_token).unwrap_or(0);
        let own = tokenizer.get_truncation().cloned();
        let max_length = options
            .max_length
            .or(row_length)
            .or_else(|| own.as_ref().map(|truncation| truncation.max_length));
        if let Some((most, row)) = max_length.zip(row_length).filter(|(most, row)| most > row) {
            let problem = format!("{most} tokens do not fit into rows of {row}");
            return Err(OptionError::new("serve.text.max_length", problem));
        }
        let truncation = max_length
            .filter(|_| options.truncate != Some(false))
            .map(|max_length| TruncationParams { max_length, stride: 0, ..own.unwrap_or_default() });
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(truncation)
            .map_err(|cause| OptionError::new("serve.text.max_length", cause.to_string()))?;
        let request_signature = Signature {
            inputs: vec![TensorSpec::new(REQUEST_INPUT, DType::String, [None])],
            outputs: signature.outputs.clone(),
            batched: signature.batched,
        };
        Ok(Self { tokenizer, inputs, max_length, row_length, pad_id, request_signature })
    }

    /// The model's signature with texts in place of its inputs, to read JSON requests.
    pub fn request_signature(&self) -> &Signature {
        &self.request_signature
    }

    /// Maximum number of bytes that are allocated for a text of that length.
    pub fn memory(&self, text: usize) -> usize {
        text.saturating_mul(MEMORY_FACTOR)
    }

    /// One tensor per input for a tensor of strings, each a row. Shorter rows are padded to the longest.
    pub fn encode(&self, texts: &Tensor, limits: &RequestLimits) -> Result<Vec<Tensor>, InputError> {
        let rows = texts.strings().enumerate().map(|(index, text)| self.tokens(index, text));
        let rows: Vec<Encoding> = rows.collect::<Result<_, _>>()?;
        let longest = rows.iter().map(|row| row.get_ids().len()).max().unwrap_or(0);
        // A model need not accept rows of nothing.
        let length = self.row_length.unwrap_or(longest.max(1));
        if rows.len().checked_mul(length).is_none_or(|elements| elements > limits.elements) {
            let message = format!("{} rows of {length} tokens are more than allowed", rows.len());
            return Err(InputError::TooLarge(message));
        }
        let tensor = |input: &TokenInput| {
            let mut data = Vec::with_capacity(rows.len() * length * input.size());
            for row in &rows {
                let values = match input.role {
                    TokenRole::Ids => row.get_ids(),
                    TokenRole::Mask => row.get_attention_mask(),
                    TokenRole::Types => row.get_type_ids(),
                };
                let padding = std::iter::repeat(self.pad_value(input.role));
                for value in values.iter().copied().chain(padding).take(length) {
                    input.push(value, &mut data);
                }
            }
            let dtype = if input.is_long { DType::I64 } else { DType::I32 };
            Tensor::new(dtype, vec![rows.len(), length], data.into())
                .map_err(|error| InputError::Invalid(error.to_string()))
        };
        self.inputs.iter().map(tensor).collect()
    }

    fn tokens(&self, index: usize, text: &[u8]) -> Result<Encoding, InputError> {
        let encode = || {
            let text = std::str::from_utf8(text).map_err(|_| InputError::Invalid("not UTF-8".to_owned()))?;
            let tokens = self.tokenizer.encode_fast(text, true);
            let tokens =
                tokens.map_err(|error| InputError::Invalid(format!("cannot be tokenized: {error}")))?;
            let count = tokens.get_ids().len();
            match self.max_length {
                Some(most) if count > most => {
                    Err(InputError::TooLarge(format!("{count} tokens are more than the {most} allowed")))
                }
                _ => Ok(tokens),
            }
        };
        contain_panic(encode).map_err(|error| error.of(&format!("text {}", index + 1)))
    }

    /// The bytes of an element of padding for each input.
    pub fn padding(&self) -> Vec<Vec<u8>> {
        let bytes = |input: &TokenInput| {
            let mut bytes = Vec::with_capacity(input.size());
            input.push(self.pad_value(input.role), &mut bytes);
            bytes
        };
        self.inputs.iter().map(bytes).collect()
    }

    fn pad_value(&self, role: TokenRole) -> u32 {
        if role == TokenRole::Ids { self.pad_id } else { 0 }
    }
}

impl TokenInput {
    fn size(self) -> usize {
        if self.is_long { 8 } else { 4 }
    }

    fn push(self, value: u32, data: &mut Vec<u8>) {
        data.extend_from_slice(&value.to_le_bytes());
        data.extend(std::iter::repeat_n(0, self.size() - 4));
    }
}

/// The role of each input of the model.
fn inputs(options: &TextOptions, signature: &Signature) -> Result<Vec<TokenInput>, OptionError> {
    let roles = [
        (TokenRole::Ids, "serve.text.ids", options.ids.as_deref(), "input_ids"),
        (TokenRole::Mask, "serve.text.mask", options.mask.as_deref(), "attention_mask"),
        (TokenRole::Types, "serve.text.types", options.types.as_deref(), "token_type_ids"),
    ];
    for (role, key, name, default) in roles {
        let wanted = name.or((role == TokenRole::Ids).then_some(default));
        if let Some(name) = wanted.filter(|name| signature.input(name).is_none()) {
            let near = suggest::closest(name, signature.inputs.iter().map(|spec| spec.name.as_str()));
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(OptionError::new(key, format!("the model has no input `{name}`{near}")));
        }
    }
    let input = |spec: &TensorSpec| {
        let role = roles.iter().find(|(_, _, name, default)| name.unwrap_or(default) == spec.name);
        let Some(&(role, key, ..)) = role else {
            let problem = format!("the model's input `{}` is not made from text", spec.name);
            return Err(OptionError::new("serve.text", problem));
        };
        let is_long = match (spec.dtype, spec.shape.len()) {
            (DType::I64, 2) => true,
            (DType::I32, 2) => false,
            _ => {
                let (name, dtype, shape) = (&spec.name, spec.dtype, spec.protocol_shape());
                let problem =
                    format!("input `{name}` is {dtype} {shape:?}, and token ids are INT64 or INT32 [-1, -1]");
                return Err(OptionError::new(key, problem));
            }
        };
        Ok(TokenInput { role, is_long })
    };
    signature.inputs.iter().map(input).collect()
}
