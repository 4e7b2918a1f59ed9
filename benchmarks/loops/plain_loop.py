"""Federated averaging as it is usually written in PyTorch, with PyTorch's default number of threads.

Each client in turn trains a copy of the model with a DataLoader and torch.optim.SGD.
"""

import time

BEGAN = time.perf_counter()

import copy  # noqa: E402
from itertools import islice  # noqa: E402

import torch  # noqa: E402
import workload  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402


def main() -> None:
    """Run the rounds."""
    told = workload.arguments(__doc__).parse_args()
    model = workload.build(told.model, told.seed)
    shares = workload.load_shares(told.data, told.clients, told.seed)
    loaders = [DataLoader(TensorDataset(*share), batch_size=told.batch, shuffle=True) for share in shares]
    sizes = [len(share[1]) for share in shares]
    ends = []
    for _ in range(told.rounds):
        start = model.state_dict()
        mean = {name: torch.zeros_like(value, dtype=torch.float32) for name, value in start.items()}
        for loader, size in zip(loaders, sizes, strict=True):
            client = copy.deepcopy(model)
            workload.train(client, islice(loader, told.steps), told.learning_rate)
            for name, value in client.state_dict().items():
                mean[name] += size / sum(sizes) * value
        model.load_state_dict({name: value.to(start[name].dtype) for name, value in mean.items()})
        ends.append(time.perf_counter())
    workload.report("plain loop", torch.__version__, BEGAN, ends, model.state_dict())


if __name__ == "__main__":
    main()
