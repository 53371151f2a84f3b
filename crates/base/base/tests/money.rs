//! Money against arithmetic that cannot overflow: a product of two 128-bit numbers, divided bit by bit.
#![allow(clippy::expect_used, reason = "a test that fails panics")]

use cudock_base::Usd;
use proptest::prelude::*;

/// `factor * other / divisor`, rounded up; none above 128 bits. Schoolbook division, one bit at a time.
fn share_by_hand(factor: u128, other: u128, divisor: u128) -> Option<u128> {
    let (high, low) = wide_product(factor, other);
    let (mut quotient, mut rest) = (0_u128, 0_u128);
    let mut quotient_left = false;
    for bit in (0..256).rev() {
        let digit = if bit >= 128 { high >> (bit - 128) & 1 } else { low >> bit & 1 };
        // `rest` is below the divisor, so the bit that falls out on the left is worth more than the divisor.
        let carried = rest >> 127 == 1;
        rest = rest << 1 | digit;
        quotient_left |= quotient >> 127 == 1;
        quotient <<= 1;
        if carried || rest >= divisor {
            rest = rest.wrapping_sub(divisor);
            quotient |= 1;
        }
    }
    let rounded = if rest > 0 { quotient.checked_add(1)? } else { quotient };
    (!quotient_left).then_some(rounded)
}

/// The upper and lower 128 bits of a product.
fn wide_product(left: u128, right: u128) -> (u128, u128) {
    const HALF: u128 = u64::MAX as u128;
    let (left_high, left_low) = (left >> 64, left & HALF);
    let (right_high, right_low) = (right >> 64, right & HALF);
    let low = left_low * right_low;
    let middle = left_high * right_low + (low >> 64);
    let other_middle = left_low * right_high + (middle & HALF);
    let high = left_high * right_high + (middle >> 64) + (other_middle >> 64);
    (high, other_middle << 64 | low & HALF)
}

/// Numbers of every length, not only those near 2^128.
fn of_any_length() -> impl Strategy<Value = u128> {
    (any::<u128>(), 0_u32..128).prop_map(|(number, shift)| number >> shift)
}

#[test]
fn the_reference_implementation_is_right() {
    // 7 x 3 / 2 = 10.5, up: 11. (2^128 - 1)^2 / (2^128 - 1) = 2^128 - 1. 2^127 x 4 / 1 does not fit.
    assert_eq!(share_by_hand(7, 3, 2), Some(11));
    assert_eq!(share_by_hand(u128::MAX, u128::MAX, u128::MAX), Some(u128::MAX));
    assert_eq!(share_by_hand(1 << 127, 4, 1), None);
    assert_eq!(share_by_hand(1 << 127, 4, 8), Some(1 << 126));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_share_is_the_quotient_rounded_up_once(
        nanos in of_any_length(), numerator in of_any_length(), denominator in of_any_length(),
    ) {
        let share = Usd::from_nanos(nanos).share(numerator, denominator);
        let expected = if denominator == 0 { 0 } else {
            share_by_hand(nanos, numerator, denominator).unwrap_or(u128::MAX)
        };
        prop_assert_eq!(share.nanos(), expected);
    }

    #[test]
    fn a_time_costs_its_part_of_the_hour_rounded_up_once(micros in any::<u64>(), millis in any::<u64>()) {
        // Millionths of a dollar are 1000 billionths; an hour is 3,600,000 ms.
        let expected = share_by_hand(u128::from(micros) * 1000, u128::from(millis), 3_600_000);
        let share = Usd::from_micros(micros).share(u128::from(millis), 3_600_000);
        prop_assert_eq!(Some(share.nanos()), expected);
    }

    #[test]
    fn a_sum_is_exact_in_any_order(mut nanos in prop::collection::vec(any::<u64>(), 0..50)) {
        let money = |nanos: &u64| Usd::from_nanos(u128::from(*nanos));
        let sum = |nanos: &[u64]| nanos.iter().map(money).sum::<Usd>();
        let there = sum(&nanos);
        nanos.reverse();
        prop_assert_eq!(there, sum(&nanos));
        prop_assert_eq!(there.nanos(), nanos.iter().map(|part| u128::from(*part)).sum::<u128>());
    }

    #[test]
    fn sums_and_products_saturate(
        nanos in of_any_length(), more in of_any_length(), count in any::<u64>(),
    ) {
        let (money, other) = (Usd::from_nanos(nanos), Usd::from_nanos(more));
        prop_assert_eq!((money + other).nanos(), nanos.saturating_add(more));
        prop_assert_eq!(money.times(count).nanos(), nanos.saturating_mul(u128::from(count)));
        prop_assert!(money + other >= money);
    }

    #[test]
    fn rounded_amounts_are_right_to_the_cent(nanos in any::<u64>()) {
        let money = Usd::from_nanos(u128::from(nanos));
        let text = money.rounded();
        let (whole, fraction) = text.split_once('.').expect("dollars and a fraction");
        if nanos >= 10_000_000 {
            prop_assert_eq!(fraction.len(), 2);
            let cents: u64 = format!("{whole}{fraction}").parse().expect("digits");
            // Half a cent is 5,000,000 billionths: no further off than that.
            prop_assert!((u128::from(cents) * 10_000_000).abs_diff(u128::from(nanos)) <= 5_000_000);
        } else if nanos > 0 {
            prop_assert_eq!(whole, "0");
            prop_assert!(fraction.bytes().any(|digit| digit != b'0'), "{} is zero", text);
        }
    }
}

/// 0.526 USD an hour for 40 minutes: 0.526 x 2400 / 3600 = 0.35066666667, up to the next billionth.
#[test]
fn forty_minutes_of_the_smallest_t4_are_35_cents() {
    let cost = Usd::from_micros(526_000).share(40 * 60, 3600);
    assert_eq!(cost, Usd::from_nanos(350_666_667));
    assert_eq!(cost.rounded(), "0.35");
}

/// A third of a cent three times is a billionth more than a cent at most: each part is rounded up by itself.
#[test]
fn three_thirds_are_never_less_than_the_whole() {
    let third = Usd::from_cents(1).share(1, 3);
    assert_eq!(third.nanos(), 3_333_334);
    assert_eq!(third.times(3).nanos(), 10_000_002);
}
