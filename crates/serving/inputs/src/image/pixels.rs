//! Pixels into the elements of a tensor.

use cudock_project::{ImageColor, ImageLayout};
use cudock_tensor::DType;
use half::{bf16, f16};

use super::decode::Pixels;
use super::geometry::Size;

/// The bytes of the element for each value of each channel.
#[derive(Clone, Debug)]
pub(super) struct PixelTable {
    layout: ImageLayout,
    color: ImageColor,
    /// Bytes of an element.
    size: usize,
    /// 256 elements for each channel of the tensor.
    elements: Vec<u8>,
}

/// The normalization of a channel: `(pixel * scale - mean) / std`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Normalization {
    pub(super) scale: f64,
    pub(super) mean: f64,
    pub(super) std: f64,
}

/// Number of channels of a tensor.
pub(super) fn channels(color: ImageColor) -> usize {
    match color {
        ImageColor::Rgb | ImageColor::Bgr => 3,
        ImageColor::Gray => 1,
    }
}

impl PixelTable {
    /// A table for a type that [`element`] supports; `normalizations` has one entry per channel.
    pub(super) fn new(
        dtype: DType,
        layout: ImageLayout,
        color: ImageColor,
        normalizations: &[Normalization],
    ) -> Option<Self> {
        let mut elements = Vec::new();
        for Normalization { scale, mean, std } in normalizations {
            for value in 0..=u8::MAX {
                elements.extend(element(dtype, (f64::from(value) * scale - mean) / std)?);
            }
        }
        Some(Self { layout, color, size: dtype.size()?, elements })
    }

    pub(super) fn is_gray(&self) -> bool {
        self.color == ImageColor::Gray
    }

    /// The shape of one row.
    pub(super) fn row_shape(&self, size: Size) -> [usize; 3] {
        let (width, height, channels) = (size.width as usize, size.height as usize, channels(self.color));
        match self.layout {
            ImageLayout::Nchw => [channels, height, width],
            ImageLayout::Nhwc => [height, width, channels],
        }
    }

    /// Writes an image as one row.
    pub(super) fn write(&self, image: &Pixels, row: &mut [u8]) {
        match self.size {
            1 => self.write_elements::<1>(image, row),
            2 => self.write_elements::<2>(image, row),
            4 => self.write_elements::<4>(image, row),
            _ => self.write_elements::<8>(image, row),
        }
    }

    fn write_elements<const N: usize>(&self, image: &Pixels, row: &mut [u8]) {
        let (tables, _) = self.elements.as_chunks::<N>();
        let (tables, _) = tables.as_chunks::<256>();
        let (row, _) = row.as_chunks_mut::<N>();
        let pixels = image.data.len() / image.channels;
        for (channel, table) in tables.iter().enumerate() {
            let source = match self.color {
                _ if image.channels == 1 => 0,
                ImageColor::Bgr => tables.len() - 1 - channel,
                ImageColor::Rgb | ImageColor::Gray => channel,
            };
            let (start, step) = match self.layout {
                ImageLayout::Nchw => (channel * pixels, 1),
                ImageLayout::Nhwc => (channel, tables.len()),
            };
            let elements = row.get_mut(start..).unwrap_or_default().iter_mut().step_by(step);
            let values = image.data.get(source..).unwrap_or_default().iter().step_by(image.channels);
            for (element, value) in elements.zip(values) {
                *element = table.get(usize::from(*value)).copied().unwrap_or([0; N]);
            }
        }
    }
}

/// The bytes of an element, if images can be of that type.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the type of the tensor decides the precision"
)]
fn element(dtype: DType, value: f64) -> Option<Vec<u8>> {
    Some(match dtype {
        DType::U8 => vec![value.round() as u8],
        DType::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
        DType::BF16 => bf16::from_f64(value).to_le_bytes().to_vec(),
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        DType::F64 => value.to_le_bytes().to_vec(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { width: 2, height: 1 };

    fn row(dtype: DType, layout: ImageLayout, color: ImageColor, image: &[u8], channels: usize) -> Vec<u8> {
        let half = Normalization { scale: 1.0, mean: 1.0, std: 2.0 };
        let same = Normalization { scale: 1.0, mean: 0.0, std: 1.0 };
        let each = if dtype == DType::U8 { same } else { half };
        let table = PixelTable::new(dtype, layout, color, &vec![each; super::channels(color)]).unwrap();
        let elements: usize = table.row_shape(SIZE).iter().product();
        let mut row = vec![0; elements * dtype.size().unwrap()];
        table.write(&Pixels { size: SIZE, channels, data: image.to_vec() }, &mut row);
        row
    }

    #[test]
    fn channels_are_written_in_the_order_of_the_tensor() {
        use ImageColor::{Bgr, Gray, Rgb};
        use ImageLayout::{Nchw, Nhwc};
        let image = [1, 2, 3, 4, 5, 6];
        for (layout, color, expected) in [
            (Nchw, Rgb, [1, 4, 2, 5, 3, 6]),
            (Nchw, Bgr, [3, 6, 2, 5, 1, 4]),
            (Nhwc, Rgb, [1, 2, 3, 4, 5, 6]),
            (Nhwc, Bgr, [3, 2, 1, 6, 5, 4]),
        ] {
            assert_eq!(row(DType::U8, layout, color, &image, 3), expected, "{layout:?} {color:?}");
        }
        assert_eq!(
            row(DType::U8, Nhwc, Rgb, &[7, 8], 1),
            [7, 7, 7, 8, 8, 8],
            "a gray image has three equal channels"
        );
        assert_eq!(row(DType::U8, Nchw, Gray, &[7, 8], 1), [7, 8]);
    }

    #[test]
    fn elements_have_the_type_of_the_tensor() {
        let gray = |dtype| row(dtype, ImageLayout::Nchw, ImageColor::Gray, &[2, 4], 1);
        assert_eq!(gray(DType::F32), [0.5_f32.to_le_bytes(), 1.5_f32.to_le_bytes()].concat());
        assert_eq!(gray(DType::F64), [0.5_f64.to_le_bytes(), 1.5_f64.to_le_bytes()].concat());
        assert_eq!(
            gray(DType::F16),
            [f16::from_f64(0.5).to_le_bytes(), f16::from_f64(1.5).to_le_bytes()].concat()
        );
        assert_eq!(
            gray(DType::BF16),
            [bf16::from_f64(0.5).to_le_bytes(), bf16::from_f64(1.5).to_le_bytes()].concat()
        );
        assert!(element(DType::I64, 1.0).is_none());
    }
}
