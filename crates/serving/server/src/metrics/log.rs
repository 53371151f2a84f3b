//! The event log, one line per event, as text or JSON.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use cudock_base::lock;

/// The format of the event log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text for people
    #[default]
    Text,
    /// One JSON object per line
    Json,
    /// No events
    Off,
}

/// The event log. Values never contain a key, a header or a body.
#[derive(Clone)]
pub struct Log {
    format: LogFormat,
    requests: bool,
    out: Arc<Mutex<dyn Write + Send>>,
}

impl Log {
    /// Writes events to `out`; every request, too, if `requests` is set.
    pub fn new(format: LogFormat, requests: bool, out: impl Write + Send + 'static) -> Self {
        Self { format, requests, out: Arc::new(Mutex::new(out)) }
    }

    pub(crate) fn logs_requests(&self) -> bool {
        self.requests && self.format != LogFormat::Off
    }

    pub fn event(&self, name: &str, fields: &[(&str, &str)]) {
        let line = match self.format {
            LogFormat::Off => return,
            LogFormat::Text => text(name, fields),
            LogFormat::Json => json(name, fields),
        };
        // A failing log must not stop the server.
        let _ = lock(&self.out).write_all(line.as_bytes());
    }
}

fn text(name: &str, fields: &[(&str, &str)]) -> String {
    let mut line = name.replace('_', " ");
    for (key, value) in fields {
        let plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
        let _ = if plain { write!(line, " {key}={value}") } else { write!(line, " {key}={value:?}") };
    }
    line.push('\n');
    line
}

fn json(name: &str, fields: &[(&str, &str)]) -> String {
    let mut object = serde_json::Map::new();
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    object.insert("time".to_owned(), serde_json::json!((seconds * 1000.0).round() / 1000.0));
    object.insert("event".to_owned(), name.into());
    for (key, value) in fields {
        object.insert((*key).to_owned(), (*value).into());
    }
    format!("{}\n", serde_json::Value::Object(object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_with_spaces_or_line_breaks_stays_one_field_of_one_line() {
        let line = text("engine_lost", &[("error", "a b\nc"), ("model", "x")]);
        assert_eq!(line, "engine lost error=\"a b\\nc\" model=x\n");
        let line = json("engine_lost", &[("error", "a\nb")]);
        assert!(line.contains("\"error\":\"a\\nb\"") && line.ends_with("}\n"), "{line}");
    }
}
