//! Command lines in scripts, notes and pipelines.

use crate::support::shown;

#[test]
fn a_single_command_line_is_read() {
    assert_eq!(
        shown("az vm create -n gpu --image Ubuntu2204 --size Standard_NC6 -l eastus"),
        ["1:47 Standard_NC6 | az vm create --size | vm | eastus"]
    );
}

#[test]
fn continued_lines_quotes_and_variables_lead_to_the_text_to_change() {
    let script = "\
#!/usr/bin/env bash
set -euo pipefail
# Standard_NC24 was too dear
LOCATION=\"westeurope\"
export SIZE='Standard_NC6s_v3'   # one V100
az group create -n ml -l \"$LOCATION\"
az vm create \\
    --resource-group ml \\
    --name trainer \\
    --size \"${SIZE}\" \\
    --priority Spot
az aks nodepool add --cluster-name k --name gpu -s Standard_NC12s_v3
az aks create -n k --node-vm-size=Standard_ND40rs_v2 --location northeurope
";
    assert_eq!(
        shown(script),
        [
            "5:14 Standard_NC6s_v3 | az vm create --size | vm | westeurope low",
            "12:52 Standard_NC12s_v3 | az aks nodepool add -s | aks | westeurope",
            "13:35 Standard_ND40rs_v2 | az aks create --node-vm-size | aks | northeurope",
        ]
    );
}

#[test]
fn a_default_and_a_chain_of_variables_are_followed() {
    let script = "DEFAULT=Standard_NC6\nSIZE=$DEFAULT\naz vm create --size $SIZE\naz vm create --size ${BIG:-Standard_NC24}\n";
    assert_eq!(
        shown(script),
        [
            "1:9 Standard_NC6 | az vm create --size | vm | -",
            "4:28 Standard_NC24 | az vm create --size | vm | -"
        ]
    );
}

#[test]
fn sizes_without_their_prefix_are_taken_where_a_size_is_expected() {
    assert_eq!(
        shown(
            "az batch pool create --id p --vm-size NC6 --target-dedicated-nodes 2 --target-low-priority-nodes 4\n"
        ),
        [
            "1:39 NC6 | az batch pool create --vm-size | batch | -",
            "1:98 low-priority nodes | az batch pool create --target-low-priority-nodes | batch | -",
        ]
    );
    assert!(shown("az batch pool create --target-low-priority-nodes 0\n").is_empty());
}

#[test]
fn gpu_options_of_container_instances_are_one_choice() {
    assert_eq!(
        shown("az container create -g g --name c --gpu-count 2 --gpu-sku K80 --location westus2"),
        ["1:35 2 x K80 | az container create --gpu-count | aci | westus2"]
    );
}

#[test]
fn machine_learning_commands_of_both_generations_are_read() {
    let script = "\
az ml compute create --name gpu --type AmlCompute --size Standard_NC6s_v3 --tier low_priority
az ml computetarget create amlcompute -n gpu -s STANDARD_NC6 --location eastus2
";
    assert_eq!(
        shown(script),
        [
            "1:58 Standard_NC6s_v3 | az ml compute create --size | ml | eastus2 low",
            "2:1 az ml computetarget | - | ml | eastus2",
            "2:49 STANDARD_NC6 | az ml computetarget create amlcompute -s | ml | eastus2",
        ]
    );
}

#[test]
fn driver_tags_and_cut_off_images_are_seen() {
    let script = "\
az vm create --image Canonical:UbuntuServer --size Standard_NC6_v3
az vm create --image microsoft-dsvm:ubuntu-hpc:2204:latest
az aks nodepool add --skip-gpu-driver-install --name g
az aks nodepool add --name g --tags team=a SkipGPUDriverInstall=true
";
    assert_eq!(
        shown(script),
        [
            "1:22 Canonical:UbuntuServer | az vm create --image | vm | -",
            "1:52 Standard_NC6_v3 | az vm create --size | vm | -",
            "3:21 --skip-gpu-driver-install | az aks nodepool add | aks | -",
            "4:44 --skip-gpu-driver-install | az aks nodepool add --tags | aks | -",
        ]
    );
}

#[test]
fn places_are_right_with_crlf_and_letters_of_several_bytes() {
    let script = "echo \"größer: 変更\"\r\naz vm create `\r\n  --name Übung --size Standard_NC6 `\r\n  -l westeurope\r\n";
    assert_eq!(shown(script), ["3:23 Standard_NC6 | az vm create --size | vm | westeurope"]);
}

#[test]
fn commands_in_comments_are_left_alone() {
    assert!(shown("#!/bin/sh\n# az vm create --size Standard_NC6\necho done # Standard_NC12\n").is_empty());
}

#[test]
fn notes_are_read_with_their_code() {
    let notes = "\
# Training on Azure

It's simple. Don't forget the quota, and `Standard_NC12` isn't needed.

```bash
az vm create --size Standard_NC6 \\
  --location westeurope
```

```yaml
type: amlcompute
size: STANDARD_NC24
```
";
    assert_eq!(
        shown(notes),
        [
            "3:43 Standard_NC12 | - | - | westeurope",
            "6:21 Standard_NC6 | az vm create --size | vm | westeurope",
            "12:7 STANDARD_NC24 | size | ml | westeurope",
        ]
    );
}

#[test]
fn pipelines_set_variables_in_maps_and_use_them_in_scripts() {
    let pipeline = "\
variables:
  vmSize: Standard_NC6s_v3
  region: northeurope
steps:
- task: AzureCLI@2
  inputs:
    inlineScript: |
      az vm create --size $(vmSize) --location $(region)
- run: az container create --gpu-count 1
- script: az vm create --size ${{ variables.vmSize }}
";
    assert_eq!(
        shown(pipeline),
        [
            "2:11 Standard_NC6s_v3 | az vm create --size | vm | northeurope",
            "9:28 1 GPU | az container create --gpu-count | aci | northeurope",
        ]
    );
}

#[test]
fn powershell_and_loops_are_read_as_far_as_they_tell() {
    let script = "$size = 'Standard_NV6'\r\naz vm create --size $size\r\nNew-AzVM -Size Standard_NV12\r\n";
    assert_eq!(
        shown(script),
        ["1:10 Standard_NV6 | az vm create --size | vm | -", "3:16 Standard_NV12 | - | - | -"]
    );
    let script = "for s in Standard_NC6 Standard_NC12; do\n  az vm create --size \"$s\"\ndone\n";
    assert_eq!(shown(script), ["1:10 Standard_NC6 | - | - | -", "1:23 Standard_NC12 | - | - | -"]);
}

#[test]
fn a_document_inside_of_a_script_is_read_in_its_own_language() {
    let script = "\
#!/bin/bash
cat > group.yaml <<EOF
location: eastus
properties:
  containers:
  - name: a
    properties:
      resources:
        requests:
          gpu:
            count: 1
            sku: K80
EOF
az container create --file group.yaml
";
    assert_eq!(shown(script), ["12:18 1 x K80 | resources.requests.gpu | aci | eastus"]);
}
