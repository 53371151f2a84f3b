//! Decodes image files.

use std::fmt::Display;
use std::io::Cursor;

use cudock_base::text::truncate;
use cudock_project::ImageSize;
use image_webp::WebPDecoder;
use png::{ColorType, Decoder as PngDecoder, Limits, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::exif::Orientation;
use super::geometry::Size;
use super::jpeg::JpegHeader;
use super::webp;
use crate::InputError;

/// Maximum number of bytes of metadata in a PNG file.
const PNG_METADATA: usize = 4 << 20;
/// Upper bound of the bytes per pixel that the WebP decoder allocates: colors, planes, and alpha with its predictors.
const WEBP_BYTES: u64 = 14;

/// The properties in the header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    format: Format,
    /// The size as stored; not zero.
    pub(super) size: Size,
    pub(super) orientation: Orientation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Jpeg(JpegHeader),
    Png(ColorType),
    Webp { has_alpha: bool },
}

/// Pixels of one byte per channel: gray, or red, green and blue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pixels {
    pub(super) size: Size,
    pub(super) channels: usize,
    pub(super) data: Vec<u8>,
}

/// Whether a file begins as an image of a supported type does.
pub fn is_image(bytes: &[u8]) -> bool {
    is_jpeg(bytes) || bytes.starts_with(PNG_SIGNATURE) || is_webp(bytes)
}

const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

fn is_jpeg(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xff, 0xd8, 0xff])
}

fn is_webp(bytes: &[u8]) -> bool {
    bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP")
}

impl Header {
    /// Reads the header of a file whose type is known by its first bytes.
    pub(super) fn read(bytes: &[u8], max_pixels: u64) -> Result<Self, InputError> {
        let header = if is_jpeg(bytes) {
            let jpeg = JpegHeader::read(bytes)?;
            Self { format: Format::Jpeg(jpeg), size: jpeg.size, orientation: jpeg.orientation }
        } else if let Some(rest) = bytes.strip_prefix(PNG_SIGNATURE) {
            Self::read_png(bytes, rest, max_pixels)?
        } else if is_webp(bytes) {
            Self::read_webp(bytes, max_pixels)?
        } else if bytes.is_empty() {
            return Err(InputError::Invalid("the file is empty".to_owned()));
        } else {
            return Err(InputError::Unsupported("not a JPEG, PNG or WebP file".to_owned()));
        };
        check_size(header.size, max_pixels)?;
        Ok(header)
    }

    fn read_png(bytes: &[u8], chunks: &[u8], max_pixels: u64) -> Result<Self, InputError> {
        // The first chunk has the size; the decoder allocates a row when it has read the others.
        let length = |at: usize| Some(u32::from_be_bytes(*chunks.get(at..)?.first_chunk()?));
        let size = length(8).zip(length(12)).map(|(width, height)| Size { width, height });
        let size = size.ok_or_else(|| InputError::Invalid("the PNG file is truncated".to_owned()))?;
        check_size(size, max_pixels)?;
        let reader = png_decoder(bytes).read_info().map_err(|error| invalid("PNG", &error))?;
        let orientation = reader.info().exif_metadata.as_deref().map(Orientation::read).unwrap_or_default();
        Ok(Self { format: Format::Png(reader.output_color_type().0), size, orientation })
    }

    fn read_webp(bytes: &[u8], max_pixels: u64) -> Result<Self, InputError> {
        if let Some(frame) = webp::lossy_frame(bytes) {
            check_size(frame, max_pixels)?;
        }
        let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(|error| invalid("WebP", &error))?;
        if decoder.is_animated() {
            return Err(InputError::Unsupported("animated WebP files are not supported".to_owned()));
        }
        decoder.set_memory_limit(bytes.len());
        let (width, height) = decoder.dimensions();
        let exif = decoder.exif_metadata().ok().flatten();
        let orientation = exif.as_deref().map(Orientation::read).unwrap_or_default();
        let format = Format::Webp { has_alpha: decoder.has_alpha() };
        Ok(Self { format, size: Size { width, height }, orientation })
    }

