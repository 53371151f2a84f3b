"""Prints what Optuna reads from a journal file, as JSON.

    python load.py FILE
"""

import json
import sys
import warnings

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

warnings.simplefilter("error")
optuna.logging.set_verbosity(optuna.logging.ERROR)
storage = JournalStorage(JournalFileBackend(sys.argv[1]))
(summary,) = optuna.get_all_study_summaries(storage)
study = optuna.load_study(study_name=summary.study_name, storage=storage)


def described(trial):
    for name, value in trial.params.items():
        distribution = trial.distributions[name]
        assert distribution._contains(distribution.to_internal_repr(value)), (name, value, distribution)
    return {
        "number": trial.number,
        "state": trial.state.name,
        "values": trial.values,
        "params": trial.params,
        "distributions": {name: str(value) for name, value in trial.distributions.items()},
        "intermediate": {step: str(value) for step, value in trial.intermediate_values.items()},
        "seconds": trial.duration.total_seconds() if trial.duration else None,
        "reason": trial.user_attrs.get("reason"),
    }


single = len(study.directions) == 1
report = {
    "directions": [direction.name for direction in study.directions],
    "metric_names": study.metric_names,
    "trials": [described(trial) for trial in study.trials],
    "best": study.best_trial.number if single else None,
    "front": sorted(trial.number for trial in study.best_trials) if not single else None,
}

# A sampler learns from the trials and proposes within their distributions.
study.sampler = optuna.samplers.TPESampler(n_startup_trials=1, seed=1)
trial = study.ask(study.trials[1].distributions)
study.tell(trial, [0.5] * len(study.directions))
report["is_extended"] = study.trials[-1].number == len(report["trials"]) and set(trial.params) == set(study.trials[1].params)
print(json.dumps(report))
