//! Terraform with the provider `azapi`, whose resources are the requests of the resource manager.

use std::fmt::Write as _;

use super::az;
use super::body_value::BodyValue;
use super::error::ExportError;
use super::header::{comment, header};
use super::outline::{Outline, OutlineResource};
use super::template::{self, DEPLOYMENTS};
use crate::deployment::Deployment;

const AZAPI_VERSION: &str = "2.4.0";
const GROUPS: &str = "Microsoft.Resources/resourceGroups";

pub(super) fn files(
    deployment: &Deployment,
    outline: &Outline<'_>,
) -> Result<Vec<(String, String)>, ExportError> {
    let about = "Create: terraform init && terraform apply. The state contains the secrets: keep it private.";
    let mut text = comment("#", &header(deployment, about, "terraform destroy, then bash down.sh"));
    let _ = write!(
        text,
        "\nterraform {{\n  required_version = \">= 1.5.0\"\n  required_providers {{\n    azapi = {{\n      \
         source  = \"Azure/azapi\"\n      version = \"{AZAPI_VERSION}\"\n    }}\n  }}\n}}\n\nprovider \"azapi\" {{}}\n"
    );
    for secret in template::secrets_of(&outline.resources) {
        let _ = write!(text, "\nvariable \"{secret}\" {{\n  type      = string\n  sensitive = true\n}}\n");
    }
    let mut previous: Option<String> = None;
    for resource in &outline.resources {
        for group in groups_of(resource) {
            let label = label(&format!("group_{}", group.name), deployment);
            block(&mut text, &label, &group.attributes(), previous.as_deref());
            previous = Some(label);
        }
        let label = label(&resource.step.id, deployment);
        block(&mut text, &label, &attributes(resource), previous.as_deref());
        previous = Some(label);
    }
    let mut files = vec![("main.tf".to_owned(), text)];
    files.extend(az::finish_script(deployment, outline)?);
    Ok(files)
}

/// A group that a template creates. Terraform creates it before the template does, so that `terraform destroy` deletes it.
struct TemplateGroup {
    name: String,
    api_version: String,
    parent: String,
    location: BodyValue,
    tags: Option<BodyValue>,
}

fn groups_of(resource: &OutlineResource<'_>) -> Vec<TemplateGroup> {
    if !resource.path.is_kind(DEPLOYMENTS) {
        return Vec::new();
    }
    let template = resource.body.get("properties").and_then(|properties| properties.get("template"));
    let Some(BodyValue::List(resources)) = template.and_then(|template| template.get("resources")) else {
        return Vec::new();
    };
    let group = |group: &BodyValue| {
        let text = |key: &str| group.get(key).and_then(BodyValue::as_text).map(str::to_owned);
        text("type").filter(|kind| kind.eq_ignore_ascii_case(GROUPS))?;
        Some(TemplateGroup {
            name: text("name")?,
            api_version: text("apiVersion")?,
            parent: resource.path.parent(),
            location: group.get("location")?.clone(),
            tags: group.get("tags").cloned(),
        })
    };
    resources.iter().filter_map(group).collect()
}

impl TemplateGroup {
    fn attributes(&self) -> String {
        let mut out = String::new();
        attribute(&mut out, "type", &BodyValue::Text(format!("{GROUPS}@{}", self.api_version)));
        attribute(&mut out, "name", &BodyValue::Text(self.name.clone()));
        attribute(&mut out, "parent_id", &BodyValue::Text(self.parent.clone()));
        attribute(&mut out, "location", &self.location);
        if let Some(tags) = &self.tags {
            attribute(&mut out, "tags", tags);
        }
        out
    }
}

