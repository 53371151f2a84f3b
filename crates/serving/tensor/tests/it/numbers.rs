//! Numbers are correctly rounded on every path through the parser.

use cudock_base::Rng;
use cudock_tensor::DType;

use crate::support::read;

/// Texts a round; more where they are quick.
const TEXTS: usize = if cfg!(debug_assertions) { 20_000 } else { 2_000_000 };

/// A finite `f32` of any size, subnormal ones among them.
fn any_f32(random: &mut Rng) -> f32 {
    loop {
        let value = f32::from_bits(random.next_u64() as u32);
        if value.is_finite() {
            return value;
        }
    }
}

/// Reads the texts as one array, and each as a lone value at the end of a text, and compares.
fn compare<const N: usize>(dtype: DType, texts: &[String], expected: impl Fn(&str) -> [u8; N]) {
    for separator in [",", ", "] {
        let joined = format!("[{}]", texts.join(separator));
        let tensor = read(&joined, dtype).unwrap_or_else(|error| panic!("{error}"));
        let (elements, _) = tensor.data().as_chunks::<N>();
        assert_eq!(elements.len(), texts.len());
        for (text, element) in texts.iter().zip(elements) {
            assert_eq!(*element, expected(text), "{dtype} {text}");
        }
    }
    for text in texts.iter().take(TEXTS / 10) {
        assert_eq!(read(text, dtype).unwrap().data()[..], expected(text), "{dtype} {text}");
    }
}

fn compare_f32(texts: &[String]) {
    compare(DType::F32, texts, |text| text.parse::<f32>().unwrap().to_le_bytes());
}

fn compare_f64(texts: &[String]) {
    compare(DType::F64, texts, |text| text.parse::<f64>().unwrap().to_le_bytes());
}

#[test]
fn an_f32_that_python_widened_is_read_exactly() {
    let mut random = Rng::new(1);
    let texts: Vec<String> = (0..TEXTS)
        .map(|_| {
            let value = f64::from(any_f32(&mut random));
            if random.below(2) == 0 && (1e-5..1e16).contains(&value.abs()) {
                format!("{value:?}")
            } else {
                format!("{value:e}")
            }
        })
        .collect();
    compare_f32(&texts);
    compare_f64(&texts);
}

#[test]
fn decimals_of_any_length_and_size_are_rounded_right() {
    let mut random = Rng::new(2);
    let texts: Vec<String> = (0..TEXTS).map(|_| decimal(&mut random)).collect();
    compare_f32(
        &texts.iter().filter(|text| text.parse::<f32>().unwrap().is_finite()).cloned().collect::<Vec<_>>(),
    );
    compare_f64(
        &texts.iter().filter(|text| text.parse::<f64>().unwrap().is_finite()).cloned().collect::<Vec<_>>(),
    );
}

/// A decimal of up to 25 digits, the point anywhere, with an exponent or without.
fn decimal(random: &mut Rng) -> String {
    let most = if random.below(4) == 0 { 25 } else { 18 };
    let count = 1 + random.below(most) as usize;
    let digits: String = (0..count).map(|_| char::from(b'0' + random.below(10) as u8)).collect();
    let point = random.below(count as u64 + 1) as usize;
    let (before, after) = digits.split_at(if random.below(2) == 0 { point } else { point.min(1) });
    let before = before.trim_start_matches('0');
    let before = if before.is_empty() { "0" } else { before };
    let sign = if random.below(2) == 0 { "-" } else { "" };
    let after = if after.is_empty() { String::new() } else { format!(".{after}") };
    let exponent = match random.below(4) {
        0 => format!("e{}", random.below(60).cast_signed() - 40),
        1 => format!("E+{}", random.below(30)),
        _ => String::new(),
    };
    format!("{sign}{before}{after}{exponent}")
}

#[test]
fn decimals_next_to_the_middle_between_two_f32_are_rounded_right() {
    let mut random = Rng::new(3);
    let mut texts = Vec::with_capacity(TEXTS);
    while texts.len() < TEXTS {
        let value = any_f32(&mut random).abs();
        let next = f32::from_bits(value.to_bits() + 1);
        if !next.is_finite() {
            continue;
        }
        // Exact: f64 has the bits for the middle of two neighbors.
        let middle = f64::midpoint(f64::from(value), f64::from(next));
        let nudged = f64::from_bits((middle.to_bits() + random.below(41)).wrapping_sub(20));
        let places = 12 + random.below(28) as usize;
        texts.push(match random.below(3) {
            0 => format!("{middle:.places$e}"),
            1 => format!("{nudged:.places$e}"),
            _ => format!("{nudged:?}"),
        });
    }
    compare_f32(&texts);
}

