//! cuda-compat: a newer user-space driver in an image, for hosts with older drivers.
//!
//! It is used under the same conditions as in NVIDIA's container toolkit: there must be exactly one
//! libcuda in its directory. Its note lists the driver branches that it supports; without a note it
//! must be of a newer branch.

use cudock_facts::version::DriverVersion;
use serde::Deserialize;

use super::Inside;
use crate::edits::Library;
use crate::elf;
use crate::elf::ElfClass;

const PLACE: &str = "/usr/local/cuda/compat";
const NOTE: &str = ".note.cuda.fwd_compatibility";
const MOST_NOTE: usize = 1 << 16;

#[derive(Debug, Deserialize)]
struct Note {
    #[serde(rename = "Driver", default)]
    branches: Vec<u16>,
}

/// The image's compat libraries that take precedence over those of `driver`; empty if none do.
pub(super) fn libraries(inside: &Inside, driver: DriverVersion) -> Vec<Library> {
    let names = inside.names(PLACE);
    if !is_used(inside, &names, driver) {
        return Vec::new();
    }
    let is_soname = |name: &&String| {
        let number =
            name.strip_prefix("lib").and_then(|rest| rest.split_once(".so.")).map(|(_, number)| number);
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    names
        .iter()
        .filter(is_soname)
        .map(|name| Library {
            soname: name.clone(),
            path: format!("{PLACE}/{name}").into(),
            class: ElfClass::Bits64,
        })
        .collect()
}

fn is_used(inside: &Inside, names: &[String], driver: DriverVersion) -> bool {
    let versions: Vec<&str> = names
        .iter()
        .filter_map(|name| name.strip_prefix("libcuda.so."))
        .filter(|suffix| suffix.contains('.'))
        .collect();
    let [only] = versions.as_slice() else { return false };
    let Ok(brought) = only.parse::<DriverVersion>() else { return false };
    let file = inside.file(&format!("{PLACE}/libcuda.so.{only}"));
    let Some(file) = file else { return false };
    let note = elf::section(&file, NOTE, MOST_NOTE).and_then(|bytes| note(&bytes));
    match note.filter(|note| !note.branches.is_empty()) {
        Some(note) => note.branches.contains(&driver.branch()) && brought > driver,
        None => brought.branch() > driver.branch(),
    }
}

/// The JSON that follows the note's header and owner.
fn note(bytes: &[u8]) -> Option<Note> {
    let start = bytes.iter().position(|byte| *byte == b'{')?;
    let end = bytes.iter().rposition(|byte| *byte == b'}')?;
    serde_json::from_slice(bytes.get(start..=end)?).ok()
}
