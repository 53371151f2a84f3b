//! Formats sizes, times and counts.

use std::time::Duration;

/// A size in decimal units, as disks, networks and GPUs count: `28.3 MB`, `16 GB`.
pub fn bytes(count: u64) -> String {
    scaled(count, &[(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")])
}

/// A size in binary units, as memory is counted: `28 GiB`.
pub fn binary_bytes(count: u64) -> String {
    scaled(count, &[(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")])
}

/// A size with a fixed number of decimals for each unit, so that sizes line up in a column: `512 B`, `28.3 MB`, `4.00 GB`.
pub fn fixed_bytes(count: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "shown with two decimals at most")]
    let bytes = count as f64;
    match bytes {
        0.0..1e3 => format!("{bytes:.0} B"),
        1e3..1e6 => format!("{:.1} kB", bytes / 1e3),
        1e6..1e9 => format!("{:.1} MB", bytes / 1e6),
        _ => format!("{:.2} GB", bytes / 1e9),
    }
}

/// A size with one decimal, or none if that is zero.
fn scaled(count: u64, units: &[(u64, &str)]) -> String {
    for &(unit, name) in units {
        if count >= unit {
            let tenths = (u128::from(count) * 10 + u128::from(unit) / 2) / u128::from(unit);
            return match tenths % 10 {
                0 => format!("{} {name}", tenths / 10),
                tenth => format!("{}.{tenth} {name}", tenths / 10),
            };
        }
    }
    format!("{count} B")
}

/// A time in its two largest units: `45 s`, `12 min`, `3 h 20 min`, `7 d 4 h`. Seconds are omitted
/// from ten minutes on, and minutes from ten hours on.
pub fn duration(time: Duration) -> String {
    rounded_duration(time, 10)
}

/// A time in its two largest units, for times that are compared.
pub fn precise_duration(time: Duration) -> String {
    rounded_duration(time, u64::MAX)
}

/// The smaller unit is left out from `alone_from` of the larger on, except for days.
fn rounded_duration(time: Duration, alone_from: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let seconds = time.as_secs().saturating_add(u64::from(time.subsec_millis() >= 500));
    if seconds == 0 {
        return if time.is_zero() { "0 s".to_owned() } else { format!("{} ms", time.as_millis()) };
    }
    for (index, (unit, name)) in UNITS.iter().enumerate() {
        if seconds < *unit {
            continue;
        }
        let smaller = UNITS.get(index + 1).filter(|_| seconds / unit < alone_from || *unit == 86_400);
        let Some((part, part_name)) = smaller else {
            return format!("{} {name}", seconds.saturating_add(unit / 2) / unit);
        };
        let parts = seconds.saturating_add(part / 2) / part;
        let (whole, rest) = (parts / (unit / part), parts % (unit / part));
        return if rest == 0 {
            format!("{whole} {name}")
        } else {
            format!("{whole} {name} {rest} {part_name}")
        };
    }
    format!("{seconds} s")
}

/// How long ago something was, in its largest unit: `90 s`, `12 min`, `3 h`, `7 d`.
pub fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A number with its noun: `1 error`, `2 errors`.
pub fn count(number: usize, noun: &str) -> String {
    let number_text = thousands(&number.to_string());
    if number == 1 { format!("{number_text} {noun}") } else { format!("{number_text} {noun}s") }
}

/// Digits in groups of three: `10,415`.
pub fn thousands(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Alternatives as a sentence lists them: `a`, `b` or `c`, each in backticks.
pub fn alternatives(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        for (seconds, text) in
            [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h"), (172_800, "2 d")]
        {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn sizes_have_the_unit_people_read() {
        assert_eq!(binary_bytes(28 << 30), "28 GiB");
        assert_eq!(binary_bytes(1536 << 30), "1.5 TiB");
        assert_eq!(binary_bytes(0), "0 B");
        assert_eq!(bytes(80_000_000_000), "80 GB");
        assert_eq!(bytes(28_340_000), "28.3 MB");
        assert_eq!(bytes(u64::MAX), "18446744.1 TB");
        assert_eq!(fixed_bytes(512), "512 B");
        assert_eq!(fixed_bytes(28_340_000), "28.3 MB");
        assert_eq!(fixed_bytes(4_000_000_000), "4.00 GB");
    }

    #[test]
    fn times_have_two_units_at_most() {
        for (seconds, text) in [
            (0, "0 s"),
            (45, "45 s"),
            (330, "5 min 30 s"),
            (750, "13 min"),
            (9600, "2 h 40 min"),
            (40_000, "11 h"),
            (90_061, "1 d 1 h"),
            (3600, "1 h"),
            (60, "1 min"),
            (95, "1 min 35 s"),
            (2400, "40 min"),
            (3599, "60 min"),
            (12_000, "3 h 20 min"),
            (86_399, "24 h"),
            (619_200, "7 d 4 h"),
        ] {
            assert_eq!(duration(Duration::from_secs(seconds)), text);
        }
        assert_eq!(duration(Duration::from_millis(120)), "120 ms");
        assert_eq!(precise_duration(Duration::from_secs(750)), "12 min 30 s");
        assert_eq!(precise_duration(Duration::from_secs(77_700)), "21 h 35 min");
        duration(Duration::MAX);
    }

    #[test]
    fn counts_agree_with_their_noun() {
        assert_eq!(count(1, "error"), "1 error");
        assert_eq!(count(0, "error"), "0 errors");
        assert_eq!(count(10_415, "offer"), "10,415 offers");
        assert_eq!(alternatives(&["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(alternatives(&["a"]), "`a`");
    }
}
