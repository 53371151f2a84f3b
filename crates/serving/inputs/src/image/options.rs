//! Resolves `[serve.image]` for a model.

use cudock_base::text::suggest;
use cudock_project::{ImageColor, ImageLayout, ImageOptions, ImageSize};
use cudock_tensor::{DType, Signature, TensorSpec};

use super::ImageInput;
use super::geometry::{Geometry, Size};
use super::pixels::{Normalization, PixelTable, channels};
use crate::OptionError;

const MAX_PIXELS: u64 = 50_000_000;

impl ImageInput {
    /// Resolves the options for a model, whose input must be a batch of images.
    pub fn new(options: &ImageOptions, signature: &Signature) -> Result<Self, OptionError> {
        let index = input(options, signature)?;
        let mut request_signature = signature.clone();
        let (Some(spec), Some(placeholder)) =
            (signature.inputs.get(index), request_signature.inputs.get_mut(index))
        else {
            return Err(OptionError::new("serve.image", "the model has no inputs"));
        };
        *placeholder = TensorSpec::new(&spec.name, DType::String, [None]);
        let (color, layout) = color_and_layout(options, spec)?;
        let normalizations = normalizations(options, spec, color)?;
        let table = PixelTable::new(spec.dtype, layout, color, &normalizations).ok_or_else(|| {
            let (name, dtype) = (&spec.name, spec.dtype);
            OptionError::new(
                "serve.image.input",
                format!("input `{name}` is {dtype}, which images cannot be"),
            )
        })?;
        Ok(Self {
            index,
            geometry: geometry(options, spec, layout)?,
            filter: options.filter.unwrap_or_default(),
            table,
            max_pixels: options.max_pixels.unwrap_or(MAX_PIXELS),
            request_signature,
        })
    }
}

/// Index of the input that takes images.
fn input(options: &ImageOptions, signature: &Signature) -> Result<usize, OptionError> {
    let names = || signature.inputs.iter().map(|spec| spec.name.as_str());
    let error = |problem| OptionError::new("serve.image.input", problem);
    let Some(name) = &options.input else {
        return match signature.inputs.as_slice() {
            [_] => Ok(0),
            _ => Err(error(format!(
                "name one of the model's inputs: {}",
                names().collect::<Vec<_>>().join(", ")
            ))),
        };
    };
    signature.input(name).ok_or_else(|| {
        let near = suggest::closest(name, names()).map(|near| format!("; did you mean `{near}`?"));
        error(format!("the model has no input `{name}`{}", near.unwrap_or_default()))
    })
}

/// The colors and the order of dimensions, where not set those that fit the shape.
fn color_and_layout(
    options: &ImageOptions,
    spec: &TensorSpec,
) -> Result<(ImageColor, ImageLayout), OptionError> {
    let (first, last) = match spec.shape.as_slice() {
        [_, first, _, last] => (*first, *last),
        [] if spec.any_rank => (None, None),
        shape => {
            let (name, rank) = (&spec.name, shape.len());
            let problem = format!("input `{name}` has {rank} dimensions, and a batch of images has 4");
            return Err(OptionError::new("serve.image.input", problem));
        }
    };
    let count = |layout| if layout == ImageLayout::Nchw { first } else { last };
    let layouts = match options.layout {
        Some(layout) => vec![layout],
        None => vec![ImageLayout::Nchw, ImageLayout::Nhwc],
    };
    let colors = match options.color {
        Some(color) => vec![color],
        None => vec![ImageColor::Rgb, ImageColor::Gray],
    };
    for &color in &colors {
        let fits = |layout: &&ImageLayout| count(**layout) == Some(channels(color));
        if let Some(layout) = layouts.iter().find(fits) {
            return Ok((color, *layout));
        }
    }
    // A dynamic number of channels takes any.
    match (layouts.as_slice(), colors.first()) {
        (&[layout], Some(&color)) if count(layout).is_none() => Ok((color, layout)),
        _ => {
            let shape = spec.protocol_shape();
            let problem =
                format!("the shape {shape:?} of input `{}` does not tell where the channels are", spec.name);
            let key = if options.layout.is_some() { "serve.image.color" } else { "serve.image.layout" };
            Err(OptionError::new(key, problem))
        }
    }
}

