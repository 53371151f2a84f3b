//! Container groups, templates and configuration.

use crate::support::shown;

#[test]
fn a_container_group_asks_for_gpus_once() {
    let group = "\
apiVersion: '2021-09-01'
location: West Europe
name: trainer
properties:
  containers:
  - name: main
    properties:
      image: registry.example/train:1
      resources:
        requests:
          cpu: 1.0
          memoryInGB: 4
          gpu:
            count: 2
            sku: V100
        limits:
          gpu: {count: 2, sku: V100}
  - name: side
    properties:
      resources:
        limits:
          gpu: {sku: P100, count: 1}
  osType: Linux
type: Microsoft.ContainerInstance/containerGroups
";
    assert_eq!(
        shown(group),
        [
            "15:18 2 x V100 | resources.requests.gpu | aci | West Europe",
            "22:22 1 x P100 | resources.limits.gpu | aci | West Europe",
        ]
    );
}

#[test]
fn arm_templates_name_sizes_in_resources_and_parameters() {
    let template = r#"{
  "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
  "parameters": {
    "vmSize": {
      "type": "string",
      "defaultValue": "Standard_NC6",
      "allowedValues": ["Standard_NC6", "Standard_NC12"]
    }
  },
  // machines
  "resources": [
    {
      "type": "Microsoft.Compute/virtualMachines",
      "location": "eastus",
      "properties": {"hardwareProfile": {"vmSize": "[parameters('vmSize')]"}}
    },
    {
      "type": "Microsoft.ContainerService/managedClusters",
      "properties": {"agentPoolProfiles": [{"vmSize": "Standard_NC6s_v3"}]}
    },
    {
      "type": "Microsoft.Compute/virtualMachineScaleSets",
      "location": "westus2",
      "sku": {"name": "Standard_NV6", "capacity": 2}
    }
  ]
}"#;
    assert_eq!(
        shown(template),
        [
            "6:24 Standard_NC6 | vmSize | vm | eastus",
            "7:26 Standard_NC6 | - | - | eastus",
            "7:42 Standard_NC12 | - | - | eastus",
            "19:56 Standard_NC6s_v3 | vmSize | aks | eastus",
            "24:24 Standard_NV6 | name | vm | westus2",
        ]
    );
}

#[test]
fn bicep_names_sizes_in_parameters_and_resources() {
    let template = "\
@description('Size of the node')
param gpuSize string = 'Standard_NC12' // two halves of a K80
param location string = 'northeurope'

resource vm 'Microsoft.Compute/virtualMachines@2024-07-01' = {
  name: 'gpu'
  location: location
  properties: {
    hardwareProfile: { vmSize: gpuSize }
  }
}

resource pool 'Microsoft.Batch/batchAccounts/pools@2024-07-01' = if (batch) {
  properties: {
    vmSize: 'STANDARD_NC6'
    scaleSettings: { fixedScale: { targetLowPriorityNodes: 3 } }
  }
}
";
    assert_eq!(
        shown(template),
        [
            "2:25 Standard_NC12 | vmSize | vm | northeurope",
            "15:14 STANDARD_NC6 | vmSize | batch | northeurope",
            "16:60 low-priority nodes | targetLowPriorityNodes | batch | northeurope low",
        ]
    );
}

#[test]
fn terraform_names_sizes_in_resources_blocks_and_variables() {
    let template = "\
variable \"size\" {
  default = \"Standard_NV12s_v3\" # M60
}

resource \"azurerm_linux_virtual_machine\" \"gpu\" {
  name     = \"gpu\"
  location = \"West Europe\"
  size     = var.size
}

resource \"azurerm_kubernetes_cluster\" \"k\" {
  location = \"uksouth\"
  default_node_pool {
    vm_size = \"Standard_NC24s_v3\"
  }
}

resource \"azurerm_linux_virtual_machine_scale_set\" \"s\" {
  sku      = \"Standard_ND6s\"
  priority = \"Spot\"
}

resource \"azurerm_container_group\" \"c\" {
  location = \"eastus\"
  container {
    gpu {
      count = 1
      sku   = \"K80\"
    }
  }
}
";
    assert_eq!(
        shown(template),
        [
            "2:14 Standard_NV12s_v3 | azurerm_linux_virtual_machine.size | vm | West Europe",
            "14:16 Standard_NC24s_v3 | vm_size | aks | uksouth",
            "19:15 Standard_ND6s | azurerm_linux_virtual_machine_scale_set.sku | vm | West Europe low",
            "28:16 1 x K80 | gpu | aci | eastus",
        ]
    );
}

#[test]
fn machine_learning_v2_files_name_sizes() {
    let compute = "\
$schema: https://azuremlschemas.azureedge.net/latest/amlCompute.schema.json
name: gpu-cluster
type: amlcompute
size: Standard_NC6s_v3
tier: low_priority
location: westeurope
";
    assert_eq!(shown(compute), ["4:7 Standard_NC6s_v3 | size | ml | westeurope low"]);
    let job = "\
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
command: python train.py
resources:
  instance_type: \"Standard_ND40rs_v2\"
  instance_count: 2
";
    assert_eq!(shown(job), ["4:19 Standard_ND40rs_v2 | instance_type | ml | -"]);
}

#[test]
fn skypilot_tasks_name_gpus() {
    assert_eq!(
        shown("resources:\n  cloud: azure\n  region: eastus\n  accelerators: K80:4\n  use_spot: true\n"),
        ["4:17 4 x K80 | accelerators | vm | eastus low"]
    );
    assert_eq!(
        shown("resources:\n  infra: azure/westus2\n  accelerators:\n    V100: 8\n    A100-80GB: 1\n"),
        ["4:5 8 x V100 | accelerators | vm | westus2", "5:5 1 x A100-80GB | accelerators | vm | westus2"]
    );
    assert_eq!(
        shown("resources:\n  accelerators: [P100, 'V100:2']\n"),
        ["2:18 1 x P100 | accelerators | vm | -", "2:25 2 x V100 | accelerators | vm | -"]
    );
    assert!(shown("resources:\n  cloud: aws\n  accelerators: K80\n").is_empty());
}

#[test]
fn batch_bodies_are_known_by_their_nodes() {
    let body = r#"{"id": "render", "vmSize": "STANDARD_NC6", "targetDedicatedNodes": 0, "targetLowPriorityNodes": 10}"#;
    assert_eq!(
        shown(body),
        [
            "1:29 STANDARD_NC6 | vmSize | batch | -",
            "1:97 low-priority nodes | targetLowPriorityNodes | batch | - low",
        ]
    );
}

#[test]
fn a_chart_that_is_not_yaml_yet_is_read() {
    let chart = "\
{{- if .Values.gpu.enabled }}
pool:
  vmSize: {{ .Values.size | default \"Standard_NC6\" }}
  nodeVmSize: Standard_NC12
{{- end }}
";
    assert_eq!(shown(chart), ["3:38 Standard_NC6 | - | - | -", "4:15 Standard_NC12 | nodeVmSize | - | -"]);
}

#[test]
fn sizes_without_gpus_are_nobodys_business() {
    assert!(
        shown("resource \"azurerm_linux_virtual_machine\" \"x\" {\n  size = \"Standard_D4s_v5\"\n}\n")
            .is_empty()
    );
    assert!(shown("az vm create --size Standard_NP10s\n").is_empty());
}
