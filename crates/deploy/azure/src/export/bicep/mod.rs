//! Bicep, printed from the ARM template of the same deployment.
//!
//! A nested deployment becomes a module in a file of its own, because that is how Bicep changes the scope.

mod expression;
mod print;
mod string;

use std::fmt::Write as _;

use serde_json::{Map, Value};

use self::print::{identifier, key, value};
use self::string::string;
use super::az;
use super::error::ExportError;
use super::header::{DELETE_BY_SCRIPT, comment, header};
use super::outline::{Outline, ResourcePath, first_free};
use super::template::{self, DEPLOYMENTS};
use crate::deployment::Deployment;

pub(super) fn files(
    deployment: &Deployment,
    outline: &Outline<'_>,
) -> Result<Vec<(String, String)>, ExportError> {
    let about = "Create: az deployment sub create --location REGION --template-file main.bicep";
    let header = comment("//", &header(deployment, about, DELETE_BY_SCRIPT));
    let template = template::template(deployment, outline);
    let mut modules = Modules { header, names: vec!["main".to_owned()], files: Vec::new() };
    modules.add("main", &template, TemplateScope::Subscription)?;
    let mut files = modules.files;
    // The file to deploy comes first.
    files.reverse();
    files.extend(az::finish_script(deployment, outline)?);
    Ok(files)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TemplateScope {
    Subscription,
    Group,
}

struct Modules {
    header: String,
    /// Names of files, without the extension.
    names: Vec<String>,
    files: Vec<(String, String)>,
}

impl Modules {
    /// Adds the file of a template after those of its nested deployments.
    fn add(&mut self, name: &str, template: &Value, scope: TemplateScope) -> Result<(), ExportError> {
        let mut text = self.header.clone();
        if scope == TemplateScope::Subscription {
            text.push_str("\ntargetScope = 'subscription'\n");
        }
        declarations(&mut text, template)?;
        let resources: Vec<&Map<String, Value>> =
            list(template.get("resources")).iter().filter_map(Value::as_object).collect();
        let symbols = symbols(template, &resources);
        for (resource, symbol) in resources.iter().zip(&symbols) {
            let dependencies = dependencies(resource, &resources, &symbols)?;
            let module = resource.get("properties").and_then(|properties| properties.get("template"));
            match module.filter(|_| text_of(resource, "type").eq_ignore_ascii_case(DEPLOYMENTS)) {
                Some(module) => self.module(&mut text, symbol, resource, module, scope, &dependencies)?,
                None => print_resource(&mut text, symbol, resource, &dependencies)?,
            }
        }
        for (name, output) in members(template.get("outputs")) {
            let kind = kind(output.get("type"));
            let result = value(output.get("value").unwrap_or(&Value::Null), 0)?;
            let _ = write!(text, "\noutput {name} {kind} = {result}\n");
        }
        self.files.push((format!("{name}.bicep"), text));
        Ok(())
    }

    fn module(
        &mut self,
        text: &mut String,
        symbol: &str,
        resource: &Map<String, Value>,
        template: &Value,
        scope: TemplateScope,
        dependencies: &[&str],
    ) -> Result<(), ExportError> {
        let name = text_of(resource, "name");
        let file = first_free(&identifier(name), |free| !self.names.iter().any(|taken| taken == free));
        self.names.push(file.clone());
        let group = resource.get("resourceGroup");
        let properties = resource.get("properties");
        let is_inner = properties
            .and_then(|properties| properties.pointer("/expressionEvaluationOptions/scope"))
            == Some(&Value::from("inner"));
        if !is_inner {
            return Err(ExportError::unsupported(name, "a nested template with the scope of the outer one"));
        }
        let _ = write!(text, "\nmodule {symbol} {} = {{\n", string(&format!("{file}.bicep")));
        let _ = writeln!(text, "  name: {}", value(&Value::from(name), 1)?);
        if let Some(group) = group {
            let _ = writeln!(text, "  scope: resourceGroup({})", value(group, 1)?);
        }
        let arguments = members(properties.and_then(|properties| properties.get("parameters")));
        if !arguments.is_empty() {
            text.push_str("  params: {\n");
            for (name, argument) in arguments {
                let argument = value(argument.get("value").unwrap_or(&Value::Null), 2)?;
                let _ = writeln!(text, "    {}: {argument}", key(name));
            }
            text.push_str("  }\n");
        }
        print_dependencies(text, dependencies);
        text.push_str("}\n");
        self.add(&file, template, if group.is_some() { TemplateScope::Group } else { scope })
    }
}

/// Parameters and variables.
fn declarations(text: &mut String, template: &Value) -> Result<(), ExportError> {
    for (name, parameter) in members(template.get("parameters")) {
        let kind = text_of(parameter.as_object().unwrap_or(&Map::new()), "type").to_ascii_lowercase();
        let decorator = if kind.starts_with("secure") { "@secure()\n" } else { "" };
        let default = parameter.get("defaultValue").map(|default| value(default, 0)).transpose()?;
        let default = default.map(|default| format!(" = {default}")).unwrap_or_default();
        let kind = self::kind(parameter.get("type"));
        let _ = write!(text, "\n{decorator}param {name} {kind}{default}\n");
    }
    for (name, variable) in members(template.get("variables")) {
        let _ = write!(text, "\nvar {name} = {}\n", value(variable, 0)?);
    }
    Ok(())
}

/// The type of a parameter or an output in Bicep.
fn kind(kind: Option<&Value>) -> &'static str {
    match kind.and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase().as_str() {
        "int" => "int",
        "bool" => "bool",
        "array" => "array",
        "object" | "secureobject" => "object",
        _ => "string",
    }
}

