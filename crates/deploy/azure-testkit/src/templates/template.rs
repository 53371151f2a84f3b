//! Templates: evaluating what is in them.

use serde_json::{Map, Value, json};

use crate::cloud::Cloud;
use crate::random::uuid;
use crate::resources::target::{SUBSCRIPTION, Target};
use crate::state::template_run::Scope;
use crate::templates::expression::{Expression, parse};

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EvaluationError {
    /// It refers to a resource that does not exist yet.
    NotYet(String),
    Invalid(String),
}

type Evaluated = Result<Value, EvaluationError>;

fn invalid(reason: impl Into<String>) -> EvaluationError {
    EvaluationError::Invalid(reason.into())
}

impl Scope {
    pub(crate) fn id(&self) -> String {
        match &self.group {
            Some(group) => format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}"),
            None => format!("/subscriptions/{SUBSCRIPTION}"),
        }
    }

    /// Evaluates all expressions in a value.
    pub(crate) fn evaluate(&self, value: &Value, cloud: &Cloud) -> Evaluated {
        match value {
            Value::String(text) => match parse(text) {
                None => Ok(json!(text.strip_prefix("[[").map_or(text.clone(), |rest| format!("[{rest}")))),
                Some(expression) => self.expression(&expression.map_err(invalid)?, cloud),
            },
            Value::Array(items) => items
                .iter()
                .map(|item| self.evaluate(item, cloud))
                .collect::<Result<_, _>>()
                .map(Value::Array),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| Ok((name.clone(), self.evaluate(value, cloud)?)))
                .collect::<Result<Map<_, _>, EvaluationError>>()
                .map(Value::Object),
            _ => Ok(value.clone()),
        }
    }

    fn expression(&self, expression: &Expression, cloud: &Cloud) -> Evaluated {
        match expression {
            Expression::Literal(value) => Ok(value.clone()),
            Expression::Member { of, name } => member(&self.expression(of, cloud)?, &json!(name)),
            Expression::Index { of, index } => {
                member(&self.expression(of, cloud)?, &self.expression(index, cloud)?)
            }
            Expression::Call { function, arguments } => {
                let arguments: Vec<Value> = arguments
                    .iter()
                    .map(|argument| self.expression(argument, cloud))
                    .collect::<Result<_, _>>()?;
                self.call(function, &arguments, cloud)
            }
        }
    }

    fn call(&self, function: &str, arguments: &[Value], cloud: &Cloud) -> Evaluated {
        let text = |index: usize| {
            let found = arguments.get(index).and_then(Value::as_str);
            found.ok_or_else(|| invalid(format!("argument {} of {function} is not a string", index + 1)))
        };
        let named = |values: &Map<String, Value>| {
            let name = text(0)?;
            let found = values.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone()).ok_or_else(|| invalid(format!("no {function} '{name}'")))
        };
        match function {
            "parameters" => named(&self.parameters),
            "variables" => self.evaluate(&named(&self.variables)?, cloud),
            "concat" => Ok(json!(arguments.iter().map(plain).collect::<String>())),
            "uri" => {
                let (base, path) = (text(0)?, text(1)?);
                Ok(json!(format!("{}/{}", base.trim_end_matches('/'), path.trim_start_matches('/'))))
            }
            "environment" => Ok(json!({
                "name": "AzureCloud", "resourceManager": format!("{}/", cloud.base),
                "batch": "https://batch.core.windows.net/",
            })),
            "subscription" => Ok(json!({
                "id": format!("/subscriptions/{SUBSCRIPTION}"), "subscriptionId": SUBSCRIPTION,
                "tenantId": crate::state::identity::TENANT,
            })),
            "resourcegroup" => {
                let id = self.id();
                let group = self.group.as_ref().ok_or_else(|| invalid("no resource group in this scope"))?;
                let found = cloud.find(&id.to_ascii_lowercase());
                let group = found.ok_or_else(|| EvaluationError::NotYet(group.clone()))?;
                Ok(json!({"id": id, "name": group.target.name, "location": group.location()}))
            }
            "resourceid" => resource_id_of(&self.id(), arguments),
            "subscriptionresourceid" => resource_id_of(&format!("/subscriptions/{SUBSCRIPTION}"), arguments),
            "extensionresourceid" => {
                let (scope, rest) = arguments.split_first().ok_or_else(|| invalid("no scope"))?;
                resource_id_of(&plain(scope), rest)
            }
            "reference" => {
                let id = text(0)?;
                let is_full = arguments.get(2).is_some_and(|full| full == "Full" || full == "full");
                let found = cloud.find(&id.to_ascii_lowercase()).filter(|resource| !resource.is_busy());
                let resource = found.ok_or_else(|| EvaluationError::NotYet(id.to_owned()))?;
                let body = cloud.render(resource, false);
                Ok(if is_full { body } else { body["properties"].clone() })
            }
            "guid" => {
                let (high, low) = hash(&arguments.iter().map(plain).collect::<Vec<_>>().join("-"));
                Ok(json!(uuid(high, low)))
            }
            "tolower" => Ok(json!(text(0)?.to_lowercase())),
            "endswith" => Ok(json!(text(0)?.ends_with(text(1)?))),
            "substring" => {
                let start =
                    arguments.get(1).and_then(Value::as_u64).and_then(|start| usize::try_from(start).ok());
                let rest = start.and_then(|start| text(0).ok()?.get(start..));
                rest.map(|rest| json!(rest)).ok_or_else(|| invalid("substring is out of range"))
            }
            "if" => match arguments {
                [condition, yes, no] => Ok(if condition == &json!(true) { yes.clone() } else { no.clone() }),
                _ => Err(invalid("if has three arguments")),
            },
            _ => Err(invalid(format!("the template function '{function}' is not supported"))),
        }
    }
}

