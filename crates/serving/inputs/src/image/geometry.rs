//! Sizes before and after resizing and cropping, as torchvision computes them.

use std::fmt;

use cudock_project::ImageSize;

use super::exif::Orientation;
use crate::InputError;

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Size {
    pub(super) fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// Width and height exchanged.
    pub(super) fn transposed(self) -> Self {
        Self { width: self.height, height: self.width }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// How images are resized and cropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) resize: Option<ImageSize>,
    pub(super) crop: Option<Size>,
}

/// The resizing and cropping of one image; upright, as it is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Size of the whole image after resizing. It may be larger than any image that is ever allocated.
    scaled: (u64, u64),
    /// The corner of the part that is kept.
    corner: (u64, u64),
    /// Size of the part that is kept.
    pub(super) size: Size,
}

/// A part of an image as it is stored, and its size after resizing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Crop {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) size: Size,
}

impl Geometry {
    pub(super) fn plan(&self, image: Size) -> Result<Plan, InputError> {
        let (width, height) = (u64::from(image.width), u64::from(image.height));
        let scaled = match self.resize {
            None => (width, height),
            Some(ImageSize::Box { width, height }) => (width.into(), height.into()),
            Some(ImageSize::Side(side)) => {
                let side = u64::from(side);
                if width <= height { (side, side * height / width) } else { (side * width / height, side) }
            }
        };
        let Some(size) = self.crop else {
            let length = |length: u64| u32::try_from(length).ok().filter(|length| *length <= ImageSize::MAX);
            let size = length(scaled.0).zip(length(scaled.1)).map(|(width, height)| Size { width, height });
            let size = size.ok_or_else(|| {
                InputError::TooLarge(format!("{}x{} pixels after resizing", scaled.0, scaled.1))
            })?;
            return Ok(Plan { scaled, corner: (0, 0), size });
        };
        let spare = |scaled: u64, kept: u32| scaled.checked_sub(kept.into()).map(round_half);
        let corner = spare(scaled.0, size.width).zip(spare(scaled.1, size.height)).ok_or_else(|| {
            let (width, height) = scaled;
            InputError::Invalid(format!(
                "{width}x{height} pixels after resizing, smaller than the {size} of `serve.image.crop`"
            ))
        })?;
        Ok(Plan { scaled, corner, size })
    }
}

/// Half of a number; of two equally near numbers the even one, as Python's `round`.
fn round_half(number: u64) -> u64 {
    let half = number / 2;
    half + (number & half & 1)
}

impl Plan {
    /// The part that is kept, in the image as it is stored.
    #[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
    pub(super) fn stored_crop(&self, stored: Size, orientation: Orientation) -> Crop {
        let (mut scaled, mut corner, mut size) = (self.scaled, self.corner, self.size);
        if orientation.transposed {
            (scaled, corner, size) = ((scaled.1, scaled.0), (corner.1, corner.0), size.transposed());
        }
        let axis = |flipped: bool, length: u32, scaled: u64, from: u64, kept: u32| {
            let from = if flipped { scaled - from - u64::from(kept) } else { from };
            let scale = f64::from(length) / scaled as f64;
            let from = from as f64 * scale;
            // Rounding must not lead beyond the image.
            (from, (f64::from(kept) * scale).min(f64::from(length) - from))
        };
        let (left, width) = axis(orientation.flipped_x, stored.width, scaled.0, corner.0, size.width);
        let (top, height) = axis(orientation.flipped_y, stored.height, scaled.1, corner.1, size.height);
        Crop { left, top, width, height, size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(resize: Option<ImageSize>, crop: Option<(u32, u32)>, image: (u32, u32)) -> Result<Plan, String> {
        let crop = crop.map(|(width, height)| Size { width, height });
        let image = Size { width: image.0, height: image.1 };
        Geometry { resize, crop }.plan(image).map_err(|error| error.to_string())
    }

    #[test]
    fn sizes_are_those_of_torchvision() {
        let side = |side| Some(ImageSize::Side(side));
        // The numbers are what Resize and CenterCrop of torchvision compute: the corner is round((a - b) / 2).
        for (resize, crop, image, scaled, corner, size) in [
            (side(256), Some((224, 224)), (500, 375), (341, 256), (58, 16), (224, 224)),
            (side(256), Some((224, 224)), (375, 500), (256, 341), (16, 58), (224, 224)),
            (side(256), Some((224, 224)), (343, 256), (343, 256), (60, 16), (224, 224)),
            (side(10), None, (3, 4), (10, 13), (0, 0), (10, 13)),
            (Some(ImageSize::Box { width: 20, height: 30 }), None, (500, 375), (20, 30), (0, 0), (20, 30)),
            (None, Some((3, 3)), (4, 5), (4, 5), (0, 1), (3, 3)),
        ] {
            let plan = plan(resize, crop, image).unwrap();
            let found = (plan.scaled, plan.corner, (plan.size.width, plan.size.height));
            assert_eq!(found, (scaled, corner, size), "{resize:?} {crop:?} {image:?}");
        }
    }

    #[test]
    fn images_that_are_too_small_or_too_long_are_rejected() {
        let error = plan(None, Some((224, 224)), (300, 200)).unwrap_err();
        assert_eq!(error, "300x200 pixels after resizing, smaller than the 224x224 of `serve.image.crop`");
        let error = plan(Some(ImageSize::Side(256)), None, (1, 65_535)).unwrap_err();
        assert_eq!(error, "256x16776960 pixels after resizing");
        assert!(plan(Some(ImageSize::Side(256)), Some((224, 224)), (1, 65_535)).is_ok());
    }

    #[test]
    fn halves_are_rounded_to_even() {
        assert_eq!([0, 1, 2, 3, 4, 5, 117, 119].map(round_half), [0, 0, 1, 2, 2, 2, 58, 60]);
    }
}
