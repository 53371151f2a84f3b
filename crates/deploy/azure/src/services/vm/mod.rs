//! A virtual machine: network, machine, driver and a command that reports its state, in one
//! deployment, so that Azure checks quota and size before anything exists.

mod backend;
mod cloud_init;
mod names;
mod preflight;
mod rules;
mod status;

pub(super) use backend::Vm;

use cudock_facts::Facts;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cudock_base::Digest;
use cudock_facts::tables::SizeDriver;
use cudock_http::Method;
use serde_json::{Value, json};

use crate::call::{Body, Call};
use crate::deployment::{Phase, Step};
use crate::services::bodies::names::{Names, Tags};
use crate::services::bodies::request::{Identity, body, call, non_empty, put};
use crate::services::bodies::template::{
    DEPLOYMENTS, RESOURCES, RoleAssignment, deployed, nested, template_in_group,
};
use crate::services::checks::machine::Machine;
use crate::services::reaper;
use crate::services::vm::names::{
    ADDRESSES, COMMANDS, COMPUTE, EXTENSIONS, INTERFACES, MACHINES, NAME, NETWORK, NETWORKS, SECURITY_GROUPS,
    STATE,
};
use crate::services::{Translation, TranslationError};
use crate::spec::{DeploymentSpec, RegistryAccess, WorkKind};

const USER: &str = "cudock";
const LOGIC_APP_CONTRIBUTOR: &str = "87a39d53-fc1b-424a-814c-f7e04687dc9e";
/// Time to start the machine, install the driver and pull the image.
const START_ALLOWANCE: Duration = Duration::from_secs(3600);

/// 64 KiB in base64.
const LONGEST_DATA: usize = 87_380;

fn translate(facts: &Facts, spec: &DeploymentSpec) -> Result<Translation<'static>, TranslationError> {
    let machine = rules::check(facts, spec)?;
    let names = Names::of_spec(spec);
    let data = cloud_init::custom_data(spec, &machine);
    if data.expose().len() > LONGEST_DATA {
        return Err(TranslationError::new("the start script is larger than the 64 KiB that Azure passes on")
            .hint("deploy many items to batch"));
    }
    let is_secret = cloud_init::has_secrets(spec);
    let kind = if is_secret { "securestring" } else { "string" };
    let template = template_in_group(&resources(spec, &machine), Some(("customData", kind)), None);
    let shown = if is_secret { "" } else { data.expose().as_str() };
    let properties = deployed(&template, ("customData", shown));
    let mut request = body(json!({"tags": Tags::new(spec), "properties": properties}));
    if is_secret {
        request = request.secret("/properties/parameters/customData/value", data);
    }
    let id = names.resource(&format!("{DEPLOYMENTS}/{NAME}"));
    // The driver extension alone may take 20 minutes.
    let step = Step::new("vm", Phase::Create, put(&id, RESOURCES, request)).billed().within_minutes(45);
    Ok(Translation { steps: vec![step], losses: rules::lost(spec), ..Translation::default() })
}

