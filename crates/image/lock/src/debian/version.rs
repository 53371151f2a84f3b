//! Versions of Debian packages and their order (Debian policy, section 5.6.12).

use std::cmp::Ordering;
use std::fmt;

/// A version, as in `1:2.36-9+deb12u10`. Equal versions may be written differently: `1.0` and `1.00`.
#[derive(Debug, Clone)]
pub struct DebVersion {
    text: String,
}

impl DebVersion {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Epoch, upstream version and revision.
    fn parts(&self) -> (&str, &str, &str) {
        let (epoch, rest) = self.text.split_once(':').unwrap_or(("0", &self.text));
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, "0"));
        (epoch, upstream, revision)
    }
}

impl fmt::Display for DebVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Ord for DebVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, two) = (self.parts(), other.parts());
        compare_part(one.0, two.0)
            .then_with(|| compare_part(one.1, two.1))
            .then_with(|| compare_part(one.2, two.2))
    }
}

impl PartialOrd for DebVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for DebVersion {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for DebVersion {}

/// Compares runs of other characters and runs of digits in turn.
fn compare_part(mut one: &str, mut two: &str) -> Ordering {
    while !one.is_empty() || !two.is_empty() {
        let (first, rest) = split(one, |byte| !byte.is_ascii_digit());
        let (second, other_rest) = split(two, |byte| !byte.is_ascii_digit());
        let ordering = compare_text(first, second);
        let (number, rest) = split(rest, |byte| byte.is_ascii_digit());
        let (other_number, other_rest) = split(other_rest, |byte| byte.is_ascii_digit());
        let ordering = ordering.then_with(|| compare_numbers(number, other_number));
        if ordering.is_ne() {
            return ordering;
        }
        (one, two) = (rest, other_rest);
    }
    Ordering::Equal
}

fn split(text: &str, is_in: impl Fn(u8) -> bool) -> (&str, &str) {
    // Every byte of a character beyond ASCII is in the same class, so that this is a boundary.
    text.split_at(text.bytes().position(|byte| !is_in(byte)).unwrap_or(text.len()))
}

/// Compares without digits: `~` is before the end, the end before letters, letters before everything else.
fn compare_text(one: &str, two: &str) -> Ordering {
    let weight = |byte: Option<u8>| match byte {
        Some(b'~') => -1,
        None => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(byte),
        Some(byte) => i32::from(byte) + 256,
    };
    let (mut one, mut two) = (one.bytes(), two.bytes());
    loop {
        let (first, second) = (one.next(), two.next());
        let ordering = weight(first).cmp(&weight(second));
        if ordering.is_ne() || (first.is_none() && second.is_none()) {
            return ordering;
        }
    }
}

/// Compares numbers of any length.
fn compare_numbers(one: &str, two: &str) -> Ordering {
    let (one, two) = (one.trim_start_matches('0'), two.trim_start_matches('0'));
    one.len().cmp(&two.len()).then_with(|| one.cmp(two))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn compare(one: &str, two: &str) -> Ordering {
        DebVersion::new(one).cmp(&DebVersion::new(two))
    }

    #[test]
    fn versions_are_ordered_as_dpkg_orders_them() {
        for (less, greater) in [
            ("1.0", "1.1"),
            ("1.9", "1.10"),
            ("1.0~rc1", "1.0"),
            ("1.0~~", "1.0~"),
            ("1.0", "1.0+b1"),
            ("1.0-1", "1.0-1+b1"),
            ("1.0a", "1.0+"),
            ("1.0", "1.0a"),
            ("2.36-9+deb12u9", "2.36-9+deb12u10"),
            ("9.0", "1:1.0"),
            ("1.0-1", "1.0-2"),
            ("1-1-1", "1-1-2"),
            ("0.9.9", "1"),
            ("3.11.2-1", "3.11.2-1+b1"),
            ("1.2.3-99999999999999999999998", "1.2.3-99999999999999999999999"),
        ] {
            assert_eq!(compare(less, greater), Ordering::Less, "{less} {greater}");
            assert_eq!(compare(greater, less), Ordering::Greater, "{less} {greater}");
        }
        for (one, same) in [("1.0", "1.00"), ("0:1", "1"), ("1", "1-0"), ("1.a", "1.a"), ("", "0")] {
            assert_eq!(compare(one, same), Ordering::Equal, "{one} {same}");
        }
    }

    proptest! {
        #[test]
        fn any_texts_have_a_total_order(
            texts in proptest::collection::vec("([0-9]:)?[0-9a-c.+~é]{0,6}(-[0-9a~]{0,3})?", 3)
        ) {
            let [a, b, c] = [0, 1, 2].map(|index| DebVersion::new(texts[index].clone()));
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            prop_assert_eq!(a.cmp(&a), Ordering::Equal);
            if a <= b && b <= c {
                prop_assert!(a <= c);
            }
        }
    }
}
