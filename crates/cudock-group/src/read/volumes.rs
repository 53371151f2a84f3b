//! Volumes, and where they are mounted.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::fault::Problem;
use crate::group::{Mount, Os, Volume, VolumeKind};
use crate::note::NoteKind;
use cudock_base::Secret;
use cudock_base::suggest::closest;
use cudock_yaml::Node;

use super::fields::{Fields, GroupReader, Keys};
use super::names::SeenNames;

const KINDS: [&str; 5] = ["emptyDir", "secret", "secretReference", "gitRepo", "azureFile"];

pub(super) static VOLUME: Keys = Keys {
    elsewhere: &[
        (
            &["hostPath", "persistentVolumeClaim", "configMap"],
            "Azure has no such volume; give a directory with `--volume NAME=DIR`",
        ),
        (&["mountPath", "readOnly"], "move it to the container's `volumeMounts:`"),
    ],
    ..Keys::new("a volume", &["name", "emptyDir", "secret", "secretReference", "gitRepo", "azureFile"])
};
pub(super) static GIT_REPO: Keys = Keys::new("`gitRepo`", &["repository", "directory", "revision"]);
pub(super) static AZURE_FILE: Keys = Keys::new(
    "`azureFile`",
    &[
        "shareName",
        "storageAccountName",
        "storageAccountKey",
        "readOnly",
        "storageAccountKeyReference",
        "userAssignedIdentityClientId",
    ],
);
pub(super) static EMPTY_DIR: Keys = Keys {
    elsewhere: &[(&["medium", "sizeLimit"], "Azure's `emptyDir` has no settings; write `emptyDir: {}`")],
    ..Keys::new("`emptyDir`", &[])
};
pub(super) static MOUNT: Keys = Keys {
    elsewhere: &[(&["subPath"], "Azure mounts whole volumes only; remove it")],
    ..Keys::new("a mount", &["name", "mountPath", "readOnly"])
};

/// Azure's limit.
const MOST_VOLUMES: usize = 20;

/// Bytes from base64 as Azure reads it: blanks and line breaks do not matter, padding does.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let packed: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    STANDARD.decode(packed).ok()
}

