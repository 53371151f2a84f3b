//! The logs of a deployment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cudock_azure::{BlobContainer, Call, DeploymentIdentity, DeploymentState, LogPart, Step};
use cudock_base::Secret;
use cudock_http::Method;
use serde_json::Value;

use crate::clock::{Clock, pause};
use crate::cloud::{ApiError, CloudApi};
use crate::error::DeployError;
use crate::journal::DeploymentRecord;
use crate::observe::{response_body, status};

/// Interval of requests for new lines.
const POLL: Duration = Duration::from_secs(3);

/// Maximum number of bytes compared with an earlier response to find where the new part begins.
const OVERLAP: usize = 4096;

/// The text of all logs of a deployment: what its service has, or what is kept in `outputs`.
pub(crate) fn read_logs(
    cloud: &dyn CloudApi,
    identity: &DeploymentIdentity,
    outputs: Option<&BlobContainer>,
) -> Result<String, ApiError> {
    let mut responses = Vec::new();
    let mut delay = None;
    let mut kept = outputs.map_or_else(Vec::new, |outputs| identity.kept_logs(outputs)).into_iter();
    // A container that has not started has no log.
    for call in identity.log_calls() {
        let response = match call.method {
            // A script on a machine ends later than its request.
            Method::POST => action(cloud, call),
            _ => response_body(cloud, &call, &mut delay),
        };
        let address = kept.next();
        let kept = || address.and_then(|address| cloud.download(&address, None).ok()).map(Value::from);
        responses.push(match response {
            Ok(response) => response.or_else(kept),
            Err(error) => Some(kept().ok_or(error)?),
        });
    }
    for call in identity.log_follow_up_calls(&responses) {
        responses.push(response_body(cloud, &call, &mut delay)?);
    }
    let mut logs = String::new();
    for part in identity.log_parts(&responses) {
        match part {
            LogPart::Text(text) => logs.push_str(&text),
            LogPart::File { name, address } => {
                logs.extend(["==> ", name.as_str(), " <==\n", cloud.download(&address, None)?.as_str()]);
            }
            LogPart::Stream { address, token } => {
                let stream = cloud.download(&Secret::new(address), Some(&token))?;
                logs.push_str(&stream_text(&stream));
            }
        }
        if !logs.is_empty() && !logs.ends_with('\n') {
            logs.push('\n');
        }
    }
    Ok(logs)
}

/// The response at the end of an action; none for 404.
fn action(cloud: &dyn CloudApi, call: Call) -> Result<Option<Value>, ApiError> {
    match cloud.run(&Step::action("log", call)) {
        Ok(reply) => Ok(Some(reply.body)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The lines of a stream of JSON objects with `Log`; other lines are kept as they are.
fn stream_text(stream: &str) -> String {
    let line = |text: &str| {
        let object: Option<Value> = serde_json::from_str(text).ok();
        let log = object.as_ref().and_then(|object| object.get("Log")).and_then(Value::as_str);
        format!("{}\n", log.unwrap_or(text))
    };
    stream.lines().map(line).collect()
}

/// Prints the log of a deployment; with `follow`, also what is added until it ends or the flag is set.
pub fn print_logs(
    cloud: &dyn CloudApi,
    clock: &dyn Clock,
    record: &DeploymentRecord,
    outputs: Option<&BlobContainer>,
    follow: Option<&AtomicBool>,
    print: &dyn Fn(&str),
) -> Result<(), DeployError> {
    let cannot = |error| DeployError::cloud(format!("cannot read the log of `{}`", record.name), error);
    let mut printed = String::new();
    loop {
        // The state is read before the log, so that no lines are missed.
        let is_over = match follow {
            None => true,
            Some(interrupted) => {
                let (status, _) = status(cloud, &record.identity).map_err(cannot)?;
                interrupted.load(Ordering::Relaxed)
                    || !matches!(status.state, DeploymentState::Starting | DeploymentState::Running)
            }
        };
        let logs = read_logs(cloud, &record.identity, outputs).map_err(cannot)?;
        let added = added_text(&printed, &logs);
        if !added.is_empty() {
            print(added);
        }
        printed = logs;
        match follow {
            Some(interrupted) if !is_over => pause(clock, POLL, interrupted),
            _ => return Ok(()),
        }
    }
}

/// The part of a log that was added since the last request. Services return a window of the last
/// bytes, which may have moved on.
fn added_text<'t>(before: &str, now: &'t str) -> &'t str {
    if let Some(added) = now.strip_prefix(before) {
        return added;
    }
    let mut start = before.len().saturating_sub(OVERLAP);
    while !before.is_char_boundary(start) {
        start += 1;
    }
    let end = before.get(start..).unwrap_or_default();
    // Only whole lines are compared, because the first one may have been cut.
    let end = end.split_once('\n').map_or(end, |(_, rest)| rest);
    match now.find(end) {
        Some(at) if !end.is_empty() => now.get(at + end.len()..).unwrap_or_default(),
        _ => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_printed() {
        for (before, now, added) in [
            ("", "a\n", "a\n"),
            ("a\n", "a\nb\n", "b\n"),
            ("a\nb\n", "a\nb\n", ""),
            // The window has moved on.
            ("a\nb\nc\n", "b\nc\nd\n", "d\n"),
            // Nothing in common is left.
            ("a\n", "x\ny\n", "x\ny\n"),
            ("ä", "äö", "ö"),
        ] {
            assert_eq!(added_text(before, now), added, "{before:?} {now:?}");
        }
        let before = "é".repeat(5000);
        assert_eq!(added_text(&before, "z"), "z");
    }

    #[test]
    fn streams_are_lines_of_json() {
        let stream =
            "{\"TimeStamp\":\"2026-11-17T00:00:00Z\",\"Log\":\"F loading\"}\nnot JSON\n{\"Other\":1}\n";
        assert_eq!(stream_text(stream), "F loading\nnot JSON\n{\"Other\":1}\n");
    }
}
