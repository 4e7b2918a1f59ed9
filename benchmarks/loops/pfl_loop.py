"""Federated averaging by pfl: FederatedAveraging, PyTorchModel, SimulatedBackend.

Runs as one process, or as several under torchrun.
"""

import time

BEGAN = time.perf_counter()

import os  # noqa: E402
from collections import Counter  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from importlib.metadata import version  # noqa: E402
from typing import Any  # noqa: E402

os.environ.setdefault("PFL_PYTORCH_DEVICE", "cpu")

import numpy as np  # noqa: E402
import torch  # noqa: E402
import workload  # noqa: E402
from pfl.aggregate.simulate import SimulatedBackend  # noqa: E402
from pfl.aggregate.weighting import WeightByDatapoints  # noqa: E402
from pfl.algorithm.base import NNAlgorithmParams  # noqa: E402
from pfl.algorithm.federated_averaging import FederatedAveraging  # noqa: E402
from pfl.callback.base import TrainingProcessCallback  # noqa: E402
from pfl.data.federated_dataset import FederatedDataset  # noqa: E402
from pfl.data.pytorch import PyTorchTensorDataset  # noqa: E402
from pfl.data.sampling import get_user_sampler  # noqa: E402
from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams  # noqa: E402
from pfl.internal.ops.selector import get_default_framework_module  # noqa: E402
from pfl.metrics import Metrics  # noqa: E402
from pfl.model.pytorch import PyTorchModel  # noqa: E402
from torch.nn import functional  # noqa: E402


class Drawn(PyTorchTensorDataset):
    """Data of a client, with new random batches in each round.

    pfl's own data set splits the data in order, so that every round would use the same few images.
    """

    def __init__(self, share: workload.Share, client: int, seed: int, round_number: int, steps: int) -> None:
        super().__init__(share, user_id=client)
        self._drawn = (share, seed, round_number, client, steps)

    def iter(self, batch_size: int) -> Iterator[workload.Share]:
        """Mini-batches."""
        return workload.batches(*self._drawn, batch_size)


class Clock(TrainingProcessCallback):
    """Records the end time of each round."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def after_central_iteration(self, aggregate_metrics: Any, model: Any, *, central_iteration: int) -> Any:
        """Record the time."""
        self.ends.append(time.perf_counter())
        return False, Metrics()


def main(began: float) -> None:
    """Run the rounds."""
    parser = workload.arguments(__doc__)
    parser.add_argument("--threads", type=int, default=1, help="threads per process")
    parser.add_argument("--air", action="store_true", help="updates over the air; needs airpass")
    told = parser.parse_args()
    torch.set_num_threads(told.threads)
    np.random.seed(told.seed)  # noqa: NPY002 - pfl draws users from it
    shares = workload.load_shares(told.data, told.clients, told.seed)
    seen: Counter[int] = Counter()  # number of requests per client, which is its round

    def dataset(client: int) -> Drawn:
        seen[client] += 1
        return Drawn(shares[client], client, told.seed, seen[client] - 1, told.steps)

    data = FederatedDataset(dataset, get_user_sampler("minimize_reuse", list(range(told.clients))))
    postprocessors: list[Any] = [WeightByDatapoints()]
    if told.air:
        from airpass.pfl import OverTheAir

        postprocessors.append(OverTheAir(workload.air_link(told.clients), range(told.clients)))
    backend = SimulatedBackend(training_data=data, val_data=data, postprocessors=postprocessors)
    net: Any = workload.build(told.model, told.seed)
    net.loss = lambda x, y: functional.cross_entropy(net(x), y)
    net.metrics = lambda x, y: {}  # nothing is evaluated
    net.train()
    model = PyTorchModel(
        net,
        local_optimizer_create=torch.optim.SGD,
        central_optimizer=torch.optim.SGD(net.parameters(), lr=1.0),
    )
    clock = Clock()
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=told.rounds,
            evaluation_frequency=told.rounds + 1,
            train_cohort_size=told.clients,
            val_cohort_size=0,
        ),
        backend=backend,
        model=model,
        model_train_params=NNTrainHyperParams(
            local_num_epochs=None,
            local_num_steps=told.steps,
            local_batch_size=told.batch,
            local_learning_rate=told.learning_rate,
        ),
        # Used by the empty evaluation of the first round; without it pfl would load all data.
        model_eval_params=NNEvalHyperParams(local_batch_size=told.batch),
        callbacks=[clock],
        send_metrics_to_platform=False,
    )
    if get_default_framework_module().distributed.global_rank == 0:
        workload.report("pfl", version("pfl"), began, clock.ends, net.state_dict())


if __name__ == "__main__":
    main(BEGAN)
