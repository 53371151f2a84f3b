//! When a price begins and ends.

use cudock_facts::version::Date;

/// A second in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    date: Date,
    second: u32,
}

impl Moment {
    /// Reads `2021-04-01T00:00:00Z`; parts of a second and the `Z` may be left out, and so may the time.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let date = text.get(..10)?.parse().ok()?;
        let rest = text.get(10..)?;
        if rest.is_empty() {
            return Some(Self { date, second: 0 });
        }
        let clock = rest.strip_prefix(['T', 't', ' '])?;
        let clock = clock.strip_suffix(['Z', 'z']).unwrap_or(clock);
        let (clock, part) = clock.split_once('.').unwrap_or((clock, "0"));
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let mut second = 0;
        let mut fields = clock.split(':');
        for limit in [24, 60, 61] {
            let field = fields.next()?;
            let value: u32 = field.parse().ok().filter(|value| *value < limit && field.len() == 2)?;
            second = second * 60 + value;
        }
        fields.next().is_none().then_some(Self { date, second })
    }

    /// Whether it lies after the day.
    pub(crate) fn is_after(self, day: Date) -> bool {
        self.date > day
    }

    /// Whether it had come when the day began.
    pub(crate) fn had_come_on(self, day: Date) -> bool {
        self <= Self { date: day, second: 0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn moments_are_ordered_whatever_their_form() {
        let texts = [
            "2021-04-01",
            "2021-04-01T00:00:01Z",
            "2021-04-01T10:00:00.0000000Z",
            "2021-04-01T23:59:59",
            "2026-01-01T00:00:00Z",
        ];
        let moments: Vec<Moment> = texts.iter().map(|text| Moment::parse(text).unwrap()).collect();
        assert!(moments.is_sorted());
        assert_eq!(Moment::parse("2021-04-01"), Moment::parse("2021-04-01T00:00:00Z"));
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for text in [
            "",
            "soon",
            "2021-13-01",
            "2021-04-01T",
            "2021-04-01T25:00:00Z",
            "2021-04-01T00:00:00+02:00",
            "2021-04-01T1:00:00Z",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_day_knows_what_has_ended_and_what_has_not_begun() {
        let day = "2026-11-15".parse().unwrap();
        let at = |text: &str| Moment::parse(text).unwrap();
        assert!(at("2026-11-15T00:00:00Z").had_come_on(day));
        assert!(!at("2026-11-15T00:00:01Z").had_come_on(day));
        assert!(at("2026-11-16").is_after(day));
        assert!(!at("2026-11-15T23:59:59Z").is_after(day));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}|[0-9TZ:. -]{0,30}") {
            let _ = Moment::parse(&text);
        }
    }
}
