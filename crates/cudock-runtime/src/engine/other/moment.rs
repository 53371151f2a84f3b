//! Moments as engines write them.

/// Milliseconds since 1970 of a moment such as 2026-11-15T12:44:50.351033891+01:00. None where it is not one, or is
/// before 1970, which is how engines write "never".
pub(super) fn milliseconds(text: &str) -> Option<u64> {
    let (date, time) = text.split_once('T')?;
    let mut date = date.split('-').map(number);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let zone_at = time.find(['Z', '+', '-'])?;
    let (clock, zone) = time.split_at_checked(zone_at)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut clock = clock.split(':').map(number);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let sensible = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !sensible {
        return None;
    }
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset(zone)?;
    u64::try_from(seconds * 1000 + number(&thousandths)?).ok()
}

/// Seconds that a zone is ahead.
fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let ahead = number(hours)? * 3600 + number(minutes)? * 60;
    Some(if zone.starts_with('-') { -ahead } else { ahead })
}

fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Days from 1970 to a date, counted in years that begin in March, so that the odd day of a leap year is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn moments_are_read_in_any_zone() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T00:00:00.123Z", Some(951_782_400_123)),
            ("2026-11-15T12:30:05.007999999Z", Some(1_794_745_805_007)),
            ("2026-11-15T13:30:05.007+01:00", Some(1_794_745_805_007)),
            ("2026-11-15T07:00:05.007-05:30", Some(1_794_745_805_007)),
            ("2100-03-01T00:00:00.5Z", Some(4_107_542_400_500)),
        ] {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
    }

    #[test]
    fn never_and_nonsense_are_no_moments() {
        for text in [
            "0001-01-01T00:00:00Z",
            "",
            "T",
            "2026-11-15",
            "2026-13-01T00:00:00Z",
            "2026-01-01T25:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00Z",
            "2026-01-01T00:00:00+é",
            "99999999999-01-01T00:00:00Z",
        ] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }
}
