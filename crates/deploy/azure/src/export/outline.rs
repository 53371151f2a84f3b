//! A deployment arranged for templates: the resources first, then the requests that no template can make.

use cudock_base::Secret;
use serde_json::Value;

use super::body_value::BodyValue;
use crate::call::{Body, Plane};
use crate::deployment::{Deployment, Step};

pub(super) struct Outline<'d> {
    /// Each resource once, in the order of creation.
    pub(super) resources: Vec<OutlineResource<'d>>,
    /// Everything from the first request on that is not a resource of a template.
    pub(super) rest: &'d [Step],
    pub(super) secrets: SecretNames<'d>,
}

/// A resource that a template can create.
pub(super) struct OutlineResource<'d> {
    pub(super) step: &'d Step,
    pub(super) path: ResourcePath<'d>,
    pub(super) body: BodyValue,
}

impl<'d> Outline<'d> {
    pub(super) fn new(deployment: &'d Deployment) -> Self {
        let secrets = SecretNames::new(&deployment.steps);
        let mut resources: Vec<OutlineResource<'d>> = Vec::new();
        for step in &deployment.steps {
            let Some(path) = template_path(step) else { break };
            // A second request for the same resource changes what the first one created.
            if resources.iter().any(|earlier| earlier.path.id.eq_ignore_ascii_case(path.id)) {
                break;
            }
            resources.push(OutlineResource { step, path, body: secrets.body(step) });
        }
        let rest = deployment.steps.get(resources.len()..).unwrap_or_default();
        Self { resources, rest, secrets }
    }
}

/// The path of a step that creates a resource by a template's means.
fn template_path(step: &Step) -> Option<ResourcePath<'_>> {
    let is_put = step.call.method == cudock_http::Method::PUT && step.call.plane == Plane::ResourceManager;
    ResourcePath::parse(&step.call.path).filter(|_| is_put)
}

/// The parts of the path of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResourcePath<'p> {
    /// The path without the query.
    pub(super) id: &'p str,
    pub(super) subscription: &'p str,
    /// The group that it is in; none at the scope of the subscription.
    pub(super) group: Option<&'p str>,
    /// The resource type, such as `Microsoft.App/jobs`.
    pub(super) kind: String,
    /// The names, with a part for each part of the kind after the namespace.
    pub(super) names: Vec<&'p str>,
    pub(super) api_version: &'p str,
}

impl<'p> ResourcePath<'p> {
    pub(super) fn parse(path: &'p str) -> Option<Self> {
        let (id, query) = path.split_once('?')?;
        let api_version = query.strip_prefix("api-version=").filter(|version| !version.contains('&'))?;
        let segments: Vec<&str> = id.strip_prefix('/')?.split('/').collect();
        let is = |segment: &str, name: &str| segment.eq_ignore_ascii_case(name);
        let (subscription, rest) = match segments.as_slice() {
            [word, subscription, rest @ ..] if is(word, "subscriptions") => (*subscription, rest),
            _ => return None,
        };
        let (group, rest) = match rest {
            [word, group] if is(word, "resourceGroups") => {
                let kind = "Microsoft.Resources/resourceGroups".to_owned();
                return Some(Self { id, subscription, group: None, kind, names: vec![*group], api_version });
            }
            [word, group, rest @ ..] if is(word, "resourceGroups") => (Some(*group), rest),
            rest => (None, rest),
        };
        let (namespace, rest) = match rest {
            [word, namespace, rest @ ..] if is(word, "providers") => (*namespace, rest),
            _ => return None,
        };
        let pairs = rest.chunks_exact(2);
        if rest.is_empty() || !pairs.remainder().is_empty() || rest.iter().any(|part| is(part, "providers")) {
            return None;
        }
        let (kinds, names): (Vec<&str>, Vec<&str>) =
            pairs.filter_map(|pair| Some((*pair.first()?, *pair.last()?))).unzip();
        let kind = format!("{namespace}/{}", kinds.join("/"));
        Some(Self { id, subscription, group, kind, names, api_version })
    }

    pub(super) fn is_kind(&self, kind: &str) -> bool {
        self.kind.eq_ignore_ascii_case(kind)
    }

    pub(super) fn name(&self) -> String {
        self.names.join("/")
    }

    /// The id of the resource or scope that it is a part of.
    pub(super) fn parent(&self) -> String {
        match (self.names.as_slice(), self.group) {
            ([_], None) => format!("/subscriptions/{}", self.subscription),
            ([_], Some(group)) => format!("/subscriptions/{}/resourceGroups/{group}", self.subscription),
            _ => self.id.rsplitn(3, '/').last().unwrap_or_default().to_owned(),
        }
    }
}

/// A name for every secret of a deployment. The same secret in several requests has one name.
pub(super) struct SecretNames<'d>(Vec<(&'d Secret, String)>);

/// Names that Terraform or Bicep keep for themselves.
const RESERVED: [&str; 11] = [
    "count",
    "depends_on",
    "false",
    "for_each",
    "lifecycle",
    "locals",
    "null",
    "providers",
    "source",
    "true",
    "version",
];

impl<'d> SecretNames<'d> {
    fn new(steps: &'d [Step]) -> Self {
        let mut names = Self(Vec::new());
        for body in steps.iter().filter_map(|step| step.call.body.as_ref()) {
            for (pointer, secret) in body.secrets() {
                names.add(body, pointer, secret);
            }
        }
        names
    }

