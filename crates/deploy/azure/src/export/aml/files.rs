//! The YAML files that result in the same requests as bodies.
//!
//! A file is written from the body by a table of its fields. Unknown fields of a body are errors: they would be missing
//! from the file.

use serde_json::Value;

use self::Conversion::{
    Compute, Each, Enabled, Environment, Lowercase, Milliseconds, Mode, Object, ResourceIds, Same, Seconds,
    SnakeCase, Variables,
};
use self::Source::{Body, Implied, Literal, Name, Schema};
use super::duration::milliseconds;
use crate::export::body_value::BodyValue;
use crate::export::outline::ResourcePath;

const SCHEMAS: &str = "https://azuremlschemas.azureedge.net/latest";

/// The file of one kind of resource.
pub(super) struct FileFormat {
    /// The kind of the resource, below the workspace.
    kind: &'static str,
    /// The group of commands of `az ml`.
    pub(super) command: &'static str,
    /// The name of the file; that of the step if there is none.
    pub(super) file: Option<&'static str>,
    fields: &'static [FileField],
}

/// A field of the file, and its value. The order is that of the file.
type FileField = (&'static str, Source);

#[derive(Clone, Copy)]
enum Source {
    /// The URL of a schema, by its name.
    Schema(&'static str),
    Literal(&'static str),
    /// A name in the path of the resource, by its position.
    Name(usize),
    /// A path in the body. The field is left out if the body does not have it.
    Body(&'static str, Conversion),
    /// A path in the body that no field is written for, with its only possible value if there is one.
    Implied(&'static str, Option<&'static str>),
}

/// How a value of a body becomes that of a file.
#[derive(Clone, Copy)]
enum Conversion {
    Same,
    Lowercase,
    SnakeCase,
    /// Whether it is `Enabled`.
    Enabled,
    /// An ISO 8601 duration as a number.
    Seconds,
    Milliseconds,
    /// An environment by its name and version, from its id.
    Environment,
    /// A compute cluster by its name, from its id.
    Compute,
    /// Modes have shorter names in files.
    Mode,
    /// Variables that are not secrets.
    Variables,
    /// The keys of an object as a list of resource ids.
    ResourceIds,
    /// An object with these fields.
    Object(&'static [FileField]),
    /// An object whose members are objects with these fields.
    Each(&'static [FileField]),
}

static FORMATS: [FileFormat; 5] = [
    FileFormat {
        kind: "/environments/versions",
        command: "environment",
        file: Some("environment.yml"),
        fields: &[
            ("$schema", Schema("environment")),
            ("name", Name(1)),
            ("version", Name(2)),
            ("image", Body("properties/image", Same)),
            ("os_type", Body("properties/osType", Lowercase)),
            ("tags", Body("properties/tags", Same)),
            ("inference_config", Body("properties/inferenceConfig", Object(INFERENCE_CONFIG))),
        ],
    },
    FileFormat {
        kind: "/jobs",
        command: "job",
        file: None,
        fields: &[
            ("", Implied("properties/jobType", Some("Command"))),
            ("$schema", Schema("commandJob")),
            ("type", Literal("command")),
            ("name", Name(1)),
            ("display_name", Body("properties/displayName", Same)),
            ("experiment_name", Body("properties/experimentName", Same)),
            ("tags", Body("properties/tags", Same)),
            ("command", Body("properties/command", Same)),
            ("environment", Body("properties/environmentId", Environment)),
            ("environment_variables", Body("properties/environmentVariables", Variables)),
            ("compute", Body("properties/computeId", Compute)),
            ("outputs", Body("properties/outputs", Each(JOB_OUTPUT))),
            ("resources", Body("properties/resources", Object(JOB_RESOURCES))),
            ("distribution", Body("properties/distribution", Object(DISTRIBUTION))),
            ("limits", Body("properties/limits", Object(JOB_LIMITS))),
            (
                "queue_settings",
                Body("properties/queueSettings", Object(&[("job_tier", Body("jobTier", Same))])),
            ),
        ],
    },
    FileFormat {
        kind: "/computes",
        command: "compute",
        file: Some("compute.yml"),
        fields: &[
            ("", Implied("properties/computeType", Some("AmlCompute"))),
            ("", Implied("properties/properties/osType", None)),
            ("$schema", Schema("amlCompute")),
            ("name", Name(1)),
            ("type", Literal("amlcompute")),
            ("location", Body("location", Same)),
            ("size", Body("properties/properties/vmSize", Same)),
            ("tier", Body("properties/properties/vmPriority", SnakeCase)),
            ("min_instances", Body("properties/properties/scaleSettings/minNodeCount", Same)),
            ("max_instances", Body("properties/properties/scaleSettings/maxNodeCount", Same)),
            (
                "idle_time_before_scale_down",
                Body("properties/properties/scaleSettings/nodeIdleTimeBeforeScaleDown", Seconds),
            ),
            ("ssh_public_access_enabled", Body("properties/properties/remoteLoginPortPublicAccess", Enabled)),
            ("identity", Body("identity", Object(IDENTITY))),
            ("tags", Body("tags", Same)),
        ],
    },
    FileFormat {
        kind: "/onlineEndpoints",
        command: "online-endpoint",
        file: Some("endpoint.yml"),
        fields: &[
            // Set by a command of its own, after the deployment.
            ("", Implied("properties/traffic", None)),
            ("$schema", Schema("managedOnlineEndpoint")),
            ("name", Name(1)),
            ("location", Body("location", Same)),
            ("auth_mode", Body("properties/authMode", SnakeCase)),
            ("public_network_access", Body("properties/publicNetworkAccess", Lowercase)),
            ("identity", Body("identity", Object(IDENTITY))),
            ("tags", Body("tags", Same)),
        ],
    },
    FileFormat {
        kind: "/onlineEndpoints/deployments",
        command: "online-deployment",
        file: Some("deployment.yml"),
        fields: &[
            ("", Implied("location", None)),
            ("", Implied("sku/name", None)),
            ("", Implied("properties/endpointComputeType", Some("Managed"))),
            // A fixed number of instances.
            ("", Implied("properties/scaleSettings/scaleType", Some("Default"))),
            ("$schema", Schema("managedOnlineDeployment")),
            ("name", Name(2)),
            ("endpoint_name", Name(1)),
            ("environment", Body("properties/environmentId", Environment)),
            ("environment_variables", Body("properties/environmentVariables", Variables)),
            ("instance_type", Body("properties/instanceType", Same)),
            ("instance_count", Body("sku/capacity", Same)),
            ("app_insights_enabled", Body("properties/appInsightsEnabled", Same)),
            ("liveness_probe", Body("properties/livenessProbe", Object(PROBE))),
            ("readiness_probe", Body("properties/readinessProbe", Object(PROBE))),
            ("request_settings", Body("properties/requestSettings", Object(REQUEST_SETTINGS))),
            ("tags", Body("tags", Same)),
        ],
    },
];

const INFERENCE_CONFIG: &[FileField] = &[
    ("liveness_route", Body("livenessRoute", Same)),
    ("readiness_route", Body("readinessRoute", Same)),
    ("scoring_route", Body("scoringRoute", Same)),
];

const JOB_OUTPUT: &[FileField] =
    &[("type", Body("jobOutputType", Same)), ("mode", Body("mode", Mode)), ("path", Body("uri", Same))];

const JOB_RESOURCES: &[FileField] = &[
    ("instance_type", Body("instanceType", Same)),
    ("instance_count", Body("instanceCount", Same)),
    ("shm_size", Body("shmSize", Same)),
];

const DISTRIBUTION: &[FileField] = &[
    ("type", Body("distributionType", Lowercase)),
    ("process_count_per_instance", Body("processCountPerInstance", Same)),
];

const JOB_LIMITS: &[FileField] =
    &[("", Implied("jobLimitsType", None)), ("timeout", Body("timeout", Seconds))];

const IDENTITY: &[FileField] = &[
    ("type", Body("type", SnakeCase)),
    ("user_assigned_identities", Body("userAssignedIdentities", ResourceIds)),
];

const PROBE: &[FileField] = &[
    ("failure_threshold", Body("failureThreshold", Same)),
    ("success_threshold", Body("successThreshold", Same)),
    ("timeout", Body("timeout", Seconds)),
    ("period", Body("period", Seconds)),
    ("initial_delay", Body("initialDelay", Seconds)),
];

const REQUEST_SETTINGS: &[FileField] = &[
    ("max_concurrent_requests_per_instance", Body("maxConcurrentRequestsPerInstance", Same)),
    ("request_timeout_ms", Body("requestTimeout", Milliseconds)),
];

impl FileFormat {
    /// The format for a kind of resource, which is given without that of the workspace.
    pub(super) fn of(kind: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.kind == kind)
    }

    /// The file that results in the same request, without its secrets.
    pub(super) fn write(&self, body: &BodyValue, path: &ResourcePath<'_>) -> Result<BodyValue, String> {
        write(self.fields, body, path)
    }
}

fn write(fields: &[FileField], body: &BodyValue, path: &ResourcePath<'_>) -> Result<BodyValue, String> {
    if let Some(unknown) = unknown_field(fields, body, "") {
        return Err(format!("unknown field `{unknown}`"));
    }
    let mut members = Vec::new();
    for (name, source) in fields {
        let value = match source {
            Schema(schema) => Some(BodyValue::Text(format!("{SCHEMAS}/{schema}.schema.json"))),
            Literal(text) => Some(BodyValue::Text((*text).to_owned())),
            Name(index) => path.names.get(*index).map(|name| BodyValue::Text((*name).to_owned())),
            Body(from, conversion) => match body.at_path(from) {
                Some(value) => convert(value, *conversion, path)?,
                None => None,
            },
            Implied(from, expected) => {
                let value = body.at_path(from).and_then(BodyValue::as_text);
                if let (Some(value), Some(expected)) = (value, expected)
                    && value != *expected
                {
                    return Err(format!("`{from}` is `{value}`"));
                }
                None
            }
        };
        members.extend(value.map(|value| ((*name).to_owned(), value)));
    }
    Ok(BodyValue::Map(members))
}

/// The path of a field of the body that the fields of the file do not come from.
fn unknown_field(fields: &[FileField], body: &BodyValue, parent: &str) -> Option<String> {
    body.members().iter().find_map(|(name, member)| {
        let path = if parent.is_empty() { name.clone() } else { format!("{parent}/{name}") };
        let mut known = fields.iter().filter_map(|(_, source)| match source {
            Body(from, _) | Implied(from, _) => from.strip_prefix(path.as_str()),
            _ => None,
        });
        if known.clone().any(str::is_empty) {
            return None;
        }
        let is_parent = known.any(|rest| rest.starts_with('/'));
        if is_parent { unknown_field(fields, member, &path) } else { Some(path) }
    })
}

/// The value in the file; none if there is nothing to write.
fn convert(
    value: &BodyValue,
    conversion: Conversion,
    path: &ResourcePath<'_>,
) -> Result<Option<BodyValue>, String> {
    let text = || value.as_text().ok_or_else(|| format!("expected a text, found {value:?}"));
    let number = |number: u64| BodyValue::Scalar(Value::from(number));
    let converted = match conversion {
        Lowercase => BodyValue::Text(text()?.to_lowercase()),
        SnakeCase => BodyValue::Text(snake_case(text()?)),
        Enabled => BodyValue::Scalar(Value::from(text()? == "Enabled")),
        Seconds => number(milliseconds(text()?)? / 1000),
        Milliseconds => number(milliseconds(text()?)?),
        Environment => BodyValue::Text(environment(text()?)?),
        Compute => BodyValue::Text(format!("azureml:{}", text()?.rsplit('/').next().unwrap_or_default())),
        Mode if value.as_text() == Some("ReadWriteMount") => BodyValue::Text("rw_mount".to_owned()),
        Same | Mode => value.clone(),
        Variables => {
            let is_plain = |member: &&(String, BodyValue)| !matches!(member.1, BodyValue::Secret(_));
            let plain: Vec<_> = value.members().iter().filter(is_plain).cloned().collect();
            return Ok((!plain.is_empty()).then_some(BodyValue::Map(plain)));
        }
        ResourceIds => {
            let ids = value.members().iter().map(|(id, _)| BodyValue::Text(id.clone()));
            BodyValue::List(ids.map(|id| BodyValue::Map(vec![("resource_id".to_owned(), id)])).collect())
        }
        Object(fields) => write(fields, value, path)?,
        Each(fields) => {
            let members = value.members().iter();
            let members = members.map(|(name, member)| Ok((name.clone(), write(fields, member, path)?)));
            BodyValue::Map(members.collect::<Result<_, String>>()?)
        }
    };
    Ok(Some(converted))
}

/// An environment by its name and version, from its id.
fn environment(id: &str) -> Result<String, String> {
    let segments: Vec<&str> = id.split('/').collect();
    match segments.as_slice() {
        [.., "environments", name, "versions", version] => Ok(format!("azureml:{name}:{version}")),
        _ => Err(format!("`{id}` is not the id of an environment")),
    }
}

/// `SystemAssigned` as `system_assigned`, `AMLToken` as `aml_token`.
fn snake_case(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    let mut was_lower = false;
    while let Some(c) = rest.next() {
        let starts_word = c.is_ascii_uppercase() && rest.peek().is_some_and(char::is_ascii_lowercase);
        if c.is_ascii_uppercase() && !out.is_empty() && (was_lower || starts_word) {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        was_lower = c.is_ascii_lowercase();
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn bodies_that_the_file_would_not_result_in_are_rejected() {
        let id = "/subscriptions/s/resourceGroups/g/providers/N/workspaces/w/jobs/j?api-version=1";
        let path = ResourcePath::parse(id).unwrap();
        for (properties, reason) in [
            (json!({"jobType": "Sweep"}), "`properties/jobType` is `Sweep`"),
            (json!({"jobType": "Command", "trial": {}}), "unknown field `properties/trial`"),
            (json!({"limits": {"maxTotalTrials": 3}}), "unknown field `maxTotalTrials`"),
        ] {
            let body = BodyValue::new(&json!({"properties": properties}), &BTreeMap::new());
            assert_eq!(FileFormat::of("/jobs").unwrap().write(&body, &path), Err(reason.to_owned()));
        }
    }

    #[test]
    fn names_of_the_service_become_names_of_the_file() {
        let cases = [
            ("Key", "key"),
            ("AMLToken", "aml_token"),
            ("AADToken", "aad_token"),
            ("SystemAssigned", "system_assigned"),
            ("UserAssigned", "user_assigned"),
        ];
        for (name, expected) in cases {
            assert_eq!(snake_case(name), expected, "{name}");
        }
    }

    #[test]
    fn an_environment_is_named_by_its_id() {
        assert_eq!(environment("/subscriptions/s/x/environments/e/versions/1").unwrap(), "azureml:e:1");
        assert!(environment("azureml:e:1").is_err());
    }
}
