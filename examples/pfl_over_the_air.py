"""Federated averaging by pfl with updates over the air: `pip install 'airpass[pfl,learn]'`."""

import os

os.environ.setdefault("PFL_PYTORCH_DEVICE", "cpu")

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
from pfl.model.pytorch import PyTorchModel

from airpass import PartitionOptions, Scenario, TrainOptions, design, prepare
from airpass.learning.models import mnist_cnn
from airpass.pfl import OverTheAir, SelectedCohort, SelectedUsers

DEVICES, ROUNDS = 12, 20
torch.set_num_threads(1)
torch.manual_seed(0)
rng = np.random.default_rng(0)


class Network(torch.nn.Sequential):
    """The paper's network, with the loss and the metrics that pfl asks for."""

    def loss(self, images, labels):
        """Cross-entropy."""
        return torch.nn.functional.cross_entropy(self(images), labels)

    def metrics(self, images, labels):
        """Accuracy."""
        with torch.no_grad():
            return {"accuracy": (self(images).argmax(1) == labels).float().mean().item()}


def samples(images, labels, **user):
    """Standardised images, channels first, and labels."""
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2) / 255.0
    return PyTorchTensorDataset(((pixels - 0.1307) / 0.3081, torch.from_numpy(labels).long()), **user)


def own_samples(user):
    """The samples of a user, in another order each time."""
    own = rng.permutation(data.samples[user])
    return samples(data.dataset.x_train[own], data.dataset.y_train[own], user_id=user)


split = TrainOptions(partition=PartitionOptions(kind="iid"))
scenario, data = prepare(Scenario.paper(devices=DEVICES, snr_db=0.0, seed=1), "mnist-mini", split)
air = OverTheAir(design(scenario, "airpass-plus"), range(DEVICES))  # user k is device k
users = FederatedDataset(own_samples, SelectedUsers(air))
network = Network(mnist_cnn())
model = PyTorchModel(network, torch.optim.SGD, torch.optim.SGD(network.parameters(), lr=1.0))
FederatedAveraging().run(
    NNAlgorithmParams(ROUNDS, ROUNDS + 1, train_cohort_size=SelectedCohort(air), val_cohort_size=0),
    SimulatedBackend(users, users, postprocessors=[air]),
    model,
    NNTrainHyperParams(
        local_num_epochs=None, local_num_steps=3, local_batch_size=32, local_learning_rate=0.1
    ),
    NNEvalHyperParams(local_batch_size=100),
    send_metrics_to_platform=False,
)
last = air.rounds[-1]
reached = model.evaluate(samples(data.dataset.x_test, data.dataset.y_test))["accuracy"]
print(f"{len(last.senders)} of {DEVICES} devices sent, SDR {last.measured_sdr_db:.1f} dB")
print(f"accuracy {reached:.3f} after {ROUNDS} rounds")
