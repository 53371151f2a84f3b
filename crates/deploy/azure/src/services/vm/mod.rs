//! A virtual machine: network, machine, driver and a command that reports its state, in one
//! deployment, so that Azure checks quota and size before anything exists.

mod backend;
mod body;
mod cloud_init;
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
use serde_json::Value;

use crate::call::{Body, Call};
use crate::deployment::{Phase, Step};
use crate::services::bodies::names::{Names, Tags};
use crate::services::bodies::request::{Identity, body, call, put, to_json};
use crate::services::bodies::template::{
    RESOURCES, RoleAssignment, Template, TemplateDeployment, TemplateProperties, TemplateResource,
};
use crate::services::checks::Machine;
use crate::services::reaper;
use crate::services::vm::body::{
    AddressSpace, BillingProfile, DeletedWithOwner, DriverSettings, Extension, HardwareProfile,
    ImageReference, IpConfiguration, LinuxConfiguration, ManagedDisk, Named, NetworkInterface,
    NetworkProfile, OsDisk, OsProfile, PublicAddress, PublicKey, Reference, RunCommand, ScriptSource,
    SecurityGroup, SecurityRule, Ssh, StorageProfile, Subnet, VirtualMachine, VirtualNetwork,
};
use crate::services::{Translation, TranslationError};
use crate::spec::{DeploymentSpec, RegistryAccess, WorkKind};

const COMPUTE: &str = "2024-07-01";
const NETWORK: &str = "2024-05-01";
/// The machine, and the deployment that creates it.
const NAME: &str = "main";
const STATE: &str = "state";
const USER: &str = "cudock";
const MACHINES: &str = "Microsoft.Compute/virtualMachines";
const COMMANDS: &str = "Microsoft.Compute/virtualMachines/runCommands";
const EXTENSIONS: &str = "Microsoft.Compute/virtualMachines/extensions";
const SECURITY_GROUPS: &str = "Microsoft.Network/networkSecurityGroups";
const NETWORKS: &str = "Microsoft.Network/virtualNetworks";
const ADDRESSES: &str = "Microsoft.Network/publicIPAddresses";
const INTERFACES: &str = "Microsoft.Network/networkInterfaces";
const LOGIC_APP_CONTRIBUTOR: &str = "87a39d53-fc1b-424a-814c-f7e04687dc9e";
/// Time to start the machine, install the driver and pull the image.
const START_ALLOWANCE: Duration = Duration::from_secs(3600);

/// 64 KiB in base64.
const LONGEST_DATA: usize = 87_380;

/// Has driver, Docker and the NVIDIA container toolkit.
const HPC_IMAGE: ImageReference =
    ImageReference { publisher: "microsoft-dsvm", offer: "ubuntu-hpc", sku: "2204", version: "latest" };
const UBUNTU: ImageReference = ImageReference {
    publisher: "Canonical",
    offer: "0001-com-ubuntu-server-jammy",
    sku: "22_04-lts-gen2",
    version: "latest",
};

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
    let template = Template::in_group(resources(spec, &machine)?).parameter("customData", kind);
    let shown = if is_secret { String::new() } else { data.expose().clone() };
    let deployment = TemplateDeployment {
        location: None,
        tags: Some(Tags::new(spec)),
        properties: TemplateProperties::new(template).with("customData", shown),
    };
    let mut request = body(&deployment)?;
    if is_secret {
        request = request.secret("/properties/parameters/customData/value", data);
    }
    let id = names.resource(&format!("Microsoft.Resources/deployments/{NAME}"));
    // The driver extension alone may take 20 minutes.
    let step = Step::new("vm", Phase::Create, put(&id, RESOURCES, request)).billed().within_minutes(45);
    Ok(Translation { steps: vec![step], losses: rules::lost(spec), ..Translation::default() })
}

