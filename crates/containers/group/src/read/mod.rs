//! From text to a group.

mod amounts;
mod containers;
mod fields;
mod ignored;
mod names;
mod network;
mod probes;
mod volumes;

use crate::api_version::{NEWEST, OLDEST, is_version};
use crate::fault::GroupError;
use crate::group::{Container, Credential, Group, Os, Port};
use crate::note::{Note, NoteKind};
use crate::restart::RestartPolicy;
use cudock_base::Secret;
use cudock_yaml::{Data, Node};

use containers::{CONTAINER, Shared};
use fields::{Fields, GroupReader, Keys};
use ignored::{OF_CREDENTIAL, OF_GROUP, OF_PROPERTIES};
use names::SeenNames;
pub use names::{GROUP_NAME_RULE, is_group_name};

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
    ignored: OF_GROUP,
    elsewhere: &[
        (PROPERTY_KEYS, "move it below `properties:`"),
        (
            &["kind", "metadata", "spec", "services"],
            "this is not a container group of Azure; it begins with `name:` and `properties:`",
        ),
    ],
    ..Keys::new("a group", &["name", "apiVersion", "type", "properties"])
};
static PROPERTIES: Keys = Keys { ignored: OF_PROPERTIES, ..Keys::new("a group's properties", PROPERTY_KEYS) };
static CREDENTIAL: Keys = Keys {
    ignored: OF_CREDENTIAL,
    ..Keys::new("a registry's credential", &["server", "username", "password"])
};

/// Azure's limit.
const MOST_CONTAINERS: usize = 60;

/// A good group.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub group: Group,
    /// Notes about the group, in the order of the file.
    pub notes: Vec<Note>,
}

/// Reads the text of a group: YAML, or JSON, which is YAML, too.
pub fn read(text: &str) -> Result<Reading, GroupError> {
    let mut reader = GroupReader::default();
    let group = match cudock_yaml::parse_with(text, &mut |error| reader.faults.push(error.into())) {
        Ok(root) => reader.group(&root),
        Err(error) => {
            reader.faults.push(error.into());
            None
        }
    };
    let GroupReader { mut faults, mut notes } = reader;
    match group {
        Some(group) if faults.is_empty() => {
            notes.sort_by_key(|note| note.span);
            Ok(Reading { group, notes })
        }
        _ => {
            faults.sort_by_key(|fault| fault.span);
            Err(GroupError { faults })
        }
    }
}

impl GroupReader {
    /// The group, as far as it goes; it is good if no fault was noted.
    fn group(&mut self, root: &Node) -> Option<Group> {
        let top = self.fields(root, "", &GROUP)?;
        let name = self.group_name(&top);
        self.choice(&top, "type", &[RESOURCE_TYPE]);
        self.api_version(&top);
        self.required(&top, "properties");
        let properties = self.map(&top, "properties", &PROPERTIES)?;
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
            let hint = "add one below `properties.containers`";
            self.fault(properties.span, "a group without containers", hint);
        }
        let exposed: Vec<Port> = containers.iter().flat_map(|container| container.ports.clone()).collect();
        let address = self.address(&properties, &exposed);
        let dns = self.dns(&properties);
        let credentials = self.credentials(&properties);
        Some(Group {
            name: name?,
            location: top.get("location").and_then(Node::text).map(str::to_owned),
            os,
            restart_policy,
            init_containers,
            containers,
            volumes,
            address,
            dns,
            credentials,
        })
    }

    fn api_version(&mut self, top: &Fields<'_>) {
        let Some(version) = self.text(top, "apiVersion") else { return };
        if !is_version(&version) {
            let hint = "write `2021-09-01`, `2023-05-01`, `2025-09-01` or `2026-07-01`".to_owned();
            self.unknown_value(top.span_of("apiVersion"), "apiVersion", &version, hint);
            return;
        }
        let message = if version.as_str() < OLDEST {
            format!("read as {OLDEST}, the oldest that is known in full")
        } else if version.as_str() > NEWEST {
            format!("read as {NEWEST}, the newest that is known")
        } else {
            return;
        };
        self.note_at(top, "apiVersion", NoteKind::Differs, message);
    }

    fn os(&mut self, properties: &Fields<'_>) -> Os {
        if self.choice(properties, "osType", &["Linux", "Windows"]) != Some("Windows") {
            return Os::Linux;
        }
        let message = "Windows containers need a Windows host; build the images for Linux";
        self.note_at(properties, "osType", NoteKind::Unsupported, message);
        Os::Windows
    }

    fn restart_policy(&mut self, properties: &Fields<'_>) -> RestartPolicy {
        match self.choice(properties, "restartPolicy", &["Always", "OnFailure", "Never"]) {
            Some("OnFailure") => RestartPolicy::OnFailure,
            Some("Never") => {
                let message =
                    "here it holds for every exit code; Azure may start a container again that failed";
                self.note_at(properties, "restartPolicy", NoteKind::Differs, message);
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
        let containers = self.maps(properties, key, &CONTAINER);
        if containers.len() > MOST_CONTAINERS {
            let message = format!("Azure takes at most {MOST_CONTAINERS} containers a group");
            self.note_at(properties, key, NoteKind::Differs, message);
        }
        let init = key == "initContainers";
        containers.iter().filter_map(|container| self.container(container, shared, init)).collect()
    }

    fn credentials(&mut self, properties: &Fields<'_>) -> Vec<Credential> {
        let mut credentials = Vec::new();
        for fields in self.maps(properties, "imageRegistryCredentials", &CREDENTIAL) {
            let server = self.required_text(&fields, "server");
            let username = self.loose_text(&fields, "username");
            let password = self.loose_text(&fields, "password").map(Secret::new);
            let Some(server) = server else { continue };
            if server.contains('/') {
                let rule = "write the host alone, without `https://` and path";
                self.bad_name(fields.span_of("server"), "a registry", &server, rule);
            }
            credentials.push(Credential { server, username, password });
        }
        credentials
    }
}
