"""Trains the example's classifier on the iris data of scikit-learn, and writes model.joblib."""

from pathlib import Path

import joblib
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

SEED = 5
HERE = Path(__file__).parent


def main():
    iris = load_iris()
    # Names instead of numbers, so that responses have them.
    species = iris.target_names[iris.target]
    flowers, others, species, others_species = train_test_split(
        iris.data, species, test_size=50, stratify=species, random_state=SEED
    )
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(flowers, species)
    joblib.dump(model, HERE / "model.joblib")
    right = (model.predict(others) == others_species).sum()
    print(f"{right} of {len(others)} other flowers are classified correctly")


if __name__ == "__main__":
    main()
