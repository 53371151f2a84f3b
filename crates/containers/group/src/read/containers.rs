//! Containers and init containers.

use std::collections::HashSet;

use crate::fault::shown;
use crate::group::{Container, Os, Port, Security, Variable, VariableValue};
use crate::note::NoteKind;
use crate::probe::Purpose;
use cudock_base::Secret;

use super::fields::{Fields, GroupReader, Keys};
use super::ignored::{OF_CONTAINER, OF_INIT_CONTAINER};
use super::names::SeenNames;
use super::volumes::decode;

const PROPERTIES: &[&str] = &[
    "image",
    "command",
    "ports",
    "environmentVariables",
    "resources",
    "volumeMounts",
    "livenessProbe",
    "readinessProbe",
    "securityContext",
];
const OF_THE_GROUP: (&[&str], &str) =
    (&["restartPolicy", "osType", "ipAddress", "volumes"], "move it to the `properties:` of the group");
const OTHER_WORDS: [(&[&str], &str); 4] = [
    (&["env", "environment"], "write `environmentVariables:`"),
    (&["args", "arguments", "entrypoint"], "write program and arguments as the list `command:`"),
    (
        &["workingDir", "workdir"],
        "Azure starts in the image's directory; change it in the image or in `command:`",
    ),
    OF_THE_GROUP,
];

pub(super) static CONTAINER: Keys = Keys {
    elsewhere: &[(PROPERTIES, "move it below the container's `properties:`"), OF_THE_GROUP],
    ..Keys::new("a container", &["name", "properties"])
};
static CONTAINER_PROPERTIES: Keys = Keys {
    ignored: OF_CONTAINER,
    elsewhere: &OTHER_WORDS,
    ..Keys::new("a container's properties", PROPERTIES)
};
static INIT_PROPERTIES: Keys = Keys {
    ignored: OF_INIT_CONTAINER,
    elsewhere: &[
        (&["ports", "resources", "livenessProbe", "readinessProbe"], "init containers have none; remove it"),
        OF_THE_GROUP,
    ],
    ..Keys::new(
        "an init container's properties",
        &["image", "command", "environmentVariables", "volumeMounts", "securityContext"],
    )
};
static VARIABLE: Keys = Keys::new("a variable", &["name", "value", "secureValue", "secureValueReference"]);
static SECURITY: Keys = Keys::new(
    "`securityContext`",
    &["privileged", "allowPrivilegeEscalation", "capabilities", "runAsGroup", "runAsUser", "seccompProfile"],
);
static CAPABILITIES: Keys = Keys::new("`capabilities`", &["add", "drop"]);

/// Names and ports that must be unique among the containers of a group.
pub(super) struct Shared<'v> {
    pub(super) names: SeenNames<String>,
    pub(super) ports: SeenNames<Port>,
    pub(super) volumes: &'v [String],
    pub(super) os: Os,
}

impl GroupReader {
    /// One container; of an init container there is less to read.
    pub(super) fn container(
        &mut self,
        container: &Fields<'_>,
        shared: &mut Shared<'_>,
        init: bool,
    ) -> Option<Container> {
        let of = if init { "an init container" } else { "a container" };
        let name = self.label(container, of, &mut shared.names);
        let keys = if init { &INIT_PROPERTIES } else { &CONTAINER_PROPERTIES };
        self.required(container, "properties");
        let fields = self.map(container, "properties", keys)?;
        let image = self.image(&fields);
        let command = self.texts(&fields, "command");
        let environment = self.environment(&fields);
        let mounts = self.mounts(&fields, shared.volumes, shared.os);
        let security = self.security(&fields);
        let mut container = Container {
            name: name.unwrap_or_default(),
            image: image.unwrap_or_default(),
            command,
            environment,
            ports: Vec::new(),
            resources: None,
            mounts,
            liveness: None,
            readiness: None,
            security,
            span: container.span,
        };
        if !init {
            let ports = self.ports(&fields, &mut shared.ports);
            container.ports = ports.into_iter().map(|(port, _)| port).collect();
            container.resources = self.resources(&fields);
            container.liveness = self.probe(&fields, "livenessProbe", Purpose::Liveness);
            container.readiness = self.probe(&fields, "readinessProbe", Purpose::Readiness);
        }
        Some(container)
    }

