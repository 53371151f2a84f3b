//! Python programs and notebooks.

use crate::support::shown;

#[test]
fn machine_learning_v1_is_seen_with_its_sizes() {
    let program = "\
from azureml.core import Workspace, Experiment
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.train.hyperdrive import HyperDriveConfig, RandomParameterSampling

ws = Workspace.create(name=\"ml\", location='eastus2')
vm_size = \"STANDARD_NC6\"  # cheap
config = AmlCompute.provisioning_configuration(vm_size=vm_size,
                                               vm_priority=\"lowpriority\",
                                               max_nodes=4)
big = AmlCompute.provisioning_configuration(
    vm_size=os.environ.get(\"AML_SIZE\", \"STANDARD_NC24\"), max_nodes=4)
hd = HyperDriveConfig(run_config=src, max_total_runs=27, max_concurrent_runs=3)
";
    assert_eq!(
        shown(program),
        [
            "1:6 azureml.core | - | ml | eastus2",
            "3:38 HyperDriveConfig | - | ml | eastus2",
            "6:12 STANDARD_NC6 | AmlCompute.provisioning_configuration(vm_size) | ml | eastus2 low",
            "11:41 STANDARD_NC24 | - | ml | eastus2",
        ]
    );
}

#[test]
fn old_names_of_batch_are_seen_with_their_sizes() {
    let program = "\
import azure.batch.batch_auth as batchauth
from azure.batch import BatchServiceClient
import azure.batch.models as batchmodels

_POOL_VM_SIZE = 'STANDARD_NC6S_V3'

client = BatchServiceClient(credentials, batch_url=url)
pool = batchmodels.PoolAddParameter(
    id='render',
    vm_size=_POOL_VM_SIZE,
    target_dedicated_nodes=0,
    target_low_priority_nodes=5,
)
";
    assert_eq!(
        shown(program),
        [
            "2:25 BatchServiceClient | - | batch | -",
            "5:18 STANDARD_NC6S_V3 | batchmodels.PoolAddParameter(vm_size) | batch | -",
            "8:13 models.PoolAddParameter | - | batch | -",
            "12:31 low-priority nodes | target_low_priority_nodes | batch | - low",
        ]
    );
}

#[test]
fn low_priority_nodes_are_those_that_are_requested() {
    let program =
        "_LOW_PRIORITY_NODES = 5\np = Pool(vm_size='x', target_low_priority_nodes=_LOW_PRIORITY_NODES)\n";
    assert_eq!(shown(program), ["2:49 low-priority nodes | target_low_priority_nodes | batch | - low"]);
    assert!(shown("LOW_PRIORITY = 0\np = Pool(target_low_priority_nodes=LOW_PRIORITY)\n").is_empty());
    assert!(shown("def resize(target_low_priority_nodes: int = None):\n    pass\n").is_empty());
}

#[test]
fn container_groups_made_by_a_program_are_seen() {
    let program = "\
from azure.mgmt.containerinstance.models import GpuResource, ResourceRequests

requests = ResourceRequests(memory_in_gb=4, cpu=1.0, gpu=GpuResource(count=1, sku='K80'))
";
    assert_eq!(shown(program), ["3:84 1 x K80 | GpuResource | aci | -"]);
}

#[test]
fn machine_learning_v2_is_fine_but_for_its_size() {
    let program = "\
from azure.ai.ml.entities import AmlCompute, ManagedOnlineDeployment

cluster = AmlCompute(name=\"gpu\", size=\"Standard_NC12s_v3\", tier=\"Dedicated\")
blue = ManagedOnlineDeployment(name=\"blue\", instance_type=\"Standard_NC6s_v3\")
";
    assert_eq!(
        shown(program),
        [
            "3:40 Standard_NC12s_v3 | AmlCompute(size) | ml | -",
            "4:60 Standard_NC6s_v3 | ManagedOnlineDeployment(instance_type) | ml | -",
        ]
    );
}

#[test]
fn notebooks_are_read_inside_of_their_texts() {
    let notebook = r##"{
 "cells": [
  {"cell_type": "code", "source": [
    "from azureml.core import Workspace\n",
    "# a comment of the notebook: Standard_NC6 is reported, since a notebook is JSON\n",
    "cfg = AmlCompute.provisioning_configuration(vm_size='STANDARD_NC12')\n"
  ]}
 ]
}"##;
    assert_eq!(
        shown(notebook),
        [
            "4:11 azureml.core | - | ml | -",
            "5:35 Standard_NC6 | - | ml | -",
            "6:59 STANDARD_NC12 | - | ml | -",
        ]
    );
}

#[test]
fn models_of_another_framework_are_no_batch_pools() {
    assert!(shown("from django.db import models\n\nclass A(models.Pool):\n    pass\n").is_empty());
}
