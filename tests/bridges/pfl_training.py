"""Training by pfl with the local steps of the package; a program for several processes."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel
from torch.nn import functional

import bridging
from airpass import Link
from airpass.core.randomness import Purpose, stream
from airpass.learning.client import draw_batches
from airpass.learning.data.partition import FederatedData
from airpass.pfl import OverTheAir, SelectedCohort, SelectedUsers

USERS = [f"user {k}" for k in range(bridging.DEVICES)]


class Share(PyTorchTensorDataset):  # type: ignore[misc]
    """A user's samples, with the mini-batches of `airpass.train`."""

    def __init__(self, trainer: Any, device: int, number: int) -> None:
        own = torch.from_numpy(trainer.samples[device])
        super().__init__((trainer.inputs[own], trainer.targets[own]), user_id=USERS[device])
        rng = stream(bridging.SEED, Purpose.BATCHES, number, device)
        self.batches = draw_batches(trainer.samples[device], trainer.work, rng)
        self.trainer = trainer

    def iter(self, batch_size: int) -> Iterator[Any]:
        for batch in self.batches:
            chosen = torch.from_numpy(batch)
            yield self.trainer.inputs[chosen], self.trainer.targets[chosen]


class Watch(TrainingProcessCallback):  # type: ignore[misc]
    """Metrics of all rounds."""

    def __init__(self) -> None:
        self.metrics: list[Metrics] = []

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: Any, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        self.metrics.append(aggregate_metrics)
        return False, Metrics()


def of_sizes(link: Link, sizes: Iterable[int]) -> list[Link]:
    """Links with the same beam that select the given numbers of devices."""
    from_best = np.sort(link.scores)[::-1]
    factors = [1.001 / from_best[size - 1] if size else 0.999 / from_best[0] for size in sizes]
    return [replace(link, budget=link.budget * factor) for factor in factors]


def trained(
    link: Any,
    data: FederatedData,
    rounds: int = bridging.ROUNDS,
    before: Any = (),
    sampler: Any = None,
    cohort: Any = None,
    devices: Any = None,
    validated: int = 0,
    drawn: Any = None,
) -> tuple[NDArray[np.float32], OverTheAir, list[Metrics]]:
    """State of the model in the end, the postprocessor, and the metrics.

    With `validated`, as many users are drawn for validation after each round. `drawn` gets all drawn users.
    """
    options = replace(bridging.OPTIONS, rounds=rounds)
    trainer = bridging.trainer(data, options)
    air = OverTheAir(link, USERS if devices is None else devices, seed=bridging.SEED)

    def share(user: Any) -> Share:
        if drawn is not None:
            drawn.append(user)
        return Share(trainer, USERS.index(user), air.round)

    users = FederatedDataset(share, sampler or SelectedUsers(air))
    net: Any = trainer.flat.model
    net.loss = lambda x, y: functional.cross_entropy(net(x), y)
    net.metrics = lambda x, y: {}
    net.train()
    model = PyTorchModel(
        net,
        local_optimizer_create=torch.optim.SGD,
        central_optimizer=torch.optim.SGD(net.parameters(), lr=1.0),
    )
    watch = Watch()
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=rounds,
            evaluation_frequency=1 if validated else rounds + 1,
            train_cohort_size=cohort or SelectedCohort(air),
            val_cohort_size=validated,
        ),
        backend=SimulatedBackend(
            training_data=users, val_data=users, postprocessors=[WeightByDatapoints(), *before, air]
        ),
        model=model,
        model_train_params=NNTrainHyperParams(
            local_num_epochs=None,
            local_num_steps=options.local_steps,
            local_batch_size=options.batch,
            local_learning_rate=options.learning_rate,
        ),
        model_eval_params=NNEvalHyperParams(local_batch_size=options.batch),
        callbacks=[watch],
        send_metrics_to_platform=False,
    )
    return trainer.flat.read(), air, watch.metrics


if __name__ == "__main__":
    torch.set_num_threads(1)
    directory, sizes, validated = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3])
    scenario, data = bridging.prepared()
    links = of_sizes(bridging.designed(scenario), map(int, sizes))
    drawn: list[str] = []
    state, air, _ = trained(links, data, validated=validated, drawn=drawn)
    np.savez(
        f"{directory}/{torch.distributed.get_rank()}.npz",
        state=state,
        senders=[len(one.senders) for one in air.rounds],
        drawn=drawn,
    )
