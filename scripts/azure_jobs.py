"""The jobs of `crates/deploy/azure/tests/it/export/jobs.rs`, created with Azure's official Python clients.

Everything here is written as a user of these clients would write it, from the description of the job and not from cudock's
requests. Each function takes the recorder and sends its requests there.
"""

import datetime

from azure.core.credentials import AccessToken, AzureNamedKeyCredential

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
RUN = "0123456789ab"
GROUP = f"cudock-{RUN}"
REGION = "westeurope"
IMAGE = "registry.example.com/digits:1"
COMMAND = ["python", "train.py", "--note", "it's ${HOME}"]
PLAIN = ("EPOCHS", "3")
SECRET = ("HF_TOKEN", 'hf "token" it\'s')
REGISTRY = ("registry.example.com", "puller", "pass-word")
SIZE = "Standard_NC4as_T4_v3"
USER = "cudock"
TIME_LIMIT = datetime.timedelta(hours=1)
TAGS = {
    "cudock-run": RUN,
    "cudock-name": "digits",
    "cudock-owner": "ada@example.com",
    "cudock-delete-after": "2026-11-18T02:00:00Z",
}


class Credential:
    """Signs in as anybody."""

    def get_token(self, *_, **__):
        return AccessToken("recorded", 4102444800)

    def get_token_info(self, *_, **__):
        from azure.core.credentials import AccessTokenInfo

        return AccessTokenInfo("recorded", 4102444800)


def management(client, recorder):
    return client(
        Credential(),
        SUBSCRIPTION,
        base_url=recorder.url,
        credential_scopes=[f"{recorder.url}/.default"],
        polling_interval=0,
    )


def aci(recorder):
    from azure.mgmt.containerinstance import ContainerInstanceManagementClient, models

    client = management(ContainerInstanceManagementClient, recorder)
    container = models.Container(
        name="main",
        image=IMAGE,
        command=COMMAND,
        environment_variables=[
            models.EnvironmentVariable(name=PLAIN[0], value=PLAIN[1]),
            models.EnvironmentVariable(name=SECRET[0], secure_value=SECRET[1]),
        ],
        resources=models.ResourceRequirements(requests=models.ResourceRequests(cpu=2, memory_in_gb=4)),
    )
    server, username, password = REGISTRY
    group = models.ContainerGroup(
        location=REGION,
        tags=TAGS,
        os_type="Linux",
        restart_policy="OnFailure",
        containers=[container],
        image_registry_credentials=[
            models.ImageRegistryCredential(server=server, username=username, password=password)
        ],
    )
    client.container_groups.begin_create_or_update(GROUP, "main", group).result()


def batch(recorder):
    from azure.batch import BatchClient, models
    from azure.mgmt.batch import BatchManagementClient
    from azure.mgmt.batch import models as management_models

    account = f"cudock{RUN}"
    parameters = management_models.BatchAccountCreateParameters(
        location=REGION,
        tags=TAGS,
        pool_allocation_mode="BatchService",
        allowed_authentication_modes=["AAD"],
    )
    management(BatchManagementClient, recorder).batch_account.begin_create(GROUP, account, parameters).result()

    client = BatchClient(recorder.url, AzureNamedKeyCredential(account, "a2V5"))
    metadata = [models.BatchMetadataItem(name=name, value=value) for name, value in TAGS.items()]
    server, username, password = REGISTRY
    machines = models.VirtualMachineConfiguration(
        image_reference=models.BatchVmImageReference(
            publisher="microsoft-dsvm", offer="ubuntu-hpc", sku="2204", version="latest"
        ),
        node_agent_sku_id="batch.node.ubuntu 22.04",
        container_configuration=models.BatchContainerConfiguration(
            type="dockerCompatible",
            container_image_names=[IMAGE],
            container_registries=[
                models.ContainerRegistryReference(registry_server=server, username=username, password=password)
            ],
        ),
        os_disk=models.BatchOsDisk(disk_size_gb=256),
    )
    pool = models.BatchPoolSpecification(
        vm_size=SIZE,
        virtual_machine_configuration=machines,
        target_dedicated_nodes=1,
        target_low_priority_nodes=0,
        resize_timeout=datetime.timedelta(minutes=15),
        enable_inter_node_communication=False,
        task_slots_per_node=1,
        metadata=metadata,
    )
    client.create_job(
        models.BatchJobCreateOptions(
            id=GROUP,
            display_name="digits",
            max_parallel_tasks=2,
            # Two items one after the other, each tried twice, and an hour for the start.
            constraints=models.BatchJobConstraints(
                max_wall_clock_time=4 * TIME_LIMIT + datetime.timedelta(hours=1), max_task_retry_count=1
            ),
            pool_info=models.BatchPoolInfo(
                auto_pool_specification=models.BatchAutoPoolSpecification(
                    auto_pool_id_prefix="cudock", pool_lifetime_option="job", keep_alive=False, pool=pool
                )
            ),
            metadata=metadata,
        )
    )
    arguments = "train.py --note 'it'\\''s ${HOME}'"
    tasks = [
        models.BatchTaskCreateOptions(
            id=f"item-{index}",
            command_line=f"{arguments} {item}",
            container_settings=models.BatchTaskContainerSettings(
                image_name=IMAGE, container_run_options="--rm --shm-size=8g --entrypoint python"
            ),
            environment_settings=[
                models.EnvironmentSetting(name=PLAIN[0], value=PLAIN[1]),
                models.EnvironmentSetting(name=SECRET[0], value=SECRET[1]),
            ],
            constraints=models.BatchTaskConstraints(max_wall_clock_time=TIME_LIMIT, max_task_retry_count=1),
        )
        for index, item in enumerate(["a.csv", "'it'\\''s [b].csv'"])
    ]
    client.create_task_collection(GROUP, models.BatchTaskGroup(task_values=tasks))
    client.update_job(GROUP, models.BatchJobUpdateOptions(all_tasks_complete_mode="terminatejob"))


