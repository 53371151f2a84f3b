from azureml.train.dnn import PyTorch
from azureml.train.hyperdrive import *

def configure(ws, experiment):
    estimator = PyTorch(source_directory=project_folder, script_params={"--layers": 3, "--amp": ""},
                        compute_target=ws.compute_targets["v100"], entry_script="main.py", use_gpu=True)
    ps = BayesianParameterSampling({"lr": uniform(0.0001, 0.1), "depth": randint(8), "noise": lognormal(0, 1)})
    return HyperDriveRunConfig(estimator=estimator, hyperparameter_sampling=ps,
        policy=MedianStoppingPolicy(delay_evaluation=5), primary_metric_name='loss',
        primary_metric_goal=PrimaryMetricGoal.MINIMIZE, max_total_runs=5000)
