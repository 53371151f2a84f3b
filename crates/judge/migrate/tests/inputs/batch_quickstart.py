"""Runs tasks on a pool of GPU nodes."""
import datetime
import azure.batch.batch_auth as batchauth
import azure.batch._batch_service_client as batch
import azure.batch.models as batchmodels
from azure.batch.models import BatchErrorException, TaskState
from azure.common.credentials import ServicePrincipalCredentials


def create_pool(batch_service_client: batch.BatchServiceClient, pool_id: str):
    new_pool = batchmodels.PoolAddParameter(
        id=pool_id,
        virtual_machine_configuration=batchmodels.VirtualMachineConfiguration(
            image_reference=batchmodels.ImageReference(
                publisher="microsoft-dsvm", offer="ubuntu-hpc", sku="2204", version="latest"),
            node_agent_sku_id="batch.node.ubuntu 22.04",
            container_configuration=batchmodels.ContainerConfiguration(type="dockerCompatible")),
        vm_size="STANDARD_NC4AS_T4_V3",
        max_tasks_per_node=2,
        start_task=batchmodels.StartTask(
            command_line="nvidia-smi",
            user_identity=batchmodels.UserIdentity(
                auto_user=batchmodels.AutoUserSpecification(
                    scope=batchmodels.AutoUserScope.pool,
                    elevation_level=batchmodels.ElevationLevel.admin))),
        target_dedicated_nodes=1)
    batch_service_client.pool.add(new_pool)


def wait(client, job_id):
    tasks = client.task.list(job_id, task_list_options=batchmodels.TaskListOptions(filter="state eq 'running'"))
    return [task for task in tasks if task.state != TaskState.completed]


if __name__ == "__main__":
    credentials = batchauth.SharedKeyCredentials(ACCOUNT, KEY)
    batch_client = batch.BatchServiceClient(credentials, batch_url=URL)
    try:
        create_pool(batch_client, "gpus")
        batch_client.job.add(batchmodels.JobAddParameter(
            id="job", pool_info=batchmodels.PoolInformation(pool_id="gpus"),
            on_all_tasks_complete=batchmodels.OnAllTasksComplete.terminate_job))
        batch_client.task.add_collection("job", value=[
            batchmodels.TaskAddParameter(id=f"t{i}", command_line="python train.py") for i in range(4)])
        out = batch_client.file.get_from_task("job", "t0", "stdout.txt")
    except BatchErrorException as error:
        print(error.message)  # models.Pool is only a word here
    finally:
        batch_client.job.delete("job")
        batch_client.certificate.list()
