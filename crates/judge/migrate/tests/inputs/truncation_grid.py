from azureml.core import ScriptRunConfig
from azureml.train.hyperdrive import GridParameterSampling, HyperDriveConfig, TruncationSelectionPolicy, choice
BATCHES = list(range(16, 65, 16))
job = ScriptRunConfig(".", command="python -m app.train --epochs 5", compute_target="cpu-cluster")
job.run_config.environment = Environment.get(workspace=ws, name="AzureML-PyTorch-1.6-GPU")
sweep = HyperDriveConfig(
    GridParameterSampling({"batch": choice(BATCHES), "optimizer": choice("sgd", "adam")}), "f1", "maximize", 8, 2,
    policy=TruncationSelectionPolicy(20, 2, exclude_finished_jobs=True), run_config=job)
