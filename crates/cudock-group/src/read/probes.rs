//! Liveness and readiness probes.

use std::time::Duration;

use crate::fault::Problem;
use crate::group::{HttpGet, Probe, ProbeAction};
use crate::note::NoteKind;
use crate::probe::{Purpose, Timing};
use cudock_yaml::Node;

use super::fields::{Fields, GroupReader, Keys};
use super::network::port_number;

pub(super) static PROBE: Keys = Keys {
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
pub(super) static EXEC: Keys = Keys::new("`exec`", &["command"]);
pub(super) static HTTP_GET: Keys = Keys::new("`httpGet`", &["path", "port", "scheme", "httpHeaders"]);
pub(super) static HEADER: Keys = Keys::new("a header", &["name", "value"]);

/// A day: no probe waits longer.
const LONGEST: i64 = 86_400;

impl GroupReader {
    pub(super) fn probe(
        &mut self,
        container: &Fields<'_>,
        key: &'static str,
        purpose: Purpose,
    ) -> Option<Probe> {
        let node = container.get(key)?;
        let fields = self.fields(node, &container.path_of(key), &PROBE)?;
        let timing = self.timing(&fields, purpose);
        let action = match (fields.get("exec"), fields.get("httpGet")) {
            (Some(exec), None) => self.exec(exec, &fields.path_of("exec"))?,
            (None, Some(get)) => ProbeAction::HttpGet(self.http_get(get, &fields.path_of("httpGet"))?),
            (Some(_), Some(second)) => {
                self.fault(second.span, Problem::ProbeAsksTwice);
                return None;
            }
            (None, None) => {
                self.fault(fields.span, Problem::ProbeAsksNothing);
                return None;
            }
        };
        Some(Probe { action, timing })
    }

    fn timing(&mut self, fields: &Fields<'_>, purpose: Purpose) -> Timing {
        let mut seconds = |key, least| {
            let value = self.whole(fields, key, least, LONGEST)?;
            u64::try_from(value).ok().map(Duration::from_secs)
        };
        let defaults = Timing::default();
        let initial_delay = seconds("initialDelaySeconds", 0).unwrap_or(defaults.initial_delay);
        let period = seconds("periodSeconds", 1).unwrap_or(defaults.period);
        let timeout = seconds("timeoutSeconds", 1).unwrap_or(defaults.timeout);
        let mut threshold = |key| u32::try_from(self.whole(fields, key, 1, 1000)?).ok();
        let failure_threshold = threshold("failureThreshold").unwrap_or(defaults.failure_threshold);
        let mut success_threshold = threshold("successThreshold").unwrap_or(defaults.success_threshold);
        if purpose == Purpose::Liveness && success_threshold != 1 {
            success_threshold = 1;
            let span = fields.get("successThreshold").map_or(fields.span, |node| node.span);
            let message = "one good answer shows that a container is alive, as in Kubernetes; 1 is used";
            self.note(span, &fields.path_of("successThreshold"), NoteKind::Differs, message);
        }
        Timing { initial_delay, period, timeout, success_threshold, failure_threshold }
    }

    fn exec(&mut self, node: &Node, path: &str) -> Option<ProbeAction> {
        let fields = self.fields(node, path, &EXEC)?;
        let before = self.faults.len();
        let command = self.texts(&fields, "command");
        if command.first().is_none_or(String::is_empty) {
            if self.faults.len() == before {
                self.fault(node.span, Problem::ProbeWithoutCommand);
            }
            return None;
        }
        Some(ProbeAction::Exec(command))
    }

    fn http_get(&mut self, node: &Node, path: &str) -> Option<HttpGet> {
        let fields = self.fields(node, path, &HTTP_GET)?;
        let port = port_number(self, &fields);
        let https = self.choice(&fields, "scheme", &["http", "https"]) == Some("https");
        let headers = self.headers(&fields);
        let mut target = self.text(&fields, "path").unwrap_or_else(|| "/".to_owned());
        if target.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            let span = fields.get("path").map_or(fields.span, |node| node.span);
            self.fault(span, Problem::BadText { what: "path".to_owned(), rule: "write blanks as `%20`" });
            return None;
        }
        if !target.starts_with('/') {
            target.insert(0, '/');
        }
        Some(HttpGet { path: target, port: port?, https, headers })
    }

    fn headers(&mut self, fields: &Fields<'_>) -> Vec<(String, String)> {
        let path = fields.path_of("httpHeaders");
        let mut headers = Vec::new();
        for (index, node) in self.list(fields, "httpHeaders").iter().enumerate() {
            let path = format!("{path}[{index}]");
            let Some(fields) = self.fields(node, &path, &HEADER) else { continue };
            let name = self.required_text(&fields, "name");
            let value = match fields.get("value") {
                Some(node) => self.loose_text(node, &fields.path_of("value")),
                None => Some(String::new()),
            };
            let (Some(name), Some(value)) = (name, value) else { continue };
            let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            let bad_name = !name.bytes().all(token);
            if bad_name || value.bytes().any(|byte| byte < b' ' && byte != b'\t' || byte == 0x7f) {
                let (what, rule) = if bad_name {
                    ("name", "use letters, digits and `-`")
                } else {
                    ("value", "remove line breaks")
                };
                let span = fields.get(what).map_or(fields.span, |node| node.span);
                self.fault(span, Problem::BadText { what: what.to_owned(), rule });
                continue;
            }
            headers.push((name, value));
        }
        headers
    }
}