fn attributes(resource: &OutlineResource<'_>) -> String {
    let path = &resource.path;
    let mut out = String::new();
    attribute(&mut out, "type", &BodyValue::Text(format!("{}@{}", path.kind, path.api_version)));
    attribute(&mut out, "name", &BodyValue::Text(path.names.last().copied().unwrap_or_default().to_owned()));
    attribute(&mut out, "parent_id", &BodyValue::Text(path.parent()));
    for key in ["location", "tags"] {
        if let Some(value) = resource.body.get(key) {
            attribute(&mut out, key, value);
        }
    }
    if let Some(identity) = resource.body.get("identity") {
        identity_block(&mut out, identity);
    }
    let members = resource.body.members().iter();
    let rest = members.filter(|(key, _)| !["location", "tags", "identity"].contains(&key.as_str())).cloned();
    attribute(&mut out, "body", &BodyValue::Map(rest.collect()));
    // The provider knows the schemas of the day of its release only.
    attribute(&mut out, "schema_validation_enabled", &BodyValue::Scalar(false.into()));
    let _ =
        writeln!(out, "\n  timeouts {{\n    create = \"{}s\"\n  }}", resource.step.timeout.as_secs().max(1));
    out
}

fn identity_block(out: &mut String, identity: &BodyValue) {
    let kind = identity.get("type").cloned().unwrap_or_else(|| BodyValue::Text("None".to_owned()));
    let ids = identity.get("userAssignedIdentities").map(BodyValue::members).unwrap_or_default();
    let ids = ids.iter().map(|(id, _)| BodyValue::Text(id.clone())).collect();
    let _ = writeln!(out, "\n  identity {{\n    type         = {}", expression(&kind, 2));
    let _ = writeln!(out, "    identity_ids = {}\n  }}\n", expression(&BodyValue::List(ids), 2));
}

fn attribute(out: &mut String, name: &str, value: &BodyValue) {
    let _ = writeln!(out, "  {name} = {}", expression(value, 1));
}

fn block(out: &mut String, label: &str, attributes: &str, previous: Option<&str>) {
    let _ = write!(out, "\nresource \"azapi_resource\" \"{label}\" {{\n{attributes}");
    if let Some(previous) = previous {
        let _ = writeln!(out, "\n  depends_on = [azapi_resource.{previous}]");
    }
    out.push_str("}\n");
}

/// The label of a block; without the run, so that it stays the same from run to run.
fn label(text: &str, deployment: &Deployment) -> String {
    let text = text.replace(&format!("cudock-{}", deployment.run_id), "cudock");
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn expression(value: &BodyValue, indent: usize) -> String {
    let margin = |indent: usize| "  ".repeat(indent);
    match value {
        BodyValue::Scalar(scalar) => scalar.to_string(),
        BodyValue::Text(text) => string(text),
        BodyValue::Secret(name) => format!("var.{name}"),
        BodyValue::List(items) if items.is_empty() => "[]".to_owned(),
        BodyValue::Map(members) if members.is_empty() => "{}".to_owned(),
        BodyValue::List(items) => {
            let item = |item| format!("{}{},\n", margin(indent + 1), expression(item, indent + 1));
            format!("[\n{}{}]", items.iter().map(item).collect::<String>(), margin(indent))
        }
        BodyValue::Map(members) => {
            let member = |(key, member): &(String, BodyValue)| {
                format!("{}{} = {}\n", margin(indent + 1), string(key), expression(member, indent + 1))
            };
            format!("{{\n{}{}}}", members.iter().map(member).collect::<String>(), margin(indent))
        }
    }
}

/// A string of HCL, in which `${` and `%{` begin a template.
fn string(text: &str) -> String {
    let mut out = String::from("\"");
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '$' | '%' if rest.peek() == Some(&'{') => out.extend([c, c]),
            control if control.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_hcl_mean_the_text() {
        let cases = [
            ("plain", r#""plain""#),
            (r#"a "b" \c"#, r#""a \"b\" \\c""#),
            ("two\nlines\u{7}", r#""two\nlines\u0007""#),
            ("${x} %{y} $z", r#""$${x} %%{y} $z""#),
        ];
        for (text, expected) in cases {
            assert_eq!(string(text), expected, "{text}");
        }
    }
}
