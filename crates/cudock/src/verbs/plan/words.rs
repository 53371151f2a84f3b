//! Times, amounts and machines as people read them.

use std::time::Duration;

use cudock_plan::{DayLoad, Management, Money, PartKind, PerSecond, Placement, Priority};

/// The two largest units: `45 s`, `12 min`, `3 h 20 min`, `7 d 4 h`. Seconds do not matter beside ten minutes, nor minutes
/// beside ten hours.
pub(super) fn time(time: Duration) -> String {
    spelled(time, 10)
}

/// The same with both units, however large the larger is: for times that are compared.
pub(super) fn exact_time(time: Duration) -> String {
    spelled(time, u64::MAX)
}

/// The smaller unit is left out from so many of the larger on, days excepted.
fn spelled(time: Duration, alone_from: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let seconds = time.as_secs() + u64::from(time.subsec_millis() >= 500);
    if seconds == 0 {
        return if time.is_zero() { "0 s".to_owned() } else { format!("{} ms", time.as_millis()) };
    }
    for (index, (unit, name)) in UNITS.iter().enumerate() {
        if seconds < *unit {
            continue;
        }
        let smaller = UNITS.get(index + 1).filter(|_| seconds / unit < alone_from || *unit == 86_400);
        let Some((part, part_name)) = smaller else {
            return format!("{} {name}", (seconds + unit / 2) / unit);
        };
        let parts = (seconds + part / 2) / part;
        let (whole, rest) = (parts / (unit / part), parts % (unit / part));
        return if rest == 0 {
            format!("{whole} {name}")
        } else {
            format!("{whole} {name} {rest} {part_name}")
        };
    }
    format!("{seconds} s")
}

/// Dollars, with the thousands set apart from ten thousand on.
pub(super) fn dollars(money: Money) -> String {
    let text = money.to_string();
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    if whole.len() < 5 {
        return format!("${text}");
    }
    format!("${}.{rest}", thousands(whole))
}

/// A price an hour, to a tenth of a cent where it has one.
pub(super) fn hourly(money: Money) -> String {
    let millis = (money.nanos() + 500_000) / 1_000_000;
    if millis.is_multiple_of(10) || millis == 0 {
        money.to_string()
    } else {
        format!("{}.{:03}", millis / 1000, millis % 1000)
    }
}

/// Every digit there is: for programs that add up.
pub(super) fn exact(money: Money) -> String {
    let (whole, rest) = (money.nanos() / 1_000_000_000, money.nanos() % 1_000_000_000);
    let digits = format!("{rest:09}");
    match digits.trim_end_matches('0') {
        "" => whole.to_string(),
        digits => format!("{whole}.{digits}"),
    }
}

/// Digits in groups of three.
pub(super) fn thousands(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `16 GB`; large amounts in TB.
pub(super) fn bytes(bytes: u64) -> String {
    let shown = |unit: u64, name: &str| {
        let tenths = (bytes + unit / 20) / (unit / 10);
        match tenths % 10 {
            0 => format!("{} {name}", tenths / 10),
            rest => format!("{}.{rest} {name}", tenths / 10),
        }
    };
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        1_000_000..1_000_000_000 => shown(1_000_000, "MB"),
        1_000_000_000..1_000_000_000_000 => shown(1_000_000_000, "GB"),
        _ => shown(1_000_000_000_000, "TB"),
    }
}

/// `8 x H100`, `1/2 A10`.
pub(super) fn gpus(placement: &Placement) -> String {
    let gpu = &placement.gpu;
    match placement.gpus_per_instance {
        0 => gpu.clone(),
        share @ 1..1000 => format!("1/{} {gpu}", (1000 + share / 2) / share),
        whole => format!("{} x {gpu}", whole / 1000),
    }
}

pub(super) fn priority(priority: Priority) -> &'static str {
    match priority {
        Priority::Regular => "regular",
        Priority::Spot => "spot",
    }
}

pub(super) fn management(management: Management) -> &'static str {
    match management {
        Management::Own => "own",
        Management::Managed => "managed",
        Management::Serverless => "serverless",
    }
}

/// What files call a part of a cost.
pub(super) const fn part(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Compute => "compute",
        PartKind::ColdStart => "cold-start",
        PartKind::Idle => "idle",
        PartKind::Evictions => "evictions",
        PartKind::Rounding => "rounding",
        PartKind::Fee => "fee",
        PartKind::Disk => "disk",
        PartKind::Storage => "storage",
        PartKind::Egress => "egress",
    }
}

