//! Deadlines of calls.

use std::time::{Duration, Instant};

use super::status::{GrpcCode, GrpcStatus};

/// The time after which the client does not wait any longer, if it set one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// Parses the `grpc-timeout` of a call that arrived at `now`: at most eight digits and a unit.
    pub(crate) fn of_request(header: Option<&[u8]>, now: Instant) -> Result<Self, GrpcStatus> {
        let Some(header) = header else { return Ok(Self(None)) };
        let timeout = parse(header).ok_or_else(|| {
            GrpcStatus::invalid(format!("invalid grpc-timeout {:?}", String::from_utf8_lossy(header)))
        })?;
        Ok(Self(now.checked_add(timeout)))
    }

    pub(crate) fn instant(self) -> Option<Instant> {
        self.0
    }

    /// The time remaining at `now`; `None` without a deadline.
    pub(crate) fn remaining(self, now: Instant) -> Result<Option<Duration>, GrpcStatus> {
        let Some(deadline) = self.0 else { return Ok(None) };
        let remaining = deadline.checked_duration_since(now).filter(|remaining| !remaining.is_zero());
        let message = "deadline exceeded before the request was read";
        remaining.map(Some).ok_or_else(|| GrpcStatus::new(GrpcCode::DeadlineExceeded, message))
    }
}

fn parse(header: &[u8]) -> Option<Duration> {
    let (&unit, digits) = header.split_last()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    match unit {
        b'H' => Some(Duration::from_secs(number * 3600)),
        b'M' => Some(Duration::from_secs(number * 60)),
        b'S' => Some(Duration::from_secs(number)),
        b'm' => Some(Duration::from_millis(number)),
        b'u' => Some(Duration::from_micros(number)),
        b'n' => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        let cases: [(&[u8], Duration); 6] = [
            (b"1H", Duration::from_secs(3600)),
            (b"2M", Duration::from_secs(120)),
            (b"99999999S", Duration::from_secs(99_999_999)),
            (b"250m", Duration::from_millis(250)),
            (b"5u", Duration::from_micros(5)),
            (b"7n", Duration::from_nanos(7)),
        ];
        for (header, timeout) in cases {
            assert_eq!(parse(header), Some(timeout));
        }
    }

    #[test]
    fn an_invalid_timeout_is_rejected() {
        for header in [&b""[..], b"S", b"5", b"5s", b"-5S", b"1.5S", b"123456789S", b"5 S", b"\xff"] {
            let error = Deadline::of_request(Some(header), Instant::now()).unwrap_err();
            assert_eq!(error.code, GrpcCode::InvalidArgument, "{header:?}");
        }
    }

    #[test]
    fn the_remaining_time_shrinks_until_it_is_over() {
        let start = Instant::now();
        let deadline = Deadline::of_request(Some(b"100m"), start).unwrap();
        let after = |milliseconds| deadline.remaining(start + Duration::from_millis(milliseconds));
        assert_eq!(after(30), Ok(Some(Duration::from_millis(70))));
        assert_eq!(after(100).unwrap_err().code, GrpcCode::DeadlineExceeded);
        assert_eq!(after(200).unwrap_err().code, GrpcCode::DeadlineExceeded);
        assert_eq!(Deadline::of_request(None, start).unwrap().remaining(start), Ok(None));
    }
}
