//! Integer arithmetic that neither overflows nor rounds more than once.

/// `a * b / c` rounded up; the largest number if it does not fit or `c` is zero.
#[inline]
pub fn mul_div_ceil(a: u128, b: u128, c: u128) -> u128 {
    match (a.checked_mul(b), c) {
        (_, 0) => u128::MAX,
        (Some(product), _) => product.div_ceil(c),
        (None, _) => wide_mul_div_ceil(a, b, c),
    }
}

/// The same for a product that does not fit: long multiplication by the bits of `b`, with quotient
/// and remainder kept apart.
fn wide_mul_div_ceil(a: u128, b: u128, c: u128) -> u128 {
    let (whole, part) = (a / c, a % c);
    let (mut quotient, mut remainder) = (Some(0_u128), 0_u128);
    for bit in (0..128).rev() {
        // Both double, and `a` is added where the bit is set; the remainder stays below `c`.
        let (doubled, carry) = add_modulo(remainder, remainder, c);
        let (sum, more) = if b >> bit & 1 == 1 { add_modulo(doubled, part, c) } else { (doubled, 0) };
        let step = if b >> bit & 1 == 1 { whole } else { 0 };
        remainder = sum;
        quotient = quotient
            .and_then(|quotient| quotient.checked_mul(2)?.checked_add(carry + more)?.checked_add(step));
    }
    quotient.and_then(|quotient| quotient.checked_add(u128::from(remainder > 0))).unwrap_or(u128::MAX)
}

/// The sum of two numbers below `c` modulo `c`, and the carry.
fn add_modulo(a: u128, b: u128, c: u128) -> (u128, u128) {
    let left = c - b;
    if a >= left { (a - left, 1) } else { (a + b, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_that_does_not_fit_is_divided_exactly() {
        // 2^127 x 6 / 8 = 3 x 2^125; one more in the product rounds up.
        assert_eq!(mul_div_ceil(1 << 127, 6, 8), 3 << 125);
        assert_eq!(mul_div_ceil(u128::MAX, u128::MAX, u128::MAX), u128::MAX);
        assert_eq!(mul_div_ceil((1 << 127) + 1, 6, 8), (3 << 125) + 1);
    }

    #[test]
    fn results_that_do_not_fit_saturate() {
        assert_eq!(mul_div_ceil(u128::MAX, 2, 1), u128::MAX);
        assert_eq!(mul_div_ceil(u128::MAX, 2, 2), u128::MAX);
        assert_eq!(mul_div_ceil(u128::MAX, 3, 2), u128::MAX);
        assert_eq!(mul_div_ceil(5, 5, 0), u128::MAX);
    }
}
