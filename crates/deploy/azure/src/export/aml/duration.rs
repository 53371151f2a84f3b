//! Durations as Azure writes them.

/// The milliseconds of an ISO 8601 duration in days, hours, minutes and seconds.
pub(super) fn milliseconds(text: &str) -> Result<u64, String> {
    let invalid = || format!("`{text}` is not a duration");
    let rest = text.strip_prefix('P').ok_or_else(invalid)?;
    let (days, times) = rest.split_once('T').unwrap_or((rest, ""));
    let total =
        sum(days, &[('D', 86_400_000)]).zip(sum(times, &[('H', 3_600_000), ('M', 60_000), ('S', 1000)]));
    total.and_then(|(days, times)| days.checked_add(times)).filter(|_| !rest.is_empty()).ok_or_else(invalid)
}

/// Adds up numbers that are each followed by a unit.
fn sum(mut text: &str, units: &[(char, u64)]) -> Option<u64> {
    let mut total: u64 = 0;
    while !text.is_empty() {
        let at = text.find(|c: char| !c.is_ascii_digit())?;
        let (number, rest) = text.split_at(at);
        let unit = rest.chars().next()?;
        let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(*factor)?)?;
        text = rest.get(unit.len_utf8()..)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_azure_are_read() {
        let cases = [
            ("PT30S", Some(30_000)),
            ("PT2H", Some(7_200_000)),
            ("P1DT1H1M1S", Some(90_061_000)),
            ("PT05M00S", Some(300_000)),
            ("P", None),
            ("PT", Some(0)),
            ("PT1", None),
            ("PTS", None),
            ("1H", None),
            ("PT99999999999999999999S", None),
        ];
        for (text, expected) in cases {
            assert_eq!(milliseconds(text).ok(), expected, "{text}");
        }
    }
}
