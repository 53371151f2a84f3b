//! Single values: sizes, processors, limits, restart policies, variables and labels.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cudock_base::UsageError;
use cudock_base::files::read_text;

use crate::container::config::{Restart, Rlimit};

/// A size: 512m, 16g, 1.5GiB. Units are powers of 1024, as in docker.
pub fn bytes(text: &str) -> Result<u64, UsageError> {
    let wrong = || UsageError::new(format!("`{text}` is not a number of bytes")).hint("such as 512m or 16g");
    let lower = text.trim().to_lowercase();
    let digits = lower.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let shift = match unit {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(wrong()),
    };
    let (whole, thousandths) = decimal(number).ok_or_else(wrong)?;
    let whole = whole.checked_mul(1 << shift).ok_or_else(wrong)?;
    whole.checked_add((thousandths << shift) / 1000).ok_or_else(wrong)
}

/// A number and its thousandths; more than three decimals are cut off.
pub(super) fn decimal(text: &str) -> Option<(u64, u64)> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part: String = format!("{part}000").chars().take(3).collect();
    Some((whole.parse().ok()?, part.parse().ok()?))
}

/// A number of processors such as 1.5, in thousandths.
pub fn cpu_millis(text: &str) -> Result<u64, UsageError> {
    let wrong =
        || UsageError::new(format!("`{text}` is not a number of processors")).hint("such as 2 or 0.5");
    let number = if text.starts_with('.') { format!("0{text}") } else { text.to_owned() };
    let millis = decimal(&number).and_then(|(whole, part)| whole.checked_mul(1000)?.checked_add(part));
    millis.filter(|millis| *millis > 0).ok_or_else(wrong)
}

/// A restart policy: no, on-failure, on-failure:3, always, unless-stopped.
pub fn restart(text: &str) -> Result<Restart, UsageError> {
    let wrong = || {
        UsageError::new(format!("`{text}` is not a restart policy"))
            .hint("no, on-failure, on-failure:3, always")
    };
    match text.split_once(':') {
        Some(("on-failure", times)) => {
            Ok(Restart::OnFailure { attempts: Some(times.parse().map_err(|_| wrong())?) })
        }
        Some(_) => Err(wrong()),
        None => match text {
            "no" => Ok(Restart::No),
            "on-failure" => Ok(Restart::OnFailure { attempts: None }),
            // Nothing is started at boot without a daemon, so the two are the same.
            "always" | "unless-stopped" => Ok(Restart::Always),
            _ => Err(wrong()),
        },
    }
}

/// A resource limit: nofile=1024:4096; -1 or unlimited for none.
pub fn ulimit(text: &str) -> Result<Rlimit, UsageError> {
    let wrong =
        || UsageError::new(format!("`{text}` is not a resource limit")).hint("--ulimit nofile=1024:4096");
    let number = |text: &str| match text {
        "-1" | "unlimited" => Ok(u64::MAX),
        text => text.parse::<u64>().map_err(|_| wrong()),
    };
    let (name, values) = text.split_once('=').ok_or_else(wrong)?;
    if !crate::start::limits::names().any(|known| known == name) {
        let names: Vec<&str> = crate::start::limits::names().collect();
        return Err(UsageError::new(format!("unknown resource limit `{name}`")).hint(names.join(", ")));
    }
    let (soft, hard) = values.split_once(':').unwrap_or((values, values));
    let (soft, hard) = (number(soft)?, number(hard)?);
    if soft > hard {
        return Err(UsageError::new(format!("`{text}`: the soft limit is above the hard one")));
    }
    Ok(Rlimit { name: name.to_owned(), soft, hard })
}