#[test]
fn whole_f32_between_those_that_exist_go_to_the_even_one() {
    let texts: Vec<String> = (0..2_000).map(|more| (16_777_216 + more).to_string()).collect();
    compare_f32(&texts);
}

#[test]
fn the_edges_of_f32_and_f64_are_read_exactly() {
    let texts = [
        "0",
        "-0",
        "0.0",
        "-0.0",
        "0e10",
        "-0.0e-99999",
        "0.000000000000000000000000000000000000000",
        "1e-46",
        "1e-99999",
        "7.0064923216240853e-46",
        "7.0064923216240854e-46",
        "7.006492321624085354618e-46",
        "1.401298464324817e-45",
        "1.1754943508222875e-38",
        "1.1754942807573643e-38",
        "1.17549431578e-38",
        "3.4028234663852886e38",
        "3.40282356779733661637e38",
        "340282346638528859811704183484516925440.0",
        "1",
        "-1",
        "9.5",
        "10.5",
        "123456.789",
        "12345678",
        "123456789",
        "99999999.99999999",
        "0.3",
        "0.30000000000000004",
        "9007199254740993.0",
        "1.00000000000000000000000000000000000001",
        "0.00012345678901234567890",
    ];
    let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
    compare_f32(&texts);
    compare_f64(&texts);
    let more = ["1.7976931348623157e308", "2.2250738585072014e-308", "5e-324", "2.4703282292062328e-324"];
    compare_f64(&more.map(String::from));
}

#[test]
fn numbers_out_of_range_are_rejected() {
    for (text, dtype) in [
        ("1e39", DType::F32),
        ("-3.4028235678e38", DType::F32),
        ("1e99999999999999999999", DType::F32),
        ("1e309", DType::F64),
        ("65520", DType::F16),
        ("1e5", DType::F16),
        ("3.4e38", DType::F16),
        ("3.397e38", DType::BF16),
        ("256", DType::U8),
        ("-1", DType::U8),
        ("128", DType::I8),
        ("-129", DType::I8),
        ("9223372036854775808", DType::I64),
        ("-9223372036854775809", DType::I64),
        ("18446744073709551616", DType::U64),
        ("99999999999999999999999999", DType::U64),
    ] {
        let error = read(text, dtype).unwrap_err().to_string();
        assert_eq!(error, format!("input: {text} is out of range for {dtype} (at byte 0)"));
    }
}

#[test]
fn integers_are_exact_up_to_their_limits() {
    for text in ["0", "-0", "7", "12345678", "123456789012", "9223372036854775807", "-9223372036854775808"] {
        compare(DType::I64, &[text.to_owned()], |text| text.parse::<i64>().unwrap().to_le_bytes());
    }
    for text in ["0", "9223372036854775808", "18446744073709551615"] {
        compare(DType::U64, &[text.to_owned()], |text| text.parse::<u64>().unwrap().to_le_bytes());
    }
    let all: Vec<String> = (-128..128).map(|value: i32| value.to_string()).collect();
    compare(DType::I8, &all, |text| text.parse::<i8>().unwrap().to_le_bytes());
    compare(DType::I32, &all, |text| text.parse::<i32>().unwrap().to_le_bytes());
}

/// What rounds a decimal of `places` digits after the point to sixteen bits, by whole numbers alone: every value of
/// the format between 0 and 2048 is a multiple of `2^-unit`, and so is twice any middle.
fn nearest(digits: u64, places: u32, magnitudes: &[(u128, u16)], unit: u32) -> u16 {
    // In units of 2^-(unit + 1) and scaled by ten to the places.
    let requested = u128::from(digits) << (unit + 1);
    let scale = 10_u128.pow(places);
    let above = magnitudes.partition_point(|(magnitude, _)| magnitude * 2 * scale <= requested);
    let (low, low_bits) = magnitudes[above - 1];
    let (high, high_bits) = magnitudes[above];
    match requested.cmp(&((low + high) * scale)) {
        std::cmp::Ordering::Less => low_bits,
        std::cmp::Ordering::Equal if low_bits & 1 == 0 => low_bits,
        std::cmp::Ordering::Equal | std::cmp::Ordering::Greater => high_bits,
    }
}