/// A rate without digits that say nothing: `5`, `0.25`.
pub(super) fn rate(rate: PerSecond) -> String {
    let digits = format!("{:03}", rate.millis % 1000);
    match digits.trim_end_matches('0') {
        "" => (rate.millis / 1000).to_string(),
        digits => format!("{}.{digits}", rate.millis / 1000),
    }
}

/// The hours of a day with one rate each: `5/s 08-20 UTC, 0/s 20-08 UTC`.
pub(super) fn load(load: &DayLoad) -> String {
    // A night that goes over midnight is one piece: begin where the rate changes.
    let hours = &load.hours;
    let at = |hour: usize| hours.get(hour % 24).copied().unwrap_or_default();
    let Some(first) = (0..24).find(|hour| at(*hour) != at(hour + 23)) else {
        return format!("{} requests/s all day", rate(at(0)));
    };
    let mut pieces = Vec::new();
    let mut begin = first;
    for hour in first + 1..=first + 24 {
        if hour == first + 24 || at(hour) != at(begin) {
            pieces.push(format!("{}/s {:02}-{:02} h", rate(at(begin)), begin % 24, hour % 24));
            begin = hour;
        }
    }
    if pieces.len() > 6 {
        let highest = hours.iter().max().copied().unwrap_or_default();
        let lowest = hours.iter().min().copied().unwrap_or_default();
        return format!("{} to {} requests/s over the day", rate(lowest), rate(highest));
    }
    format!("requests: {} (UTC)", pieces.join(", "))
}

/// `one`, or so many of them.
pub(super) fn count(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

/// Three digits that count, and none that say nothing: `0.0125`, `3.5`, `1,200`.
pub(super) fn short(value: f64) -> String {
    if value <= 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    if value >= 1000.0 {
        return thousands(&format!("{value:.0}"));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 12")]
    let digits = (2.0 - value.log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Seconds in words.
pub(super) fn seconds(seconds: f64) -> String {
    time(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_units_at_most() {
        for (seconds, text) in [
            (0, "0 s"),
            (45, "45 s"),
            (60, "1 min"),
            (95, "1 min 35 s"),
            (2400, "40 min"),
            (3599, "60 min"),
            (12_000, "3 h 20 min"),
            (7200, "2 h"),
            (86_399, "24 h"),
            (619_200, "7 d 4 h"),
        ] {
            assert_eq!(time(Duration::from_secs(seconds)), text, "{seconds}");
        }
        assert_eq!(time(Duration::from_millis(40)), "40 ms");
        assert_eq!(exact_time(Duration::from_secs(77_700)), "21 h 35 min");
    }

    #[test]
    fn money_reads_well_and_exact_money_loses_nothing() {
        assert_eq!(dollars(Money::from_cents(1_234_567)), "$12,345.67");
        assert_eq!(dollars(Money::from_cents(999_999)), "$9999.99");
        assert_eq!(dollars(Money::from_nanos(1_230_000)), "$0.0012");
        assert_eq!(exact(Money::from_nanos(1_230_000_001)), "1.230000001");
        assert_eq!(exact(Money::from_cents(500)), "5");
        assert_eq!(hourly(Money::from_nanos(526_000_000)), "0.526");
        assert_eq!(hourly(Money::from_nanos(2_750_000_000)), "2.75");
    }

    #[test]
    fn a_day_is_told_by_the_hours_its_rate_changes() {
        let of = |millis: u64| PerSecond { millis };
        let mut hours = [of(0); 24];
        assert_eq!(load(&DayLoad { hours }), "0 requests/s all day");
        for hour in hours.iter_mut().take(20).skip(8) {
            *hour = of(5000);
        }
        assert_eq!(load(&DayLoad { hours }), "requests: 5/s 08-20 h, 0/s 20-08 h (UTC)");
    }

    #[test]
    fn three_digits_count() {
        for (value, text) in
            [(0.0125, "0.0125"), (3.5, "3.5"), (1234.0, "1,234"), (0.0, "0"), (250.0, "250"), (99.96, "100")]
        {
            assert_eq!(short(value), text);
        }
    }
}
