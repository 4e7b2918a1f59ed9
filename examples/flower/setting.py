"""What the server and all clients know: devices, data and model."""

import torch

from airpass import PartitionOptions, Scenario, TrainOptions, prepare
from airpass.learning.models import mnist_cnn

DEVICES = 12
SPLIT = TrainOptions(partition=PartitionOptions(kind="iid"))
SCENARIO, DATA = prepare(Scenario.paper(devices=DEVICES, snr_db=0.0, seed=1), "mnist-mini", SPLIT)


def images(values):
    """Images as the network sees them: standardised, channels first."""
    return (torch.from_numpy(values).permute(0, 3, 1, 2) / 255.0 - 0.1307) / 0.3081


def new_model():
    """The paper's network for MNIST."""
    torch.manual_seed(0)
    return mnist_cnn()
