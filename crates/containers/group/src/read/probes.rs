//! Liveness and readiness probes.

use std::time::Duration;

use crate::group::{HttpGet, Probe, ProbeAction};
use crate::note::NoteKind;
use crate::probe::{Purpose, Timing};

use super::fields::{Fields, GroupReader, Keys};
use super::network::port_number;

static PROBE: Keys = Keys {
    elsewhere: &[
        (&["tcpSocket", "grpc"], "Azure's probes have `exec` and `httpGet` only"),
        (&["command"], "move it below `exec:`"),
        (&["path", "port", "scheme", "httpHeaders"], "move it below `httpGet:`"),
    ],
    ..Keys::new(
        "a probe",
        &[
            "exec",
            "httpGet",
            "initialDelaySeconds",
            "periodSeconds",
            "failureThreshold",
            "successThreshold",
            "timeoutSeconds",
        ],
    )
};
static EXEC: Keys = Keys::new("`exec`", &["command"]);
static HTTP_GET: Keys = Keys::new("`httpGet`", &["path", "port", "scheme", "httpHeaders"]);
static HEADER: Keys = Keys::new("a header", &["name", "value"]);

/// A day: no probe waits longer.
const LONGEST: i64 = 86_400;

impl GroupReader {
    pub(super) fn probe(
        &mut self,
        container: &Fields<'_>,
        key: &'static str,
        purpose: Purpose,
    ) -> Option<Probe> {
        let fields = self.map(container, key, &PROBE)?;
        let timing = self.timing(&fields, purpose);
        let action = match (fields.get("exec"), fields.get("httpGet")) {
            (Some(_), None) => self.exec(&fields)?,
            (None, Some(_)) => self.http_get(&fields)?,
            (Some(_), Some(second)) => {
                self.fault(second.span, "a probe with both `exec` and `httpGet`", "keep one of the two");
                return None;
            }
            (None, None) => {
                let hint = "add `exec: {command: […]}` or `httpGet: {path: /, port: …}`";
                self.fault(fields.span, "a probe with neither `exec` nor `httpGet`", hint);
                return None;
            }
        };
        Some(Probe { action, timing })
    }

    fn timing(&mut self, fields: &Fields<'_>, purpose: Purpose) -> Timing {
        let mut seconds = |key, least| self.whole(fields, key, least, LONGEST).map(Duration::from_secs);
        let defaults = Timing::default();
        let initial_delay = seconds("initialDelaySeconds", 0).unwrap_or(defaults.initial_delay);
        let period = seconds("periodSeconds", 1).unwrap_or(defaults.period);
        let timeout = seconds("timeoutSeconds", 1).unwrap_or(defaults.timeout);
        let mut threshold = |key| self.whole(fields, key, 1, 1000);
        let failure_threshold = threshold("failureThreshold").unwrap_or(defaults.failure_threshold);
        let mut success_threshold = threshold("successThreshold").unwrap_or(defaults.success_threshold);
        if purpose == Purpose::Liveness && success_threshold != 1 {
            success_threshold = 1;
            let message = "one good answer shows that a container is alive, as in Kubernetes; 1 is used";
            self.note_at(fields, "successThreshold", NoteKind::Differs, message);
        }
        Timing { initial_delay, period, timeout, success_threshold, failure_threshold }
    }

    fn exec(&mut self, probe: &Fields<'_>) -> Option<ProbeAction> {
        let fields = self.map(probe, "exec", &EXEC)?;
        let before = self.faults.len();
        let command = self.texts(&fields, "command");
        if command.first().is_none_or(String::is_empty) && self.faults.len() == before {
            let hint = "write `command:` as a list with the program first";
            self.fault(fields.span, "a probe without a command to run", hint);
            return None;
        }
        Some(ProbeAction::Exec(command))
    }

    fn http_get(&mut self, probe: &Fields<'_>) -> Option<ProbeAction> {
        let fields = self.map(probe, "httpGet", &HTTP_GET)?;
        let port = port_number(self, &fields);
        let https = self.choice(&fields, "scheme", &["http", "https"]) == Some("https");
        let headers = self.headers(&fields);
        let mut path = self.text(&fields, "path").unwrap_or_else(|| "/".to_owned());
        if path.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            self.bad_text(fields.span_of("path"), "path", "write blanks as `%20`");
            return None;
        }
        if !path.starts_with('/') {
            path.insert(0, '/');
        }
        Some(ProbeAction::HttpGet(HttpGet { path, port: port?, https, headers }))
    }

    fn headers(&mut self, fields: &Fields<'_>) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        for fields in self.maps(fields, "httpHeaders", &HEADER) {
            let name = self.required_text(&fields, "name");
            let value = self.loose_text(&fields, "value").unwrap_or_default();
            let Some(name) = name else { continue };
            let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            let bad_name = !name.bytes().all(token);
            if bad_name || value.bytes().any(|byte| byte < b' ' && byte != b'\t' || byte == 0x7f) {
                let (what, rule) = if bad_name {
                    ("name", "use letters, digits and `-`")
                } else {
                    ("value", "remove line breaks")
                };
                self.bad_text(fields.span_of(what), what, rule);
                continue;
            }
            headers.push((name, value));
        }
        headers
    }
}
