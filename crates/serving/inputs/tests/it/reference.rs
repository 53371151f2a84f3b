//! Results are those of Pillow, which torchvision uses. `reference.py` made the expected values.

use cudock_inputs::InputFile;
use cudock_tensor::{DType, RequestLimits};

use crate::support::{data, decode, image_input, model};

/// Name of the case, file, options.
const CASES: [(&str, &str, &str); 18] = [
    ("down", "small.png", "resize = 32\ncrop = 24"),
    ("up", "small.png", "resize = 150\ncrop = 24"),
    ("bicubic", "small.png", "resize = 32\ncrop = 24\nfilter = 'bicubic'"),
    ("lanczos", "small.png", "resize = 32\ncrop = 24\nfilter = 'lanczos'"),
    ("box", "small.png", "resize = [20, 30]"),
    ("cropped", "small.png", "crop = 23"),
    ("brightness", "small.png", "resize = 32\ncrop = 24\ncolor = 'gray'"),
    ("gray", "gray.png", "resize = 32\ncrop = 24"),
    ("palette", "palette.png", "resize = 32\ncrop = 24"),
    ("transparent", "transparent.png", "resize = 32\ncrop = 24"),
    ("bits", "bits.png", "resize = 32\ncrop = 24\ncolor = 'gray'"),
    ("lossless", "lossless.webp", "resize = 32\ncrop = 24"),
    ("lossy", "lossy.webp", "resize = 32\ncrop = 24"),
    ("photo", "photo.jpg", "resize = 32\ncrop = 24"),
    ("progressive", "progressive.jpg", "resize = 32\ncrop = 24"),
    ("gray_jpeg", "gray.jpg", "resize = 32\ncrop = 24\ncolor = 'gray'"),
    ("rotated", "rotated.jpg", "resize = 32\ncrop = 24"),
    ("cmyk", "cmyk.jpg", "resize = 32\ncrop = 24"),
];

#[test]
fn pixels_are_those_of_pillow() {
    let mut wrong = Vec::new();
    for (name, file, options) in CASES {
        let input =
            image_input(&format!("layout = 'nhwc'\n{options}"), &model(DType::U8, &[None; 4])).unwrap();
        let found = decode(&input, data(file)).unwrap();
        let expected = data(&format!("{name}.expected"));
        assert_eq!(found.len(), expected.len(), "{name}");
        let differences: Vec<u8> = found.iter().zip(&expected).map(|(a, b)| a.abs_diff(*b)).collect();
        let largest = differences.iter().copied().max().unwrap();
        let sum: u32 = differences.iter().map(|difference| u32::from(*difference)).sum();
        let average = f64::from(sum) / f64::from(u32::try_from(found.len()).unwrap());
        // Resizing rounds twice, and here the columns come first. A rotated image is resized before it is rotated.
        let (mean, most) = match name {
            "cropped" => (0.0, 0),
            "rotated" => (0.4, 2),
            _ => (0.25, 1),
        };
        if average > mean || largest > most {
            wrong.push(format!("{name}: {average:.3} on average, at most {largest}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn values_are_normalized_as_by_torchvision() {
    let options = "resize = 32\ncrop = 24\nmean = [0.485, 0.456, 0.406]\nstd = [0.229, 0.224, 0.225]";
    let input = image_input(options, &model(DType::F32, &[None, Some(3), Some(24), Some(24)])).unwrap();
    let files = input.open(vec![InputFile { name: String::new(), bytes: data("small.png").into() }]).unwrap();
    assert_eq!(input.shape(&files, &RequestLimits::default()).unwrap(), [1, 3, 24, 24]);
    let mut row = vec![0; 3 * 24 * 24 * 4];
    input.decode(&files[0], &mut row).unwrap();
    let bytes =
        image_input("layout = 'nhwc'\nresize = 32\ncrop = 24", &model(DType::U8, &[None; 4])).unwrap();
    let pixels = decode(&bytes, data("small.png")).unwrap();
    let normalization = [(0.485, 0.229), (0.456, 0.224), (0.406, 0.225)];
    for (channel, (mean, std)) in normalization.into_iter().enumerate() {
        for pixel in 0..24 * 24 {
            let element = (channel * 24 * 24 + pixel) * 4;
            let found = f32::from_le_bytes(row[element..element + 4].try_into().unwrap());
            // What `ToTensor` and `Normalize` do, in 32 bits.
            let expected: f32 = (f32::from(pixels[pixel * 3 + channel]) / 255.0 - mean) / std;
            assert!(
                (found - expected).abs() < 1e-6,
                "channel {channel}, pixel {pixel}: {found}, not {expected}"
            );
        }
    }
}