    fn add(&mut self, body: &Body, pointer: &str, secret: &'d Secret) {
        if self.of(secret).is_some() {
            return;
        }
        let is_taken =
            |name: &str| RESERVED.contains(&name) || self.all().any(|other| other.eq_ignore_ascii_case(name));
        let name = first_free(&identifier(&name_in_body(body.redacted(), pointer)), |name| !is_taken(name));
        self.0.push((secret, name));
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, name)| name.as_str())
    }

    fn of(&self, secret: &Secret) -> Option<&str> {
        self.0.iter().find(|(other, _)| *other == secret).map(|(_, name)| name.as_str())
    }

    /// The body of a step with the names of its secrets in their places.
    pub(super) fn body(&self, step: &Step) -> BodyValue {
        let Some(body) = &step.call.body else { return BodyValue::Scalar(Value::Null) };
        let names = body.secrets().filter_map(|(pointer, secret)| Some((pointer, self.of(secret)?)));
        BodyValue::new(body.redacted(), &names.collect())
    }

    /// The names of the secrets that steps need.
    pub(super) fn used_by(&self, steps: &[Step]) -> Vec<&str> {
        let bodies: Vec<&Body> = steps.iter().filter_map(|step| step.call.body.as_ref()).collect();
        let is_used =
            |secret: &Secret| bodies.iter().any(|body| body.secrets().any(|(_, other)| other == secret));
        self.0.iter().filter(|(secret, _)| is_used(secret)).map(|(_, name)| name.as_str()).collect()
    }
}

/// The name in a body of the value at a pointer: the variable that refers to it, the name next to
/// it, or its key.
fn name_in_body(body: &Value, pointer: &str) -> String {
    let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
    let name = body.pointer(parent).and_then(|parent| parent.get("name")).and_then(Value::as_str);
    let name = name.map(|name| variable_of(body, name).unwrap_or(name));
    name.map_or_else(|| key.replace("~1", "/").replace("~0", "~"), str::to_owned)
}

/// The name of the variable whose value is a secret of the body.
fn variable_of<'b>(body: &'b Value, secret: &str) -> Option<&'b str> {
    match body {
        Value::Object(members) if members.get("secretRef").is_some_and(|own| own == secret) => {
            members.get("name").and_then(Value::as_str)
        }
        Value::Object(members) => members.values().find_map(|member| variable_of(member, secret)),
        Value::Array(items) => items.iter().find_map(|item| variable_of(item, secret)),
        _ => None,
    }
}

/// A name, with a number if it is not free.
pub(super) fn first_free(name: &str, is_free: impl Fn(&str) -> bool) -> String {
    let numbered = (2..10_000).map(|number| format!("{name}_{number}"));
    std::iter::once(name.to_owned()).chain(numbered).find(|name| is_free(name)).unwrap_or_default()
}

/// A name for all of the languages.
fn identifier(text: &str) -> String {
    let name: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(60).collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { format!("secret_{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_resources_are_split_into_their_parts() {
        let group = "/subscriptions/s/resourcegroups/g";
        let cases = [
            (
                "/subscriptions/s/resourceGroups/g?api-version=1",
                ["Microsoft.Resources/resourceGroups", "g", "/subscriptions/s"],
            ),
            (
                "/subscriptions/s/providers/Microsoft.Resources/deployments/d?api-version=1",
                ["Microsoft.Resources/deployments", "d", "/subscriptions/s"],
            ),
            (
                "/subscriptions/s/resourcegroups/g/providers/N/a/x?api-version=1",
                ["N/a", "x", "/subscriptions/s/resourceGroups/g"],
            ),
            (
                "/subscriptions/s/resourcegroups/g/providers/N/a/x/b/y?api-version=1",
                ["N/a/b", "x/y", "/subscriptions/s/resourcegroups/g/providers/N/a/x"],
            ),
        ];
        for (path, expected) in cases {
            let parsed = ResourcePath::parse(path).unwrap();
            assert_eq!([parsed.kind.clone(), parsed.name(), parsed.parent()], expected, "{path}");
        }
        let others = [
            "/subscriptions/s/resourcegroups/g/providers/N/a/x/start?api-version=1",
            "/subscriptions/s/resourcegroups/g/providers/N/a/x/providers/M/b/y?api-version=1",
            "/subscriptions/s/resourcegroups/g/providers/N/a/x?api-version=1&force=true",
            "/subscriptions/s/resourcegroups/g/providers/N?api-version=1",
            "/jobs?api-version=1",
            "/subscriptions/s",
        ];
        for path in others {
            assert_eq!(ResourcePath::parse(path), None, "{path}");
        }
        let child = format!("{group}/providers/N/a/x?api-version=2024-01-01");
        let child = ResourcePath::parse(&child).unwrap();
        assert_eq!((child.group, child.api_version), (Some("g"), "2024-01-01"));
    }

    #[test]
    fn secrets_have_names_of_all_languages() {
        let cases =
            [("HF_TOKEN", "HF_TOKEN"), ("hf-token", "hf_token"), ("1st", "secret_1st"), ("", "secret_")];
        for (text, expected) in cases {
            assert_eq!(identifier(text), expected, "{text}");
        }
    }
}
