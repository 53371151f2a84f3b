//! Container groups as apps and jobs of Container Apps, in the form of `az containerapp create --yaml`.

use cudock_facts::services::AzureService;
use std::collections::BTreeMap;

use cudock_base::Span;
use cudock_facts::Facts;
use cudock_facts::tables::Profile;
use cudock_group::restart::RestartPolicy;
use cudock_group::{Container, Group, Os, Port, PortProtocol, Probe, ProbeAction, VariableValue, VolumeKind};
use serde_json::{Map, Value as Json, json};

use super::{Source, Writer};
use crate::choice::{Choice, ChoiceKind};
use crate::judge::judge;

/// A job of Container Apps has to have a limit; a group has none.
const JOB_SECONDS: u32 = 86_400;
/// A group repeats a container that fails without end.
const RETRIES: u32 = 10;
/// The most that a container of the consumption profile has.
const MOST_CPUS: f64 = 4.0;

const ENVIRONMENT: &str = "/subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/Microsoft.App/managedEnvironments/ENVIRONMENT";

pub(super) fn translate(source: Source<'_>, writer: &mut Writer<'_>) {
    let group = match cudock_group::read(source.text) {
        Ok(reading) => reading.group,
        Err(error) => {
            for fault in error.faults {
                writer.failed(fault.span.bytes(), fault.message, fault.hint);
            }
            return;
        }
    };
    if group.os == Os::Windows {
        let message = "the group is for Windows, and Container Apps runs Linux containers";
        writer.failed(0..0, message, "build the image for Linux");
        return;
    }
    let profile = profile(source, &group, writer);
    let mut app =
        AppWriter { group: &group, writer, secrets: BTreeMap::new(), has_profile: profile.is_some() };
    let resource = app.resource(profile.map(|profile| profile.name.as_str()));
    let is_job = group.restart_policy != RestartPolicy::Always;
    let location = location(source.text);
    let mut file = Map::new();
    if let Some(location) = &location {
        file.insert("location".to_owned(), json!(location));
    }
    file.insert("name".to_owned(), json!(group.name));
    file.insert("properties".to_owned(), resource);
    let kind = if is_job { "Microsoft.App/jobs" } else { "Microsoft.App/containerApps" };
    file.insert("type".to_owned(), json!(kind));
    let Ok(yaml) = cudock_yaml::to_string(&file) else { return };
    let header = header(source.path, &group.name, is_job, location.as_deref(), profile);
    let name = if is_job { "containerapp-job.yaml" } else { "containerapp.yaml" };
    writer.file(name, format!("{header}{yaml}"));
    writer.note(
        0..0,
        format!("{name} needs an environment"),
        "replace its `environmentId`; the commands are at its beginning",
    );
}

fn header(path: &str, name: &str, is_job: bool, location: Option<&str>, profile: Option<&Profile>) -> String {
    let location = location.unwrap_or("LOCATION");
    let add = profile.map_or_else(String::new, |profile| {
        format!(
            "#   az containerapp env workload-profile add -n ENVIRONMENT -g GROUP \\\n#     --workload-profile-name {0} --workload-profile-type {0}{1}\n",
            profile.name,
            if profile.plan == "dedicated" { " --min-nodes 1 --max-nodes 1" } else { "" },
        )
    });
    let command = if is_job { "containerapp job" } else { "containerapp" };
    let file = if is_job { "containerapp-job.yaml" } else { "containerapp.yaml" };
    let start =
        if is_job { format!("#   az containerapp job start -n {name} -g GROUP\n") } else { String::new() };
    format!(
        "# Translated by `cudock migrate` from {path}\n# Create:\n\
         #   az containerapp env create -n ENVIRONMENT -g GROUP -l {location} --enable-workload-profiles\n{add}\
         #   az {command} create -n {name} -g GROUP --yaml {file}\n{start}"
    )
}

/// The region of the group, which `cudock up` has no use for.
fn location(text: &str) -> Option<String> {
    Some(cudock_yaml::parse(text).ok()?.get("location")?.text()?.to_owned())
}