    /// The size as the image is seen.
    pub(super) fn oriented_size(&self) -> Size {
        if self.orientation.transposed { self.size.transposed() } else { self.size }
    }

    /// Bytes of a pixel without transparency.
    pub(super) fn channels(&self) -> usize {
        match self.format {
            Format::Jpeg(JpegHeader { components: 1, .. })
            | Format::Png(ColorType::Grayscale | ColorType::GrayscaleAlpha) => 1,
            _ => 3,
        }
    }

    /// Bytes of a pixel as the decoder writes it.
    fn decoded_channels(&self) -> usize {
        match self.format {
            Format::Png(color) => color.samples(),
            Format::Webp { has_alpha: true } => 4,
            _ => self.channels(),
        }
    }

    /// Maximum number of bytes that are allocated to decode the image, with its pixels.
    pub(super) fn memory(&self) -> usize {
        let pixels = self.size.pixels();
        let decoded = pixels * self.decoded_channels() as u64;
        let memory = match self.format {
            Format::Jpeg(jpeg) => decoded + jpeg.buffers(),
            Format::Png(_) => decoded + PNG_METADATA as u64,
            Format::Webp { .. } => pixels * WEBP_BYTES,
        };
        usize::try_from(memory).unwrap_or(usize::MAX)
    }
}

fn check_size(size: Size, max_pixels: u64) -> Result<(), InputError> {
    if size.width == 0 || size.height == 0 {
        return Err(InputError::Invalid(format!("its size is {size}")));
    }
    if size.width.max(size.height) > ImageSize::MAX || size.pixels() > max_pixels {
        let message = format!("{size} pixels are more than the {max_pixels} of `serve.image.max_pixels`");
        return Err(InputError::TooLarge(message));
    }
    Ok(())
}

fn invalid(format: &str, error: &dyn Display) -> InputError {
    InputError::Invalid(format!("not a valid {format} file: {}", truncate(&error.to_string(), 200)))
}

fn png_decoder(bytes: &[u8]) -> PngDecoder<Cursor<&[u8]>> {
    let mut decoder = PngDecoder::new_with_limits(Cursor::new(bytes), Limits { bytes: PNG_METADATA });
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder
}

impl Pixels {
    /// Decodes a file whose header was read before.
    pub(super) fn decode(bytes: &[u8], header: &Header) -> Result<Self, InputError> {
        let Header { size, format, .. } = header;
        let (pixels, channels) = (size.width as usize * size.height as usize, header.decoded_channels());
        let mut data = vec![0; pixels * channels];
        match format {
            Format::Jpeg(_) => decode_jpeg(bytes, header, &mut data)?,
            Format::Png(_) => {
                let mut reader = png_decoder(bytes).read_info().map_err(|error| invalid("PNG", &error))?;
                reader.next_frame(&mut data).map_err(|error| invalid("PNG", &error))?;
            }
            Format::Webp { .. } => {
                let mut decoder =
                    WebPDecoder::new(Cursor::new(bytes)).map_err(|error| invalid("WebP", &error))?;
                decoder.read_image(&mut data).map_err(|error| invalid("WebP", &error))?;
            }
        }
        let mut image = Self { size: *size, channels, data };
        match channels {
            2 => image.reduce::<2, 1>(|[gray, _]| [gray]),
            4 => image.reduce::<4, 3>(|[red, green, blue, _]| [red, green, blue]),
            _ => {}
        }
        Ok(image)
    }

    /// Replaces colors with their brightness, as Pillow computes it.
    pub(super) fn make_gray(&mut self) {
        if self.channels == 3 {
            self.reduce::<3, 1>(|color| {
                let [red, green, blue] = color.map(u32::from);
                let gray = (red * 19_595 + green * 38_470 + blue * 7_471 + 0x8000) >> 16;
                [u8::try_from(gray).unwrap_or(u8::MAX)]
            });
        }
    }