/// The size of rows, which must be that of the input.
fn geometry(options: &ImageOptions, spec: &TensorSpec, layout: ImageLayout) -> Result<Geometry, OptionError> {
    let at = if layout == ImageLayout::Nchw { 2 } else { 1 };
    let fixed = |at: usize| spec.shape.get(at).copied().flatten().and_then(|size| u32::try_from(size).ok());
    let (height, width) = (fixed(at), fixed(at + 1));
    let wanted = || {
        let show = |size: Option<u32>| size.map_or_else(|| "any".to_owned(), |size| size.to_string());
        format!("input `{}` takes a width of {} and a height of {}", spec.name, show(width), show(height))
    };
    let crop = options.crop.map(|crop| match crop {
        ImageSize::Side(side) => Size { width: side, height: side },
        ImageSize::Box { width, height } => Size { width, height },
    });
    let resize = match (options.resize, crop, width, height) {
        (None, None, Some(width), Some(height)) => Some(ImageSize::Box { width, height }),
        (resize, ..) => resize,
    };
    let (key, result) = match (crop, resize) {
        (Some(crop), _) => ("serve.image.crop", Some(crop)),
        (None, Some(ImageSize::Box { width, height })) => {
            ("serve.image.resize", Some(Size { width, height }))
        }
        (None, _) => ("serve.image.crop", None),
    };
    let fits = match result {
        Some(size) => {
            width.is_none_or(|width| width == size.width) && height.is_none_or(|height| height == size.height)
        }
        // Each image gets a size of its own.
        None => width.is_none() && height.is_none(),
    };
    if !fits {
        return Err(OptionError::new(key, wanted()));
    }
    let is_too_large = |crop: Size| match resize {
        Some(ImageSize::Side(side)) => crop.width.min(crop.height) > side,
        Some(ImageSize::Box { width, height }) => crop.width > width || crop.height > height,
        None => false,
    };
    if crop.is_some_and(is_too_large) {
        return Err(OptionError::new("serve.image.crop", "it is larger than `serve.image.resize`"));
    }
    Ok(Geometry { resize, crop })
}

/// The normalization of each channel.
fn normalizations(
    options: &ImageOptions,
    spec: &TensorSpec,
    color: ImageColor,
) -> Result<Vec<Normalization>, OptionError> {
    let whole = spec.dtype == DType::U8;
    let set = [
        ("serve.image.mean", options.mean.is_some()),
        ("serve.image.std", options.std.is_some()),
        ("serve.image.scale", options.scale.is_some()),
    ];
    if let Some((key, _)) = set.into_iter().find(|(_, is_set)| whole && *is_set) {
        return Err(OptionError::new(
            key,
            format!("input `{}` takes bytes, which are not normalized", spec.name),
        ));
    }
    let count = channels(color);
    let per_channel = |key: &'static str, values: &Option<Vec<f64>>, default: f64| match values.as_deref() {
        None => Ok(vec![default; count]),
        Some(&[one]) => Ok(vec![one; count]),
        Some(values) if values.len() == count => Ok(values.to_vec()),
        Some(values) => {
            let problem = format!("{} values for {count} channels", values.len());
            Err(OptionError::new(key, problem))
        }
    };
    let mean = per_channel("serve.image.mean", &options.mean, 0.0)?;
    let std = per_channel("serve.image.std", &options.std, 1.0)?;
    if std.contains(&0.0) {
        return Err(OptionError::new("serve.image.std", "a channel cannot be divided by zero"));
    }
    let scale = options.scale.unwrap_or(if whole { 1.0 } else { 1.0 / 255.0 });
    Ok(mean.into_iter().zip(std).map(|(mean, std)| Normalization { scale, mean, std }).collect())
}