fn print_resource(
    text: &mut String,
    symbol: &str,
    resource: &Map<String, Value>,
    dependencies: &[&str],
) -> Result<(), ExportError> {
    let version = text_of(resource, "apiVersion");
    if let Some((kind, name)) = text_of(resource, "scope").rsplit_once('/') {
        // Only its id is used, which is the same in all versions.
        let (kind, name) = (string(&format!("{kind}@{version}")), string(name));
        let _ = write!(text, "\nresource {symbol}TemplateScope {kind} existing = {{\n  name: {name}\n}}\n");
    }
    let kind = format!("{}@{version}", text_of(resource, "type"));
    let _ = write!(text, "\nresource {symbol} {} = {{\n", string(&kind));
    for (name, member) in resource {
        if name == "scope" {
            let _ = writeln!(text, "  scope: {symbol}TemplateScope");
        } else if !["type", "apiVersion", "dependsOn"].contains(&name.as_str()) {
            let _ = writeln!(text, "  {}: {}", key(name), value(member, 1)?);
        }
    }
    print_dependencies(text, dependencies);
    text.push_str("}\n");
    Ok(())
}

fn print_dependencies(text: &mut String, dependencies: &[&str]) {
    if !dependencies.is_empty() {
        let lines: String = dependencies.iter().map(|symbol| format!("    {symbol}\n")).collect();
        let _ = writeln!(text, "  dependsOn: [\n{lines}  ]");
    }
}

/// A symbol for each resource: the last part of its type, numbered where it is taken.
fn symbols(template: &Value, resources: &[&Map<String, Value>]) -> Vec<String> {
    let declared = ["parameters", "variables"].into_iter().flat_map(|section| members(template.get(section)));
    let mut taken: Vec<String> = declared.map(|(name, _)| name.to_owned()).collect();
    let mut symbols = Vec::with_capacity(resources.len());
    for resource in resources {
        let kind = text_of(resource, "type").rsplit('/').next().unwrap_or_default();
        let symbol = first_free(kind, |symbol| !taken.iter().any(|taken| taken == symbol));
        taken.push(symbol.clone());
        symbols.push(symbol);
    }
    symbols
}

/// The symbols of the resources that a resource is created after.
fn dependencies<'s>(
    resource: &Map<String, Value>,
    all: &[&Map<String, Value>],
    symbols: &'s [String],
) -> Result<Vec<&'s str>, ExportError> {
    let mut found = Vec::new();
    for dependency in list(resource.get("dependsOn")).iter().filter_map(Value::as_str) {
        let mut named = all.iter().zip(symbols).filter(|(other, _)| is_named(other, dependency));
        let unknown =
            || ExportError::unsupported(text_of(resource, "name"), format!("dependency {dependency}"));
        found.push(named.next().map(|(_, symbol)| symbol.as_str()).ok_or_else(unknown)?);
    }
    Ok(found)
}

/// Whether a dependency is this resource: by its id, or by a call of `resourceId` with its type and its name.
fn is_named(resource: &Map<String, Value>, dependency: &str) -> bool {
    let (kind, name) = (text_of(resource, "type"), text_of(resource, "name"));
    if let Some(path) = ResourcePath::parse(&format!("{dependency}?api-version=")) {
        // Deployments to several groups may have the same name.
        let group = resource.get("resourceGroup").and_then(Value::as_str);
        let is_in_group =
            group.is_none_or(|group| path.group.is_some_and(|own| own.eq_ignore_ascii_case(group)));
        return path.is_kind(kind) && path.name().eq_ignore_ascii_case(name) && is_in_group;
    }
    let parts = expression::parts(dependency);
    let is_kind = dependency.to_ascii_lowercase().contains(&format!("'{}'", kind.to_ascii_lowercase()));
    is_kind && expression::parts(name).iter().all(|part| parts.contains(part))
}

fn text_of<'v>(resource: &'v Map<String, Value>, name: &str) -> &'v str {
    resource.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn members(value: Option<&Value>) -> Vec<(&str, &Value)> {
    let members = value.and_then(Value::as_object).into_iter().flatten();
    members.map(|(name, member)| (name.as_str(), member)).collect()
}