/// `resourceId([subscription], [group], type, name, …)`.
fn resource_id_of(scope: &str, arguments: &[Value]) -> Evaluated {
    let texts: Vec<String> = arguments.iter().map(plain).collect();
    let at = texts.iter().position(|text| text.contains('/')).ok_or_else(|| invalid("no resource type"))?;
    let scope = match &texts[..at] {
        [] => scope.to_owned(),
        [group] => format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}"),
        [subscription, group, ..] => format!("/subscriptions/{subscription}/resourceGroups/{group}"),
    };
    Ok(json!(resource_id(&scope, &texts[at], &texts[at + 1..])))
}

/// The id of a resource by its type and the names of itself and its parents.
pub(crate) fn resource_id(scope: &str, type_name: &str, names: &[String]) -> String {
    let mut types = type_name.split('/');
    let mut id = format!("{scope}/providers/{}", types.next().unwrap_or_default());
    for (kind, name) in types.zip(names) {
        id.extend(["/", kind, "/", name]);
    }
    id
}

/// The resource that an entry of a template creates, in its scope.
pub(crate) fn target_of(resource: &Value, scope: &Scope) -> Option<Target> {
    let (kind, name) = (resource["type"].as_str()?, resource["name"].as_str()?);
    if kind.eq_ignore_ascii_case("Microsoft.Resources/resourceGroups") {
        return Target::parse(&format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{name}"));
    }
    let names: Vec<String> = name.split('/').map(str::to_owned).collect();
    let own = match (resource["resourceGroup"].as_str(), resource["scope"].as_str()) {
        (Some(group), _) => format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}"),
        (None, Some(extended)) if extended.starts_with('/') => extended.to_owned(),
        (None, Some(extended)) => format!("{}/providers/{extended}", scope.id()),
        (None, None) => scope.id(),
    };
    Target::parse(&resource_id(&own, kind, &names))
}

fn member(value: &Value, key: &Value) -> Evaluated {
    let found = match key {
        Value::String(name) => value
            .as_object()
            .and_then(|fields| fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name)))
            .map(|(_, value)| value),
        _ => key.as_u64().and_then(|index| value.get(usize::try_from(index).ok()?)),
    };
    found.cloned().ok_or_else(|| invalid(format!("no {key} in {value}")))
}

/// A value as text, without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// 128 bits of a text (FNV-1a, with two bases).
fn hash(text: &str) -> (u64, u64) {
    let fold = |base: u64| {
        text.bytes().fold(base, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    };
    (fold(0xcbf2_9ce4_8422_2325), fold(0x9ae1_6a3b_2f90_404f))
}
