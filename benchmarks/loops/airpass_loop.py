"""Federated averaging by airpass: training rounds with ideal aggregation, without evaluation."""

import time

BEGAN = time.perf_counter()

from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402

import torch  # noqa: E402
import workload  # noqa: E402

import airpass  # noqa: E402
from airpass import Scenario, TrainOptions  # noqa: E402
from airpass.core.threads import one_blas_thread, processors  # noqa: E402
from airpass.learning.aggregation import weighted_mean  # noqa: E402
from airpass.learning.pool import Pool  # noqa: E402
from airpass.learning.rounds import make_trainer  # noqa: E402
from airpass.learning.training import prepare  # noqa: E402


def main() -> None:
    """Run the rounds."""
    told = workload.arguments(__doc__).parse_args()
    options = TrainOptions(
        model=told.model,
        batch=told.batch,
        learning_rate=told.learning_rate,
        local_steps=told.steps,
        test_images=1,
        probe_images=1,
    )
    name, folder = Path(told.data).stem, Path(told.data).parent
    scenario, data = prepare(Scenario.paper(told.clients), name, options, told.seed, folder)
    make = partial(make_trainer, data.dataset.in_shared_memory(), data.samples, options, told.seed)
    state = make().flat.read()
    ends = []
    with Pool(make, min(processors(), told.clients), told.clients, state.size) as pool:
        for number in range(told.rounds):
            changes, _ = pool.updates(state, number, range(told.clients))
            with one_blas_thread():
                state = state + weighted_mean(changes, scenario.weights)
            ends.append(time.perf_counter())
    workload.report("airpass", airpass.__version__, BEGAN, ends, {"state": torch.from_numpy(state)})


if __name__ == "__main__":
    main()