fn check_short(dtype: DType, widen: impl Fn(u16) -> f64, unit: u32) {
    // All values that are multiples of 2^-unit, and beyond those that texts are made of.
    let scale = (1_u64 << unit) as f64;
    let magnitudes: Vec<(u128, u16)> = (0..0x7f80_u16)
        .map(|bits| (widen(bits), bits))
        .filter(|(value, _)| *value <= 2048.0 && (value * scale).fract() == 0.0)
        .map(|(value, bits)| ((value * scale) as u128, bits))
        .collect();
    assert!(magnitudes.is_sorted() && magnitudes.len() > 1000);
    let lowest = magnitudes[1].0 as f64 / scale;
    let mut random = Rng::new(4);
    for _ in 0..TEXTS {
        let (low, _) = magnitudes[random.below(magnitudes.len() as u64 - 1) as usize];
        let value = (low as f64 / scale).clamp(lowest * 300.0, 1024.0);
        let places = 1 + random.below(16) as u32;
        let digits = (value * 10_f64.powi(places.cast_signed())) as u64 + random.below(30);
        check_one(dtype, digits, places, nearest(digits, places, &magnitudes, unit));
    }
    // The middles themselves, written out in full and one off in the last digit.
    for pair in magnitudes.windows(2).filter(|pair| pair[0].0 >= 1 << (unit - 6)) {
        let doubled = pair[0].0 + pair[1].0;
        let zeros = doubled.trailing_zeros().min(unit + 1);
        let places = unit + 1 - zeros;
        let digits = (doubled >> zeros) as u64 * 5_u64.pow(places);
        for digits in [digits - 1, digits, digits + 1] {
            check_one(dtype, digits, places, nearest(digits, places, &magnitudes, unit));
        }
    }
}

fn check_one(dtype: DType, digits: u64, places: u32, expected: u16) {
    let text = format!("{digits:0>width$}", width = places as usize + 1);
    let (before, after) = text.split_at(text.len() - places as usize);
    let after = if after.is_empty() { "0" } else { after };
    for text in [
        format!("{before}.{after}"),
        format!("{digits}e-{places}"),
        format!("-{before}.{after}0000000000000000"),
    ] {
        let sign = if text.starts_with('-') { 0x8000 } else { 0 };
        assert_eq!(read(&text, dtype).unwrap().data()[..], (expected | sign).to_le_bytes(), "{dtype} {text}");
    }
}

#[test]
fn half_floats_are_rounded_once() {
    check_short(DType::F16, |bits| half::f16::from_bits(bits).to_f64(), 24);
}

#[test]
fn bfloats_are_rounded_once() {
    check_short(DType::BF16, |bits| half::bf16::from_bits(bits).to_f64(), 17);
}

#[test]
fn a_half_float_next_to_a_middle_needs_all_digits() {
    // 1 + 2^-11 is the middle between 1 and its neighbor 0x3c01.
    for (text, bits) in [
        ("1.00048828125", 0x3c00_u16),
        ("1.000488281250000000000000000000000000000000000000001", 0x3c01),
        ("1.00048828124999999999999999999999999999999999999", 0x3c00),
        ("1.00146484375", 0x3c02),
        ("1.0014648437499999999999999999999999999999999999999", 0x3c01),
        ("2.98023223876953125e-8", 0),
        ("2.980232238769531250000000000000000000001e-8", 1),
        ("2.9802322387695313e-8", 1),
        ("1e-300", 0),
        ("65519.99999999999999999999999999", 0x7bff),
    ] {
        assert_eq!(read(text, DType::F16).unwrap().data()[..], bits.to_le_bytes(), "{text}");
    }
    for (text, bits) in [
        // The middle between zero and the smallest bfloat, 2^-134, and its neighbors.
        ("4.591774807899560578e-41", 0),
        ("4.591774807899560579e-41", 1),
        ("4.59177480789956057800e-41", 0),
        (
            "4.591774807899560578002877098524397178979162331140966880893561352650067419745028018951416015625e-41",
            0,
        ),
        (
            "4.591774807899560578002877098524397178979162331140966880893561352650067419745028018951416015626e-41",
            1,
        ),
        ("9.2e-41", 1),
        ("3.39e38", 0x7f7f_u16),
    ] {
        assert_eq!(read(text, DType::BF16).unwrap().data()[..], bits.to_le_bytes(), "{text}");
    }
}
