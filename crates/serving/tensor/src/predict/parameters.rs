//! The `parameters` of a request in JSON.

use std::time::Duration;

use crate::RequestError;
use crate::json::{Cursor, SeenKeys};
use crate::suggestion::{alternatives, truncated};

const PARAMETERS: [&str; 2] = ["priority", "timeout_ms"];

#[derive(Default)]
pub(crate) struct Parameters {
    pub(crate) priority: u32,
    pub(crate) timeout: Option<Duration>,
}

impl Parameters {
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, RequestError> {
        let mut parameters = Self::default();
        let mut keys = SeenKeys::default();
        cursor.object(&"parameters", |cursor, key| {
            let known = known_key(&mut keys, &PARAMETERS, &key, cursor, "parameters")?;
            let path = format_args!("parameters.{known}");
            if known == "priority" {
                let priority = cursor.natural(&path)?;
                parameters.priority = u32::try_from(priority).unwrap_or(u32::MAX);
                return Ok(());
            }
            let milliseconds = cursor.number(&path)?;
            let timeout = Duration::try_from_secs_f64(milliseconds / 1e3).ok().filter(|time| !time.is_zero());
            parameters.timeout =
                Some(timeout.ok_or_else(|| cursor.error(&path, "expected a time in milliseconds above 0"))?);
            Ok(())
        })?;
        Ok(parameters)
    }
}

/// The key, which must be known and not a duplicate.
fn known_key(
    keys: &mut SeenKeys,
    known: &[&'static str],
    key: &str,
    cursor: &Cursor<'_>,
    path: &'static str,
) -> Result<&'static str, RequestError> {
    keys.once(known, key, cursor, &path)?.ok_or_else(|| {
        let others = alternatives(key, known.iter().copied());
        cursor.error(&path, format!("unknown key `{}`{others}", truncated(key)))
    })
}
