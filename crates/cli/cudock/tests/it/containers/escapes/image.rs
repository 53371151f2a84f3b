//! Images that no honest tool writes.

use cudock_testkit::tar::Tar;
use serde_json::Value;

use crate::containers::images::Image;
use crate::containers::machine::Machine;

/// Writes an image of the machine's directory with these layers above it, and with this configuration. Returns its name for `run`.
pub(super) fn write(machine: &Machine, name: &str, layers: &[Tar], config: &Value) -> String {
    let image = Image::of(machine).config(config.clone());
    layers.iter().cloned().fold(image, Image::raw_layer).write(name);
    format!("oci:{name}")
}