/// A list of processors: numbers and ranges, as in 0-3,8.
pub fn cpuset(text: &str) -> Result<String, UsageError> {
    let number = |text: &str| text.parse::<u16>().ok();
    let is_range = |part: &str| match part.split_once('-') {
        Some((first, last)) => {
            matches!((number(first), number(last)), (Some(first), Some(last)) if first <= last)
        }
        None => number(part).is_some(),
    };
    if text.split(',').all(is_range) {
        return Ok(text.to_owned());
    }
    Err(UsageError::new(format!("`{text}` is not a list of processors")).hint("--cpuset-cpus 0-3,8"))
}

/// Variables of flags and files, in order. A name without a value takes the value from this process, if it has one.
pub fn variables(given: &[String], files: &[PathBuf]) -> Result<Vec<(String, String)>, UsageError> {
    let mut all = Vec::new();
    for file in files {
        let content = read_text(file)?;
        for (number, line) in content.lines().enumerate() {
            let line = line.trim_start();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let position = format!("{}:{}", file.display(), number + 1);
            all.extend(variable(line).map_err(|()| UsageError::new(format!("{position}: not a variable")))?);
        }
    }
    for text in given {
        let wrong = |()| {
            UsageError::new("--env has no name before `=`")
                .hint("-e NAME=VALUE, or -e NAME to hand ours down")
        };
        all.extend(variable(text).map_err(wrong)?);
    }
    Ok(all)
}

/// Values are never part of an error: they may be secrets.
fn variable(line: &str) -> Result<Option<(String, String)>, ()> {
    match line.split_once('=') {
        Some(("", _)) => Err(()),
        Some((name, value)) if !line.contains('\0') => Ok(Some((name.to_owned(), value.to_owned()))),
        Some(_) => Err(()),
        None if line.is_empty() => Err(()),
        None => Ok(std::env::var(line).ok().map(|value| (line.to_owned(), value))),
    }
}

/// Labels: NAME=VALUE, or NAME alone.
pub fn labels(given: &[String]) -> Result<BTreeMap<String, String>, UsageError> {
    pairs(given, "label")
}

/// Annotations, in the form of labels.
pub fn annotations(given: &[String]) -> Result<BTreeMap<String, String>, UsageError> {
    pairs(given, "annotation")
}

fn pairs(given: &[String], kind: &str) -> Result<BTreeMap<String, String>, UsageError> {
    let pair = |text: &String| {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        if name.is_empty() {
            return Err(UsageError::new(format!("`{text}` is not a valid {kind}"))
                .hint(format!("--{kind} NAME=VALUE")));
        }
        Ok((name.to_owned(), value.to_owned()))
    };
    given.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_docker_reads_them() {
        assert_eq!(bytes("512m").unwrap(), 512 << 20);
        assert_eq!(bytes("16G").unwrap(), 16 << 30);
        assert_eq!(bytes("1.5GiB").unwrap(), 3 << 29);
        assert_eq!(bytes("4096").unwrap(), 4096);
        for wrong in ["", "m", "5x", "-1", "1.x", "99999999999t", "NaN"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn processors_are_read_exactly() {
        assert_eq!(cpu_millis("1.5").unwrap(), 1500);
        assert_eq!(cpu_millis("2").unwrap(), 2000);
        assert_eq!(cpu_millis(".25").unwrap(), 250);
        for wrong in ["", "0", "0.0", "-1", "NaN", "1e3", "99999999999999999999"] {
            assert!(cpu_millis(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn policies_and_limits_are_read() {
        assert_eq!(restart("on-failure:3").unwrap(), Restart::OnFailure { attempts: Some(3) });
        assert_eq!(restart("unless-stopped").unwrap(), Restart::Always);
        assert!(restart("sometimes").is_err());
        assert_eq!(ulimit("nofile=1:2").unwrap(), Rlimit { name: "nofile".into(), soft: 1, hard: 2 });
        assert_eq!(ulimit("memlock=-1").unwrap().hard, u64::MAX);
        assert!(ulimit("nofile=3:2").is_err());
        assert!(ulimit("nofiles=3").is_err());
    }
}
