//! Points in time, in whole seconds: bills are compared to the second.

use cudock_base::Timestamp;

/// Seconds since 1970 on the clock of the cloud.
pub(crate) type Seconds = u64;

/// The format of Resource Manager, Batch and Logic Apps.
pub(crate) fn utc(time: Seconds) -> String {
    Timestamp::from_millis(time * 1000).to_string().replace(".000Z", ".0000000Z")
}

/// The format of Compute and of the executions of Container Apps.
pub(crate) fn with_offset(time: Seconds) -> String {
    utc(time).replace(".0000000Z", "+00:00")
}

/// The format of `systemData` in Container Apps: UTC, but without a zone.
pub(crate) fn without_zone(time: Seconds) -> String {
    utc(time).replace('Z', "")
}

/// The format of the `Date` header: `Tue, 17 Nov 2026 02:00:00 GMT`.
pub(crate) fn http_date(time: Seconds) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let weekday = DAYS[usize::try_from(time / 86_400 % 7).unwrap()];
    let text = utc(time);
    let month = MONTHS[text[5..7].parse::<usize>().unwrap() - 1];
    format!("{weekday}, {} {month} {} {} GMT", &text[8..10], &text[..4], &text[11..19])
}

/// The second in which a text as services and clients write it lies.
pub(crate) fn parse(text: &str) -> Option<Seconds> {
    Some(Timestamp::parse(text)?.millis()? / 1000)
}

/// The seconds of an ISO 8601 duration of days and smaller units: `PT15M`, `P1DT2H`, `PT05M00S`.
pub(crate) fn duration(text: &str) -> Option<Seconds> {
    let text = text.strip_prefix('P')?;
    let (days, time) = text.split_once('T').unwrap_or((text, ""));
    let mut seconds = 0.0;
    for (part, units) in [(days, [('W', 604_800.0), ('D', 86_400.0), ('D', 0.0)]), (time, TIME_UNITS)] {
        let mut rest = part;
        while let Some(at) = rest.find(|character: char| character.is_ascii_alphabetic()) {
            let unit = rest[at..].chars().next()?;
            let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
            seconds += rest[..at].parse::<f64>().ok()? * factor;
            rest = &rest[at + 1..];
        }
        if !rest.is_empty() {
            return None;
        }
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    Some(seconds as Seconds)
}

const TIME_UNITS: [(char, f64); 3] = [('H', 3600.0), ('M', 60.0), ('S', 1.0)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_clients_write_them() {
        for (text, expected) in [
            ("PT15M", Some(900)),
            ("PT05M00S", Some(300)),
            ("P1DT2H", Some(93_600)),
            ("PT3600S", Some(3600)),
            ("P10675199DT2H48M5.4775807S", Some(922_337_203_685)),
            ("15M", None),
            ("PT15", None),
            ("PT1X", None),
        ] {
            assert_eq!(duration(text), expected, "{text}");
        }
    }

    #[test]
    fn dates_have_weekdays() {
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(1_794_745_805), "Sun, 15 Nov 2026 12:30:05 GMT");
    }

    #[test]
    fn every_form_is_read_back() {
        let time = 1_794_745_805;
        for text in [utc(time), with_offset(time), without_zone(time)] {
            assert_eq!(parse(&text), Some(time), "{text}");
        }
    }
}
