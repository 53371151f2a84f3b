//! From text to a group.

mod amounts;
mod containers;
mod fields;
mod keep;
mod names;
mod network;
mod probes;
mod volumes;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;

use crate::api_version::{ApiVersion, NEWEST, OLDEST};
use crate::fault::{Fault, GroupError, Problem};
use crate::group::{Container, Credential, Group, Os, Port};
use crate::hide;
use crate::kept::{OF_CREDENTIAL, OF_GROUP, OF_PROPERTIES};
use crate::note::{Note, NoteKind};
use crate::restart::RestartPolicy;
use cudock_base::Secret;
use cudock_yaml::{Data, Node};

use containers::Shared;
use fields::{Fields, GroupReader, Keys};
use names::SeenNames;

const RESOURCE_TYPE: &str = "Microsoft.ContainerInstance/containerGroups";
const PROPERTY_KEYS: &[&str] = &[
    "containers",
    "initContainers",
    "osType",
    "restartPolicy",
    "ipAddress",
    "volumes",
    "imageRegistryCredentials",
    "dnsConfig",
];

static GROUP: Keys = Keys {
    kept: OF_GROUP,
    elsewhere: &[
        (PROPERTY_KEYS, "move it below `properties:`"),
        (
            &["kind", "metadata", "spec", "services"],
            "this is not a container group of Azure; it begins with `name:` and `properties:`",
        ),
    ],
    ..Keys::new("a group", &["name", "apiVersion", "type", "properties"])
};
static PROPERTIES: Keys = Keys { kept: OF_PROPERTIES, ..Keys::new("a group's properties", PROPERTY_KEYS) };
static CREDENTIAL: Keys =
    Keys { kept: OF_CREDENTIAL, ..Keys::new("a registry's credential", &["server", "username", "password"]) };

/// Azure's limit.
const MOST_CONTAINERS: usize = 60;

/// A good group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reading {
    pub group: Group,
    /// What is worth knowing about it, in the order of the file.
    pub notes: Vec<Note>,
    /// The bytes of the text that hold secrets.
    #[serde(skip)]
    hidden: Vec<Range<usize>>,
}

impl Reading {
    /// The text with stars for every byte of its secrets, so that places fit and lines of it can be shown.
    pub fn printable(&self, text: &str) -> String {
        hide::masked(text, &self.hidden)
    }

    pub fn notes_of(&self, kind: NoteKind) -> impl Iterator<Item = &Note> {
        self.notes.iter().filter(move |note| note.kind == kind)
    }
}

/// Reads the text of a group: YAML, or JSON, which is YAML, too.
pub fn read(text: &str) -> Result<Reading, GroupError> {
    let mut reader = GroupReader::default();
    let mut hidden = Vec::new();
    let mut observer = Observer { faults: &mut reader.faults, hidden: &mut hidden };
    let root = match cudock_yaml::parse_with(text, &mut observer) {
        Ok(root) => root,
        Err(error) => {
            reader.faults.push(error.into());
            reader.faults.sort_by_key(|fault| fault.span);
            let hidden = hide::all_but_keys(text, is_key);
            return Err(GroupError::Faulty { faults: reader.faults, notes: Vec::new(), hidden });
        }
    };
    let group = reader.group(&root);
    hidden.sort_by_key(|range| range.start);
    let GroupReader { mut faults, mut notes, kept } = reader;
    notes.sort_by_key(|note| note.span);
    match group {
        Some(group) if faults.is_empty() => Ok(Reading { group: Group { kept, ..group }, notes, hidden }),
        _ => {
            faults.sort_by_key(|fault| fault.span);
            Err(GroupError::Faulty { faults, notes, hidden })
        }
    }
}

/// Collects what is wrong with the YAML itself, and what is secret: here, because a value that is given twice does not
/// get into the tree and is no less secret.
struct Observer<'a> {
    faults: &'a mut Vec<Fault>,
    hidden: &'a mut Vec<Range<usize>>,
}

impl cudock_yaml::Observer for Observer<'_> {
    fn error(&mut self, error: cudock_yaml::Error) {
        self.faults.push(error.into());
    }

    fn entry(&mut self, key: &str, value: &Node) {
        hide::below_key(key, value, self.hidden);
    }
}

/// Whether a group has a key of this name anywhere that does something.
fn is_key(name: &str) -> bool {
    let keys = [
        &GROUP,
        &PROPERTIES,
        &CREDENTIAL,
        &containers::CONTAINER,
        &containers::CONTAINER_PROPERTIES,
        &containers::INIT_PROPERTIES,
        &containers::VARIABLE,
        &containers::SECURITY,
        &containers::CAPABILITIES,
        &amounts::RESOURCES,
        &amounts::REQUESTS,
        &amounts::GPU,
        &network::PORT,
        &network::ADDRESS,
        &network::DNS,
        &probes::PROBE,
        &probes::EXEC,
        &probes::HTTP_GET,
        &volumes::VOLUME,
        &volumes::GIT_REPO,
        &volumes::AZURE_FILE,
        &volumes::MOUNT,
    ];
    keys.iter().any(|keys| keys.all().any(|key| key == name))
}

