//! A virtual machine and its network, as resources of a template.

use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub(super) struct Reference {
    pub(super) id: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Named<P> {
    pub(super) name: &'static str,
    pub(super) properties: P,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SecurityGroup {
    pub(super) security_rules: Vec<Named<SecurityRule>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SecurityRule {
    pub(super) protocol: &'static str,
    pub(super) access: &'static str,
    pub(super) direction: &'static str,
    pub(super) priority: u32,
    pub(super) source_address_prefix: &'static str,
    pub(super) source_port_range: &'static str,
    pub(super) destination_address_prefix: &'static str,
    pub(super) destination_port_range: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VirtualNetwork {
    pub(super) address_space: AddressSpace,
    pub(super) subnets: [Named<Subnet>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AddressSpace {
    pub(super) address_prefixes: [&'static str; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Subnet {
    pub(super) address_prefix: &'static str,
    pub(super) network_security_group: Reference,
}

#[derive(Debug, Serialize)]
pub(super) struct PublicAddress {
    #[serde(rename = "publicIPAllocationMethod")]
    pub(super) allocation_method: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NetworkInterface {
    pub(super) ip_configurations: [Named<IpConfiguration>; 1],
}

#[derive(Debug, Serialize)]
pub(super) struct IpConfiguration {
    #[serde(rename = "privateIPAllocationMethod")]
    pub(super) private_allocation: &'static str,
    pub(super) subnet: Reference,
    #[serde(rename = "publicIPAddress")]
    pub(super) public_address: DeletedWithOwner,
}

/// A resource that is deleted together with the one that uses it.
#[derive(Debug, Serialize)]
pub(super) struct DeletedWithOwner {
    pub(super) id: String,
    pub(super) properties: DeleteOption,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeleteOption {
    delete_option: &'static str,
}

impl DeletedWithOwner {
    pub(super) fn new(id: String) -> Self {
        Self { id, properties: DeleteOption { delete_option: "Delete" } }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VirtualMachine {
    pub(super) hardware_profile: HardwareProfile,
    pub(super) storage_profile: StorageProfile,
    pub(super) os_profile: OsProfile,
    pub(super) network_profile: NetworkProfile,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) priority: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) eviction_policy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) billing_profile: Option<BillingProfile>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HardwareProfile {
    pub(super) vm_size: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StorageProfile {
    pub(super) image_reference: ImageReference,
    pub(super) os_disk: OsDisk,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct ImageReference {
    pub(super) publisher: &'static str,
    pub(super) offer: &'static str,
    pub(super) sku: &'static str,
    pub(super) version: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OsDisk {
    pub(super) create_option: &'static str,
    pub(super) delete_option: &'static str,
    pub(super) caching: &'static str,
    #[serde(rename = "diskSizeGB")]
    pub(super) disk_size_gb: u32,
    pub(super) managed_disk: ManagedDisk,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ManagedDisk {
    pub(super) storage_account_type: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OsProfile {
    pub(super) computer_name: &'static str,
    pub(super) admin_username: &'static str,
    pub(super) custom_data: &'static str,
    pub(super) linux_configuration: LinuxConfiguration,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LinuxConfiguration {
    pub(super) disable_password_authentication: bool,
    pub(super) ssh: Ssh,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ssh {
    pub(super) public_keys: [PublicKey; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PublicKey {
    pub(super) path: String,
    pub(super) key_data: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NetworkProfile {
    pub(super) network_interfaces: [DeletedWithOwner; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BillingProfile {
    /// -1: up to the price of regular capacity, so that only capacity evicts.
    pub(super) max_price: i32,
}

/// A driver extension.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Extension {
    pub(super) publisher: &'static str,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) type_handler_version: &'static str,
    pub(super) auto_upgrade_minor_version: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) settings: Option<DriverSettings>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DriverSettings {
    #[serde(rename = "installGridNC")]
    pub(super) install_grid_nc: bool,
    pub(super) driver_version: &'static str,
}

/// A command whose state and exit code Resource Manager reports.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunCommand {
    pub(super) source: ScriptSource,
    pub(super) async_execution: bool,
    pub(super) timeout_in_seconds: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct ScriptSource {
    pub(super) script: &'static str,
}
