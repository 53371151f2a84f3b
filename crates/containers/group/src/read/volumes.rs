//! Volumes, and where they are mounted.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::fault::shown;
use crate::group::{Mount, Os, Volume, VolumeKind};
use crate::note::NoteKind;
use cudock_base::text::suggest::closest;
use cudock_base::{Secret, Span};
use cudock_yaml::MapEntry;

use super::fields::{Fields, GroupReader, Keys, below, did_you_mean_or};
use super::names::SeenNames;

const KINDS: [&str; 5] = ["emptyDir", "secret", "secretReference", "gitRepo", "azureFile"];

static VOLUME: Keys = Keys {
    elsewhere: &[
        (
            &["hostPath", "persistentVolumeClaim", "configMap"],
            "Azure has no such volume; give a directory with `--volume NAME=DIR`",
        ),
        (&["mountPath", "readOnly"], "move it to the container's `volumeMounts:`"),
    ],
    ..Keys::new("a volume", &["name", "emptyDir", "secret", "secretReference", "gitRepo", "azureFile"])
};
static GIT_REPO: Keys = Keys::new("`gitRepo`", &["repository", "directory", "revision"]);
static AZURE_FILE: Keys = Keys::new(
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
static EMPTY_DIR: Keys = Keys {
    elsewhere: &[(&["medium", "sizeLimit"], "Azure's `emptyDir` has no settings; write `emptyDir: {}`")],
    ..Keys::new("`emptyDir`", &[])
};
static MOUNT: Keys = Keys {
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
        let mut seen = SeenNames::new();
        let (mut volumes, mut names) = (Vec::new(), Vec::new());
        for fields in self.maps(properties, "volumes", &VOLUME) {
            let name = self.label(&fields, "a volume", &mut seen);
            names.extend(name.clone());
            let kind = self.volume_kind(&fields, name.as_deref().unwrap_or_default());
            if let (Some(name), Some(kind)) = (name, kind) {
                volumes.push(Volume { name, kind, span: fields.span });
            }
        }
        if volumes.len() > MOST_VOLUMES {
            let message = format!("Azure takes at most {MOST_VOLUMES} volumes a group");
            self.note_at(properties, "volumes", NoteKind::Differs, message);
        }
        (volumes, names)
    }

    fn volume_kind(&mut self, fields: &Fields<'_>, name: &str) -> Option<VolumeKind> {
        let given = fields.given(&KINDS);
        let kind = match given.as_slice() {
            [] => {
                let message = format!("volume `{}` has no kind", shown(name));
                self.fault(fields.span, message, "for an empty directory write `emptyDir: {}`");
                return None;
            }
            [one] => *one,
            [_, second, ..] => {
                let message = format!("volume `{}` of several kinds: {}", shown(name), given.join(" and "));
                self.fault(fields.span_of(second), message, "keep one, and make volumes of the others");
                return None;
            }
        };
        let (made, instead) = match kind {
            "emptyDir" => {
                self.map(fields, kind, &EMPTY_DIR)?;
                return Some(VolumeKind::EmptyDir);
            }
            "secret" => return Some(VolumeKind::Secret(self.secret_files(fields))),
            "secretReference" => {
                let path = fields.path_of(kind);
                for entry in self.entries(fields, kind) {
                    self.loose_text_at(&entry.value, &below(&path, &entry.key));
                }
                (VolumeKind::SecretReference, "key vaults are not supported")
            }
            "gitRepo" => {
                let fields = self.map(fields, kind, &GIT_REPO)?;
                self.required_text(&fields, "repository");
                self.text(&fields, "directory");
                self.loose_text(&fields, "revision");
                (VolumeKind::GitRepo, "repositories are not cloned from here")
            }
            _ => {
                let fields = self.map(fields, kind, &AZURE_FILE)?;
                self.required_text(&fields, "shareName");
                self.required_text(&fields, "storageAccountName");
                self.text(&fields, "storageAccountKey");
                let read_only = self.flag(&fields, "readOnly").unwrap_or_default();
                (VolumeKind::AzureFile { read_only }, "Azure Files are not mounted from here")
            }
        };
        let message =
            format!("{instead}; write `emptyDir: {{}}`, or give a directory with `--volume {name}=DIR`");
        self.note_at(fields, kind, NoteKind::Unsupported, message);
        Some(made)
    }

    fn secret_files(&mut self, volume: &Fields<'_>) -> BTreeMap<String, Secret<Vec<u8>>> {
        let mut files = BTreeMap::new();
        let path = volume.path_of("secret");
        for MapEntry { key, span, value } in self.entries(volume, "secret") {
            if !is_file_name(key) {
                let rule = "write a plain name without `/`, at most 253 bytes; not `.` or `..`";
                self.bad_name(*span, "a file", key, rule);
                continue;
            }
            let Some(text) = self.loose_text_at(value, &below(&path, key)) else { continue };
            match decode(&text) {
                Some(bytes) => drop(files.insert(key.clone(), Secret::new(bytes))),
                None => self.not_base64(value.span, key),
            }
        }
        files
    }

    pub(super) fn not_base64(&mut self, span: Span, what: &str) {
        self.fault(span, format!("`{what}` is not base64"), "make it with `base64 -w0 FILE`");
    }

    pub(super) fn mounts(&mut self, container: &Fields<'_>, volumes: &[String], os: Os) -> Vec<Mount> {
        let mut seen = SeenNames::new();
        let mut mounts = Vec::new();
        for fields in self.maps(container, "volumeMounts", &MOUNT) {
            let read_only = self.flag(&fields, "readOnly").unwrap_or_default();
            let volume = self.required_text(&fields, "name");
            if let Some(name) = volume.as_ref().filter(|name| !volumes.contains(name)) {
                let near = closest(name, volumes.iter().map(String::as_str));
                let hint = did_you_mean_or(near, "add it to the group's `volumes:`");
                self.fault(fields.span_of("name"), format!("no volume `{}` to mount", shown(name)), hint);
            }
            let Some(path) = self.required_text(&fields, "mountPath") else { continue };
            let span = fields.span_of("mountPath");
            if let Some(why) = refusal(&path, os) {
                let message = format!("nothing can be mounted at `{}`: {why}", shown(&path));
                self.fault(span, message, "write an absolute path such as `/data`");
            } else if let Some(first) = seen.again(tidy(&path), span) {
                self.duplicate_name(span, "mount path", &path, first);
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
