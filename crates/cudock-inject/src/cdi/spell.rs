//! Fields that the format has. Engines refuse a file with any other, and then none of its devices can be used.

use serde_json::Value;

const TOP: [&str; 5] = ["cdiVersion", "kind", "annotations", "devices", "containerEdits"];
const DEVICE: [&str; 3] = ["name", "annotations", "containerEdits"];
const EDITS: [&str; 7] =
    ["env", "deviceNodes", "netDevices", "hooks", "mounts", "intelRdt", "additionalGids"];
const NODE: [&str; 9] =
    ["path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid"];
const HOOK: [&str; 5] = ["hookName", "path", "args", "env", "timeout"];
const MOUNT: [&str; 4] = ["hostPath", "containerPath", "options", "type"];

/// Fields nobody knows, with the way to them.
pub(super) fn unknown(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    fields(value, "", &TOP, &mut found);
    edits(value.get("containerEdits"), "containerEdits", &mut found);
    for (at, device) in items(value.get("devices")) {
        let way = format!("devices[{at}]");
        fields(device, &way, &DEVICE, &mut found);
        edits(device.get("containerEdits"), &format!("{way}.containerEdits"), &mut found);
    }
    found
}

fn edits(value: Option<&Value>, way: &str, found: &mut Vec<String>) {
    let Some(value) = value else { return };
    fields(value, way, &EDITS, found);
    for (list, known) in [("deviceNodes", &NODE[..]), ("hooks", &HOOK), ("mounts", &MOUNT)] {
        for (at, item) in items(value.get(list)) {
            fields(item, &format!("{way}.{list}[{at}]"), known, found);
        }
    }
}

fn items(value: Option<&Value>) -> impl Iterator<Item = (usize, &Value)> {
    value.and_then(Value::as_array).into_iter().flatten().enumerate()
}

fn fields(value: &Value, way: &str, known: &[&str], found: &mut Vec<String>) {
    for name in value.as_object().into_iter().flat_map(|fields| fields.keys()) {
        if !known.contains(&name.as_str()) {
            found.push(if way.is_empty() { name.clone() } else { format!("{way}.{name}") });
        }
    }
}
