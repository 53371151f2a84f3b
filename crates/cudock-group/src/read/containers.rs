//! Containers and init containers.

use std::collections::HashSet;

use crate::fault::Problem;
use crate::group::{Container, Os, Port, Security, Variable, VariableValue};
use crate::kept::{OF_CONTAINER, OF_INIT_CONTAINER};
use crate::note::NoteKind;
use crate::probe::Purpose;
use cudock_base::Secret;
use cudock_yaml::Node;

use super::fields::{Fields, GroupReader, Keys};
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
pub(super) static CONTAINER_PROPERTIES: Keys =
    Keys { kept: OF_CONTAINER, elsewhere: &OTHER_WORDS, ..Keys::new("a container's properties", PROPERTIES) };
pub(super) static INIT_PROPERTIES: Keys = Keys {
    kept: OF_INIT_CONTAINER,
    elsewhere: &[
        (&["ports", "resources", "livenessProbe", "readinessProbe"], "init containers have none; remove it"),
        OF_THE_GROUP,
    ],
    ..Keys::new(
        "an init container's properties",
        &["image", "command", "environmentVariables", "volumeMounts", "securityContext"],
    )
};
pub(super) static VARIABLE: Keys =
    Keys::new("a variable", &["name", "value", "secureValue", "secureValueReference"]);
pub(super) static SECURITY: Keys = Keys::new(
    "`securityContext`",
    &["privileged", "allowPrivilegeEscalation", "capabilities", "runAsGroup", "runAsUser", "seccompProfile"],
);
pub(super) static CAPABILITIES: Keys = Keys::new("`capabilities`", &["add", "drop"]);

/// What containers of a group must not both have.
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
        node: &Node,
        path: &str,
        shared: &mut Shared<'_>,
        init: bool,
    ) -> Option<Container> {
        let fields = self.fields(node, path, &CONTAINER)?;
        let of = if init { "an init container" } else { "a container" };
        let name = self.label(&fields, of, &mut shared.names);
        let keys = if init { &INIT_PROPERTIES } else { &CONTAINER_PROPERTIES };
        let properties = self.required(&fields, "properties")?;
        let fields = self.fields(properties, &fields.path_of("properties"), keys)?;
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
            span: node.span,
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
            let span = fields.get("image").map_or(fields.span, |node| node.span);
            self.fault(
                span,
                Problem::BadText { what: "image".to_owned(), rule: "remove blanks and line breaks" },
            );
            return None;
        }
        Some(image)
    }

    fn environment(&mut self, container: &Fields<'_>) -> Vec<Variable> {
        let path = container.path_of("environmentVariables");
        let mut seen = SeenNames::new();
        let mut variables = Vec::new();
        for (index, node) in self.list(container, "environmentVariables").iter().enumerate() {
            let path = format!("{path}[{index}]");
            let Some(fields) = self.fields(node, &path, &VARIABLE) else { continue };
            let name = self.variable_name(&fields, &mut seen);
            let value = self.variable_value(&fields, name.as_deref().unwrap_or_default());
            if let (Some(name), Some(value)) = (name, value) {
                variables.push(Variable { name, value });
            }
        }
        variables
    }

    fn variable_name(&mut self, fields: &Fields<'_>, seen: &mut SeenNames<String>) -> Option<String> {
        let node = self.required(fields, "name")?;
        let name = self.loose_text(node, &fields.path_of("name"))?;
        if name.is_empty() || name.contains(['=', '\n']) {
            let rule = "use letters, digits and `_`";
            self.fault(node.span, Problem::BadName { of: "a variable", name, rule });
            return None;
        }
        if let Some(first) = seen.again(name.clone(), node.span) {
            self.fault(node.span, Problem::DuplicateName { of: "variable", name, first });
            return None;
        }
        Some(name)
    }

    fn variable_value(&mut self, fields: &Fields<'_>, name: &str) -> Option<VariableValue> {
        let given: Vec<(&'static str, &Node)> = ["value", "secureValue", "secureValueReference"]
            .into_iter()
            .filter_map(|key| Some((key, fields.get(key)?)))
            .collect();
        let (kind, node) = match given.as_slice() {
            [] => return Some(VariableValue::Plain(String::new())),
            [one] => *one,
            [_, (_, second), ..] => {
                let kinds = given.iter().map(|(kind, _)| *kind).collect();
                self.fault(second.span, Problem::VariableOfKinds { name: name.to_owned(), kinds });
                return None;
            }
        };
        let path = fields.path_of(kind);
        let text = self.loose_text(node, &path)?;
        Some(match kind {
            "value" => VariableValue::Plain(text),
            "secureValue" => VariableValue::Secure(Secret::new(text)),
            _ => {
                let message = format!("key vaults are not supported; give `{name}` a `secureValue`");
                self.note(node.span, &path, NoteKind::Unsupported, message);
                VariableValue::Reference(text)
            }
        })
    }

    fn security(&mut self, container: &Fields<'_>) -> Option<Security> {
        let node = container.get("securityContext")?;
        let fields = self.fields(node, &container.path_of("securityContext"), &SECURITY)?;
        let mut id =
            |key| self.whole(&fields, key, 0, i64::from(u32::MAX) - 1).and_then(|id| u32::try_from(id).ok());
        let (user, group) = (id("runAsUser"), id("runAsGroup"));
        let mut security = Security {
            privileged: self.flag(&fields, "privileged"),
            allow_privilege_escalation: self.flag(&fields, "allowPrivilegeEscalation"),
            user,
            group,
            ..Security::default()
        };
        if let Some(node) = fields.get("capabilities")
            && let Some(lists) = self.fields(node, &fields.path_of("capabilities"), &CAPABILITIES)
        {
            security.add = self.capabilities(&lists, "add");
            security.drop = self.capabilities(&lists, "drop");
        }
        if let Some(text) = self.text(&fields, "seccompProfile") {
            security.seccomp = decode(&text);
            if security.seccomp.is_none() {
                let span = fields.get("seccompProfile").map_or(fields.span, |node| node.span);
                self.fault(span, Problem::NotBase64 { what: "seccompProfile".to_owned() });
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
