import math
from azureml.core import Environment, Experiment, ScriptRunConfig, Workspace
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.train.hyperdrive import (
    BanditPolicy, HyperDriveConfig, PrimaryMetricGoal, RandomParameterSampling, choice, loguniform,
    quniform, uniform,
)

ws = Workspace.from_config()
cluster_name = "gpu-cluster"
config = AmlCompute.provisioning_configuration(vm_size="STANDARD_NC6", max_nodes=4)
compute_target = ComputeTarget.create(ws, cluster_name, config)

env = Environment("pytorch-mnist")
env.docker.base_image = "registry.example/mnist:1.4"
dataset = ws.datasets["mnist"]

src = ScriptRunConfig(source_directory="./src", script="train.py",
                      arguments=["--data-folder", dataset.as_named_input("mnist").as_mount(), "--epochs", 10],
                      compute_target=compute_target,
                      environment=env)

param_sampling = RandomParameterSampling({
    "--batch-size": choice(16, 32, 64),
    "--learning-rate": loguniform(math.log(1e-4), math.log(1e-1)),
    "--momentum": uniform(0.5, 0.99),
    "--hidden": quniform(64, 512, 64),
    "--nesterov": choice([True, False]),
    "--warmup": choice(*warmups),
})

policy = BanditPolicy(slack_factor=0.2, evaluation_interval=1, delay_evaluation=5)

hyperdrive_config = HyperDriveConfig(run_config=src,
                                     hyperparameter_sampling=param_sampling,
                                     policy=policy,
                                     primary_metric_name="validation_acc",
                                     primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
                                     max_total_runs=27,
                                     max_concurrent_runs=3,
                                     max_duration_minutes=60 * 4)
run = Experiment(workspace=ws, name="mnist-sweep").submit(hyperdrive_config)
run.wait_for_completion(show_output=True)