fn resources(spec: &DeploymentSpec, machine: &Machine) -> Vec<Value> {
    let names = Names::of_spec(spec);
    let id = |kind: &str| names.resource(&format!("{kind}/{NAME}"));
    let resource = |kind: &str, name: &str, after: &[&str], properties: Value| {
        let is_network = kind.starts_with("Microsoft.Network/");
        json!({
            "type": kind,
            "apiVersion": if is_network { NETWORK } else { COMPUTE },
            "name": name,
            "location": spec.region,
            "tags": Tags::new(spec),
            "identity": if kind == MACHINES { identity(spec) } else { None },
            "sku": (kind == ADDRESSES).then(|| json!({"name": "Standard"})),
            "dependsOn": non_empty(after.iter().map(|kind| id(kind))),
            "properties": properties,
        })
    };
    let network = json!({
        "addressSpace": {"addressPrefixes": ["10.0.0.0/24"]},
        "subnets": [{"name": NAME, "properties": {
            "addressPrefix": "10.0.0.0/24",
            "networkSecurityGroup": {"id": id(SECURITY_GROUPS)},
        }}],
    });
    // New networks have no way out of their own; the address is also the way to the registry.
    let address = json!({"publicIPAllocationMethod": "Static"});
    let interface = json!({
        "ipConfigurations": [{"name": NAME, "properties": {
            "privateIPAllocationMethod": "Dynamic",
            "subnet": {"id": format!("{}/subnets/{NAME}", id(NETWORKS))},
            "publicIPAddress": deleted_with_owner(&id(ADDRESSES)),
        }}],
    });
    let vm = virtual_machine(spec, machine, &id(INTERFACES));
    let mut resources = vec![
        resource(SECURITY_GROUPS, NAME, &[], security_group(spec)),
        resource(NETWORKS, NAME, &[SECURITY_GROUPS], network),
        resource(ADDRESSES, NAME, &[], address),
        resource(INTERFACES, NAME, &[NETWORKS, ADDRESSES], interface),
        resource(MACHINES, NAME, &[INTERFACES], vm),
    ];
    resources.extend(
        driver(machine)
            .map(|extension| resource(EXTENSIONS, &format!("{NAME}/driver"), &[MACHINES], extension)),
    );
    // A command whose state and exit code Resource Manager reports.
    let command = json!({
        "source": {"script": cloud_init::WAIT},
        "asyncExecution": true,
        "timeoutInSeconds": work_limit(spec).saturating_add(START_ALLOWANCE).as_secs(),
    });
    resources.push(resource(COMMANDS, &format!("{NAME}/{STATE}"), &[MACHINES], command));
    resources.extend(spec.idle.map(|_| idle_rights(names, &id(MACHINES))));
    resources
}

/// The longest time until the result is known; of a service, that is its start.
fn work_limit(spec: &DeploymentSpec) -> Duration {
    match &spec.work {
        WorkKind::Job { items, time_limit, retries, .. } => {
            let runs = u32::try_from(items.len().max(1)).unwrap_or(u32::MAX);
            time_limit.saturating_mul(runs).saturating_mul(retries.saturating_add(1))
        }
        WorkKind::Serve { .. } | WorkKind::MultiNode { .. } => Duration::ZERO,
    }
}

fn security_group(spec: &DeploymentSpec) -> Value {
    let rule = |port: u16| {
        json!({"name": "service", "properties": {
            "protocol": "Tcp",
            "access": "Allow",
            "direction": "Inbound",
            "priority": 100,
            "sourceAddressPrefix": "*",
            "sourcePortRange": "*",
            "destinationAddressPrefix": "*",
            "destinationPortRange": port.to_string(),
        }})
    };
    let rules = match spec.work {
        WorkKind::Serve { port, is_public: true, .. } => vec![rule(port)],
        _ => Vec::new(),
    };
    json!({"securityRules": rules})
}

fn virtual_machine(spec: &DeploymentSpec, machine: &Machine, interface: &str) -> Value {
    let has_gpu = machine.driver.is_some();
    let image = if has_gpu && !machine.needs_grid() {
        // Has driver, Docker and the NVIDIA container toolkit.
        json!({"publisher": "microsoft-dsvm", "offer": "ubuntu-hpc", "sku": "2204", "version": "latest"})
    } else {
        json!({
            "publisher": "Canonical",
            "offer": "0001-com-ubuntu-server-jammy",
            "sku": "22_04-lts-gen2",
            "version": "latest",
        })
    };
    json!({
        "hardwareProfile": {"vmSize": machine.size},
        "storageProfile": {
            "imageReference": image,
            "osDisk": {
                "createOption": "FromImage",
                "deleteOption": "Delete",
                "caching": "ReadWrite",
                // Docker keeps images on this disk, and those with a framework take tens of gigabytes.
                "diskSizeGB": if has_gpu { 256 } else { 64 },
                "managedDisk": {
                    "storageAccountType": if has_gpu { "Premium_LRS" } else { "StandardSSD_LRS" },
                },
            },
        },
        "osProfile": {
            "computerName": NAME,
            "adminUsername": USER,
            "customData": "[parameters('customData')]",
            "linuxConfiguration": {
                "disablePasswordAuthentication": true,
                "ssh": {"publicKeys": [{
                    "path": format!("/home/{USER}/.ssh/authorized_keys"),
                    "keyData": unusable_key(&spec.run_id),
                }]},
            },
        },
        "networkProfile": {"networkInterfaces": [deleted_with_owner(interface)]},
        "priority": spec.is_spot.then_some("Spot"),
        "evictionPolicy": spec.is_spot.then_some("Delete"),
        // Up to the price of regular capacity, so that only capacity evicts.
        "billingProfile": spec.is_spot.then(|| json!({"maxPrice": -1})),
    })
}