def container_apps_environment(client, models):
    environment = models.ManagedEnvironment(
        location=REGION,
        tags=TAGS,
        workload_profiles=[
            models.WorkloadProfile(name="Consumption", workload_profile_type="Consumption"),
            models.WorkloadProfile(name="gpu", workload_profile_type="Consumption-GPU-NC8as-T4"),
        ],
    )
    created = client.managed_environments.begin_create_or_update(GROUP, "main", environment).result()
    return created.id


def container_apps_container(models, probes):
    return models.Container(
        name="main",
        image=IMAGE,
        command=COMMAND[:1],
        args=COMMAND[1:],
        env=[
            models.EnvironmentVar(name=PLAIN[0], value=PLAIN[1]),
            models.EnvironmentVar(name=SECRET[0], secret_ref="variable-1"),
        ],
        resources=models.ContainerResources(cpu=2, memory="4Gi"),
        probes=probes,
    )


def container_apps_access(models):
    server, username, password = REGISTRY
    return {
        "secrets": [
            models.Secret(name="variable-1", value=SECRET[1]),
            models.Secret(name="registry-password", value=password),
        ],
        "registries": [
            models.RegistryCredentials(server=server, username=username, password_secret_ref="registry-password")
        ],
    }


def container_app(recorder):
    from azure.mgmt.appcontainers import ContainerAppsAPIClient, models

    client = management(ContainerAppsAPIClient, recorder)
    probe = models.ContainerAppProbe(
        type="Readiness",
        http_get=models.ContainerAppProbeHttpGet(path="/v2/health/ready", port=8000),
        period_seconds=5,
        failure_threshold=48,
    )
    app = models.ContainerApp(
        location=REGION,
        tags=TAGS,
        environment_id=container_apps_environment(client, models),
        workload_profile_name="gpu",
        configuration=models.Configuration(
            active_revisions_mode="Single",
            ingress=models.Ingress(external=True, target_port=8000, transport="auto", allow_insecure=False),
            **container_apps_access(models),
        ),
        template=models.Template(
            containers=[container_apps_container(models, [probe])],
            scale=models.Scale(min_replicas=1, max_replicas=1),
        ),
    )
    client.container_apps.begin_create_or_update(GROUP, "main", app).result()


def container_job(recorder):
    from azure.mgmt.appcontainers import ContainerAppsAPIClient, models

    client = management(ContainerAppsAPIClient, recorder)
    job = models.Job(
        location=REGION,
        tags=TAGS,
        environment_id=container_apps_environment(client, models),
        workload_profile_name="gpu",
        configuration=models.JobConfiguration(
            trigger_type="Manual",
            replica_timeout=3600,
            replica_retry_limit=1,
            manual_trigger_config=models.JobConfigurationManualTriggerConfig(
                parallelism=1, replica_completion_count=1
            ),
            **container_apps_access(models),
        ),
        template=models.JobTemplate(containers=[container_apps_container(models, None)]),
    )
    client.jobs.begin_create_or_update(GROUP, "main", job).result()
    client.jobs.begin_start(GROUP, "main").result()


