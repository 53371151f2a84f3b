//! Images into the rows of a tensor.
//!
//! The header of a file says how large everything will be, so it is read first and checked against the limits. Then the
//! image is decoded, only the part that is kept is resized, and each pixel is looked up in a table that holds the bytes of
//! its element: there is no image of floats in between.

mod decode;
mod exif;
mod geometry;
mod jpeg;
mod options;
mod pixels;
mod webp;

use bytes::Bytes;
use cudock_project::ImageFilter;
use cudock_tensor::{RequestLimits, Signature, elements};
use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::{U8, U8x3};
use fast_image_resize::{FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer};

pub use self::decode::is_image;
use self::decode::{Header, Pixels};
use self::geometry::{Geometry, Plan, Size};
use self::pixels::PixelTable;
use crate::error::contain_panic;
use crate::form::check_count;
use crate::{InputError, InputFile};

/// How images become one input of a model.
#[derive(Clone, Debug)]
pub struct ImageInput {
    /// Index of the input in the signature.
    index: usize,
    geometry: Geometry,
    filter: ImageFilter,
    table: PixelTable,
    max_pixels: u64,
    request_signature: Signature,
}

/// A file whose header fits the limits.
#[derive(Clone, Debug)]
pub struct ImageFile {
    name: String,
    bytes: Bytes,
    header: Header,
    plan: Plan,
    /// Bytes of a pixel that are resized.
    channels: usize,
}

impl ImageFile {
    /// Maximum number of bytes that are allocated while it is decoded.
    pub fn memory(&self) -> usize {
        let Size { width, height } = self.plan.stored_crop(self.header.size, self.header.orientation).size;
        let (width, height) = (width as usize, height as usize);
        // Resizing goes through an image of the original width and the final height.
        let resizing = (self.header.size.width as usize).saturating_mul(height);
        let resized = width.saturating_mul(height);
        let both = resizing.saturating_add(resized.saturating_mul(2)).saturating_mul(self.channels);
        self.header.memory().saturating_add(both)
    }
}

impl ImageInput {
    /// Index of the input in the signature of the model.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The model's signature with a file as base64 text in place of each image, to read JSON requests.
    pub fn request_signature(&self) -> &Signature {
        &self.request_signature
    }

    /// Reads the headers of files.
    pub fn open(&self, files: Vec<InputFile>) -> Result<Vec<ImageFile>, InputError> {
        check_count(files.len())?;
        files.into_iter().map(|file| self.open_one(file)).collect()
    }

    fn open_one(&self, file: InputFile) -> Result<ImageFile, InputError> {
        let InputFile { name, bytes } = file;
        let open = || {
            let header = Header::read(&bytes, self.max_pixels)?;
            let plan = self.geometry.plan(header.oriented_size())?;
            Ok((header, plan))
        };
        let (header, plan) = contain_panic(open).map_err(|error| error.of(&name))?;
        let channels = if self.table.is_gray() { 1 } else { header.channels() };
        Ok(ImageFile { name, bytes, header, plan, channels })
    }

    /// The shape of the tensor for these files, which must be alike.
    pub fn shape(&self, files: &[ImageFile], limits: &RequestLimits) -> Result<Vec<usize>, InputError> {
        let Some(first) = files.first() else { return Err(InputError::Invalid("no images".to_owned())) };
        let size = first.plan.size;
        if let Some(other) = files.iter().find(|file| file.plan.size != size) {
            let message = format!(
                "{} after resizing, but {} is {size}; set `serve.image.crop`, or send images of one shape",
                other.plan.size, first.name
            );
            return Err(InputError::Invalid(message).of(&other.name));
        }
        let shape: Vec<usize> = std::iter::once(files.len()).chain(self.table.row_shape(size)).collect();
        if elements(&shape).is_none_or(|count| count > limits.elements) {
            let message = format!("{shape:?} are more than the {} elements allowed", limits.elements);
            return Err(InputError::TooLarge(message).of(&first.name));
        }
        Ok(shape)
    }

    /// Decodes a file into one row of the tensor.
    pub fn decode(&self, file: &ImageFile, row: &mut [u8]) -> Result<(), InputError> {
        let decode = || {
            let mut pixels = Pixels::decode(&file.bytes, &file.header)?;
            if self.table.is_gray() {
                pixels.make_gray();
            }
            let crop = file.plan.stored_crop(file.header.size, file.header.orientation);
            let resized = resize(&pixels, &crop, self.filter)?;
            drop(pixels);
            self.table.write(&resized.oriented(file.header.orientation), row);
            Ok(())
        };
        contain_panic(decode).map_err(|error| error.of(&file.name))
    }
}

/// Resizes the part of the image that is kept.
fn resize(image: &Pixels, crop: &geometry::Crop, filter: ImageFilter) -> Result<Pixels, InputError> {
    let filter = match filter {
        ImageFilter::Bilinear => FilterType::Bilinear,
        ImageFilter::Bicubic => FilterType::CatmullRom,
        ImageFilter::Lanczos => FilterType::Lanczos3,
    };
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(filter)).crop(
        crop.left,
        crop.top,
        crop.width,
        crop.height,
    );
    // The typed function is compiled for these two types alone, which takes a tenth of the time.
    if image.channels == 1 {
        resize_typed::<U8>(image, crop.size, &options)
    } else {
        resize_typed::<U8x3>(image, crop.size, &options)
    }
}

fn resize_typed<P: PixelTrait>(
    image: &Pixels,
    size: Size,
    options: &ResizeOptions,
) -> Result<Pixels, InputError> {
    let failed = |error: &dyn std::fmt::Display| InputError::Invalid(format!("cannot resize it: {error}"));
    let mut data = vec![0; size.width as usize * size.height as usize * image.channels];
    let from = TypedImageRef::<P>::from_buffer(image.size.width, image.size.height, &image.data);
    let from = from.map_err(|error| failed(&error))?;
    let to = TypedImage::<P>::from_buffer(size.width, size.height, &mut data);
    let mut to = to.map_err(|error| failed(&error))?;
    Resizer::new().resize_typed(&from, &mut to, options).map_err(|error| failed(&error))?;
    drop(to);
    Ok(Pixels { size, channels: image.channels, data })
}
