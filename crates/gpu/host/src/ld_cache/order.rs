//! The order of a cache. The loader searches it by halves, so one entry out of place hides others.

use std::cmp::Ordering;

use super::{CacheEntry, Hwcap};

/// How the loader compares names: runs of digits as numbers, and before anything else.
pub fn compare_names(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    loop {
        match (one.split_first(), other.split_first()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some((a, _)), Some((b, _))) if a.is_ascii_digit() && b.is_ascii_digit() => {
                let (left, right) = (number(&mut one), number(&mut other));
                if left != right {
                    return left.cmp(&right);
                }
            }
            (Some((a, _)), _) if a.is_ascii_digit() => return Ordering::Greater,
            (Some(_), Some((b, _))) if b.is_ascii_digit() => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some((a, rest)), Some((b, others))) => {
                if a != b {
                    // The loader's characters are signed on most processors.
                    return a.cast_signed().cmp(&b.cast_signed());
                }
                (one, other) = (rest, others);
            }
        }
    }
}

/// Takes a run of digits off the front. It wraps around where the loader's number does.
fn number(text: &mut &[u8]) -> i32 {
    let mut value = 0_i32;
    while let Some((digit, rest)) = text.split_first().filter(|(digit, _)| digit.is_ascii_digit()) {
        value = value.wrapping_mul(10).wrapping_add(i32::from(digit - b'0'));
        *text = rest;
    }
    value
}

/// The order of entries: names backwards, then marks of programs backwards, then those for certain
/// processors before those for all. The sort is stable.
pub(super) fn compare(one: &CacheEntry, other: &CacheEntry) -> Ordering {
    compare_names(&other.name, &one.name)
        .then_with(|| other.flags.cast_signed().cmp(&one.flags.cast_signed()))
        .then_with(|| match (&one.hwcap, &other.hwcap) {
            (Hwcap::Named(one), Hwcap::Named(other)) => one.cmp(other),
            (Hwcap::Named(_), Hwcap::Bits(_)) => Ordering::Less,
            (Hwcap::Bits(_), Hwcap::Named(_)) => Ordering::Greater,
            (Hwcap::Bits(one), Hwcap::Bits(other)) => {
                other.count_ones().cmp(&one.count_ones()).then_with(|| other.cmp(one))
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_compare_as_the_loader_compares_them() {
        use Ordering::{Equal, Greater, Less};
        for (one, other, order) in [
            ("libc.so.6", "libc.so.6", Equal),
            ("libfoo.so.2", "libfoo.so.10", Less),
            ("libfoo.so.01", "libfoo.so.1", Equal),
            ("libfoo.so", "libfoo.so.1", Less),
            ("lib1.so", "liba.so", Greater),
            ("liba.so", "lib1.so", Less),
            ("libA.so", "liba.so", Less),
            ("lib", "lib1", Less),
            ("lib1", "lib", Greater),
        ] {
            assert_eq!(compare_names(one, other), order, "{one} and {other}");
        }
    }
}
