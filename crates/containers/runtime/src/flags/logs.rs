//! The values of `--log-driver` and `--log-opt`.

use cudock_base::UsageError;

use super::values::bytes;
use crate::container::config::LogConfig;

/// The smallest file. Each line of the log is in one of the files.
const MIN_SIZE: u64 = 4096;

/// The config for a container's output, from `--log-driver` and `--log-opt`.
pub fn log(driver: Option<&str>, options: &[String]) -> Result<LogConfig, UsageError> {
    let (mut max_bytes, mut max_files) = match driver {
        Some("none") => return Ok(LogConfig::None),
        None | Some("json-file" | "local") => (None, None),
        Some(other) => {
            return Err(UsageError::new(format!("--log-driver {other} is not supported"))
                .hint("leave it out and read the log with `cudock logs`; --log-driver none keeps no log"));
        }
    };
    for option in options {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let wrong = |reason: &str| {
            UsageError::new(format!("--log-opt {option}: {reason}"))
                .hint("--log-opt max-size=10m --log-opt max-file=3")
        };
        match name {
            "max-size" if value == "-1" => max_bytes = Some(u64::MAX),
            "max-size" => max_bytes = Some(bytes(value)?.max(MIN_SIZE)),
            "max-file" => {
                let files = value.parse().ok().filter(|files| (1..=1000).contains(files));
                max_files = Some(files.ok_or_else(|| wrong("write a number of files, at least 1"))?);
            }
            // They change how docker buffers, compresses and names what it keeps, and not what is kept.
            "mode" | "max-buffer-size" | "compress" | "tag" | "labels" | "labels-regex" | "env"
            | "env-regex" => {}
            _ => return Err(wrong("the option is not supported")),
        }
    }
    Ok(match (max_bytes, max_files) {
        (None, None) => LogConfig::default(),
        (max_bytes, max_files) => LogConfig::Kept {
            max_bytes: max_bytes.unwrap_or(LogConfig::MAX_BYTES),
            // As in docker, where a log without a size grows without bound.
            max_files: max_files.unwrap_or(if driver == Some("local") { 5 } else { 1 }),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(driver: Option<&str>, options: &[&str]) -> Result<LogConfig, UsageError> {
        log(driver, &options.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn options_of_the_log_are_read_as_docker_reads_them() {
        let kept = |max_bytes, max_files| LogConfig::Kept { max_bytes, max_files };
        for (driver, options, expected) in [
            (None, &[][..], LogConfig::default()),
            (Some("json-file"), &[], LogConfig::default()),
            (None, &["max-size=10m", "max-file=3"], kept(10 << 20, 3)),
            (None, &["max-size=10m"], kept(10 << 20, 1)),
            (Some("local"), &["max-size=1", "compress=false", "mode=non-blocking"], kept(4096, 5)),
            (None, &["max-size=-1"], kept(u64::MAX, 1)),
            (Some("none"), &[], LogConfig::None),
            (Some("none"), &["max-size=10m"], LogConfig::None),
        ] {
            assert_eq!(read(driver, options).unwrap(), expected, "{driver:?} {options:?}");
        }
        for (driver, options) in [
            (Some("syslog"), &[][..]),
            (None, &["max-size=much"]),
            (None, &["max-file=0"]),
            (None, &["syslog-address=tcp://x"]),
        ] {
            assert!(read(driver, options).is_err(), "{driver:?} {options:?}");
        }
    }
}