impl GroupReader {
    /// The group, as far as it goes; it is good if no fault was noted.
    fn group(&mut self, root: &Node) -> Option<Group> {
        let top = self.fields(root, "", &GROUP)?;
        let name = self.group_name(&top);
        self.choice(&top, "type", &[RESOURCE_TYPE]);
        let api_version = self.api_version(&top);
        let properties = self.required(&top, "properties")?;
        let properties = self.fields(properties, "properties", &PROPERTIES)?;
        let os = self.os(&properties);
        let restart_policy = self.restart_policy(&properties);
        let (volumes, volume_names) = self.volumes(&properties);
        let mut shared =
            Shared { names: SeenNames::new(), ports: SeenNames::new(), volumes: &volume_names, os };
        let init_containers = self.containers(&properties, "initContainers", &mut shared);
        let containers = self.containers(&properties, "containers", &mut shared);
        if properties
            .get("containers")
            .is_none_or(|node| matches!(&node.data, Data::List(list) if list.is_empty()))
        {
            self.fault(properties.span, Problem::NoContainers);
        }
        let exposed: Vec<Port> = containers.iter().flat_map(|container| container.ports.clone()).collect();
        let address = self.address(&properties, &exposed);
        let dns = self.dns(&properties);
        let credentials = self.credentials(&properties);
        let kept = BTreeMap::new();
        let name = name?;
        Some(Group {
            name,
            api_version,
            os,
            restart_policy,
            init_containers,
            containers,
            volumes,
            address,
            dns,
            credentials,
            kept,
        })
    }

    fn api_version(&mut self, top: &Fields<'_>) -> Option<ApiVersion> {
        let text = self.text(top, "apiVersion")?;
        let span = top.get("apiVersion").map_or(top.span, |node| node.span);
        let Ok(version) = text.parse::<ApiVersion>() else {
            let known = &["2021-09-01", "2023-05-01", "2025-09-01", "2026-07-01"];
            let what = "apiVersion".to_owned();
            self.fault(span, Problem::UnknownValue { what, value: text, known, near: None });
            return None;
        };
        let message = if version < OLDEST {
            format!("read as {OLDEST}, the oldest that is known in full")
        } else if version > NEWEST {
            format!("read as {NEWEST}, the newest that is known")
        } else {
            return Some(version);
        };
        self.note(span, "apiVersion", NoteKind::Differs, message);
        Some(version)
    }

    fn os(&mut self, properties: &Fields<'_>) -> Os {
        if self.choice(properties, "osType", &["Linux", "Windows"]) != Some("Windows") {
            return Os::Linux;
        }
        let span = properties.get("osType").map_or(properties.span, |node| node.span);
        let message = "Windows containers need a Windows host; build the images for Linux";
        self.note(span, "properties.osType", NoteKind::Unsupported, message);
        Os::Windows
    }

    fn restart_policy(&mut self, properties: &Fields<'_>) -> RestartPolicy {
        match self.choice(properties, "restartPolicy", &["Always", "OnFailure", "Never"]) {
            Some("OnFailure") => RestartPolicy::OnFailure,
            Some("Never") => {
                let span = properties.get("restartPolicy").map_or(properties.span, |node| node.span);
                let message =
                    "here it holds for every exit code; Azure may start a container again that failed";
                self.note(span, "properties.restartPolicy", NoteKind::Differs, message);
                RestartPolicy::Never
            }
            _ => RestartPolicy::Always,
        }
    }

    fn containers(
        &mut self,
        properties: &Fields<'_>,
        key: &'static str,
        shared: &mut Shared<'_>,
    ) -> Vec<Container> {
        let path = properties.path_of(key);
        let nodes = self.list(properties, key);
        if nodes.len() > MOST_CONTAINERS {
            let span = properties.get(key).map_or(properties.span, |node| node.span);
            let message = format!("Azure takes at most {MOST_CONTAINERS} containers a group");
            self.note(span, &path, NoteKind::Differs, message);
        }
        let init = key == "initContainers";
        let nodes = nodes.iter().enumerate();
        nodes
            .filter_map(|(index, node)| self.container(node, &format!("{path}[{index}]"), shared, init))
            .collect()
    }

    fn credentials(&mut self, properties: &Fields<'_>) -> Vec<Credential> {
        let path = properties.path_of("imageRegistryCredentials");
        let mut credentials = Vec::new();
        for (index, node) in self.list(properties, "imageRegistryCredentials").iter().enumerate() {
            let Some(fields) = self.fields(node, &format!("{path}[{index}]"), &CREDENTIAL) else { continue };
            let server = self.required_text(&fields, "server");
            let username = match fields.get("username") {
                Some(node) => self.loose_text(node, &fields.path_of("username")),
                None => None,
            };
            let password = match fields.get("password") {
                Some(node) => self.loose_text(node, &fields.path_of("password")).map(Secret::new),
                None => None,
            };
            let Some(server) = server else { continue };
            if server.contains("://") || server.contains('/') {
                let span = fields.get("server").map_or(fields.span, |node| node.span);
                let rule = "write the host alone, without `https://` and path";
                self.fault(span, Problem::BadName { of: "a registry", name: server, rule });
                continue;
            }
            credentials.push(Credential { server, username, password });
        }
        credentials
    }
}