    fn image(&mut self, fields: &Fields<'_>) -> Option<String> {
        let image = self.required_text(fields, "image")?;
        if image.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
            self.bad_text(fields.span_of("image"), "image", "remove blanks and line breaks");
        }
        Some(image)
    }

    fn environment(&mut self, container: &Fields<'_>) -> Vec<Variable> {
        let mut seen = SeenNames::new();
        let mut variables = Vec::new();
        for fields in self.maps(container, "environmentVariables", &VARIABLE) {
            let name = self.variable_name(&fields, &mut seen);
            let value = self.variable_value(&fields, name.as_deref().unwrap_or_default());
            if let (Some(name), Some(value)) = (name, value) {
                variables.push(Variable { name, value });
            }
        }
        variables
    }

    fn variable_name(&mut self, fields: &Fields<'_>, seen: &mut SeenNames<String>) -> Option<String> {
        self.required(fields, "name");
        let name = self.loose_text(fields, "name")?;
        let span = fields.span_of("name");
        if name.is_empty() || name.contains(['=', '\n']) {
            self.bad_name(span, "a variable", &name, "use letters, digits and `_`");
            return None;
        }
        if let Some(first) = seen.again(name.clone(), span) {
            self.duplicate_name(span, "variable", &name, first);
            return None;
        }
        Some(name)
    }

    fn variable_value(&mut self, fields: &Fields<'_>, name: &str) -> Option<VariableValue> {
        let given = fields.given(&["value", "secureValue", "secureValueReference"]);
        let kind = match given.as_slice() {
            [] => return Some(VariableValue::Plain(String::new())),
            [one] => *one,
            [_, second, ..] => {
                let message = format!("variable `{}` with {}", shown(name), given.join(" and "));
                self.fault(fields.span_of(second), message, "keep one of them");
                return None;
            }
        };
        let text = self.loose_text(fields, kind)?;
        Some(match kind {
            "value" => VariableValue::Plain(text),
            "secureValue" => VariableValue::Secure(Secret::new(text)),
            _ => {
                let message = format!("key vaults are not supported; give `{name}` a `secureValue`");
                self.note_at(fields, kind, NoteKind::Unsupported, message);
                VariableValue::Reference(text)
            }
        })
    }

    fn security(&mut self, container: &Fields<'_>) -> Option<Security> {
        let fields = self.map(container, "securityContext", &SECURITY)?;
        let mut id = |key| self.whole(&fields, key, 0, i64::from(u32::MAX) - 1);
        let (user, group) = (id("runAsUser"), id("runAsGroup"));
        let mut security = Security {
            privileged: self.flag(&fields, "privileged"),
            allow_privilege_escalation: self.flag(&fields, "allowPrivilegeEscalation"),
            user,
            group,
            ..Security::default()
        };
        if let Some(lists) = self.map(&fields, "capabilities", &CAPABILITIES) {
            security.add = self.capabilities(&lists, "add");
            security.drop = self.capabilities(&lists, "drop");
        }
        if let Some(text) = self.text(&fields, "seccompProfile") {
            security.seccomp = decode(&text);
            if security.seccomp.is_none() {
                self.not_base64(fields.span_of("seccompProfile"), "seccompProfile");
            }
        }
        Some(security)
    }

    /// Names of capabilities, each once, in the kernel's spelling but without `CAP_`.
    fn capabilities(&mut self, fields: &Fields<'_>, key: &'static str) -> Vec<String> {
        let mut seen = HashSet::new();
        let spelled = self.texts(fields, key).into_iter().map(|name| {
            let name = name.to_ascii_uppercase();
            name.strip_prefix("CAP_").map_or(name.clone(), str::to_owned)
        });
        spelled.filter(|name| seen.insert(name.clone())).collect()
    }
}
