//! Names, types and api-versions of the resources.

pub(super) const COMPUTE: &str = "2024-07-01";
pub(super) const NETWORK: &str = "2024-05-01";
/// The machine, and the deployment that creates it.
pub(super) const NAME: &str = "main";
pub(super) const STATE: &str = "state";
pub(super) const MACHINES: &str = "Microsoft.Compute/virtualMachines";
pub(super) const COMMANDS: &str = "Microsoft.Compute/virtualMachines/runCommands";
pub(super) const EXTENSIONS: &str = "Microsoft.Compute/virtualMachines/extensions";
pub(super) const SECURITY_GROUPS: &str = "Microsoft.Network/networkSecurityGroups";
pub(super) const NETWORKS: &str = "Microsoft.Network/virtualNetworks";
pub(super) const ADDRESSES: &str = "Microsoft.Network/publicIPAddresses";
pub(super) const INTERFACES: &str = "Microsoft.Network/networkInterfaces";