    /// Replaces each pixel by a smaller one, in place.
    fn reduce<const FROM: usize, const TO: usize>(&mut self, reduce: impl Fn([u8; FROM]) -> [u8; TO]) {
        let pixels = self.data.len() / FROM;
        for pixel in 0..pixels {
            let from = self.data.get(pixel * FROM..).and_then(|rest| rest.first_chunk::<FROM>().copied());
            let to = self.data.get_mut(pixel * TO..).and_then(|rest| rest.first_chunk_mut::<TO>());
            if let (Some(from), Some(to)) = (from, to) {
                *to = reduce(from);
            }
        }
        self.data.truncate(pixels * TO);
        self.channels = TO;
    }

    /// The image as it is seen.
    pub(super) fn oriented(self, orientation: Orientation) -> Self {
        if orientation == Orientation::default() {
            return self;
        }
        let Size { width, height } = self.size;
        let size = if orientation.transposed { self.size.transposed() } else { self.size };
        let mut data = Vec::with_capacity(self.data.len());
        for y in 0..size.height {
            for x in 0..size.width {
                let (x, y) = if orientation.transposed { (y, x) } else { (x, y) };
                let x = if orientation.flipped_x { width - 1 - x } else { x };
                let y = if orientation.flipped_y { height - 1 - y } else { y };
                let at = (y as usize * width as usize + x as usize) * self.channels;
                data.extend_from_slice(self.data.get(at..at + self.channels).unwrap_or_default());
            }
        }
        Self { size, data, ..self }
    }
}

fn decode_jpeg(bytes: &[u8], header: &Header, data: &mut [u8]) -> Result<(), InputError> {
    let color = if header.channels() == 1 { ColorSpace::Luma } else { ColorSpace::RGB };
    let options = DecoderOptions::default()
        .set_max_width(ImageSize::MAX as usize)
        .set_max_height(ImageSize::MAX as usize)
        .jpeg_set_out_colorspace(color);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    let failed = |error| invalid("JPEG", &error);
    decoder.decode_headers().map_err(failed)?;
    let found = decoder.info().map(|info| (u32::from(info.width), u32::from(info.height)));
    if found != Some((header.size.width, header.size.height)) {
        return Err(InputError::Invalid("not a valid JPEG file: it has two sizes".to_owned()));
    }
    // Extra bytes between headers are common; damaged image data is not, and would become gray.
    decoder.set_options(options.set_strict_mode(true));
    decoder.decode_into(data).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_orientations_show_the_same_image() {
        // Seen upright: 1 2 3 / 4 5 6.
        let stored: [(u8, u32, [u8; 6]); 8] = [
            (1, 3, [1, 2, 3, 4, 5, 6]),
            (2, 3, [3, 2, 1, 6, 5, 4]),
            (3, 3, [6, 5, 4, 3, 2, 1]),
            (4, 3, [4, 5, 6, 1, 2, 3]),
            (5, 2, [1, 4, 2, 5, 3, 6]),
            (6, 2, [3, 6, 2, 5, 1, 4]),
            (7, 2, [6, 3, 5, 2, 4, 1]),
            (8, 2, [4, 1, 5, 2, 6, 3]),
        ];
        for (value, width, data) in stored {
            let exif = [&b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"[..], &[value, 0, 0]].concat();
            let image = Pixels { size: Size { width, height: 6 / width }, channels: 1, data: data.to_vec() };
            let seen = image.oriented(Orientation::read(&exif));
            assert_eq!((seen.size.width, &seen.data[..]), (3, &[1, 2, 3, 4, 5, 6][..]), "{value}");
        }
    }

    #[test]
    fn gray_is_that_of_pillow() {
        let data = vec![255, 255, 255, 10, 20, 30, 0, 0, 0];
        let mut image = Pixels { size: Size { width: 3, height: 1 }, channels: 3, data };
        image.make_gray();
        assert_eq!((image.channels, image.data), (1, vec![255, 18, 0]));
    }
}
