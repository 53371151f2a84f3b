//! Amounts, rates and machines as reports show them.

use std::fmt::Display;

use cudock_base::Usd;
use cudock_base::text::format::thousands;

use crate::plan::placement::Placement;
use crate::workload::DayLoad;

/// Dollars, with thousands separators from ten thousand on: `$12,345.67`.
pub fn dollars(amount: Usd) -> String {
    let text = amount.rounded();
    match text.split_once('.') {
        Some((whole, rest)) if whole.len() >= 5 => format!("${}.{rest}", thousands(whole)),
        _ => format!("${text}"),
    }
}

/// A price per hour, to a tenth of a cent if it has one.
pub fn hourly(amount: Usd) -> String {
    let millis = (amount.nanos() + 500_000) / 1_000_000;
    if millis.is_multiple_of(10) {
        amount.rounded()
    } else {
        format!("{}.{:03}", millis / 1000, millis % 1000)
    }
}

/// All digits without trailing zeros, for programs that add amounts up.
pub fn exact(amount: Usd) -> String {
    amount.to_string().trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The GPUs of one instance: `8 x H100`, `1/2 A10`.
pub fn gpus(placement: &Placement) -> String {
    let gpu = &placement.gpu;
    match placement.gpus_per_instance {
        0 => gpu.clone(),
        share @ 1..1000 => format!("1/{} {gpu}", (1000 + share / 2) / share),
        whole => format!("{} x {gpu}", whole / 1000),
    }
}

/// Thousandths as a decimal number.
pub(crate) fn thousandths(count: u64) -> String {
    let digits = format!("{:03}", count % 1000);
    match digits.trim_end_matches('0') {
        "" => (count / 1000).to_string(),
        digits => format!("{}.{digits}", count / 1000),
    }
}

/// The first names of a list, and how many more there are.
pub(crate) fn shortened<T: Display>(names: &[T]) -> String {
    const SHOWN: usize = 6;
    let shown: Vec<String> = names.iter().take(SHOWN).map(ToString::to_string).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The hours of a day with one rate each: `5/s 08-20 UTC, 0/s 20-08 UTC`.
pub fn load(load: &DayLoad) -> String {
    // A night is one piece although it includes midnight, so begin where the rate changes.
    let hours = &load.hours;
    let at = |hour: usize| hours.get(hour % 24).copied().unwrap_or_default();
    let Some(first) = (0..24).find(|hour| at(*hour) != at(hour + 23)) else {
        return format!("requests: {} all day", at(0));
    };
    let mut pieces = Vec::new();
    let mut begin = first;
    for hour in first + 1..=first + 24 {
        if hour == first + 24 || at(hour) != at(begin) {
            pieces.push(format!("{} {:02}-{:02} h", at(begin), begin % 24, hour % 24));
            begin = hour;
        }
    }
    if pieces.len() > 6 {
        let highest = hours.iter().max().copied().unwrap_or_default();
        let lowest = hours.iter().min().copied().unwrap_or_default();
        return format!("requests: {lowest} to {highest} over the day");
    }
    format!("requests: {} (UTC)", pieces.join(", "))
}

/// Three significant digits without trailing zeros: `0.0125`, `3.5`, `1,200`.
pub fn short(value: f64) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::per_second;

    #[test]
    fn money_reads_well_and_exact_money_loses_nothing() {
        assert_eq!(dollars(Usd::from_cents(1_234_567)), "$12,345.67");
        assert_eq!(dollars(Usd::from_cents(999_999)), "$9999.99");
        assert_eq!(dollars(Usd::from_nanos(1_230_000)), "$0.0012");
        assert_eq!(exact(Usd::from_nanos(1_230_000_001)), "1.230000001");
        assert_eq!(exact(Usd::from_cents(500)), "5");
        assert_eq!(hourly(Usd::from_nanos(526_000_000)), "0.526");
        assert_eq!(hourly(Usd::from_nanos(2_750_000_000)), "2.75");
    }

    #[test]
    fn long_lists_are_shortened() {
        assert_eq!(shortened(&["a", "b"]), "a, b");
        assert_eq!(shortened(&[1, 2, 3, 4, 5, 6, 7, 8]), "1, 2, 3, 4, 5, 6 and 2 more");
    }

    #[test]
    fn a_day_is_described_by_the_hours_at_which_its_rate_changes() {
        let mut hours = [per_second(0); 24];
        assert_eq!(load(&DayLoad { hours }), "requests: 0/s all day");
        for hour in hours.iter_mut().take(20).skip(8) {
            *hour = per_second(5000);
        }
        assert_eq!(load(&DayLoad { hours }), "requests: 5/s 08-20 h, 0/s 20-08 h (UTC)");
    }

    #[test]
    fn three_digits_are_significant() {
        for (value, text) in
            [(0.0125, "0.0125"), (3.5, "3.5"), (1234.0, "1,234"), (0.0, "0"), (250.0, "250"), (99.96, "100")]
        {
            assert_eq!(short(value), text);
        }
    }
}