/// The workload profile that replaces the GPU of the group.
fn profile<'f>(source: Source<'f>, group: &Group, writer: &mut Writer<'_>) -> Option<&'f Profile> {
    let with_gpu = |container: &&Container| gpu(container).is_some();
    let container = group.containers.iter().find(with_gpu)?;
    if group.containers.iter().filter(with_gpu).count() > 1 {
        let message = "several containers have GPUs, and in Container Apps only the first one gets it";
        writer.lost(container.span.bytes(), message, "make an app of each");
    }
    let requested = gpu(container)?;
    let kind = ChoiceKind::ContainerGpu {
        sku: Some(requested.sku.clone()),
        count: Some(requested.count),
        by_option: false,
    };
    let choice = Choice { service: Some(AzureService::Aci), ..Choice::at(0, 0, kind) };
    let findings = judge(source.facts, source.day, source.region, &[choice]);
    let mut replacements = findings.iter().flat_map(|finding| &finding.replacements);
    let found = replacements.find_map(|one| named_profile(source.facts, &one.name));
    let Some(profile) = found else {
        let message =
            format!("no profile of Container Apps replaces {} x {}", requested.count, requested.sku);
        writer.lost(container.span.bytes(), message, "`cudock migrate FILE` lists sizes that do");
        return None;
    };
    if profile.gpu_count < requested.count {
        let message =
            format!("{} has {} GPU, the group {}", profile.name, profile.gpu_count, requested.count);
        writer.lost(container.span.bytes(), message, "check that one GPU is enough");
    }
    Some(profile)
}

fn named_profile<'f>(facts: &'f Facts, name: &str) -> Option<&'f Profile> {
    facts.services().profile.iter().find(|profile| profile.name == name)
}

fn gpu(container: &Container) -> Option<&cudock_group::RequestedGpu> {
    container.resources.as_ref().and_then(|resources| resources.gpu.as_ref())
}

struct AppWriter<'g, 'w, 'a> {
    group: &'g Group,
    writer: &'w mut Writer<'a>,
    /// The purpose of each secret, by its name.
    secrets: BTreeMap<String, String>,
    has_profile: bool,
}