fn resources(spec: &DeploymentSpec, machine: &Machine) -> Result<Vec<Value>, TranslationError> {
    let names = Names::of_spec(spec);
    let tags = Tags::new(spec);
    let id = |kind: &str| names.resource(&format!("{kind}/{NAME}"));
    let subnet = format!("{}/subnets/{NAME}", id(NETWORKS));
    let security_group = TemplateResource::new(SECURITY_GROUPS, NETWORK, NAME, security_group(spec));
    let network = VirtualNetwork {
        address_space: AddressSpace { address_prefixes: ["10.0.0.0/24"] },
        subnets: [Named {
            name: NAME,
            properties: Subnet {
                address_prefix: "10.0.0.0/24",
                network_security_group: Reference { id: id(SECURITY_GROUPS) },
            },
        }],
    };
    // New networks have no way out of their own; the address is also the way to the registry.
    let address = PublicAddress { allocation_method: "Static" };
    let interface = NetworkInterface {
        ip_configurations: [Named {
            name: NAME,
            properties: IpConfiguration {
                private_allocation: "Dynamic",
                subnet: Reference { id: subnet },
                public_address: DeletedWithOwner::new(id(ADDRESSES)),
            },
        }],
    };
    let vm = TemplateResource::new(MACHINES, COMPUTE, NAME, virtual_machine(spec, machine, id(INTERFACES)))
        .at(&spec.region, &tags)
        .identity(identity(spec))
        .after([id(INTERFACES)]);
    let mut resources = vec![
        to_json(&security_group.at(&spec.region, &tags))?,
        to_json(
            &TemplateResource::new(NETWORKS, NETWORK, NAME, network)
                .at(&spec.region, &tags)
                .after([id(SECURITY_GROUPS)]),
        )?,
        to_json(
            &TemplateResource::new(ADDRESSES, NETWORK, NAME, address).at(&spec.region, &tags).sku("Standard"),
        )?,
        to_json(
            &TemplateResource::new(INTERFACES, NETWORK, NAME, interface)
                .at(&spec.region, &tags)
                .after([id(NETWORKS), id(ADDRESSES)]),
        )?,
        to_json(&vm)?,
    ];
    if let Some(extension) = driver(machine) {
        let extension = TemplateResource::new(EXTENSIONS, COMPUTE, format!("{NAME}/driver"), extension);
        resources.push(to_json(&extension.at(&spec.region, &tags).after([id(MACHINES)]))?);
    }
    let command = RunCommand {
        source: ScriptSource { script: cloud_init::WAIT },
        async_execution: true,
        timeout_in_seconds: work_limit(spec).saturating_add(START_ALLOWANCE).as_secs(),
    };
    let command = TemplateResource::new(COMMANDS, COMPUTE, format!("{NAME}/{STATE}"), command);
    resources.push(to_json(&command.at(&spec.region, &tags).after([id(MACHINES)]))?);
    if spec.idle.is_some() {
        resources.push(idle_rights(names, id(MACHINES))?);
    }
    Ok(resources)
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

fn security_group(spec: &DeploymentSpec) -> SecurityGroup {
    let rule = match spec.work {
        WorkKind::Serve { port, is_public: true, .. } => Some(Named {
            name: "service",
            properties: SecurityRule {
                protocol: "Tcp",
                access: "Allow",
                direction: "Inbound",
                priority: 100,
                source_address_prefix: "*",
                source_port_range: "*",
                destination_address_prefix: "*",
                destination_port_range: port.to_string(),
            },
        }),
        _ => None,
    };
    SecurityGroup { security_rules: rule.into_iter().collect() }
}

fn virtual_machine(spec: &DeploymentSpec, machine: &Machine, interface: String) -> VirtualMachine {
    let has_gpu = machine.driver.is_some();
    VirtualMachine {
        hardware_profile: HardwareProfile { vm_size: machine.size.clone() },
        storage_profile: StorageProfile {
            image_reference: if has_gpu && !machine.needs_grid() { HPC_IMAGE } else { UBUNTU },
            os_disk: OsDisk {
                create_option: "FromImage",
                delete_option: "Delete",
                caching: "ReadWrite",
                // Docker keeps images on this disk, and those with a framework take tens of gigabytes.
                disk_size_gb: if has_gpu { 256 } else { 64 },
                managed_disk: ManagedDisk {
                    storage_account_type: if has_gpu { "Premium_LRS" } else { "StandardSSD_LRS" },
                },
            },
        },
        os_profile: OsProfile {
            computer_name: NAME,
            admin_username: USER,
            custom_data: "[parameters('customData')]",
            linux_configuration: LinuxConfiguration {
                disable_password_authentication: true,
                ssh: Ssh {
                    public_keys: [PublicKey {
                        path: format!("/home/{USER}/.ssh/authorized_keys"),
                        key_data: unusable_key(&spec.run_id),
                    }],
                },
            },
        },
        network_profile: NetworkProfile { network_interfaces: [DeletedWithOwner::new(interface)] },
        priority: spec.is_spot.then_some("Spot"),
        eviction_policy: spec.is_spot.then_some("Delete"),
        billing_profile: spec.is_spot.then_some(BillingProfile { max_price: -1 }),
    }
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

/// The GRID driver; the image has the other one.
fn driver(machine: &Machine) -> Option<Extension> {
    let extension = |version: &'static str, settings: Option<DriverSettings>| Extension {
        publisher: "Microsoft.HpcCompute",
        kind: "NvidiaGpuDriverLinux",
        type_handler_version: version,
        auto_upgrade_minor_version: true,
        settings,
    };
    match machine.driver? {
        SizeDriver::Grid => Some(extension("1.6", None)),
        SizeDriver::GridV20 => Some(extension(
            "1.13",
            Some(DriverSettings { install_grid_nc: true, driver_version: "595.58.03" }),
        )),
        SizeDriver::Cuda | SizeDriver::Rocm | SizeDriver::Amd | SizeDriver::AmdWindows => None,
    }
}

/// The machine's own identity may run the reaper, and nothing else.
fn idle_rights(names: Names<'_>, machine: String) -> Result<Value, TranslationError> {
    let assignment = RoleAssignment::new(
        names.role_definition(LOGIC_APP_CONTRIBUTOR),
        "[parameters('principalId')]".to_owned(),
        "cudock: lets an idle machine run its reaper",
    );
    let scope = format!("Microsoft.Logic/workflows/{}", reaper::NAME);
    let assignment = assignment.resource(names.uuid("idle")).scoped(Some(scope));
    let template = Template::in_group(vec![to_json(&assignment)?]).parameter("principalId", "string");
    let principal = format!("[reference('{machine}', '{COMPUTE}', 'full').identity.principalId]");
    let properties = TemplateProperties::nested(template).with("principalId", principal);
    let resource = TemplateResource::new("Microsoft.Resources/deployments", RESOURCES, "idle", properties);
    to_json(&resource.in_group(names.reaper_group()).after([machine]))
}

/// A command on the machine; its output is the response.
pub(super) fn script_call(names: Names<'_>, script: &str) -> Call {
    let id = names.resource(&format!("{MACHINES}/{NAME}"));
    let request = Body::new(serde_json::json!({"commandId": "RunShellScript", "script": [script]}));
    call(Method::POST, &format!("{id}/runCommand"), COMPUTE, Some(request))
}