def vm(recorder):
    from azure.mgmt.compute import ComputeManagementClient
    from azure.mgmt.compute import models as compute
    from azure.mgmt.network import NetworkManagementClient
    from azure.mgmt.network import models as network

    networks = management(NetworkManagementClient, recorder)
    place = {"location": REGION, "tags": TAGS}
    rule = network.SecurityRule(
        name="service",
        protocol="Tcp",
        access="Allow",
        direction="Inbound",
        priority=100,
        source_address_prefix="*",
        source_port_range="*",
        destination_address_prefix="*",
        destination_port_range="8000",
    )
    group = network.NetworkSecurityGroup(**place, security_rules=[rule])
    group = networks.network_security_groups.begin_create_or_update(GROUP, "main", group).result()
    subnet = network.Subnet(
        name="main", address_prefix="10.0.0.0/24", network_security_group=network.NetworkSecurityGroup(id=group.id)
    )
    virtual = network.VirtualNetwork(
        **place, address_space=network.AddressSpace(address_prefixes=["10.0.0.0/24"]), subnets=[subnet]
    )
    virtual = networks.virtual_networks.begin_create_or_update(GROUP, "main", virtual).result()
    address = network.PublicIPAddress(
        **place, sku=network.PublicIPAddressSku(name="Standard"), public_ip_allocation_method="Static"
    )
    address = networks.public_ip_addresses.begin_create_or_update(GROUP, "main", address).result()
    interface = network.NetworkInterface(
        **place,
        ip_configurations=[
            network.NetworkInterfaceIPConfiguration(
                name="main",
                private_ip_allocation_method="Dynamic",
                subnet=network.Subnet(id=f"{virtual.id}/subnets/main"),
                public_ip_address=network.PublicIPAddress(id=address.id, delete_option="Delete"),
            )
        ],
    )
    interface = networks.network_interfaces.begin_create_or_update(GROUP, "main", interface).result()

    machines = management(ComputeManagementClient, recorder)
    machine = compute.VirtualMachine(
        **place,
        hardware_profile=compute.HardwareProfile(vm_size=SIZE),
        storage_profile=compute.StorageProfile(
            image_reference=compute.ImageReference(
                publisher="microsoft-dsvm", offer="ubuntu-hpc", sku="2204", version="latest"
            ),
            os_disk=compute.OSDisk(
                create_option="FromImage",
                delete_option="Delete",
                caching="ReadWrite",
                disk_size_gb=256,
                managed_disk=compute.ManagedDiskParameters(storage_account_type="Premium_LRS"),
            ),
        ),
        os_profile=compute.OSProfile(
            computer_name="main",
            admin_username=USER,
            custom_data="I2Nsb3VkLWNvbmZpZwo=",
            linux_configuration=compute.LinuxConfiguration(
                disable_password_authentication=True,
                ssh=compute.SshConfiguration(
                    public_keys=[
                        compute.SshPublicKey(path=f"/home/{USER}/.ssh/authorized_keys", key_data="ssh-ed25519 AAAA ada")
                    ]
                ),
            ),
        ),
        network_profile=compute.NetworkProfile(
            network_interfaces=[compute.NetworkInterfaceReference(id=interface.id, delete_option="Delete")]
        ),
    )
    machines.virtual_machines.begin_create_or_update(GROUP, "main", machine).result()
    command = compute.VirtualMachineRunCommand(
        **place,
        source=compute.VirtualMachineRunCommandScriptSource(script="true"),
        async_execution=True,
        timeout_in_seconds=3600,
    )
    machines.virtual_machine_run_commands.begin_create_or_update(GROUP, "main", "state", command).result()


def ml_client(recorder):
    from azure.ai.ml import MLClient

    return MLClient(Credential(), SUBSCRIPTION, "team", "lab", enable_telemetry=False)


def ml_environment(client, **options):
    from azure.ai.ml.entities import Environment

    environment = Environment(name=GROUP, version="1", image=IMAGE, os_type="Linux", tags=TAGS, **options)
    client.environments.create_or_update(environment)
    return f"azureml:{GROUP}:1"


def ml_job(recorder):
    from azure.ai.ml import command

    client = ml_client(recorder)
    job = command(
        name=GROUP,
        command="python train.py --note 'it'\\''s ${HOME}'",
        display_name="digits",
        experiment_name="cudock",
        environment=ml_environment(client),
        environment_variables=dict([PLAIN, SECRET]),
        instance_type=SIZE,
        instance_count=1,
        shm_size="8g",
        timeout=int(TIME_LIMIT.total_seconds()),
        tags=TAGS,
    )
    job.set_queue_settings(job_tier="standard")
    client.jobs.create_or_update(job)


def ml_endpoint(recorder):
    from azure.ai.ml.entities import (
        IdentityConfiguration,
        ManagedOnlineDeployment,
        ManagedOnlineEndpoint,
        OnlineRequestSettings,
        ProbeSettings,
    )

    client = ml_client(recorder)
    ready = {"path": "/v2/health/ready", "port": 8000}
    routes = {"liveness_route": ready, "readiness_route": ready, "scoring_route": {"path": "/score", "port": 8000}}
    environment = ml_environment(client, inference_config=routes)
    endpoint = ManagedOnlineEndpoint(
        name=GROUP,
        location=REGION,
        auth_mode="key",
        public_network_access="enabled",
        identity=IdentityConfiguration(type="system_assigned"),
        tags=TAGS,
    )
    client.online_endpoints.begin_create_or_update(endpoint).result()
    probe = ProbeSettings(initial_delay=10, period=10, timeout=2, failure_threshold=180, success_threshold=1)
    deployment = ManagedOnlineDeployment(
        name="main",
        endpoint_name=GROUP,
        environment=environment,
        environment_variables=dict([PLAIN, SECRET]),
        instance_type=SIZE,
        instance_count=1,
        app_insights_enabled=False,
        request_settings=OnlineRequestSettings(request_timeout_ms=180_000, max_concurrent_requests_per_instance=64),
        liveness_probe=probe,
        readiness_probe=probe,
        tags=TAGS,
    )
    client.online_deployments.begin_create_or_update(deployment).result()
    endpoint.traffic = {"main": 100}
    client.online_endpoints.begin_create_or_update(endpoint).result()