impl AppWriter<'_, '_, '_> {
    fn resource(&mut self, profile: Option<&str>) -> Json {
        let group = self.group;
        // Only the first container gets the GPU.
        let mut ordered: Vec<&Container> = group.containers.iter().collect();
        ordered.sort_by_key(|container| gpu(container).is_none());
        let mut template = Map::new();
        let containers = ordered.into_iter().map(|container| self.container(container)).collect();
        template.insert("containers".to_owned(), Json::Array(containers));
        if !group.init_containers.is_empty() {
            let init = group.init_containers.iter().map(|container| self.container(container)).collect();
            template.insert("initContainers".to_owned(), Json::Array(init));
        }
        let volumes: Vec<Json> = group.volumes.iter().map(|volume| self.volume(volume)).collect();
        if !volumes.is_empty() {
            template.insert("volumes".to_owned(), Json::Array(volumes));
        }
        let mut configuration = Map::new();
        if group.restart_policy == RestartPolicy::Always {
            configuration.insert("activeRevisionsMode".to_owned(), json!("Single"));
            if let Some(ingress) = self.ingress() {
                configuration.insert("ingress".to_owned(), ingress);
            }
            template.insert("scale".to_owned(), json!({"minReplicas": 1, "maxReplicas": 1}));
        } else {
            let is_repeated = group.restart_policy == RestartPolicy::OnFailure;
            let limit = if is_repeated { RETRIES } else { 0 };
            configuration.extend(object(json!({
                "triggerType": "Manual",
                "manualTriggerConfig": {"parallelism": 1, "replicaCompletionCount": 1},
                "replicaTimeout": JOB_SECONDS,
                "replicaRetryLimit": limit,
            })));
            let also = if is_repeated { format!(" and {RETRIES} retries") } else { String::new() };
            let message = format!("a job has limits, a group has none: 24 hours{also} are written");
            self.writer.note(0..0, message, "change `replicaTimeout` and `replicaRetryLimit`");
        }
        self.registries(&mut configuration);
        self.unsupported();
        if !self.secrets.is_empty() {
            let secrets = std::mem::take(&mut self.secrets);
            for (name, purpose) in &secrets {
                let message = format!("the value of {purpose} is not copied");
                self.writer.lost(0..0, message, format!("set the secret `{name}` in the new file"));
            }
            let secrets = secrets.keys().map(|name| json!({"name": name, "value": "SET-THIS"})).collect();
            configuration.insert("secrets".to_owned(), Json::Array(secrets));
        }
        let mut properties = object(json!({
            "environmentId": ENVIRONMENT,
            "configuration": configuration,
            "template": template,
        }));
        if let Some(profile) = profile {
            properties.insert("workloadProfileName".to_owned(), json!(profile));
        }
        Json::Object(properties)
    }

    fn container(&mut self, container: &Container) -> Json {
        let mut part = object(json!({"name": container.name, "image": container.image}));
        if let [program, arguments @ ..] = container.command.as_slice() {
            part.insert("command".to_owned(), json!([program]));
            if !arguments.is_empty() {
                part.insert("args".to_owned(), json!(arguments));
            }
        }
        let environment: Vec<Json> =
            container.environment.iter().filter_map(|variable| self.variable(container, variable)).collect();
        if !environment.is_empty() {
            part.insert("env".to_owned(), Json::Array(environment));
        }
        part.insert("resources".to_owned(), self.resources(container));
        let mut probes = Vec::new();
        for (kind, probe) in [("Liveness", &container.liveness), ("Readiness", &container.readiness)] {
            probes.extend(probe.as_ref().and_then(|probe| self.probe(container.span, kind, probe)));
        }
        if !probes.is_empty() {
            part.insert("probes".to_owned(), Json::Array(probes));
        }
        let mounts: Vec<Json> = container
            .mounts
            .iter()
            .map(|mount| json!({"volumeName": mount.volume, "mountPath": mount.path}))
            .collect();
        if !mounts.is_empty() {
            part.insert("volumeMounts".to_owned(), Json::Array(mounts));
        }
        if container.security.is_some() {
            let message = format!("the security context of `{}` is not translated", container.name);
            self.writer.lost(container.span.bytes(), message, "set the user in the image");
        }
        Json::Object(part)
    }

    fn variable(&mut self, container: &Container, variable: &cudock_group::Variable) -> Option<Json> {
        let name = &variable.name;
        match &variable.value {
            VariableValue::Plain(value) => Some(json!({"name": name, "value": value})),
            VariableValue::Secure(_) => {
                let secret = self.secret(name, format!("the variable `{name}`"));
                Some(json!({"name": name, "secretRef": secret}))
            }
            VariableValue::Reference(_) => {
                let message = format!("the variable `{name}` refers to a key vault and is left out");
                let fix = "add a secret with `keyVaultUrl` and `identity`, and refer to it";
                self.writer.lost(container.span.bytes(), message, fix);
                None
            }
        }
    }

    /// Declares a secret; its name has only lower-case letters, digits and dashes.
    fn secret(&mut self, name: &str, purpose: String) -> String {
        let name: String = name
            .chars()
            .map(|ch| if ch.is_ascii_alphanumeric() { ch.to_ascii_lowercase() } else { '-' })
            .collect();
        let name = format!("s-{}", name.trim_matches('-'));
        self.secrets.insert(name.clone(), purpose);
        name
    }

    /// The consumption profile has 2 GiB for each core, in quarters of a core.
    fn resources(&mut self, container: &Container) -> Json {
        let (cpus, memory) = container.resources.as_ref().map_or((0.5, 1.0), |resources| {
            #[allow(clippy::cast_precision_loss, reason = "memory of a machine in GiB")]
            let memory = resources.memory_bytes as f64 / f64::from(1 << 30);
            (f64::from(resources.cpu_millis) / 1000.0, memory)
        });
        if self.has_profile {
            return json!({"cpu": cpus, "memory": format!("{memory}Gi")});
        }
        let wanted = (cpus.max(memory / 2.0) * 4.0).ceil().max(1.0) / 4.0;
        if wanted > MOST_CPUS {
            let message = format!(
                "`{}` has {cpus} cores and {memory} GiB, and the consumption profile {MOST_CPUS} cores with 8 GiB",
                container.name
            );
            self.writer.lost(container.span.bytes(), message, "use a dedicated profile, such as D8");
        }
        let cpu = wanted.min(MOST_CPUS);
        json!({"cpu": cpu, "memory": format!("{}Gi", cpu * 2.0)})
    }

    fn probe(&mut self, span: Span, kind: &str, probe: &Probe) -> Option<Json> {
        let ProbeAction::HttpGet(get) = &probe.action else {
            let message = format!("the {} command is not translated", kind.to_lowercase());
            self.writer.lost(span.bytes(), message, "answer the probe by HTTP");
            return None;
        };
        let headers: Vec<Json> =
            get.headers.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let mut http = object(json!({
            "path": get.path,
            "port": get.port,
            "scheme": if get.https { "HTTPS" } else { "HTTP" },
        }));
        if !headers.is_empty() {
            http.insert("httpHeaders".to_owned(), Json::Array(headers));
        }
        let timing = probe.timing;
        Some(json!({
            "type": kind,
            "httpGet": http,
            "initialDelaySeconds": timing.initial_delay.as_secs().min(60),
            "periodSeconds": timing.period.as_secs(),
            "timeoutSeconds": timing.timeout.as_secs(),
            "failureThreshold": timing.failure_threshold.min(10),
            "successThreshold": timing.success_threshold,
        }))
    }

    fn volume(&mut self, volume: &cudock_group::Volume) -> Json {
        let name = &volume.name;
        let mut lost = |message: String, fix: &str| self.writer.lost(volume.span.bytes(), message, fix);
        match &volume.kind {
            VolumeKind::EmptyDir => json!({"name": name, "storageType": "EmptyDir"}),
            VolumeKind::AzureFile { .. } => {
                lost(
                    format!("the share of volume `{name}` belongs to the environment now"),
                    "az containerapp env storage set -n ENVIRONMENT -g GROUP --storage-name NAME --azure-file-account-name … --azure-file-share-name … --access-mode ReadWrite",
                );
                json!({"name": name, "storageType": "AzureFile", "storageName": name})
            }
            VolumeKind::Secret(files) => {
                let files: Vec<String> = files.keys().cloned().collect();
                let secrets: Vec<Json> = files
                    .iter()
                    .map(|file| {
                        let secret = self.secret(file, format!("the file `{file}` of volume `{name}`"));
                        json!({"secretRef": secret, "path": file})
                    })
                    .collect();
                json!({"name": name, "storageType": "Secret", "secrets": secrets})
            }
            VolumeKind::SecretReference | VolumeKind::GitRepo => {
                lost(
                    format!("the volume `{name}` ({}) begins empty", volume.kind.name()),
                    "put its files into the image, or fetch them in an init container",
                );
                json!({"name": name, "storageType": "EmptyDir"})
            }
        }
    }

    /// The first TCP port is served; others need an address of their own.
    fn ingress(&mut self) -> Option<Json> {
        let address = self.group.address.as_ref()?;
        let (tcp, other): (Vec<&Port>, Vec<&Port>) =
            address.ports.iter().partition(|port| port.protocol == PortProtocol::Tcp);
        for port in other {
            let message =
                format!("UDP port {} is not translated: Container Apps has TCP and HTTP", port.port);
            self.writer.lost(0..0, message, "use TCP, or another service");
        }
        if let Some(label) = &address.dns_name_label {
            let message = format!(
                "the name `{label}` changes: an app is reached at APP.ENVIRONMENT.LOCATION.azurecontainerapps.io"
            );
            self.writer.note(
                0..0,
                message,
                "point clients to the new name; ports 80 and 443 are used from outside",
            );
        }
        let (first, more) = tcp.split_first()?;
        let mut ingress = object(json!({
            "external": address.public,
            "targetPort": first.port,
            "transport": "auto",
            "allowInsecure": true,
        }));
        if !more.is_empty() {
            let more = more
                .iter()
                .map(|port| json!({"external": false, "targetPort": port.port, "exposedPort": port.port}))
                .collect();
            ingress.insert("additionalPortMappings".to_owned(), Json::Array(more));
            let message = "only the first port is reached from outside of the environment";
            self.writer.lost(0..0, message, "set `external` of the others, which needs a virtual network");
        }
        Some(Json::Object(ingress))
    }

    fn registries(&mut self, configuration: &mut Map<String, Json>) {
        let mut registries = Vec::new();
        for credential in &self.group.credentials {
            let mut registry = object(json!({"server": credential.server}));
            if let Some(username) = &credential.username {
                let purpose = format!("the password of {}", credential.server);
                let secret = self.secret(&credential.server, purpose);
                registry.insert("username".to_owned(), json!(username));
                registry.insert("passwordSecretRef".to_owned(), json!(secret));
            } else {
                registry.insert("identity".to_owned(), json!("system"));
            }
            registries.push(Json::Object(registry));
        }
        if !registries.is_empty() {
            configuration.insert("registries".to_owned(), Json::Array(registries));
        }
    }

    fn unsupported(&mut self) {
        if self.group.dns.is_some() {
            let fix = "set the servers of the environment's virtual network";
            self.writer.lost(0..0, "the DNS settings are not translated", fix);
        }
    }
}

/// The members of an object literal.
fn object(value: Json) -> Map<String, Json> {
    match value {
        Json::Object(members) => members,
        _ => Map::new(),
    }
}