impl GroupReader {
    /// The volumes that are good, and the names of all, so that a mount of a faulty one is not a second fault.
    pub(super) fn volumes(&mut self, properties: &Fields<'_>) -> (Vec<Volume>, Vec<String>) {
        let nodes = self.list(properties, "volumes");
        let path = properties.path_of("volumes");
        let mut seen = SeenNames::new();
        let (mut volumes, mut names) = (Vec::new(), Vec::new());
        for (index, node) in nodes.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let Some(fields) = self.fields(node, &path, &VOLUME) else { continue };
            let name = self.label(&fields, "a volume", &mut seen);
            names.extend(name.clone());
            let shown = name.clone().unwrap_or_default();
            let kind = self.volume_kind(&fields, &shown);
            if let (Some(name), Some(kind)) = (name, kind) {
                volumes.push(Volume { name, kind, span: node.span });
            }
        }
        if nodes.len() > MOST_VOLUMES {
            let span = properties.get("volumes").map_or(properties.span, |node| node.span);
            let message = format!("Azure takes at most {MOST_VOLUMES} volumes a group");
            self.note(span, &path, NoteKind::Differs, message);
        }
        (volumes, names)
    }

    fn volume_kind(&mut self, fields: &Fields<'_>, name: &str) -> Option<VolumeKind> {
        let given: Vec<(&'static str, &Node)> =
            KINDS.iter().filter_map(|kind| Some((*kind, fields.get(kind)?))).collect();
        let (kind, node) = match given.as_slice() {
            [] => {
                self.fault(fields.span, Problem::VolumeWithoutKind { name: name.to_owned() });
                return None;
            }
            [one] => *one,
            [_, (_, second), ..] => {
                let kinds = given.iter().map(|(kind, _)| *kind).collect();
                self.fault(second.span, Problem::VolumeOfKinds { name: name.to_owned(), kinds });
                return None;
            }
        };
        let path = fields.path_of(kind);
        let instead = match kind {
            "emptyDir" => {
                self.fields(node, &path, &EMPTY_DIR)?;
                return Some(VolumeKind::EmptyDir);
            }
            "secret" => return Some(VolumeKind::Secret(self.secret_files(node, &path))),
            "secretReference" => "key vaults are not supported",
            "gitRepo" => "repositories are not cloned from here",
            _ => "Azure Files are not mounted from here",
        };
        let message =
            format!("{instead}; write `emptyDir: {{}}`, or give a directory with `--volume {name}=DIR`");
        self.note(node.span, &path, NoteKind::Unsupported, message);
        match kind {
            "secretReference" => Some(VolumeKind::SecretReference(self.references(node, &path))),
            "gitRepo" => self.git_repo(node, &path),
            _ => self.azure_file(node, &path),
        }
    }

    fn secret_files(&mut self, node: &Node, path: &str) -> BTreeMap<String, Secret<Vec<u8>>> {
        let mut files = BTreeMap::new();
        for entry in self.entries(node, path) {
            if !is_file_name(&entry.key) {
                self.fault(entry.span, Problem::BadFileName { name: entry.key.clone() });
                continue;
            }
            let Some(text) = self.loose_text(&entry.value, &format!("{path}.{}", entry.key)) else {
                continue;
            };
            match decode(&text) {
                Some(bytes) => drop(files.insert(entry.key.clone(), Secret::new(bytes))),
                None => self.fault(entry.value.span, Problem::NotBase64 { what: entry.key.clone() }),
            }
        }
        files
    }

    fn references(&mut self, node: &Node, path: &str) -> BTreeMap<String, String> {
        let entries = self.entries(node, path).iter();
        let named = entries.filter_map(|entry| {
            let text = self.loose_text(&entry.value, &format!("{path}.{}", entry.key))?;
            Some((entry.key.clone(), text))
        });
        named.collect()
    }

    fn git_repo(&mut self, node: &Node, path: &str) -> Option<VolumeKind> {
        let fields = self.fields(node, path, &GIT_REPO)?;
        let repository = self.required_text(&fields, "repository");
        let directory = self.text(&fields, "directory");
        let revision =
            fields.get("revision").and_then(|node| self.loose_text(node, &fields.path_of("revision")));
        Some(VolumeKind::GitRepo { repository: Secret::new(repository?), directory, revision })
    }

    fn azure_file(&mut self, node: &Node, path: &str) -> Option<VolumeKind> {
        let fields = self.fields(node, path, &AZURE_FILE)?;
        let share = self.required_text(&fields, "shareName");
        let account = self.required_text(&fields, "storageAccountName");
        let key = self.text(&fields, "storageAccountKey").map(Secret::new);
        let read_only = self.flag(&fields, "readOnly").unwrap_or_default();
        Some(VolumeKind::AzureFile { share: share?, account: account?, key, read_only })
    }

    pub(super) fn mounts(&mut self, container: &Fields<'_>, volumes: &[String], os: Os) -> Vec<Mount> {
        let path = container.path_of("volumeMounts");
        let mut seen = SeenNames::new();
        let mut mounts = Vec::new();
        for (index, node) in self.list(container, "volumeMounts").iter().enumerate() {
            let Some(fields) = self.fields(node, &format!("{path}[{index}]"), &MOUNT) else { continue };
            let read_only = self.flag(&fields, "readOnly").unwrap_or_default();
            let volume = self.required_text(&fields, "name");
            if let Some(name) = volume.clone().filter(|name| !volumes.contains(name)) {
                let span = fields.get("name").map_or(fields.span, |node| node.span);
                let near = closest(&name, volumes.iter().map(String::as_str)).map(str::to_owned);
                self.fault(span, Problem::NoSuchVolume { name, near });
            }
            let Some(path) = self.required_text(&fields, "mountPath") else { continue };
            let span = fields.get("mountPath").map_or(fields.span, |node| node.span);
            if let Some(why) = refusal(&path, os) {
                self.fault(span, Problem::BadMountPath { path, why });
            } else if let Some(first) = seen.again(tidy(&path), span) {
                self.fault(span, Problem::DuplicateName { of: "mount path", name: path, first });
            } else if let Some(volume) = volume {
                mounts.push(Mount { volume, path, read_only });
            }
        }
        mounts
    }
}

/// A path without repeated and trailing slashes.
fn tidy(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join("/")
}

/// Why nothing can be mounted there.
fn refusal(path: &str, os: Os) -> Option<&'static str> {
    if path.contains('\0') {
        return Some("it holds a zero byte");
    }
    if os == Os::Windows {
        return None;
    }
    if !path.starts_with('/') {
        Some("it is relative")
    } else if path.contains(':') {
        Some("it holds a colon")
    } else if path.split('/').any(|part| part == "..") {
        Some("it leads upwards")
    } else if tidy(path).is_empty() {
        Some("it is the root")
    } else {
        None
    }
}

fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && name.len() <= 253 && !name.contains(['/', '\0'])
}
