//! Compares JSON reports with their schemas.

use std::collections::HashMap;
use std::process::{Command, Output};
use std::sync::{LazyLock, Mutex, PoisonError};

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use super::{cudock, shown};

/// Runs a command. A JSON report that it prints must match its schema, whatever the exit code.
pub fn output(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    check(command, &output);
    output
}

/// Compares the output of a command with the schema of its report, if it is one.
pub fn check(command: &Command, output: &Output) {
    let args: Vec<&str> = command.get_args().filter_map(|arg| arg.to_str()).collect();
    let (Some(name), Ok(report)) = (schema_name(&args), serde_json::from_slice(&output.stdout)) else {
        return;
    };
    if let Err(error) = validate(&name, &report) {
        panic!("{args:?}: {error}\n{}", shown(output));
    }
}

/// The names of all schemas.
pub fn names() -> Vec<String> {
    let list = cudock(&["schema"]).output().unwrap();
    let text = String::from_utf8(list.stdout).unwrap();
    text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// The schema that users see.
pub fn schema(name: &str) -> Value {
    serde_json::from_slice(&cudock(&["schema", name]).output().unwrap().stdout).unwrap()
}

/// The name of the schema for the report of these arguments. None for text, and for formats of others such as SARIF.
fn schema_name(args: &[&str]) -> Option<String> {
    let is_json = args.windows(2).any(|pair| pair == ["--format", "json"]) || args.contains(&"--format=json");
    let verb = args
        .iter()
        .position(|arg| NAMES.iter().any(|name| name == arg || name.split('-').next() == Some(*arg)))?;
    let has = |flag: &str| args.iter().any(|arg| arg.split('=').next() == Some(flag));
    let name = match (args[verb], args.get(verb + 1).copied()) {
        // Other engines report containers in their own format.
        ("inspect-container", _) if has("--engine") => return None,
        ("inspect-container", _) => return Some("inspect-container".to_owned()),
        ("volume", Some("inspect")) => "volume".to_owned(),
        _ if !is_json => return None,
        ("cdi", Some("check")) => "cdi-check".to_owned(),
        ("cdi", _) => return None,
        ("bench", _) if has("--model") => "bench-model".to_owned(),
        ("bench", _) if has("--tune") => "bench-tune".to_owned(),
        ("verify", _) if has("--key") => "verify-image".to_owned(),
        ("migrate", _) if has("-o") => "migrate-translation".to_owned(),
        ("lint", _) if has("--rules") => "lint-rules".to_owned(),
        ("plan", _) if has("--why") => "plan-why".to_owned(),
        ("plan", _) if has("--compare") => "plan-compare".to_owned(),
        ("runtime" | "prices", Some(second @ ("list" | "install" | "refresh"))) => {
            format!("{}-{second}", args[verb])
        }
        (verb, _) => verb.to_owned(),
    };
    Some(name)
}

static NAMES: LazyLock<Vec<String>> = LazyLock::new(names);

fn validate(name: &str, report: &Value) -> Result<(), String> {
    static COMPILED: LazyLock<Mutex<HashMap<String, (Schemas, SchemaIndex)>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let (schemas, index) = compiled.entry(name.to_owned()).or_insert_with(|| compile(name));
    schemas.validate(report, *index).map_err(|error| format!("{error:#}"))
}

/// Compiles a schema, which must be valid itself.
pub fn compile(name: &str) -> (Schemas, SchemaIndex) {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.enable_format_assertions();
    compiler.add_resource("schema.json", schema(name)).unwrap();
    let index =
        compiler.compile("schema.json", &mut schemas).unwrap_or_else(|error| panic!("{name}: {error:#}"));
    (schemas, index)
}
