//! Finds fields that CDI does not have. Engines reject a file with any, and then none of its devices can be used.

use serde_json::Value;

const TOP: [&str; 5] = ["cdiVersion", "kind", "annotations", "devices", "containerEdits"];
const DEVICE: [&str; 3] = ["name", "annotations", "containerEdits"];
const EDITS: [&str; 7] =
    ["env", "deviceNodes", "netDevices", "hooks", "mounts", "intelRdt", "additionalGids"];
const NODE: [&str; 9] =
    ["path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid"];
const HOOK: [&str; 5] = ["hookName", "path", "args", "env", "timeout"];
const MOUNT: [&str; 4] = ["hostPath", "containerPath", "options", "type"];

/// The paths of unknown fields.
pub(super) fn find(value: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    fields(value, "", &TOP, &mut unknown);
    edits(value.get("containerEdits"), "containerEdits", &mut unknown);
    for (index, device) in items(value.get("devices")) {
        let path = format!("devices[{index}]");
        fields(device, &path, &DEVICE, &mut unknown);
        edits(device.get("containerEdits"), &format!("{path}.containerEdits"), &mut unknown);
    }
    unknown
}

fn edits(value: Option<&Value>, path: &str, unknown: &mut Vec<String>) {
    let Some(value) = value else { return };
    fields(value, path, &EDITS, unknown);
    for (list, known) in [("deviceNodes", &NODE[..]), ("hooks", &HOOK), ("mounts", &MOUNT)] {
        for (index, item) in items(value.get(list)) {
            fields(item, &format!("{path}.{list}[{index}]"), known, unknown);
        }
    }
}

fn items(value: Option<&Value>) -> impl Iterator<Item = (usize, &Value)> {
    value.and_then(Value::as_array).into_iter().flatten().enumerate()
}

fn fields(value: &Value, path: &str, known: &[&str], unknown: &mut Vec<String>) {
    for name in value.as_object().into_iter().flat_map(|fields| fields.keys()) {
        if !known.contains(&name.as_str()) {
            unknown.push(if path.is_empty() { name.clone() } else { format!("{path}.{name}") });
        }
    }
}
