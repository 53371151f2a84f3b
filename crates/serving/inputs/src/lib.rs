//! Turns what people send into tensors, and scores into labels.
//!
//! An image is decoded, resized and normalized straight into the bytes of a request's tensor; a text becomes token ids.
//! How is declared in `cudock.toml`, and what does not fit the model is an error when the model is loaded. Everything a
//! client sends is untrusted: sizes are known and checked before memory is allocated, and no decoder can end the server.

mod error;
mod form;
mod image;
mod labels;
mod text;

pub use error::{InputError, OptionError};
pub use form::{InputFile, read_base64, read_form};
pub use image::{ImageFile, ImageInput, is_image};
pub use labels::Labels;
pub use text::TextInput;