/// A resource that is deleted together with the one that uses it.
fn deleted_with_owner(id: &str) -> Value {
    json!({"id": id, "properties": {"deleteOption": "Delete"}})
}

/// Azure requires a key for every machine, and cudock needs none: this one is a digest, so its
/// private half does not exist.
fn unusable_key(run_id: &str) -> String {
    let digest = Digest::sha256_of(format!("cudock without login {run_id}").as_bytes());
    let point: Vec<u8> = digest
        .hex()
        .as_bytes()
        .chunks(2)
        .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    let mut blob = b"\0\0\0\x0bssh-ed25519\0\0\0\x20".to_vec();
    blob.extend(point);
    format!("ssh-ed25519 {} cudock", STANDARD.encode(blob))
}

fn identity(spec: &DeploymentSpec) -> Option<Identity> {
    match (&spec.registry, spec.idle.is_some()) {
        (Some(RegistryAccess::Identity { identity, .. }), true) => Some(Identity::system_and_user(identity)),
        (Some(RegistryAccess::Identity { identity, .. }), false) => Some(Identity::user(identity)),
        (_, true) => Some(Identity::system()),
        (_, false) => None,
    }
}

/// The GRID driver as an extension; the image has the other one.
fn driver(machine: &Machine) -> Option<Value> {
    let (version, settings) = match machine.driver? {
        SizeDriver::Grid => ("1.6", None),
        SizeDriver::GridV20 => ("1.13", Some(json!({"installGridNC": true, "driverVersion": "595.58.03"}))),
        SizeDriver::Cuda | SizeDriver::Rocm | SizeDriver::Amd | SizeDriver::AmdWindows => return None,
    };
    Some(json!({
        "publisher": "Microsoft.HpcCompute",
        "type": "NvidiaGpuDriverLinux",
        "typeHandlerVersion": version,
        "autoUpgradeMinorVersion": true,
        "settings": settings,
    }))
}

/// The machine's own identity may run the reaper, and nothing else.
fn idle_rights(names: Names<'_>, machine: &str) -> Value {
    let assignment = RoleAssignment {
        purpose: "idle",
        role: LOGIC_APP_CONTRIBUTOR,
        principal: "[parameters('principalId')]",
        scope: Some(format!("Microsoft.Logic/workflows/{}", reaper::NAME)),
        after: None,
        description: "cudock: lets an idle machine run its reaper",
    };
    let template = template_in_group(&[assignment.resource(names)], Some(("principalId", "string")), None);
    let principal = format!("[reference('{machine}', '{COMPUTE}', 'full').identity.principalId]");
    let parameter = Some(("principalId", principal.as_str()));
    nested("idle", &names.reaper_group(), &template, parameter, &[machine.to_owned()])
}

/// A command on the machine; its output is the response.
pub(super) fn script_call(names: Names<'_>, script: &str) -> Call {
    let id = names.resource(&format!("{MACHINES}/{NAME}"));
    let request = Body::new(serde_json::json!({"commandId": "RunShellScript", "script": [script]}));
    call(Method::POST, &format!("{id}/runCommand"), COMPUTE, Some(request))
}
