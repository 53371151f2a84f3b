//! Files of tasks that are uploaded before their node is gone.

use serde_json::{Value, json};

use crate::call::Body;
use crate::spec::{DeploymentSpec, Outputs};

/// The files that every task writes next to its working directory.
pub(super) const LOGS: [&str; 2] = ["stdout.txt", "stderr.txt"];

/// The files that are uploaded when a task ends, however it ends. Batch counts the upload as a part
/// of the task.
pub(super) fn files(spec: &DeploymentSpec, task: &str) -> Option<Vec<Value>> {
    let outputs = spec.outputs.as_ref()?;
    let file = |pattern: &str, path: String| {
        json!({
            "filePattern": pattern,
            "destination": {"container": {"path": path, "containerUrl": ""}},
            "uploadOptions": {"uploadCondition": "taskcompletion"},
        })
    };
    let blob = |name: &str| Outputs::blob(&spec.run_id, task, name);
    let chosen = outputs.pattern.as_deref().map(|pattern| {
        // The path of several files is a directory, that of one file its name.
        let name = if pattern.contains(['*', '?', '[']) { "files" } else { pattern };
        file(pattern, blob(name))
    });
    Some(LOGS.iter().map(|log| file(&format!("../{log}"), blob(log))).chain(chosen).collect())
}

/// Puts the URL with its signature into all files of a task, whose JSON pointer this is.
pub(super) fn with_signature(request: Body, spec: &DeploymentSpec, task: &str) -> Body {
    let Some(outputs) = &spec.outputs else { return request };
    let count = LOGS.len() + usize::from(outputs.pattern.is_some());
    (0..count).fold(request, |request, file| {
        let pointer = format!("{task}/outputFiles/{file}/destination/container/containerUrl");
        request.secret(pointer, outputs.container())
    })
}

/// Lets the files of a copied task belong to another one.
pub(super) fn rename(task: &mut Value, run_id: &str, from: &str, to: &str) {
    let (from, to) = (Outputs::blob(run_id, from, ""), Outputs::blob(run_id, to, ""));
    for file in task.pointer_mut("/outputFiles").and_then(Value::as_array_mut).into_iter().flatten() {
        let path = file.pointer_mut("/destination/container/path");
        if let Some(path) = path
            && let Some(rest) = path.as_str().and_then(|path| path.strip_prefix(&from))
        {
            *path = json!(format!("{to}{rest}"));
        }
    }
}
